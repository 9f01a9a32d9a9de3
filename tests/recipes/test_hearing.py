"""What frozen parts make of recordings: kept where it is the same each time, and learnt from as if computed anew."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from noises import corpus_of_noises
from transformers import AutoConfig, AutoModel

import sonant
from sonant.base.errors import SonantError
from sonant.models.ctc import FAMILIES
from sonant.models.twins import Hearing

COMMON = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
CONVOLUTIONS = {"conv_dim": (8,) * 7, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}
WAVEFORM = COMMON | CONVOLUTIONS
SEW = {"conv_kernel": (10, 3, 3, 3, 3, 2, 2), "conv_stride": (5, 2, 2, 2, 2, 2, 2), "squeeze_factor": 2}
MOONSHINE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "encoder_num_hidden_layers": 2,
    "encoder_num_attention_heads": 4,
    "decoder_num_hidden_layers": 1,
    "decoder_num_attention_heads": 4,
}
WHISPER = {
    "d_model": 16,
    "encoder_layers": 2,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_layers": 1,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 24,
    "num_mel_bins": 16,
    "max_source_positions": 100,
}
SETTINGS = dict.fromkeys(FAMILIES, WAVEFORM) | {
    "wav2vec2-conformer": WAVEFORM | {"conv_depthwise_kernel_size": 7},
    "data2vec-audio": WAVEFORM | {"num_conv_pos_embeddings": 3, "conv_pos_kernel_size": 9},
    "sew": WAVEFORM | SEW,
    "wav2vec2-bert": COMMON | {"conv_depthwise_kernel_size": 7},
    "moonshine": MOONSHINE,
    "whisper": WHISPER,
}
HALVES = ("moonshine", "whisper")
LAYER = "{width: 16, hidden_width: 32, num_heads: 2, kernel_size: 5, dropout: 0.0}"
CONFORMER = f"model={{kind: conformer, layer: {LAYER}, num_layers: 2, channels: 4, position_kernel: 5}}"
CONFORMER_FROZEN = "freeze=[first, second, project, positions, layers.0-1]"
NUM_UTTERANCES = 10
QUICK = [
    "trainer.limits.max_epochs=3",
    "trainer.rhythm.validate=0",
    "trainer.rhythm.log=1",
    "trainer.guard.scan=false",
    "trainer.threads=1",
    "trainer.optimizer.rate=0.01",
    "trainer.schedule.warmup=0",
    "batches.max_seconds=6",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    def text_of(rng: np.random.Generator) -> str:
        return "".join(rng.choice(list("abc "), 8)).strip() + "a"

    return corpus_of_noises(tmp_path_factory, NUM_UTTERANCES + 2, text_of, range(NUM_UTTERANCES, NUM_UTTERANCES + 2))


@pytest.fixture
def checkpoint(request, tmp_path):
    family = getattr(request, "param", "wav2vec2")
    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model(family, **SETTINGS[family])).save_pretrained(tmp_path / "checkpoint")
    return f"model={{kind: encoder, folder: {tmp_path}/checkpoint}}"


def encoder_of(family: str) -> str:
    return "encoder" if family in HALVES else family.replace("-", "_")


def trained(corpus: str, run: Path, *settings: str, **how) -> list[float]:
    """The losses of its steps."""
    sonant.train("ctc", corpus, run=str(run), settings=[*QUICK, *settings], **({"is_silent": True} | how))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "train"]


@pytest.fixture
def heard(monkeypatch) -> list[int | None]:
    """Grows by the depth of whatever is heard by frozen parts."""
    found: list[int | None] = []
    hear = Hearing.__call__

    def listened(hearing: Hearing, samples: np.ndarray) -> np.ndarray:
        found.append(hearing.num_layers)
        return hear(hearing, samples)

    monkeypatch.setattr(Hearing, "__call__", listened)
    return found


def check_heard_once(heard: list[int | None], depth: int | None) -> None:
    """A second of silence; every utterance; and those that another worker was just about to keep."""
    assert set(heard) == {depth}
    assert 1 + NUM_UTTERANCES <= len(heard) <= 1 + 2 * NUM_UTTERANCES  # of three epochs


@pytest.mark.parametrize(
    ("checkpoint", "family"), [(family, family) for family in FAMILIES], indirect=["checkpoint"], ids=FAMILIES
)
def test_a_whole_encoder_that_is_frozen_runs_once_and_what_is_learnt_is_the_same(
    family, checkpoint, corpus, tmp_path, heard
):
    settings = [checkpoint, f"freeze=[{encoder_of(family)}]"]
    anew = trained(corpus, tmp_path / "anew", *settings, "keep_heard=off")
    kept = trained(corpus, tmp_path / "kept", *settings, f"keep_heard={tmp_path}/store")
    check_heard_once(heard, 2)
    assert len(kept) > 5
    assert kept == pytest.approx(anew, rel=1e-5)
    heard.clear()
    again = trained(corpus, tmp_path / "again", *settings, f"keep_heard={tmp_path}/store")
    assert heard == [2]
    assert again == kept


def test_layers_of_a_small_conformer_are_kept_as_well(corpus, tmp_path, heard):
    settings = [CONFORMER, CONFORMER_FROZEN]
    anew = trained(corpus, tmp_path / "anew", *settings, "keep_heard=off")
    kept = trained(corpus, tmp_path / "kept", *settings, f"keep_heard={tmp_path}/store")
    check_heard_once(heard, 2)
    assert kept == pytest.approx(anew, rel=1e-5)


FRONT = "wav2vec2.feature_projection, wav2vec2.encoder.pos_conv_embed, wav2vec2.encoder.layer_norm"


@pytest.mark.parametrize(
    ("settings", "depth", "told"),
    [
        ([f"freeze=[{FRONT}, wav2vec2.encoder.layers.0-0]"], 1, "the front end and 1 of 2 layers"),
        ([f"freeze=[{FRONT}, wav2vec2.encoder.layers.1]"], None, "the front end makes"),
        (["freeze=[wav2vec2.encoder.layers.0-1]"], None, "'wav2vec2.feature_projection.layer_norm.weight' in front"),
        (["freeze=[wav2vec2]", "objective.hiding.frames={probability: 0.2, span: 3}"], None, "objective.hiding hides"),
        (["freeze=[wav2vec2]", "model.dropout=0.1"], None, "hidden_dropout is above 0"),
        (["freeze=[wav2vec2]", "model.layer_drop=0.1"], None, "layerdrop is above 0"),
        (["freeze=[wav2vec2]", "model.final_dropout=0.1"], 2, "2 of 2 layers"),
        (['begins={"wav2vec2.encoder.layers.1": 3}', f"freeze=[{FRONT}, wav2vec2.encoder.layers.0]"], 1, "1 of 2"),
        (['trainer.optimizer.groups={"wav2vec2.*": {"frozen": true}}'], 2, "2 of 2"),
    ],
)
def test_what_is_kept_is_the_deepest_part_that_is_the_same_each_time(
    settings, depth, told, checkpoint, corpus, tmp_path, heard, capsys
):
    store = f"keep_heard={tmp_path}/store"
    kept = trained(corpus, tmp_path / "kept", checkpoint, *settings, store, is_silent=False)
    captured = capsys.readouterr()
    assert told in captured.out + captured.err
    check_heard_once(heard, depth)
    if "dropout" not in settings[-1] and "layer_drop" not in settings[-1]:
        anew = trained(corpus, tmp_path / "anew", checkpoint, *settings, "keep_heard=off")
        assert kept == pytest.approx(anew, rel=1e-5)


def test_other_weights_depths_precisions_and_versions_are_not_taken_for_each_other(
    checkpoint, corpus, tmp_path, heard, monkeypatch
):
    settings = [checkpoint, "freeze=[wav2vec2]", f"keep_heard={tmp_path}/store", "trainer.limits.max_epochs=1"]
    for number, change in enumerate(
        ([], ["keep_heard_precision=bf16"], [f"freeze=[{FRONT}, wav2vec2.encoder.layers.0]"])
    ):
        heard.clear()
        trained(corpus, tmp_path / str(number), *settings, *change)
        assert len(heard) > NUM_UTTERANCES
    heard.clear()
    with monkeypatch.context() as patch:
        patch.setattr(sonant, "__version__", "0.0.1")
        trained(corpus, tmp_path / "version", *settings)
    assert len(heard) > NUM_UTTERANCES
    heard.clear()
    model = AutoModel.from_pretrained(tmp_path / "checkpoint")
    with torch.no_grad():
        model.encoder.layers[1].feed_forward.output_dense.bias += 1
    model.save_pretrained(tmp_path / "checkpoint")
    trained(corpus, tmp_path / "other", *settings)
    assert len(heard) > NUM_UTTERANCES


def test_half_the_precision_takes_half_the_room_and_learns_nearly_the_same(checkpoint, corpus, tmp_path):
    settings = [checkpoint, "freeze=[wav2vec2]"]
    whole = trained(corpus, tmp_path / "whole", *settings, f"keep_heard={tmp_path}/fp32")
    half = trained(corpus, tmp_path / "half", *settings, f"keep_heard={tmp_path}/bf16", "keep_heard_precision=bf16")
    assert half != whole
    assert half == pytest.approx(whole, rel=1e-2)
    sizes = [sum(path.stat().st_size for path in (tmp_path / name).glob("*.data")) for name in ("fp32", "bf16")]
    assert sizes[1] / sizes[0] == pytest.approx(0.5, abs=0.1)


def test_a_training_in_bf16_hears_in_bf16_and_learns_the_same_with_what_is_kept(checkpoint, corpus, tmp_path, heard):
    settings = [checkpoint, "freeze=[wav2vec2]", "trainer.precision=bf16"]
    anew = trained(corpus, tmp_path / "anew", *settings, "keep_heard=off")
    kept = trained(corpus, tmp_path / "kept", *settings, f"keep_heard={tmp_path}/store")
    assert kept == pytest.approx(anew, rel=1e-3)
    heard.clear()
    trained(corpus, tmp_path / "fp32", *settings[:2], f"keep_heard={tmp_path}/store")
    assert len(heard) > NUM_UTTERANCES  # what another precision heard is not taken


def test_what_does_not_fit_is_told_and_not_kept(checkpoint, corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path / "cache"))
    settings = [checkpoint, "freeze=[wav2vec2]", "keep_heard_gb=0.001"]
    more = ["corpora.train=[{}]".format(", ".join([corpus] * 40))]  # 400 utterances of 3 kB
    trained(corpus, tmp_path / "auto", *settings, *more, "trainer.limits.max_steps=1", is_silent=False)
    assert "what is heard is not kept" in capsys.readouterr().err
    with pytest.raises(SonantError, match=r"keep_heard_gb.*GB are needed.*keep_heard_gb is 0\.001"):
        trained(corpus, tmp_path / "run", *settings, *more, f"keep_heard={tmp_path}/store")
