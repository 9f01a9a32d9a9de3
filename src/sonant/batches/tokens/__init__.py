"""TEXTS -> token file -> batches: tokenized once, read from disk by place, packed into rows of a model's width."""
