"""Augmentation of training data: an ordered list in the config, each entry with its probability.

Each augmentation is a frozen config with an `apply` that draws its values from a generator and hands them to
the arithmetic beside it. `samples` are float32 (N,) with N ≥ 1 and are never changed in place; what comes back
is float32, finite where the input was, and may be louder than full scale: nothing is clipped that was not asked
to be. Validation, evaluation and serving never meet this room.
"""
