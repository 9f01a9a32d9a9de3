"""Recognition by writing from a corpus to its bundle, in every way that it can be asked for."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from small_writers import SETTINGS
from transformers import (
    AutoFeatureExtractor,
    AutoModelForSpeechSeq2Seq,
    AutoProcessor,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

import sonant
from sonant.base.errors import SonantError
from sonant.checkpoints.bundle import open_bundle
from sonant.checkpoints.tensors import read_tensors
from sonant.cli.main import main
from sonant.corpus.splits import SplitConfig
from sonant.evaluation.table import read_evaluation
from sonant.recipes.seq2seq import Config
from sonant.text.tokenizer import SubwordsConfig, load_tokenizer, train_tokenizer

MODELS = {family: f"model={{family: {family}, settings: {json.dumps(own)}}}" for family, own in SETTINGS.items()}
MOONSHINE = MODELS["moonshine"]
QUICK = [
    "trainer.limits.max_steps=4",
    "trainer.rhythm.validate=2",
    "trainer.rhythm.log=1",
    "trainer.guard.scan=false",
    "trainer.threads=1",
    "trainer.schedule.warmup=0",
    "batches.max_seconds=4",
    "tokenizer.train={size: 300}",
]
WORDS = ("ba", "di", "gu")
PITCHES = {"ba": 300, "di": 900, "gu": 2000}


def sound_of(text: str, seed: int) -> np.ndarray:
    """A tone for each word."""
    rng, parts = np.random.default_rng(seed), []
    time = np.arange(3200) / 16000
    for word in text.split():
        tone = np.sin(2 * np.pi * PITCHES[word] * (1 + 0.02 * rng.standard_normal()) * time)
        parts += [0.4 * tone + 0.02 * rng.standard_normal(len(time)), 0.001 * rng.standard_normal(800)]
    return np.concatenate(parts).astype(np.float32)


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SONANT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """24 utterances of 6 speakers."""
    folder, rng = tmp_path_factory.mktemp("recordings"), np.random.default_rng(0)
    with open(folder / "recordings.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "path", "speaker", "text"])
        for number in range(24):
            text = " ".join(rng.choice(WORDS, rng.integers(2, 6)))
            soundfile.write(folder / f"{number}.wav", sound_of(text, number), 16000)
            table.writerow([f"u{number}", f"{number}.wav", f"s{number % 6}", text.capitalize() + "."])
    place = str(tmp_path_factory.mktemp("corpora") / "tones")
    splits = SplitConfig(proportions={"train": 0.6, "dev": 0.4})
    sonant.prepare(str(folder), place, sonant.PrepareConfig(workers=1, splits=splits))
    return place


def trained(corpus: str, place, *settings: str):
    run = str(place)
    return run, sonant.train("seq2seq", corpus, run=run, settings=[*QUICK, *settings], is_silent=True)


@pytest.fixture(scope="module", params=list(SETTINGS))
def run(request, corpus, tmp_path_factory):
    hiding = "objective.hiding={frames: {probability: 0.2, span: 3}, bands: {probability: 0.1, span: 2}}"
    place = tmp_path_factory.mktemp(request.param) / "run"
    return trained(corpus, place, MODELS[request.param], hiding, "objective.smoothing=0.1")


@pytest.fixture(scope="module")
def checkpoint(corpus, tmp_path_factory):
    """A small Moonshine that somebody trained."""
    place, _ = trained(corpus, tmp_path_factory.mktemp("moonshine") / "run", MOONSHINE)
    return f"{place}/bundle"


def weights_of(run: str) -> dict[str, torch.Tensor]:
    return read_tensors(f"{run}/bundle/model.safetensors")


def changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    assert before.keys() == after.keys()
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_a_run_leaves_a_bundle_its_table_and_a_look_at_the_first_batch(run):
    place, result = run
    described = open_bundle(f"{place}/bundle").description
    assert described.task == "seq2seq"
    assert dict(result.metrics) == described.metrics
    table = read_evaluation(f"{place}/utterances.parquet")
    assert table.measures[0] == "wer"
    assert table.figure("wer") == pytest.approx(result.metrics["wer"], abs=1e-12)
    assert all(row.reference == row.reference.lower() and "." not in row.reference for row in table.rows)
    first = json.loads(Path(place, "first_batch.json").read_text())
    assert all(text.split()[0].lower() in WORDS and text.endswith(".") for *_, text in first)


def test_evaluation_gives_the_figures_of_the_bundle_to_the_last_digit(run):
    place, result = run
    found = sonant.evaluate(f"{place}/bundle")
    assert {name: f"{value:.9g}" for name, value in found.figures.items()} == {
        name: f"{value:.9g}" for name, value in result.metrics.items()
    }
    assert found.evaluation.rows == read_evaluation(f"{place}/utterances.parquet").rows


def test_the_saved_settings_run_the_run_again(run, tmp_path):
    place, _ = run
    again = sonant.train(f"{place}/config.yaml", run=str(tmp_path / "again"), is_silent=True)
    assert not changed(weights_of(place), weights_of(again.run))


@torch.no_grad()
def test_a_bundle_opens_with_transformers_and_writes_the_same(run):
    bundle = f"{run[0]}/bundle"
    theirs, processor = AutoModelForSpeechSeq2Seq.from_pretrained(bundle), AutoProcessor.from_pretrained(bundle)
    sound, tokenizer = sound_of("ba di gu", 3), load_tokenizer(bundle)
    given = processor(sound, sampling_rate=16000, return_tensors="pt")
    found = theirs.eval().generate(**given, max_new_tokens=12, do_sample=False)[0].tolist()
    transcriber = sonant.load(bundle)
    ours = transcriber.answers([sound])[0][0].ids
    prompt = list(transcriber.prompt.ids)
    found = found[len(prompt) :] if found[: len(prompt)] == prompt else found
    found = found[: found.index(transcriber.prompt.end)] if transcriber.prompt.end in found else found
    assert list(ours[: len(found)]) == found[: len(ours)]
    assert processor.decode(tokenizer.encode("Ba di."), skip_special_tokens=True) == tokenizer.decode(
        tokenizer.encode("Ba di.")
    )


def test_transcribing_says_what_evaluating_says_whatever_stands_beside_it(run, corpus):
    bundle = f"{run[0]}/bundle"
    transcriber, rows = sonant.load(bundle), sonant.evaluate(bundle).evaluation.rows
    places = {one.id: one.audio for one in sonant.open_corpus(corpus)}
    for row in rows[:4]:
        found = transcriber.transcribe(places[row.id])
        normalized = " ".join(found.text.lower().replace(".", " ").split())
        assert normalized == row.hypothesis
        assert " ".join(word.text for word in found.words).split() == found.text.split()
        assert all(0 <= word.start <= word.end <= found.seconds and 0 <= word.confidence <= 1 for word in found.words)


def test_named_parts_stay_as_they_are_and_late_ones_until_they_begin(corpus, checkpoint, tmp_path):
    before = read_tensors(f"{checkpoint}/model.safetensors")
    settings = [f"model={{folder: {checkpoint}}}", "trainer.rhythm.validate=0"]
    place, _ = trained(corpus, tmp_path / "frozen", *settings, "freeze=[model.encoder, model.decoder.layers.0-0]")
    names = changed(before, weights_of(place))
    assert any(name.startswith("model.decoder.layers.1.") for name in names)
    assert not any(name.startswith(("model.encoder.", "model.decoder.layers.0.")) for name in names)
    place, _ = trained(corpus, tmp_path / "plain", *settings)
    names = changed(before, weights_of(place))
    assert not any(name.startswith("model.encoder.conv") for name in names)
    assert any(name.startswith("model.encoder.layers.0.") for name in names)
    place, _ = trained(corpus, tmp_path / "late", *settings, 'begins={"model.encoder": 4}')
    names = changed(before, weights_of(place))
    assert names
    assert not any(name.startswith("model.encoder.") for name in names)


def test_adapters_are_merged_into_a_plain_checkpoint(corpus, checkpoint, tmp_path):
    before = read_tensors(f"{checkpoint}/model.safetensors")
    settings = [f"model={{folder: {checkpoint}, lora: {{rank: 2}}}}", "trainer.optimizer.rate=0.01"]
    place, result = trained(corpus, tmp_path / "run", *settings)
    names = changed(before, weights_of(place))
    assert names
    assert all(".layers." in name and name.endswith(".weight") for name in names)
    found = sonant.evaluate(f"{place}/bundle").figures
    assert found["loss"] == pytest.approx(result.metrics["loss"], rel=1e-5)


def test_a_bundle_is_gone_on_from(run, corpus, tmp_path):
    place, result = run
    nothing = ["trainer.optimizer.rate=0", "trainer.limits.max_steps=1"]
    settings = [one for one in QUICK if "tokenizer" not in one]
    again = str(tmp_path / "run")
    sonant.train("seq2seq", corpus, run=again, settings=[*settings, f"start={place}/bundle", *nothing], is_silent=True)
    assert not changed(weights_of(place), weights_of(again))
    assert sonant.evaluate(f"{again}/bundle").figures == pytest.approx(dict(result.metrics))


def losses(run: str) -> list[float]:
    lines = [json.loads(line) for line in Path(run, "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "train"]


@pytest.mark.slow
@pytest.mark.parametrize("frozen", ["[]", "[model.encoder]"])
def test_what_was_heard_once_is_learnt_from_as_if_it_were_heard_again(frozen, corpus, checkpoint, tmp_path):
    settings = [f"model={{folder: {checkpoint}}}", f"freeze={frozen}", "trainer.limits.max_steps=8"]
    plain, _ = trained(corpus, tmp_path / "plain", *settings, "keep_heard=off")
    kept, _ = trained(corpus, tmp_path / "kept", *settings, f"keep_heard={tmp_path / 'store'}")
    assert losses(kept) == pytest.approx(losses(plain), rel=1e-5)
    assert any((tmp_path / "store").iterdir())


@pytest.mark.parametrize("family", list(SETTINGS))
def test_a_run_taken_up_again_is_the_run_that_was_never_stopped(family, corpus, tmp_path):
    hiding = "objective.hiding.frames={probability: 0.2, span: 3}"
    model = MODELS[family].replace("settings", "attention_dropout: 0.2, settings")
    settings = [*QUICK, model, "trainer.rhythm.save=2", "trainer.keep.last=3", hiding]
    place = str(tmp_path / "run")
    sonant.train("seq2seq", corpus, run=place, settings=settings, is_silent=True)
    before = weights_of(place)
    states = sorted(Path(place, "states").iterdir())
    sonant.train("seq2seq", corpus, run=place, settings=settings, resume=str(states[0]), is_silent=True)
    assert len(states) == 2
    assert not changed(before, weights_of(place))


def test_validation_leaves_the_weights_as_they_would_be_without(corpus, tmp_path):
    with_it, _ = trained(corpus, tmp_path / "with", MOONSHINE, "trainer.rhythm.validate=1")
    without, _ = trained(corpus, tmp_path / "without", MOONSHINE, "trainer.rhythm.validate=0")
    assert losses(with_it) == losses(without)


def test_what_the_model_has_no_room_for_is_named_and_left_out(corpus, tmp_path, capsys):
    short = MODELS["whisper"].replace('"max_source_positions": 100', '"max_source_positions": 40')
    sonant.train("seq2seq", corpus, run=str(tmp_path / "run"), settings=[*QUICK, short])
    captured = capsys.readouterr()
    assert "train: left out, since the model has room for 65 tokens and 0.8 s: 'u" in captured.out + captured.err
    rows = read_evaluation(f"{tmp_path}/run/utterances.parquet").rows
    assert {row.counts["loss"] > 0 for row in rows} == {True, False}
    assert all(row.counts["wer"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["model={folder: nowhere}"], "nowhere"),
        (["model={family: wav2vec2}"], "moonshine"),
        ([MOONSHINE, "freeze=[model.encoder.layers.70]"], "layers.70"),
        ([MOONSHINE, "prompt.language=de"], "single language"),
        ([MOONSHINE, "model.dropout=0.1"], "no such dropout"),
        ([MOONSHINE, "tokenizer.train.eos=''"], "eos"),
        ([MOONSHINE, "model.settings.max_position_embeddings=1"], "too long"),
        (["start=nowhere"], "not a bundle"),
        ([MOONSHINE, 'begins={"model": 3}'], "nothing learns before step 3"),
        ([MOONSHINE, "decoding.beam=0"], "beam"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_was_meant(corpus, tmp_path, settings, told):
    with pytest.raises(SonantError) as error:
        sonant.train("seq2seq", corpus, run=str(tmp_path / "run"), settings=[*QUICK[:-1], *settings], is_silent=True)
    assert told in str(error.value)


def test_a_model_and_a_start_together_are_refused():
    with pytest.raises(SonantError, match="Leave one of the two out"):
        Config(start="bundle", model=Config().model.__class__(family="whisper"))


def test_an_evaluation_has_a_page_with_groups(run, corpus, tmp_path):
    page = tmp_path / "page.html"
    words = ["evaluate", f"{run[0]}/bundle", corpus, "--split", "dev", "--report", str(page), "--by", "speaker"]
    assert main(words) == 0
    assert "By speaker" in page.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("family", list(SETTINGS))
def test_a_tiny_model_learns_eight_utterances_by_heart(family, corpus, tmp_path):
    longest = float(np.sort(sonant.open_corpus(corpus).split("train").seconds)[7])
    _, result = trained(
        corpus,
        tmp_path / "run",
        MODELS[family].replace("48", "96").replace("32,", "64,"),
        f"corpora.max_seconds={longest + 1e-6}",
        "corpora.validation_split=train",
        "trainer.limits.max_steps=400",
        "trainer.rhythm.validate=0",
        "trainer.rhythm.log=50",
        "trainer.optimizer.rate=0.003",
        "batches={kind: random, batch_size: 8}",
    )
    assert result.metrics["wer"] == 0


def test_the_command_line_writes_what_was_asked_for(run, corpus, tmp_path, capsys):
    bundle, out = f"{run[0]}/bundle", tmp_path / "texts"
    place = next(iter(sonant.open_corpus(corpus).split("dev"))).audio
    assert main(["transcribe", bundle, place]) == 0
    text = capsys.readouterr().out.strip()
    assert text == sonant.load(bundle).transcribe(place).text
    assert main(["transcribe", bundle, place, "--out", str(out), "--format", "json,srt", "--beam", "3"]) == 0
    assert {file.suffix for file in out.iterdir()} >= {".json", ".srt"}
    assert main(["transcribe", bundle, place, "--num-best", "2"]) == 2
    assert "--beam 2" in capsys.readouterr().err
    assert main(["transcribe", bundle, place, "--num-best", "2", "--beam", "2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["alternatives"]) == 2
    assert main(["transcribe", bundle, place, "--hot-word", "ba"]) == 2
    assert "--hot-word" in capsys.readouterr().err
    assert main(["transcribe", bundle, place, "--set", "lenght_weight=1"]) == 2
    assert "length_weight" in capsys.readouterr().err


def test_a_beam_that_was_measured_is_kept_in_the_bundle(corpus, tmp_path, capsys):
    place, result = trained(corpus, tmp_path / "run", MOONSHINE)
    words = ["evaluate", f"{place}/bundle", "--beam", "4", "--set", "length_weight=0.5"]
    assert main([*words, "--save-decoding"]) == 0
    assert "a beam of 4 texts" in capsys.readouterr().out
    assert open_bundle(f"{place}/bundle").description.decoding["beam"] == 4
    assert sonant.load(f"{place}/bundle").writing.length_weight == 0.5
    again = sonant.evaluate(f"{place}/bundle", is_greedy=True)
    assert again.figures == pytest.approx(dict(result.metrics))
    assert main([*words, "--tune", "dev"]) == 2
    assert "--tune" in capsys.readouterr().err


@pytest.fixture(scope="module")
def whisper_of_languages(corpus, tmp_path_factory):
    """A small Whisper as its makers give it: languages, tasks, times, and symbols that are never written."""
    folder = tmp_path_factory.mktemp("whisper") / "whisper"
    trained_on = [one.text for one in sonant.open_corpus(corpus)]
    config = SubwordsConfig(size=300, blank="", unknown="", bos="", eos="<|endoftext|>")
    train_tokenizer(trained_on, config).save(str(folder))
    (folder / "text.json").unlink()
    where = folder / "tokenizer.json"
    values = json.loads(where.read_text())
    names = ["<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|notimestamps|>"]
    first = max(values["model"]["vocab"].values()) + 1
    like = values["added_tokens"][0]
    symbols = {name: first + place for place, name in enumerate([*names, "<|0.00|>", "<|0.02|>"])}
    values["added_tokens"] += [like | {"id": id, "content": name} for name, id in symbols.items()]
    where.write_text(json.dumps(values))
    ids = {"bos_token_id": like["id"], "eos_token_id": like["id"], "pad_token_id": like["id"]}
    ids |= {"decoder_start_token_id": symbols["<|startoftranscript|>"], "vocab_size": first + len(symbols)}
    torch.manual_seed(3)
    model = WhisperForConditionalGeneration(WhisperConfig(**SETTINGS["whisper"], **ids))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape))
    told = {
        "is_multilingual": True,
        "lang_to_id": {name: symbols[name] for name in ("<|en|>", "<|de|>")},
        "task_to_id": {name: symbols[f"<|{name}|>"] for name in ("transcribe", "translate")},
        "no_timestamps_token_id": symbols["<|notimestamps|>"],
        "suppress_tokens": [11, 12, 13, *(id for name, id in symbols.items() if name != "<|notimestamps|>")],
        "begin_suppress_tokens": [20, like["id"]],
    }
    for name, value in told.items():
        setattr(model.generation_config, name, value)
    model.save_pretrained(folder)
    WhisperFeatureExtractor(feature_size=20, chunk_length=2).save_pretrained(folder)
    return str(folder)


def test_a_whisper_of_many_languages_writes_in_the_one_that_it_is_told(whisper_of_languages, corpus, tmp_path):
    settings = [one for one in QUICK if "tokenizer" not in one]
    settings += [f"model.folder={whisper_of_languages}", "prompt.language=de", "trainer.limits.max_steps=1"]
    place = str(tmp_path / "run")
    sonant.train("seq2seq", corpus, run=place, settings=settings, is_silent=True)
    bundle = f"{place}/bundle"
    transcriber, sound = sonant.load(bundle), sound_of("ba di gu", 3)
    symbols = transcriber.spelling.tokenizer.symbols
    assert [symbols[id] for id in transcriber.prompt.ids][1:] == ["<|de|>", "<|transcribe|>", "<|notimestamps|>"]
    theirs, listener = (
        WhisperForConditionalGeneration.from_pretrained(bundle),
        AutoFeatureExtractor.from_pretrained(bundle),
    )
    given = listener(sound, sampling_rate=16000, return_tensors="pt").input_features
    found = theirs.eval().generate(given, max_new_tokens=12)[0].tolist()
    prompt = list(transcriber.prompt.ids)
    found = found[len(prompt) :] if found[: len(prompt)] == prompt else found
    ours = list(transcriber.answers([sound])[0][0].ids)
    assert ours[: len(found)] == found[: len(ours)]
    assert found
    again = str(tmp_path / "again")
    settings = [*settings[: len(QUICK) - 1], f"start={bundle}", "trainer.limits.max_steps=1"]
    sonant.train("seq2seq", corpus, run=again, settings=settings, is_silent=True)
    assert sonant.load(f"{again}/bundle").prompt == transcriber.prompt
