"""Shards of weights that several ranks hold: recognisers whose parts are looked into learn what whole ones learn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from noises import corpus_of_noises

TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
TINY |= {"conv_dim": (8,) * 7, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}
ENCODER = (
    "{convolutions: {widths: [8, 8, 8, 8, 8, 8, 8]}, position_kernel: 8, position_groups: 2, "
    "transformer: {width: 16, hidden_width: 32, num_layers: 2, num_heads: 2, layer_drop: 0.3, "
    "dropout: 0.0, attention_dropout: 0.0, hidden_dropout: 0.0}}"
)
TASKS = {
    "ctc": f"model={{kind: encoder, family: wavlm, settings: {json.dumps(TINY)}, layer_drop: 0.3}}",
    "pretrain": f"learning={{kind: best_rq, model: {{encoder: {ENCODER}, targets: {{num_entries: 16}}}}}}",
}
QUICK = [
    "trainer.limits.max_steps=6",
    "trainer.rhythm.validate=3",
    "trainer.rhythm.log=1",
    "trainer.guard.scan=false",
    "trainer.threads=1",
    "batches.max_seconds=4",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_of_noises(tmp_path_factory, 14, lambda rng: "".join(rng.choice(list("abc"), 6)))


def losses(task: str, corpus: str, run: Path, *settings: str) -> list[float]:
    """Of every step, of two ranks."""
    words = [word for setting in (*QUICK, TASKS[task], *settings) for word in ("--set", setting)]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "sonant.cli.main", "--", "train", task, corpus, "--run", str(run), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "SONANT_CACHE": str(run.parent / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] in ("train", "validation")]


@pytest.mark.slow
@pytest.mark.parametrize("task", sorted(TASKS))
def test_sharded_recognisers_and_encoders_learn_what_whole_ones_learn(task, corpus, tmp_path):
    whole = losses(task, corpus, tmp_path / "whole")
    sharded = losses(task, corpus, tmp_path / "sharded", "trainer.sharded=true")
    assert len(whole) == 8
    assert sharded == pytest.approx(whole, rel=1e-4)
