"""How good answers are: errors of words, agreement of labels, closeness of ratings, each with its interval."""
