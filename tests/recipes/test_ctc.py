"""Recognition from a corpus to its bundle, in every way that it can be asked for."""

from __future__ import annotations

import csv
import json
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from transformers import (
    AutoFeatureExtractor,
    AutoModelForCTC,
    AutoTokenizer,
    Wav2Vec2Config,
    Wav2Vec2Model,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

import sonant
from sonant.base.errors import SonantError
from sonant.base.lengths import Lengths
from sonant.checkpoints.bundle import open_bundle
from sonant.checkpoints.tensors import read_tensors
from sonant.cli.main import main
from sonant.corpus.splits import SplitConfig
from sonant.evaluation.table import read_evaluation
from sonant.recipes.catalogue import open_recipe
from sonant.recipes.ctc import Config
from sonant.recipes.freezing import patterns
from sonant.text.tokenizer import load_tokenizer

LAYER = "{width: 16, hidden_width: 32, num_heads: 2, kernel_size: 5}"
CONFORMER = f"model={{kind: conformer, layer: {LAYER}, num_layers: 2, channels: 4, position_kernel: 5}}"
TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
TINY |= {"conv_dim": (8,) * 7, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}
ENCODER = f"model={{kind: encoder, family: wav2vec2, settings: {json.dumps(TINY)}}}"
QUICK = [
    "trainer.limits.max_steps=4",
    "trainer.rhythm.validate=2",
    "trainer.rhythm.log=1",
    "trainer.guard.scan=false",
    "trainer.threads=1",
    "trainer.schedule.warmup=0",
    "batches.max_seconds=6",
]
WORDS = ("ba", "di", "gu")


def sound_of(text: str, seed: int) -> np.ndarray:
    """A tone for each letter: b, d, g are noises, vowels tones."""
    rng, rate = np.random.default_rng(seed), 16000
    pitches = {"a": 300, "i": 900, "u": 2000, "b": 0, "d": 0, "g": 0, " ": 0}
    parts = []
    for letter in text:
        time = np.arange(int(0.12 * rate)) / rate
        tone = np.sin(2 * np.pi * pitches[letter] * (1 + 0.02 * rng.standard_normal()) * time)
        noise = rng.standard_normal(len(time)) * {"b": 0.1, "d": 0.4, "g": 1.0}.get(letter, 0.01)
        parts.append(0.3 * tone + 0.3 * noise)
    return np.concatenate(parts).clip(-0.9, 0.9).astype(np.float32)


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SONANT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """40 utterances of 10 speakers."""
    folder = tmp_path_factory.mktemp("recordings")
    rng = np.random.default_rng(0)
    with open(folder / "recordings.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "path", "speaker", "text"])
        for number in range(40):
            text = " ".join(rng.choice(WORDS, rng.integers(2, 5)))
            soundfile.write(folder / f"{number}.wav", sound_of(text, number), 16000)
            table.writerow([f"u{number}", f"{number}.wav", f"s{number % 10}", text.title() + "."])
    place = str(tmp_path_factory.mktemp("corpora") / "tones")
    splits = SplitConfig(proportions={"train": 0.6, "dev": 0.4})
    sonant.prepare(str(folder), place, sonant.PrepareConfig(workers=1, splits=splits))
    return place


def trained(corpus: str, place, *settings: str, recipe: str = "ctc"):
    run = str(place)
    return run, sonant.train(recipe, corpus, run=run, settings=[*QUICK, *settings], is_silent=True)


@pytest.fixture(scope="module", params=["conformer", "wav2vec2"])
def run(request, corpus, tmp_path_factory):
    model = {"conformer": CONFORMER, "wav2vec2": ENCODER}[request.param]
    hiding = "objective.hiding={frames: {probability: 0.2, span: 3}, bands: {probability: 0.1, span: 2}}"
    return trained(corpus, tmp_path_factory.mktemp(request.param) / "run", model, hiding)


def test_a_run_leaves_a_bundle_its_table_and_a_look_at_the_first_batch(run):
    place, result = run
    assert result.is_finished
    described = open_bundle(f"{place}/bundle").description
    assert described.task == "ctc"
    assert dict(result.metrics) == described.metrics
    table = read_evaluation(f"{place}/utterances.parquet")
    assert table.measures[0] == "wer"
    assert table.figure("wer") == pytest.approx(result.metrics["wer"], abs=1e-12)
    assert all(row.reference == row.reference.lower() and "." not in row.reference for row in table.rows)
    assert "The first batch" in Path(place, "report.html").read_text()
    first = json.loads(Path(place, "first_batch.json").read_text())
    assert all(text.split()[0] in WORDS for *_, text in first)


def test_evaluation_gives_the_figures_of_the_bundle_to_the_last_digit(run):
    place, result = run
    found = sonant.evaluate(f"{place}/bundle")
    assert {name: f"{value:.9g}" for name, value in found.figures.items()} == {
        name: f"{value:.9g}" for name, value in result.metrics.items()
    }
    assert found.evaluation.rows == read_evaluation(f"{place}/utterances.parquet").rows


def test_the_symbols_of_a_decoder_are_not_taken_for_those_of_its_encoder(corpus, tmp_path):
    settings = {"d_model": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 24}
    settings |= {"decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 24, "num_mel_bins": 20}
    config = WhisperConfig(**settings, max_source_positions=200, vocab_size=300, pad_token_id=0, suppress_tokens=None)
    folder = tmp_path / "whisper"
    WhisperForConditionalGeneration(config).save_pretrained(folder)
    symbols = {"<|endoftext|>": 0} | {f"syllable{number}": number for number in range(1, 300)}
    (folder / "vocab.json").write_text(json.dumps(symbols))
    place, _ = trained(
        corpus, tmp_path / "run", f"model={{kind: encoder, folder: {folder}}}", "trainer.limits.max_steps=1"
    )
    symbols = load_tokenizer(f"{place}/bundle").symbols
    assert len(symbols) < 40
    assert set("".join(WORDS)) <= set(symbols)


def test_the_saved_settings_run_the_run_again(run, tmp_path):
    place, _ = run
    again = sonant.train(f"{place}/config.yaml", run=str(tmp_path / "again"), is_silent=True)
    one, other = (read_tensors(f"{folder}/bundle/model.safetensors") for folder in (place, again.run))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_the_bundle_of_an_encoder_opens_with_transformers_and_says_the_same(corpus, tmp_path):
    place, _ = trained(corpus, tmp_path / "run", ENCODER)
    bundle = f"{place}/bundle"
    theirs = AutoModelForCTC.from_pretrained(bundle).eval()
    listener, writer = AutoFeatureExtractor.from_pretrained(bundle), AutoTokenizer.from_pretrained(bundle)
    ours, tokenizer = open_bundle(bundle).model(), load_tokenizer(bundle)
    sound = sound_of("ba di gu", 3)
    with torch.no_grad():
        expected = theirs(**listener(sound, sampling_rate=16000, return_tensors="pt")).logits
        found = ours(torch.from_numpy(sound)[None], Lengths(torch.tensor([len(sound)]))).logits
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    ids = tokenizer.encode("ba di gu")
    assert writer("ba di gu").input_ids == ids
    path = [symbol for id in ids for symbol in (id, tokenizer.blank_id)]
    assert writer.decode(path) == "ba di gu"
    assert theirs.config.pad_token_id == tokenizer.blank_id


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """An encoder that somebody pretrained."""
    place = tmp_path_factory.mktemp("models") / "wav2vec2"
    torch.manual_seed(1)
    Wav2Vec2Model(Wav2Vec2Config(**TINY)).save_pretrained(place)
    return str(place)


def weights_of(run: str) -> dict[str, torch.Tensor]:
    return read_tensors(f"{run}/bundle/model.safetensors")


def changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor], prefix: str = "wav2vec2.") -> set[str]:
    """The weights of an encoder that are not what they were."""
    names = before.keys() - {"masked_spec_embed"}  # there only where frames are hidden
    return {name for name in names if not torch.equal(before[name], after[f"{prefix}{name}"])}


def test_a_front_end_and_named_layers_stay_as_they_are(corpus, checkpoint, tmp_path):
    before = Wav2Vec2Model.from_pretrained(checkpoint).state_dict()
    place, _ = trained(
        corpus,
        tmp_path / "run",
        f"model={{kind: encoder, folder: {checkpoint}}}",
        "freeze=[wav2vec2.encoder.layers.0-0]",
        "trainer.rhythm.validate=0",
    )
    names = changed(before, weights_of(place))
    assert any(name.startswith("encoder.layers.1.") for name in names)
    assert not any(name.startswith(("feature_extractor.", "encoder.layers.0.")) for name in names)


def test_what_begins_later_has_not_changed_before(corpus, checkpoint, tmp_path):
    before = Wav2Vec2Model.from_pretrained(checkpoint).state_dict()
    settings = [f"model={{kind: encoder, folder: {checkpoint}}}", "trainer.rhythm.validate=0"]
    place, _ = trained(corpus, tmp_path / "late", *settings, 'begins={"wav2vec2": 4}')
    assert not changed(before, weights_of(place))
    place, _ = trained(corpus, tmp_path / "early", *settings, 'begins={"wav2vec2.encoder": 3}')
    assert any(name.startswith("encoder.layers.1.") for name in changed(before, weights_of(place)))


def test_adapters_are_merged_into_a_plain_checkpoint(corpus, checkpoint, tmp_path):
    before = Wav2Vec2Model.from_pretrained(checkpoint).state_dict()
    settings = [f"model={{kind: encoder, folder: {checkpoint}, lora: {{rank: 2}}}}", "trainer.optimizer.rate=0.01"]
    place, result = trained(corpus, tmp_path / "run", *settings)
    after = AutoModelForCTC.from_pretrained(f"{place}/bundle").state_dict()
    names = changed(before, after)
    assert names
    assert all(name.startswith("encoder.layers.") and name.endswith(".weight") for name in names)
    found = sonant.evaluate(f"{place}/bundle").figures
    assert found["loss"] == pytest.approx(result.metrics["loss"], rel=1e-5)


def test_a_bundle_is_gone_on_from_with_its_head_and_symbols(run, corpus, tmp_path):
    place, result = run
    again, _ = trained(
        corpus, tmp_path / "run", f"start={place}/bundle", "trainer.optimizer.rate=0", "trainer.limits.max_steps=1"
    )
    one, other = weights_of(place), weights_of(again)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert sonant.evaluate(f"{again}/bundle").figures == pytest.approx(dict(result.metrics))


def test_a_fine_tuned_checkpoint_brings_its_symbols(corpus, tmp_path):
    place, _ = trained(corpus, tmp_path / "first", ENCODER)
    again, _ = trained(corpus, tmp_path / "run", f"model={{kind: encoder, folder: {place}/bundle}}")
    assert load_tokenizer(f"{again}/bundle") == load_tokenizer(f"{place}/bundle")


def test_augmentation_changes_what_is_learnt(corpus, tmp_path):
    plain, _ = trained(corpus, tmp_path / "plain", CONFORMER)
    noisy, _ = trained(corpus, tmp_path / "noisy", CONFORMER, "augmentations=[{kind: gain}, {kind: speed}]")
    one, other = weights_of(plain), weights_of(noisy)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_subwords_are_learnt_as_well(corpus, tmp_path):
    place, _ = trained(corpus, tmp_path / "run", CONFORMER, "tokenizer.train={kind: bpe, size: 300}")
    assert load_tokenizer(f"{place}/bundle").blank_id is not None


def said(corpus, tmp_path, capsys, *settings: str) -> str:
    sonant.train("ctc", corpus, run=str(tmp_path / "run"), settings=[*QUICK, *settings])
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_characters_that_cannot_be_written_are_told_before_training(corpus, tmp_path, capsys):
    vocabulary = "tokenizer.train={kind: characters, vocabulary: {alphabet: 'abdiu '}}"
    told = said(corpus, tmp_path, capsys, CONFORMER, vocabulary)
    assert "train: the vocabulary lacks" in told
    assert "'g'" in told


def test_texts_that_need_more_frames_than_there_are_are_named_and_left_out(corpus, tmp_path, capsys):
    slow = CONFORMER.replace(
        "{kind: conformer,", "{kind: conformer, front_end: {frame_shift_ms: 27, frame_length_ms: 27},"
    )
    told = said(corpus, tmp_path, capsys, slow, "trainer.limits.max_steps=1")
    assert "left out, since their texts need more frames than they have: 'u" in told
    assert "needed)" in told


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["model={kind: encoder, folder: nowhere}"], "config.json is missing"),
        (["model={kind: encoder, family: wav2vec3}"], "wav2vec2"),
        (["freeze=[layers.70]"], "layers.70"),
        (["freeze=[layers]", 'begins={"layers.0-1": 3}'], "frozen"),
        (["objective.consistency=0.2"], "two views"),
        (["augmentations=[{kind: spec_augment}]"], "spec_augment"),
        (["augmentations=[{kind: noise, corpus: nowhere}]"], "nowhere"),
        (["model.layer.num_heads=7"], "num_heads"),
        (["tokenizer.folder=nowhere"], "nowhere"),
        (["corpora.train_split=trian"], "train"),
        (["start=nowhere"], "not a bundle"),
        (["model={front_end: {frame_shift_ms: 100, frame_length_ms: 100}}"], "frames enough"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_was_meant(corpus, tmp_path, settings, told):
    with pytest.raises(SonantError) as error:
        trained(corpus, tmp_path / "run", *settings)
    assert told in str(error.value)


def test_a_model_and_a_start_together_are_refused():
    with pytest.raises(SonantError, match="Leave one of the two out"):
        Config(start="bundle", model=Config().model.__class__(num_layers=3))


def test_a_range_of_layers_does_not_reach_others_of_the_same_beginning():
    model = torch.nn.ModuleDict({"layers": torch.nn.ModuleList(torch.nn.Linear(1, 1) for _ in range(13))})

    def chosen(name: str) -> set[str]:
        found = patterns(model, name, "freeze")
        names = [name for name, _ in model.named_parameters()]
        return {name.split(".")[1] for name in names if any(fnmatchcase(name, pattern) for pattern in found)}

    assert chosen("layers.1") == {"1"}
    assert chosen("layers.0-2") == {"0", "1", "2"}
    assert chosen("layers.9-11") == {"9", "10", "11"}
    assert chosen("layers.*.bias") == {str(number) for number in range(13)}


@pytest.mark.slow
@pytest.mark.parametrize("model", [CONFORMER, ENCODER])
def test_a_tiny_model_learns_eight_utterances_by_heart(corpus, tmp_path, model):
    eight = sonant.open_corpus(corpus).split("train")
    longest = float(np.sort(eight.seconds)[7])
    settings = [
        model.replace("16", "48").replace("24", "96"),
        f"corpora.max_seconds={longest + 1e-6}",
        "corpora.validation_split=train",
        "trainer.limits.max_steps=400",
        "trainer.rhythm.validate=0",
        "trainer.rhythm.log=50",
        "trainer.optimizer.rate=0.003",
        "batches={kind: random, batch_size: 8}",
    ]
    _, result = trained(corpus, tmp_path / "run", *settings)
    assert result.metrics["wer"] == 0


def test_an_evaluation_has_a_page_with_groups(run, corpus, tmp_path, capsys):
    place, _ = run
    page = tmp_path / "page.html"
    words = ["evaluate", f"{place}/bundle", corpus, "--split", "dev", "--report", str(page), "--by", "speaker"]
    assert main(words) == 0
    assert "By speaker" in page.read_text()
    capsys.readouterr()
    assert main(["evaluate", f"{place}/bundle", "--by", "speaker", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(group["utterances"] for group in told["by"]["speaker"]) == told["rows"]
    assert main(["evaluate", f"{place}/bundle", "--by", "speaker"]) == 0
    assert "by speaker" in capsys.readouterr().out
    assert main([*words[:-1], "speeker"]) == 2
    assert "Did you mean 'speaker'" in capsys.readouterr().err


def losses(run: str) -> list[float]:
    lines = [json.loads(line) for line in Path(run, "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "train"]


@pytest.mark.parametrize("kind", ["conformer", "wav2vec2"])
def test_what_was_heard_once_is_learnt_from_as_if_it_were_heard_again(kind, corpus, checkpoint, tmp_path):
    model = CONFORMER if kind == "conformer" else f"model={{kind: encoder, folder: {checkpoint}}}"
    settings = [model, "objective.hiding.frames={probability: 0.2, span: 3}", "trainer.limits.max_steps=12"]
    anew, _ = trained(corpus, tmp_path / "anew", *settings, "keep_heard=off")
    first, _ = trained(corpus, tmp_path / "first", *settings, f"keep_heard={tmp_path / 'store'}")
    kept = {path: path.stat().st_size for path in (tmp_path / "store").iterdir()}
    second, _ = trained(corpus, tmp_path / "second", *settings, f"keep_heard={tmp_path / 'store'}")
    assert sum(kept.values()) > 10000
    assert {path: path.stat().st_size for path in (tmp_path / "store").iterdir()} == kept
    assert losses(first) == losses(second)
    assert losses(first) == pytest.approx(losses(anew), rel=1e-5)


@pytest.mark.parametrize("setting", ["augmentations=[{kind: gain}]", "freeze_front_end=false"])
def test_what_changes_from_time_to_time_is_not_kept(setting, corpus, checkpoint, tmp_path):
    model = f"model={{kind: encoder, folder: {checkpoint}}}"
    with pytest.raises(SonantError, match="changes from time to time"):
        trained(corpus, tmp_path / "run", model, setting, f"keep_heard={tmp_path / 'store'}")
    trained(corpus, tmp_path / "again", model, setting)


@pytest.mark.parametrize(
    "model", [CONFORMER.replace("position_kernel", "final_dropout: 0.2, position_kernel"), ENCODER]
)
def test_a_run_taken_up_again_is_the_run_that_was_never_stopped(model, corpus, tmp_path):
    hiding = "objective.hiding.frames={probability: 0.2, span: 3}"
    settings = [model, "trainer.rhythm.save=2", "trainer.keep.last=3", hiding]
    place, _ = trained(corpus, tmp_path / "run", *settings)
    before = weights_of(place)
    states = sorted(Path(place, "states").iterdir())
    sonant.train("ctc", corpus, run=place, settings=[*QUICK, *settings], resume=str(states[0]), is_silent=True)
    after = weights_of(place)
    assert len(states) == 2
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_validation_leaves_the_weights_as_they_would_be_without(corpus, tmp_path):
    with_it, _ = trained(corpus, tmp_path / "with", CONFORMER, "trainer.rhythm.validate=1")
    without, _ = trained(corpus, tmp_path / "without", CONFORMER, "trainer.rhythm.validate=0")
    assert losses(with_it) == losses(without)


def test_a_blank_that_is_not_what_a_checkpoint_pads_with_is_told(corpus, tmp_path):
    place, _ = trained(corpus, tmp_path / "first", ENCODER)
    where = Path(place, "bundle", "config.json")
    where.write_text(json.dumps(json.loads(where.read_text()) | {"pad_token_id": 3}))
    with pytest.raises(SonantError, match="pad_token_id is 3, but the vocabulary pads with 0"):
        trained(corpus, tmp_path / "run", f"model={{kind: encoder, folder: {place}/bundle}}")


PRETRAINED = {
    "contrastive": "{{kind: contrastive, model: {{encoder: {0}, compared_width: 8, "
    "quantizer: {{num_entries: 8, width: 8}}}}}}",
    "best_rq": "{{kind: best_rq, model: {{encoder: {0}, targets: {{num_entries: 16}}}}}}",
}
PRETRAINED_ENCODER = (
    "{convolutions: {widths: [8, 8, 8, 8, 8, 8, 8]}, position_kernel: 8, position_groups: 2, "
    "transformer: {width: 16, hidden_width: 32, num_layers: 2, num_heads: 2, norm_first: true}}"
)


@pytest.mark.parametrize("kind", sorted(PRETRAINED))
def test_what_was_pretrained_here_is_fine_tuned_with_all_its_weights(kind, corpus, tmp_path, capsys):
    learning = f"learning={PRETRAINED[kind].format(PRETRAINED_ENCODER)}"
    settings = [*QUICK, learning, "crop_seconds=1.0", "trainer.limits.max_steps=1", "corpora.min_seconds=0.1"]
    sonant.train("pretrain", corpus, run=str(tmp_path / "pretrained"), settings=settings, is_silent=True)
    capsys.readouterr()
    model = f"model={{kind: encoder, folder: {tmp_path}/pretrained/bundle}}"
    told = said(corpus, tmp_path, capsys, model, "freeze=[wav2vec2]", "objective.hiding.frames={probability: 0.2}")
    assert "begun anew: lm_head.bias, lm_head.weight" in told
    before, after = weights_of(str(tmp_path / "pretrained")), weights_of(str(tmp_path / "run"))
    shared = before.keys() & after.keys()
    assert len(shared) > 40
    assert all(torch.equal(before[name], after[name]) for name in shared)


@pytest.mark.parametrize("name", ["demo", "digits"])
def test_settings_that_come_along_are_of_this_task(name, corpus):
    opened = open_recipe(name, [corpus])
    assert opened.task == "ctc"
    assert opened.config.corpora.train == (corpus,)
    assert opened.config.trainer.best.figure == "wer"
