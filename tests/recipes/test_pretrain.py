"""Pretraining from a corpus to a bundle, in every way that it can be asked for."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import soundfile
import torch

import sonant
from sonant.base import config as configs
from sonant.base.errors import ConfigError, SonantError
from sonant.base.lengths import Lengths
from sonant.checkpoints.bundle import open_bundle
from sonant.corpus.manifest import open_corpus
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.splits import SplitConfig
from sonant.evaluation.table import read_evaluation
from sonant.models.wav2vec2 import Wav2Vec2
from sonant.models.wav2vec2_pretraining import pretraining_size
from sonant.recipes.catalogue import open_recipe
from sonant.recipes.pretrain import Config
from sonant.recipes.probing import ProbeConfig, probed

ENCODER = (
    "{convolutions: {widths: [8, 8, 8, 8, 8, 8, 8]}, position_kernel: 8, position_groups: 2, "
    "transformer: {width: 16, hidden_width: 32, num_layers: 2, num_heads: 2, norm_first: true}}"
)
MODELS = {
    "contrastive": f"{{kind: contrastive, model: {{encoder: {ENCODER}, compared_width: 8, "
    "quantizer: {num_entries: 8, width: 8}}}",
    "best_rq": f"{{kind: best_rq, model: {{encoder: {ENCODER}, targets: {{num_entries: 16}}}}}}",
}
SPLITS = SplitConfig(proportions={"train": 0.6, "dev": 0.4})
QUICK = [
    "trainer.limits.max_steps=4",
    "trainer.rhythm.validate=2",
    "trainer.rhythm.log=1",
    "trainer.rhythm.save=2",
    "trainer.guard.scan=false",
    "trainer.threads=1",
    "crop_seconds=1.0",
    "batches.max_seconds=6",
    "trainer.schedule.warmup=0",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, voiced):
    """30 utterances of 10 speakers, high or low, and what they say."""
    folder = tmp_path_factory.mktemp("recordings")
    with open(folder / "recordings.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "path", "speaker", "voice", "text"])
        for number in range(30):
            pitch = 100 if number % 2 else 250
            soundfile.write(folder / f"{number}.wav", voiced(0.7 + 0.02 * number, seed=number, pitch=pitch), 16000)
            table.writerow([f"u{number}", f"{number}.wav", f"s{number % 10}", "low" if number % 2 else "high", "la la"])
    place = str(tmp_path_factory.mktemp("corpora") / "voices")
    options = sonant.PrepareConfig(workers=1, source=SourceOptions(labels=("voice",)), splits=SPLITS)
    sonant.prepare(str(folder), place, options)
    return place


@pytest.fixture(scope="module", params=sorted(MODELS))
def trained(request, corpus, tmp_path_factory):
    place = str(tmp_path_factory.mktemp(request.param) / "run")
    settings = [*QUICK, f"learning={MODELS[request.param]}"]
    return (
        request.param,
        place,
        settings,
        sonant.train("pretrain", corpus, run=place, settings=settings, is_silent=True),
    )


def test_a_run_has_a_bundle_that_says_what_it_is(trained):
    kind, place, _, result = trained
    assert result.is_finished
    described = open_bundle(f"{place}/bundle").description
    assert described.task == "pretrain"
    assert described.architecture == {"contrastive": "wav2vec2", "best_rq": "best_rq"}[kind]
    assert described.metrics["loss"] == result.metrics["loss"]
    assert described.front_end == {"kind": "waveform", "sample_rate": 16000, "normalize": True}
    card = Path(place, "bundle", "README.md").read_text()
    assert "AutoModel.from_pretrained" in card
    assert "| loss |" in card


def test_evaluating_the_bundle_gives_the_figures_of_the_run_again(trained):
    _, place, _, result = trained
    found = sonant.evaluate(f"{place}/bundle")
    stored = open_bundle(f"{place}/bundle").description.metrics
    assert {name: f"{value:.9g}" for name, value in found.figures.items()} == {
        name: f"{value:.9g}" for name, value in stored.items()
    }
    assert list(found.figures) == list(result.metrics)
    assert found.evaluation == read_evaluation(f"{place}/utterances.parquet")


def test_what_utterances_add_up_to_has_an_interval_over_speakers_and_the_use_of_codes_has_none(trained, corpus):
    kind, place, _, _ = trained
    found = sonant.evaluate(f"{place}/bundle", corpus, split="train")
    expected = {"contrastive": {"contrastive", "accuracy", "negatives_alike"}, "best_rq": {"loss", "guess", "accuracy"}}
    assert set(found.intervals) == expected[kind]
    assert {row.group for row in found.evaluation.rows} == set(open_corpus(corpus).split("train").column("speaker"))
    assert {row.id for row in found.evaluation.rows} == set(open_corpus(corpus).split("train").column("id"))
    main = {"contrastive": "contrastive", "best_rq": "loss"}[kind]
    assert found.intervals[main].low < found.figures[main] < found.intervals[main].high
    single = {"contrastive": {"diversity", "code_perplexity", "codes_used"}, "best_rq": {"guess_perplexity"}}
    assert single[kind] <= set(found.figures)


def test_the_bundle_loads_in_transformers_with_equal_frames(trained):
    from transformers import AutoFeatureExtractor, AutoModel

    _, place, _, _ = trained
    theirs = AutoModel.from_pretrained(f"{place}/bundle").eval()
    listener = AutoFeatureExtractor.from_pretrained(f"{place}/bundle")
    waveform = 0.1 * torch.randn(8000)
    values = listener(waveform.numpy(), sampling_rate=16000, return_tensors="pt").input_values
    ours = open_bundle(f"{place}/bundle").model().encoder
    with torch.no_grad():
        frames = ours(waveform[None], Lengths(torch.tensor([8000]))).frames
        torch.testing.assert_close(frames, theirs(values).last_hidden_state, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_stopped_and_gone_on_with_is_never_stopped(trained, corpus, tmp_path):
    _, place, settings, _ = trained
    again = str(tmp_path / "again")
    half = [*settings, "trainer.limits.max_minutes=0.000001"]
    stopped = sonant.train("pretrain", corpus, run=again, settings=half, is_silent=True)
    assert not stopped.is_finished
    sonant.train("pretrain", corpus, run=again, settings=settings, is_silent=True)
    weights = [open_bundle(f"{where}/bundle").model().state_dict() for where in (place, again)]
    for name, tensor in weights[0].items():
        assert torch.equal(tensor, weights[1][name]), name


@pytest.mark.slow
def test_a_training_goes_on_from_a_bundle(trained, corpus, tmp_path):
    kind, place, _, _ = trained
    learning = {"contrastive": "{kind: contrastive}", "best_rq": "{kind: best_rq, model: {targets: {num_entries: 16}}}"}
    settings = [*QUICK, f"learning={learning[kind]}", f"start={place}/bundle", "trainer.optimizer.rate=0"]
    sonant.train("pretrain", corpus, run=str(tmp_path / "more"), settings=settings, is_silent=True)
    before, after = (open_bundle(f"{where}/bundle").model() for where in (place, tmp_path / "more"))
    for name, tensor in before.encoder.state_dict().items():
        assert torch.equal(tensor, after.encoder.state_dict()[name]), name


@pytest.mark.slow
def test_a_training_goes_on_from_a_folder_of_transformers_with_heads_begun_anew(corpus, tmp_path):
    from transformers import AutoModel, Wav2Vec2Config, Wav2Vec2Model

    config = Wav2Vec2Config(
        conv_dim=[8] * 7,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2,
        num_codevectors_per_group=8,
    )
    theirs = Wav2Vec2Model(config)
    theirs.save_pretrained(tmp_path / "theirs")
    settings = [*QUICK, f"start={tmp_path}/theirs", "trainer.optimizer.rate=0"]
    sonant.train("pretrain", corpus, run=str(tmp_path / "run"), settings=settings, is_silent=True)
    found = AutoModel.from_pretrained(tmp_path / "run" / "bundle")
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(found.state_dict()[name], tensor), name


def test_an_encoder_both_given_and_described_is_refused():
    with pytest.raises(ConfigError, match=r"learning.model.encoder': the encoder comes from start \(somewhere\)"):
        open_recipe("pretrain", [], ["start=somewhere", f"learning={MODELS['contrastive']}"])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "config.json: it is missing, and so is a bundle.json"),
        ({"config.json": "{"}, "this is not JSON"),
        ({"config.json": '{"model_type": "hubert"}'}, "its model_type is 'hubert', 'wav2vec2' is required"),
    ],
)
def test_a_folder_that_cannot_be_gone_on_from_is_told(corpus, tmp_path, files, words):
    (tmp_path / "start").mkdir()
    for name, text in files.items():
        (tmp_path / "start" / name).write_text(text)
    with pytest.raises(SonantError, match=words):
        sonant.train("pretrain", corpus, run=str(tmp_path / "r"), settings=[*QUICK, f"start={tmp_path}/start"])


@pytest.mark.slow
def test_a_probe_stands_beside_the_losses_with_its_interval(corpus, tmp_path):
    settings = [*QUICK, f"learning={MODELS['best_rq']}", f"probe={{corpus: {corpus}, label: voice}}"]
    result = sonant.train("pretrain", corpus, run=str(tmp_path / "run"), settings=settings, is_silent=True)
    assert 0 <= result.metrics["probe_low"] <= result.metrics["probe"] <= result.metrics["probe_high"] <= 1
    again = sonant.evaluate(str(tmp_path / "run/bundle"))
    assert again.figures == pytest.approx(dict(result.metrics), rel=1e-9)
    assert again.intervals["probe"].high == again.figures["probe_high"]
    assert "probe" not in sonant.evaluate(str(tmp_path / "run/bundle"), corpus).figures


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"label": "mood"}, "the corpus has no label 'mood'"),
        ({"label": "voice", "layer": 9}, "probe.layer: 9 was found; there are 3 states"),
    ],
)
def test_a_probe_of_what_is_not_there_is_refused(corpus, settings, words):
    with pytest.raises(ConfigError, match=words):
        probed(small_encoder(), ProbeConfig(corpus=corpus, **settings))


def small_encoder() -> Wav2Vec2:
    torch.manual_seed(0)
    config = configs.load(Config, None, [f"learning={MODELS['best_rq']}"])
    return Wav2Vec2(config.learning.model.encoder).eval()


def test_a_probe_without_a_label_counts_the_characters_of_texts(corpus):
    texts = probed(small_encoder(), ProbeConfig(corpus=corpus))
    assert texts.counts.sum() == 5 * len(open_corpus(corpus).split("dev"))
    assert 0 <= texts.figure <= 1
    few = probed(small_encoder(), ProbeConfig(corpus=corpus, max_utterances=2))
    assert len(few.scores) == 2


@pytest.mark.parametrize(
    ("name", "size"),
    [("wav2vec2", "base"), ("wav2vec2-large", "large"), ("wav2vec2-tiny", "tiny"), ("best-rq-tiny", "")],
)
def test_the_settings_that_come_along_are_those_of_the_sizes(name, size):
    opened = open_recipe(name, ["somewhere"])
    assert opened.task == "pretrain"
    assert opened.batch_key == "batches.max_seconds"
    assert not size or opened.config.learning.model == pretraining_size(size)
