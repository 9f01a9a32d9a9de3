"""How a recogniser decodes is chosen where it is measured, kept in its bundle, and the same wherever it is used."""

from __future__ import annotations

import csv
import itertools
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

import sonant
from sonant.base import config as configs
from sonant.base.errors import SonantError
from sonant.checkpoints.bundle import Description, open_bundle, write_bundle
from sonant.checkpoints.causal_bundle import causal_config, causal_files
from sonant.checkpoints.ctc_bundle import tokenizer_files
from sonant.cli.main import main
from sonant.corpus.splits import SplitConfig
from sonant.evaluation.table import read_evaluation, write_evaluation
from sonant.inference.decoding import saved_decoding
from sonant.inference.transcriber import Request, Transcriber
from sonant.layers.conformer import ConformerLayerConfig
from sonant.models.causal import CausalConfig
from sonant.models.causal import new_model as new_language_model
from sonant.models.conformer import Conformer, ConformerConfig
from sonant.recipes.ctc_decoding import a_share
from sonant.recipes.saved_decoding import save_decoding
from sonant.text.tokenizer import CharactersConfig, train_tokenizer
from sonant.text.vocabulary import VocabularyConfig

RATE = 16000
FOX = "the quick brown fox jumps over a lazy dog"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, voiced) -> str:
    """24 utterances of 8 speakers, one of them longer than a transcriber's window."""
    folder, rng = tmp_path_factory.mktemp("recordings"), np.random.default_rng(0)
    with open(folder / "recordings.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "path", "speaker", "text", "room"])
        for number in range(24):
            seconds = 33.0 if number == 5 else 0.7 + 0.1 * number
            soundfile.write(folder / f"{number}.wav", voiced(seconds, seed=number), RATE)
            words = " ".join(rng.choice(FOX.split(), 3))
            table.writerow([f"u{number}", f"{number}.wav", f"s{number % 8}", words, f"r{number % 2}"])
    place = str(tmp_path_factory.mktemp("corpora") / "fox")
    splits = SplitConfig(proportions={"train": 0.25, "dev": 0.5, "test": 0.25})
    sonant.prepare(str(folder), place, sonant.PrepareConfig(workers=1, splits=splits))
    return place


@pytest.fixture(scope="module")
def untouched(tmp_path_factory, corpus) -> str:
    """A recogniser that has learnt nothing, but writes a lot."""
    tokenizer = train_tokenizer([FOX], CharactersConfig())
    torch.manual_seed(1)
    layer = ConformerLayerConfig(width=24, hidden_width=48, num_heads=2, kernel_size=5)
    model = Conformer(ConformerConfig(layer=layer, num_layers=1, channels=4), tokenizer.size)
    with torch.no_grad():
        list(model.parameters())[-1].normal_(0, 0.1)
        list(model.parameters())[-2].mul_(20)
    described = Description(
        task="ctc",
        architecture="conformer",
        config=configs.to_dict(model.config) | {"vocabulary_size": tokenizer.size},
        front_end={"sample_rate": RATE},
        decoding={"kind": "greedy"},
        evaluation={"corpora": {"train": [corpus]}, "batch_seconds": 20.0},
    )
    files = tokenizer_files(tokenizer) | {"README.md": "# A recogniser\n\n## Limits\n\nMany.\n\nMade with Sonant 0.\n"}
    folder = str(tmp_path_factory.mktemp("bundles") / "bundle")
    write_bundle(folder, described, model.state_dict(), files)
    return folder


@pytest.fixture
def bundle(untouched, tmp_path) -> str:
    return shutil.copytree(untouched, str(tmp_path / "bundle"))


@pytest.fixture(scope="module")
def ngrams(tmp_path_factory) -> str:
    place = tmp_path_factory.mktemp("ngrams") / "fox.arpa"
    (place.parent / "fox.txt").write_text(f"{FOX}\na lazy fox jumps over the quick dog\n" * 3)
    assert main(["ngram", str(place.parent / "fox.txt"), "--out", str(place)]) == 0
    return str(place)


@pytest.fixture(scope="module")
def language(tmp_path_factory) -> str:
    tokenizer = train_tokenizer([FOX], CharactersConfig(vocabulary=VocabularyConfig(word_delimiter="", eos="</s>")))
    torch.manual_seed(0)
    settings = {"n_embd": 16, "n_layer": 1, "n_head": 2, "initializer_range": 0.5}
    model = new_language_model(CausalConfig(settings=settings), tokenizer.size, 256, {})
    folder = str(tmp_path_factory.mktemp("lm") / "bundle")
    description = Description(task="language", architecture="causal", config=causal_config(model))
    write_bundle(folder, description, model.state_dict(), causal_files(model, tokenizer, 256, ""))
    return folder


def hypotheses(result) -> dict[str, str]:
    return {row.id: row.hypothesis for row in result.evaluation.rows}


def transcribed(bundle: str, corpus: str, split: str, **options) -> dict[str, str]:
    transcriber, utterances = Transcriber.open(bundle, **options), sonant.open_corpus(corpus).split(split)
    requests = [Request(one.audio, one.start, one.seconds, one.channel, one.sample_rate) for one in utterances]
    answers = transcriber.transcribe_all(requests)
    return {one.id: found.text for one, found in zip(utterances, answers, strict=True)}


def searched(ngrams: str, language: str) -> list[str]:
    """A search that changes much."""
    return [f"ngram={ngrams}", "guide.word_bonus=4", f"rescorer={language}", "rescoring.weight=2", "num_rescored=8"]


def test_what_was_measured_is_saved_and_served(bundle, corpus, ngrams, language, tmp_path):
    before = sonant.evaluate(bundle, corpus, split="dev")
    sources = [str(tmp_path / "moved.arpa"), str(tmp_path / "moved")]
    shutil.copy(ngrams, sources[0])
    shutil.copytree(language, sources[1])
    saved = sonant.evaluate(bundle, corpus, split="dev", settings=searched(*sources), save_decoding=True)
    assert hypotheses(saved) != hypotheses(before)
    os.unlink(sources[0])
    shutil.rmtree(sources[1])
    moved = shutil.move(bundle, str(tmp_path / "elsewhere"))
    again = sonant.evaluate(moved, corpus, split="dev")
    assert again.evaluation.rows == saved.evaluation.rows
    assert again.figures == open_bundle(moved).description.evaluation["decoding"]["figures"]
    assert transcribed(moved, corpus, "dev") == hypotheses(saved)
    first = sonant.open_corpus(corpus).split("dev")[0]
    assert sonant.load(moved).transcribe(first.audio).text == hypotheses(saved)[first.id]
    greedy = sonant.evaluate(moved, corpus, split="dev", is_greedy=True)
    assert greedy.evaluation.rows == before.evaluation.rows


def test_what_is_measured_greedily_is_what_is_transcribed_however_long_it_is(bundle, corpus):
    everything = {}
    for split in ("train", "dev", "test"):
        found = hypotheses(sonant.evaluate(bundle, corpus, split=split))
        assert transcribed(bundle, corpus, split) == found
        everything |= found
    longest = sonant.open_corpus(corpus)
    assert float(np.max(longest.seconds)) > 32
    assert len(everything) == 24


def test_a_lexicon_goes_with_the_bundle(bundle, corpus, tmp_path):
    words = {
        word for text in hypotheses(sonant.evaluate(bundle, corpus, split="dev")).values() for word in text.split()
    }
    (tmp_path / "words.txt").write_text("\n".join(word[:2] for word in words))
    settings = [f"lexicon={tmp_path}/words.txt"]
    saved = sonant.evaluate(bundle, corpus, split="dev", settings=settings, save_decoding=True)
    os.unlink(tmp_path / "words.txt")
    assert transcribed(bundle, corpus, "dev") == hypotheses(saved)
    found = {word for text in hypotheses(saved).values() for word in text.split()}
    assert found <= {word[:2] for word in words}


def test_a_bundle_goes_back_to_greed_without_a_trace(bundle, corpus, ngrams, language):
    files = sorted(path.name for path in Path(bundle).rglob("*"))
    card = Path(bundle, "README.md").read_text()
    weights = Path(bundle, "model.safetensors").stat()
    sonant.evaluate(bundle, corpus, settings=searched(ngrams, language), save_decoding=True)
    assert "## Decoding" in Path(bundle, "README.md").read_text()
    assert len(list(Path(bundle, "decoding").iterdir())) == 2
    sonant.evaluate(bundle, corpus, is_greedy=True, save_decoding=True)
    assert sorted(path.name for path in Path(bundle).rglob("*")) == files
    assert Path(bundle, "README.md").read_text() == card
    assert Path(bundle, "model.safetensors").stat().st_mtime_ns == weights.st_mtime_ns
    assert open_bundle(bundle).description.decoding == {"kind": "greedy"}


def test_settings_lie_on_top_of_those_of_the_bundle(bundle, corpus, ngrams):
    sonant.evaluate(bundle, corpus, settings=[f"ngram={ngrams}", "beam.width=4"], save_decoding=True)
    found = sonant.evaluate(bundle, corpus, settings=["guide.word_bonus=3"], save_decoding=True)
    kept = open_bundle(bundle).description.decoding
    assert (kept["beam"]["width"], kept["guide"]["word_bonus"]) == (4, 3.0)
    assert kept["ngram"].startswith("decoding/")
    assert found.evaluation.facts.settings["decoding"]["ngram"] == kept["ngram"]


def test_a_copy_that_was_interrupted_is_made_whole(bundle, corpus, language):
    sonant.evaluate(bundle, corpus, settings=[f"rescorer={language}"], save_decoding=True)
    inner = Path(bundle, open_bundle(bundle).description.decoding["rescorer"])
    whole = {path.name: path.read_bytes() for path in inner.iterdir()}
    sonant.evaluate(bundle, corpus, is_greedy=True, save_decoding=True)
    inner.mkdir(parents=True)
    (inner / "model.safetensors").write_bytes(b"half")
    sonant.evaluate(bundle, corpus, settings=[f"rescorer={language}"], save_decoding=True)
    assert {path.name: path.read_bytes() for path in inner.iterdir()} == whole


def whole(folder: str) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


@pytest.mark.parametrize("there", ["greedy", "searched"])
def test_interrupted_anywhere_a_bundle_decodes_in_the_old_way_or_the_new(
    bundle, corpus, ngrams, language, tmp_path, monkeypatch, there
):
    found = sonant.evaluate(bundle, corpus, settings=searched(ngrams, language)).evaluation
    greedy = sonant.evaluate(bundle, corpus, is_greedy=True).evaluation
    if there == "searched":
        saved, before = greedy, save_decoding(open_bundle(bundle), found)
    else:
        saved, before = found, open_bundle(bundle)
    expected = shutil.copytree(bundle, str(tmp_path / "expected"))
    after = save_decoding(open_bundle(expected), saved)
    for number in itertools.count():
        place = shutil.copytree(bundle, str(tmp_path / f"{number}"))
        with monkeypatch.context() as patch:
            left = itertools.chain([True] * number, itertools.repeat(False))
            for name in ("replace", "unlink"):
                patch.setattr(os, name, stopping(getattr(os, name), left))
            try:
                save_decoding(open_bundle(place), saved)
                break
            except KeyboardInterrupt:
                pass
        kept = open_bundle(place)
        assert kept.description in (before.description, after.description)
        saved_decoding(kept)
        save_decoding(kept, saved)
        assert whole(place) == whole(expected)
    assert number > 3
    assert whole(place) == whole(expected)


def stopping(act, left):
    """What the system does, until it is interrupted."""

    def acted(*places, **options):
        if not next(left):
            raise KeyboardInterrupt
        return act(*places, **options)

    return acted


@pytest.mark.slow
def test_weights_are_chosen_on_one_split_and_measured_on_another(bundle, corpus, ngrams, language):
    few = ["beam.width=2", "num_rescored=2"]
    asked = {"settings": [f"ngram={ngrams}", f"rescorer={language}", *few], "tune": "dev"}
    on_dev = sonant.evaluate(bundle, corpus, split="dev", **asked)
    tried = on_dev.evaluation.facts.settings["tried"]
    assert on_dev.figures["wer"] <= min(trial["wer"] for trial in tried) + 1e-12
    assert on_dev.figures["wer"] <= sonant.evaluate(bundle, corpus, split="dev").figures["wer"]
    on_test = sonant.evaluate(bundle, corpus, split="test", **asked)
    assert on_test.evaluation.facts.settings["tried"] == tried
    assert on_test.evaluation.facts.settings["decoding"] == on_dev.evaluation.facts.settings["decoding"]
    assert {row.id for row in on_test.evaluation.rows}.isdisjoint(row.id for row in on_dev.evaluation.rows)


def test_of_more_scores_than_memory_holds_the_same_share_is_drawn_each_time(corpus):
    whole, said = sonant.open_corpus(corpus), []
    cells = 2 * 2**28 / float(whole.seconds.sum())
    drawn = [a_share([whole], cells, said.append)[0].column("id").tolist() for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert 4 < len(drawn[0]) < 20
    assert "50% of the utterances" in said[0]
    assert a_share([whole], cells / 3, said.append) == [whole]
    assert len(said) == 2
    assert list(map(len, a_share([whole, whole.where(np.zeros(len(whole), bool))], 1e15, said.append))) == [1]


def test_a_table_says_how_it_was_decoded_and_two_decodings_are_compared(bundle, corpus, ngrams, tmp_path, capsys):
    tables = [str(tmp_path / name) for name in ("greedy.parquet", "words.parquet")]
    common = ["evaluate", bundle, corpus, "--split", "test", "--table"]
    assert main([*common, tables[0], "--greedy"]) == 0
    assert main([*common, tables[1], "--ngram", ngrams, "--beam", "5", "--num-best", "3"]) == 0
    assert "oracle" in capsys.readouterr().out
    read = read_evaluation(tables[1])
    assert read.facts.settings["decoding"]["beam"]["width"] == 5
    write_evaluation(str(tmp_path / "again.parquet"), read)
    assert read_evaluation(str(tmp_path / "again.parquet")) == read
    assert all(row.totals["oracle"] <= row.totals["wer"] for row in read.rows)
    assert main(["compare", *tables, "--html", str(tmp_path / "page.html")]) == 0
    told = capsys.readouterr().out
    assert "the best symbol of each frame" in told
    assert "a search with 5 prefixes" in told
    assert "a search with 5 prefixes" in Path(tmp_path, "page.html").read_text()


def test_the_terminal_tells_decoding_speed_and_groups(bundle, corpus, tmp_path, capsys):
    page = str(tmp_path / "page.html")
    options = ["--tune", "dev", "--hot-word", "fox", "--by", "room", "--report", page]
    assert main(["evaluate", bundle, corpus, *options]) == 0
    told = capsys.readouterr()
    assert "Tried on &#x27;dev&#x27;" in Path(page).read_text()
    assert "Real-time factor" in Path(page).read_text()
    for part in (
        "decoded by",
        "real-time factor",
        "network",
        "reading",
        "tried on 'dev'",
        "by room",
        "very utterances",
    ):
        assert part in told.out
    assert "chosen on 'dev' among" in told.err
    assert main(["evaluate", bundle, corpus, "--by", "room", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {group["value"] for group in found["by"]["room"]} <= {"r0", "r1"}
    assert found["settings"]["real_time_factor"].keys() == {"total", "reading", "network", "decoding"}


def test_transcribe_takes_the_options_of_evaluate(bundle, corpus, ngrams, capsys):
    words = ["--ngram", ngrams, "--set", "guide.word_bonus=4"]
    measured = sonant.evaluate(bundle, corpus, split="test", settings=[f"ngram={ngrams}", "guide.word_bonus=4"])
    utterance = sonant.open_corpus(corpus).split("test")[0]
    assert main(["transcribe", bundle, utterance.audio, *words]) == 0
    assert capsys.readouterr().out.strip() == hypotheses(measured)[utterance.id]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--save-decoding"], "Give --tune"),
        (["--tune", "dev", "--greedy"], "Leave it or --tune out"),
        (["--greedy", "--beam", "4"], "--beam is about a search"),
        (["--tune", "devel"], "dev"),
        (["--num-best", "4"], "Search with a beam"),
        (["--num-best", "0"], "between 1 and"),
        (["--beam", "0"], "between 1 and"),
        (["--ngram", "nowhere.arpa"], "nowhere.arpa"),
        (["--rescorer", "BUNDLE"], "'language' is required"),
        (["--set", "guide.ngram_wieght=1", "--ngram", "NGRAMS"], "Did you mean 'ngram_weight'"),
        (["--hot-word", "çöп"], "cannot be written"),
    ],
)
def test_a_mistake_is_told(bundle, corpus, ngrams, words, told, capsys):
    places = {"BUNDLE": bundle, "NGRAMS": ngrams}
    assert main(["evaluate", bundle, corpus, *(places.get(word, word) for word in words)]) in (2, 3, 4)
    assert told in capsys.readouterr().err
    assert open_bundle(bundle).description.decoding == {"kind": "greedy"}


def test_what_is_not_decoded_takes_no_such_options(language, capsys):
    with pytest.raises(SonantError, match="'language' is not decoded"):
        sonant.evaluate(language, is_greedy=True)
