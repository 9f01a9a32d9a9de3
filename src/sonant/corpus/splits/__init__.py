"""SPLITS: which utterances train, which steer and which judge; the same for ever for the same inputs and seed."""

from sonant.corpus.splits.assign import Splitter, assign_splits, plan_splits
from sonant.corpus.splits.config import SplitConfig
from sonant.corpus.splits.files import Splits, load_splits, save_splits
from sonant.corpus.splits.plans import plan_names

__all__ = [
    "SplitConfig",
    "Splits",
    "Splitter",
    "assign_splits",
    "load_splits",
    "plan_names",
    "plan_splits",
    "save_splits",
]
