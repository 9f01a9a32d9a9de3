"""N-grams come back from their files as they were written, and damage is named by its line."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from sonant.base.errors import AbsentError, TextError
from sonant.decoding.ngram.arpa import read_arpa, read_tables, write_arpa
from sonant.decoding.ngram.binary import read_ngrams, write_binary
from sonant.decoding.ngram.estimation import NgramConfig, estimate_ngrams
from sonant.decoding.ngram.model import build_model

SENTENCES = [line.split() for line in ("ein é wort", "ein wort", "und ein wort mehr", "mehr", "wort und wort")]


@pytest.fixture
def tables():
    return estimate_ngrams(SENTENCES * 3, NgramConfig(order=3))


@pytest.mark.parametrize("name", ["words.arpa", "words.arpa.gz"])
def test_tables_come_back_from_an_arpa_file(tmp_path, tables, name):
    write_arpa(tables, str(tmp_path / name))
    back = read_tables(str(tmp_path / name))
    assert back.words == tables.words
    for ours, read in zip(tables.orders, back.orders, strict=True):
        np.testing.assert_array_equal(ours.words, read.words)
        np.testing.assert_allclose(ours.log10_probs, read.log10_probs, rtol=1e-6)
        np.testing.assert_allclose(ours.log10_backoffs, read.log10_backoffs, rtol=1e-6, atol=1e-12)


def test_the_same_tables_are_written_to_the_same_bytes(tmp_path, tables):
    for name in ("one.arpa.gz", "other.arpa.gz"):
        write_arpa(tables, str(tmp_path / name))
    assert (tmp_path / "one.arpa.gz").read_bytes() == (tmp_path / "other.arpa.gz").read_bytes()


def test_a_mapped_model_scores_as_the_one_that_was_written(tmp_path, tables):
    model = build_model(tables)
    write_binary(model, str(tmp_path / "words.ngram"))
    mapped = read_ngrams(str(tmp_path / "words.ngram"))
    assert isinstance(mapped.log_probs.base, np.memmap)
    assert (mapped.order, mapped.words, mapped.start) == (model.order, model.words, model.start)
    sentences = [*SENTENCES, ["mehr", "é", "nichts"], []]
    np.testing.assert_array_equal(mapped.score_sentences(sentences), model.score_sentences(sentences))


def test_either_form_is_told_by_its_content(tmp_path, tables):
    write_arpa(tables, str(tmp_path / "words"))
    expected = build_model(tables).score_sentences(SENTENCES)
    np.testing.assert_allclose(read_ngrams(str(tmp_path / "words")).score_sentences(SENTENCES), expected, rtol=1e-5)


def test_a_model_with_nothing_but_single_words_has_both_forms(tmp_path):
    model = build_model(estimate_ngrams(SENTENCES, NgramConfig(order=1)))
    write_binary(model, str(tmp_path / "words.ngram"))
    mapped = read_ngrams(str(tmp_path / "words.ngram"))
    np.testing.assert_array_equal(mapped.score_sentences(SENTENCES), model.score_sentences(SENTENCES))


@pytest.mark.parametrize("kept", [20, 120, 500])
def test_a_mapped_file_that_ends_early_is_refused(tmp_path, tables, kept):
    path = tmp_path / "words.ngram"
    write_binary(build_model(tables), str(path))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(TextError, match="damaged"):
        read_ngrams(str(path))


SMALL = r"""\data\
ngram 1=4
ngram 2=2

\1-grams:
-99	<s>	-0.3
-1	<unk>
-1.1	ein	-0.2
-1.2	wort	-0.1
\2-grams:
-0.4	<s> ein
-0.5	ein wort
\end\
"""

DAMAGES = [
    (r"\data", "hello\n\\data", r"words:1: a file of n-grams in the ARPA format begins with \\data"),
    ("ngram 2=", "ngram 3=", "words:3: 'ngram 2=COUNT' is due"),
    ("-1.1\tein", "-x\tein", "words:8: '-x ein -0.2' was found, but a number, 1 words"),
    ("-1.2\twort", "-1.2\tein", "words:9: '-1.2 ein -0.1' repeats a word"),
    ("ein wort", "ein welt", "words:12: '-0.5 ein welt' has a word that is not among the single words"),
    ("-0.5\tein wort\n\\end\\\n", "", "ends 1 n-grams of order 2 early"),
    ("ngram 1=4", "ngram 1=3", r"words:9: '\\2-grams:' is due here, but '-1.2"),
    ("ngram 2=2", "ngram 2=1", r"words:12: more follows where \\end\\ is due"),
    (SMALL, "", "words:0: a file of n-grams"),
]


@pytest.mark.parametrize(("found", "instead", "message"), DAMAGES)
def test_a_damaged_arpa_file_is_refused_by_line(tmp_path, found, instead, message):
    assert found in SMALL
    (tmp_path / "words").write_text(SMALL.replace(found, instead))
    with pytest.raises(TextError, match=message):
        read_arpa(str(tmp_path / "words"))


def test_a_packed_file_that_ends_early_is_refused(tmp_path):
    (tmp_path / "words").write_bytes(gzip.compress(SMALL.encode())[:60])
    with pytest.raises(TextError, match="damaged"):
        read_arpa(str(tmp_path / "words"))


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(AbsentError):
        read_ngrams(str(tmp_path / "words"))


def test_a_binary_file_of_kenlm_is_named_as_such(tmp_path):
    (tmp_path / "words").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")
    with pytest.raises(TextError, match="Give the ARPA file that it was made from"):
        read_ngrams(str(tmp_path / "words"))
