"""Processes that have everything imported already: a training in one of its own begins at once."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["killed_training", "accelerate", "sonant.training.start"])
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{Path(__file__).parents[1] / 'support'}:{before}"
    yield context
    os.environ["PYTHONPATH"] = before
