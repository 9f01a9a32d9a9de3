"""PREPARATION: decodes every recording once, judges every utterance, and writes the corpus only when it is sound."""
