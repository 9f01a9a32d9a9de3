"""Scores of frames become text: greedy, beam search with language models, alignment, rescoring, long audio."""
