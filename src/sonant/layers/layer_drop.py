"""Layer drop: whole layers left out of a training step, the same ones on every rank.

Reference: Fan, Grave, Joulin, "Reducing Transformer Depth on Demand with Structured Dropout" (2019). Unlike there,
the draw belongs to the step, so that ranks agree, micro-batches share it, and recomputation repeats it.
"""

from __future__ import annotations

from sonant.base.randomness import stable_hash, uniform_for


def draw_of(seed: int, step: int) -> int:
    """What a step of a run draws its layers from."""
    return stable_hash(seed, step, "layer drop")


def is_dropped(layer: int, probability: float, draw: int) -> bool:
    return probability > 0 and uniform_for(draw, f"layer {layer}") < probability
