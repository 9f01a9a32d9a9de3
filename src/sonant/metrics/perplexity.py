"""How surprised a language model is: what its loss means for a token, a word, a byte."""

from __future__ import annotations

import math


def perplexity(loss: float) -> float:
    """Among how many equally likely continuations the model chooses, on average; infinite beyond all numbers."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def bits(nats: float) -> float:
    return nats / math.log(2)
