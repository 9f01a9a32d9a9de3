"""What a bundle is worth on a corpus: numbers with intervals, tables by utterance, comparisons of runs."""
