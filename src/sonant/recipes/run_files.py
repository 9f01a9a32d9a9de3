"""What a run keeps beside its bundle: the tokenizer that it began with, and the rows behind the figures of the best."""

from __future__ import annotations

import os
from collections.abc import Callable

from sonant.base import storage
from sonant.evaluation.table import Evaluation, write_evaluation
from sonant.text.tokenizer import Tokenizer, load_tokenizer
from sonant.training.run_folder import RunFolder

TOKENIZER = "tokenizer"  # a folder
_ROWS = "utterances.parquet"


def kept_tokenizer(run: RunFolder, found: Callable[[], Tokenizer]) -> Tokenizer:
    """The one that the run began with; at its beginning, what is found for it."""
    kept = run.path(TOKENIZER)
    if not os.path.isdir(kept):
        tokenizer = found()
        with storage.storage_errors(kept):
            os.makedirs(kept + ".part", exist_ok=True)
            tokenizer.save(kept + ".part")
            os.rename(kept + ".part", kept)
    return load_tokenizer(kept)


def keep_rows(run: RunFolder, evaluation: Evaluation) -> None:
    """Those of the best weights so far."""
    write_evaluation(run.path(_ROWS), evaluation)
    run.send_file(_ROWS)
