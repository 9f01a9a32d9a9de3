"""Texts become n-gram models on the command line, and their fit is what the model itself says."""

from __future__ import annotations

import json
import math

import pytest

from sonant.base.errors import SonantError
from sonant.cli.main import main
from sonant.decoding.ngram.binary import read_ngrams
from sonant.recipes.ngram import estimate


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "train.txt").write_text("the old bird sings\nthe old boat sinks\n\na bird  sings\n" * 20)
    (tmp_path / "dev.txt").write_text("the bird sings\na unicorn sinks\n")
    return tmp_path


@pytest.mark.parametrize("ending", [".arpa", ".arpa.gz", ".ngram"])
def test_every_form_scores_alike(texts, capsys, ending):
    place = str(texts / f"words{ending}")
    words = ["ngram", str(texts / "train.txt"), "--out", place, "--held-out", str(texts / "dev.txt"), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["num_sentences"] == 60
    assert found["unknown_share"] == pytest.approx(1 / 6)
    model = read_ngrams(place)
    sentences = [["the", "bird", "sings"], ["a", "unicorn", "sinks"]]
    assert found["perplexity"] == pytest.approx(math.exp(-model.score_sentences(sentences).sum() / 8), rel=1e-5)


def test_likely_sentences_are_likelier(texts):
    estimate([str(texts / "train.txt")], str(texts / "w.ngram"), ["ngram.order=2"])
    model = read_ngrams(str(texts / "w.ngram"))
    assert model.order == 2
    good, bad = model.score_sentences([["the", "old", "bird", "sings"], ["sings", "bird", "old", "the"]])
    assert good > bad


def test_characters_are_counted_on_request(texts):
    estimate([str(texts / "train.txt")], str(texts / "c.ngram"), ["unit=character", "ngram.order=4"])
    assert {"t", "h", " "} <= set(read_ngrams(str(texts / "c.ngram")).words)


@pytest.mark.parametrize(
    ("out", "settings", "told"),
    [
        ("w.bin", [], r"ending says nothing.*\.arpa"),
        ("w.arpa", ["unit=token"], "Name its bundle"),
        ("w.arpa", ["ngram.order=0"], "order"),
        ("w.arpa", ["ngram.ordr=2"], "order"),
    ],
)
def test_a_mistake_is_told(texts, out, settings, told):
    with pytest.raises(SonantError, match=told):
        estimate([str(texts / "train.txt")], str(texts / out), settings)


def test_empty_texts_are_told(texts):
    (texts / "empty.txt").write_text("\n\n")
    with pytest.raises(SonantError, match=r"no sentence|no text"):
        estimate([str(texts / "empty.txt")], str(texts / "w.arpa"))
