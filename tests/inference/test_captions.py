"""Captions can be read: lines of a size, long enough on the screen, broken where somebody pauses."""

from __future__ import annotations

from itertools import pairwise, zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.inference.captions import captions_of, lines_of
from sonant.inference.transcripts import Transcript, Word, as_vtt, captions


@st.composite
def said(draw):
    """Words of any length and speed, with pauses between them."""
    words, at = [], 0.0
    for letters, lasts, pause in draw(
        st.lists(st.tuples(st.integers(1, 12), st.floats(0.05, 1.0), st.floats(0, 1.5)), max_size=60)
    ):
        at += pause
        words.append(Word("abcdefghijkl"[:letters], at, at + lasts, 1.0))
        at += lasts
    return words


@given(said())
def test_captions_hold_every_word_once_in_lines_that_can_be_read(words):
    found = captions_of(words, 1e9, begins=frozenset(), gap=" ")
    assert [word for one in found for word in one.text.split()] == [word.text for word in words]
    starts, at = {one.start for one in found}, 0
    for one, after in zip_longest(found, found[1:]):
        lines = one.text.split("\n")
        assert len(lines) <= 2
        assert max(map(len, lines)) <= 42
        at += len(one.text.split())
        assert words[at - 1].end <= one.end
        if after:
            assert one.end <= after.start
        if not after or after.start - one.start > 4.5:
            assert one.end - one.start >= 1.0 - 1e-6
            assert one.end - one.start >= (len(one.text) - 1) / 20 - 1e-6
        assert words[at - 1].end - one.start <= 6.0
    for before, behind in pairwise(words):
        assert behind.start - before.end <= 1.0 or behind.start in starts


def test_a_caption_that_is_full_is_broken_at_its_longest_pause():
    starts = [0.4 * place + 0.3 * (place >= 9) for place in range(20)]
    words = [Word("word", start, start + 0.4, 1.0) for start in starts]
    first, second, *_ = captions_of(words, 60, begins=frozenset(), gap=" ")
    assert second.start == pytest.approx(3.9)
    assert len(first.text.split()) == 9


def test_a_caption_ends_with_its_sentence():
    texts = "it is late and we are all very tired. so let us go home and sleep until noon my friends of old".split()
    words = [Word(text, 0.25 * place, 0.25 * place + 0.25, 1.0) for place, text in enumerate(texts)]
    assert captions_of(words, 60, begins=frozenset(), gap=" ")[0].text.endswith("tired.")


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        (["short"], ["short"]),
        (["a" * 60], ["a" * 60]),
        (["word"] * 10, ["word word word word word", "word word word word word"]),
        (["aaaa"] * 9, ["aaaa aaaa aaaa aaaa", "aaaa aaaa aaaa aaaa aaaa"]),
        (["b" * 30] * 3, None),
    ],
)
def test_two_lines_are_of_like_length(texts, lines):
    assert lines_of(texts) == lines


def test_what_is_written_without_spaces_has_none_in_captions():
    words = tuple(Word(sign, place / 2, place / 2 + 0.5, 1.0) for place, sign in enumerate("你好世界"))
    assert [one.text for one in captions(Transcript("a", 2.0, "你好世界", 1.0, words))] == ["你好世界"]


def test_signs_with_a_meaning_are_written_out_in_webvtt():
    assert "R&amp;D &lt;i>" not in as_vtt(Transcript("a", 1.0, "R&D <i>", 1.0, (Word("R&D", 0, 1, 1.0),)))
    assert "R&amp;D" in as_vtt(Transcript("a", 1.0, "R&D", 1.0, (Word("R&D", 0, 1, 1.0),)))
