"""A text on a recording: known scores give known times, and a text that does not belong shows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import TextError
from sonant.decoding.spelling import Spelling
from sonant.inference.aligner import align
from sonant.inference.scored import Scored
from sonant.text.normalize import NormalizerConfig
from sonant.text.tokenizer import CharactersConfig, train_tokenizer
from sonant.text.vocabulary import VocabularyConfig

FRAME = 0.02
STEPS = NormalizerConfig(steps=("lowercase", "strip_punctuation", "collapse_whitespace"))
VOCABULARY = VocabularyConfig(alphabet="abcdefgh")
SPELLING = Spelling(train_tokenizer([], CharactersConfig(vocabulary=VOCABULARY, normalizer=STEPS)))
SYMBOLS = SPELLING.tokenizer.symbols


def said(path: str, sure: float = 0.9) -> Scored:
    """Scores of a path of symbols, "." for the blank: each frame is so sure of its own."""
    ids = [SPELLING.blank_id if sign == "." else SYMBOLS.index(sign) for sign in path]
    probabilities = np.full((len(path), len(SYMBOLS)), (1 - sure) / (len(SYMBOLS) - 1))
    probabilities[np.arange(len(path)), ids] = sure
    return Scored("talk.wav", len(path) * FRAME, FRAME, np.log(probabilities).astype(np.float32))


def test_known_scores_give_known_times():
    found = align(said("..aab.|.c.."), "Ab, C!", SPELLING)
    told = [(word.text, round(word.start / FRAME), round(word.end / FRAME)) for word in found.words]
    assert told == [("Ab,", 2, 5), ("C!", 8, 9)]
    assert [(one.text, round(one.start / FRAME), round(one.end / FRAME)) for one in found.tokens] == [
        ("a", 2, 4),
        ("b", 4, 5),
        ("c", 8, 9),
    ]
    assert found.score == pytest.approx(0, abs=1e-5)
    assert found.confidence == pytest.approx(0.9)
    assert (found.text, found.lines, found.skipped) == ("Ab, C!", (), ())


words = st.lists(st.text("abcdefgh", min_size=1, max_size=5), min_size=1, max_size=6)


@settings(max_examples=50, deadline=None)
@given(words=words, seed=st.integers(0, 10**6))
def test_words_lie_where_their_letters_are_said_and_no_other_text_fits_better(words, seed):
    rng = np.random.default_rng(seed)
    path, times = "." * rng.integers(0, 4), []
    for word in words:
        path += "." * rng.integers(1, 5) + ("|" if times else "") + "." * rng.integers(0, 3)
        start = len(path)
        path += ".".join(letter * rng.integers(1, 4) for letter in word)
        times.append((start, len(path)))
    found = align(said(path), " ".join(words), SPELLING)
    for word, (start, end) in zip(found.words, times, strict=True):
        assert (round(word.start / FRAME), round(word.end / FRAME)) == (start, end)
        assert word.confidence == pytest.approx(0.9)
    assert found.score == pytest.approx(0, abs=1e-4)
    other = rng.permutation(list("abcdefgh"))[: len(words[0])]
    if "".join(other) != words[0]:
        try:
            wrong = align(said(path), " ".join(["".join(other), *words[1:]]), SPELLING)
        except TextError:
            return
        assert wrong.score < found.score - 0.1


def test_lines_of_a_text_have_their_own_times_and_confidence():
    scored = said("a.|.bb..|c")
    scored.log_probs[9] = np.log(1 / len(SYMBOLS))
    found = align(scored, "A\nb c\n", SPELLING)
    first, second = found.lines
    assert [(one.text, round(one.start / FRAME), round(one.end / FRAME)) for one in (first, second)] == [
        ("A", 0, 1),
        ("b c", 4, 10),
    ]
    assert second.confidence < first.confidence
    assert found.words[2].confidence == pytest.approx(1 / len(SYMBOLS))


@settings(max_examples=30, deadline=None)
@given(words=words, seed=st.integers(0, 10**6))
def test_a_line_that_does_not_fit_is_the_one_with_the_worst_score(words, seed):
    rng = np.random.default_rng(seed)
    lines, path = [*words, "abcdefgh", *words], ""
    wrong = int(rng.integers(0, len(lines)))
    for number, line in enumerate(lines):
        path += ".." + ("|" if number else "") + ".." + ".".join("hgfedcba" if number == wrong else line)
    lines[wrong] = "abcdefgh"
    found = align(said(path + ".."), "\n".join(lines), SPELLING)
    scores = [line.score for line in found.lines]
    assert int(np.argmin(scores)) == wrong
    assert sum(scores[:wrong] + scores[wrong + 1 :]) == pytest.approx(0, abs=1e-4)
    counts = [len(line) for line in lines]
    total = float(np.dot(scores, counts)) / (sum(counts) + len(lines) - 1)  # what divides two lines is of none
    assert found.score == pytest.approx(total, abs=1e-4)


def test_words_that_cannot_be_written_are_named_and_the_others_aligned():
    found = align(said(".a...b."), "a 42 b", SPELLING)
    assert [word.text for word in found.words] == ["a", "b"]
    assert found.skipped == ("42",)


def test_times_end_with_the_recording():
    scored = said("..a")
    short = Scored("a.wav", 0.055, FRAME, scored.log_probs)
    assert align(short, "a", SPELLING).words[0].end == 0.055


@pytest.mark.parametrize("text", ["", " \n ", "!?", "42"])
def test_a_text_that_says_nothing_is_told(text):
    with pytest.raises(TextError, match=r"talk\.wav: .*nothing to align"):
        align(said("..a"), text, SPELLING)


def test_who_speaks_faster_than_frames_come_is_aligned_in_halves_of_them():
    found = align(said("abcd"), "A bcd", SPELLING)
    times = [time / FRAME for one in found.tokens for time in (one.start, one.end)]
    assert times == sorted(times)
    assert [times[0], times[-1]] == [0, 4]
    assert [word.text for word in found.words] == ["A", "bcd"]
    half_a_frame = (np.log(0.1 / (len(SYMBOLS) - 1)) - np.log(0.9)) / 2  # in which the words are divided
    assert found.score == pytest.approx(half_a_frame / 5, abs=1e-4)
    assert align(said("abcd"), "abcd", SPELLING).score > found.score > align(said("abcd"), "d cba", SPELLING).score


@pytest.mark.parametrize("path", ["ab", "a", ""])
def test_too_few_frames_for_a_text_are_told(path):
    with pytest.raises(TextError, match=rf"talk\.wav: its text needs 5 frames, more than twice the {len(path)} that"):
        align(said(path), "aa b", SPELLING)
