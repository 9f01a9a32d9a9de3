"""`train_results.json`, `eval_results.json` and both together: the last word of a run, for programs."""

from __future__ import annotations

import json
from typing import Any

from sonant.base import storage
from sonant.training.pace import Pace
from sonant.training.parts import TrainResult
from sonant.training.run_folder import RunFolder


def write_results(run: RunFolder, result: TrainResult, pace: Pace) -> None:
    """Writes the three files and sends them with the log."""
    evaluated: dict[str, Any] = {f"eval_{name}": value for name, value in result.metrics.items()}
    evaluated |= {"eval_step": result.best_step} if result.metrics else {}
    trained: dict[str, Any] = {
        "train_steps": result.step,
        "train_seconds": round(pace.seconds() - pace.total_paused, 3),  # of this start, without validation
        "train_utterances": pace.total.num_utterances,
        "train_reason": result.reason,
        "is_finished": result.is_finished,
    }
    files = {"train_results.json": trained, "eval_results.json": evaluated, "all_results.json": trained | evaluated}
    for name, values in files.items():
        storage.write_text(run.path(name), json.dumps(values, indent=2, ensure_ascii=False) + "\n")
        run.send_file(name)
    run.send_file("metrics.jsonl")
