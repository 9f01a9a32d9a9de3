"""Scores are those of the ARPA file's definition, and those that KenLM gives for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.decoding.ngram.arpa import read_arpa
from sonant.decoding.ngram.model import LOG_10, build_model
from sonant.decoding.ngram.tables import NgramTable, NgramTables

ARPA = r"""
\data\
ngram 1=6
ngram 2=6
ngram 3=3

\1-grams:
-1.5	<unk>
-99	<s>	-0.4
-0.9	</s>
-0.8	the	-0.3
-1.1	cat	-0.25
-1.2	sat	-0.1

\2-grams:
-0.3	<s> the	-0.2
-0.9	<s> cat	-0.15
-0.4	the cat	-0.22
-0.7	cat sat	-0.05
-1.0	sat the
-0.5	sat </s>

\3-grams:
-0.1	<s> the cat
-0.2	the cat sat
-0.35	cat sat </s>

\end\
"""

# log10, with and without the end of the sentence, as KenLM 0.3.0 scored this file.
KENLM = {
    "the cat sat": (-0.95, -0.6),
    "": (-1.3, 0.0),
    "cat the dog sat the": (-7.3, -6.1),
    "sat sat": (-3.4, -2.9),
    "dog": (-2.8, -1.9),
    "the the cat cat sat the cat": (-7.09, -5.72),
}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "small.arpa"
    path.write_text(ARPA)
    return read_arpa(str(path))


def by_definition(tables, words):
    """Natural logarithm of the last word behind the others, from the tables alone."""
    known = [
        {tuple(row): (p, b) for row, p, b in zip(t.words.tolist(), t.log10_probs, t.log10_backoffs, strict=True)}
        for t in tables.orders
    ]

    def log10(ngram):
        if ngram in known[len(ngram) - 1]:
            return known[len(ngram) - 1][ngram][0]
        return known[len(ngram) - 2].get(ngram[:-1], (0.0, 0.0))[1] + log10(ngram[1:])

    return log10(tuple(words[-len(known) :])) * LOG_10


def test_sentences_score_as_kenlm_scores_them(model):
    sentences = [sentence.split() for sentence in KENLM]
    ended, open_ended = np.array(list(KENLM.values())).T * LOG_10
    np.testing.assert_allclose(model.score_sentences(sentences), ended, atol=1e-5)
    np.testing.assert_allclose(model.score_sentences(sentences, ended=False), open_ended, atol=1e-5)


@st.composite
def tables(draw):
    """Any orders over four words; histories may be missing, as pruned files leave them out."""
    words, orders = ("<unk>", "<s>", "a", "b"), []
    for order in range(1, draw(st.integers(1, 4)) + 1):
        rows = [(w,) for w in range(4)]
        if order > 1:
            row = st.tuples(*[st.integers(0, 3)] * order)
            rows = draw(st.lists(row, unique=True, min_size=1, max_size=8))
        numbers = st.integers(-30, -1).map(lambda tenths: tenths / 10)
        log_probs, backoffs = (draw(st.lists(numbers, min_size=len(rows), max_size=len(rows))) for _ in "pb")
        orders.append(NgramTable(np.array(rows, np.int32), np.array(log_probs), np.array(backoffs)))
    return NgramTables(words, tuple(orders))


@given(tables=tables(), text=st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_any_file_scores_as_its_definition_says(tables, text):
    model = build_model(tables)
    states, words = np.array([model.start]), [1]
    for word in text:
        scores, states = model.score(states, np.array([word]))
        words.append(word)
        assert scores[0] == pytest.approx(by_definition(tables, words), rel=1e-5)


def test_many_sentences_score_as_each_does_alone(model):
    sentences = [sentence.split() for sentence in KENLM]
    alone = [model.score_sentences([sentence])[0] for sentence in sentences]
    np.testing.assert_array_equal(model.score_sentences(sentences), alone)


def test_a_model_without_a_word_for_the_unknown_finds_it_nearly_impossible(tmp_path):
    path = tmp_path / "no_unknown.arpa"
    path.write_text(ARPA.replace("ngram 1=6", "ngram 1=5").replace("-1.5	<unk>\n", ""))
    assert read_arpa(str(path)).score_sentences([["dog"]], ended=False)[0] < -100 * LOG_10


def test_later_spellings_of_the_marks_are_understood(tmp_path, model):
    path = tmp_path / "upper.arpa"
    path.write_text(ARPA.replace("<s>", "<S>").replace("</s>", "</S>").replace("<unk>", "<UNK>"))
    sentences = [sentence.split() for sentence in KENLM]
    np.testing.assert_array_equal(read_arpa(str(path)).score_sentences(sentences), model.score_sentences(sentences))
