"""A model and a batch become a loss: totals over examples, with the counts that divide them."""
