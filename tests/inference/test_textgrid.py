"""A TextGrid is what Praat reads: tiers that cover the recording without a gap, every word at its time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.corpus.sources.textgrid import read_textgrid
from sonant.inference.transcripts import Transcript, Word, as_textgrid


def tiers_of(text: str) -> dict[str, list[tuple[float, float, str]]]:
    """A reader that knows the long form by its keys alone."""
    head, *items = re.split(r"\n    item \[\d+\]:\n", text)
    assert head.startswith('File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\n')
    assert int(re.search(r"^size = (\d+)$", head, re.MULTILINE)[1]) == len(items)
    tiers = {}
    for item in items:
        interval = r'intervals \[\d+\]:\s+xmin = (\S+)\s+xmax = (\S+)\s+text = "((?:[^"]|"")*)"'
        found = [(float(start), float(end), said.replace('""', '"')) for start, end, said in re.findall(interval, item)]
        assert int(re.search(r"intervals: size = (\d+)", item)[1]) == len(found)
        tiers[re.search(r'name = "(\w+)"', item)[1]] = found
    return tiers


def spoken(durations: list[tuple[int, int]], texts: list[str]) -> tuple[Word, ...]:
    words, behind = [], 0
    for (pause, length), text in zip(durations, texts, strict=False):
        words.append(Word(text, (behind + pause) * 0.02, (behind + pause + length) * 0.02, 0.5))
        behind += pause + length
    return tuple(words)


durations = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 20)), max_size=8)
texts = st.lists(st.text('a"é\n 好', min_size=1, max_size=4), min_size=8, max_size=8)


@given(durations=durations, texts=texts, rest=st.integers(0, 5))
def test_every_tier_covers_the_recording_and_holds_every_word(durations, texts, rest):
    words = spoken(durations, texts)
    seconds = (words[-1].end if words else 0.0) + 0.02 * rest + 0.01
    tiers = tiers_of(as_textgrid(Transcript("a.wav", seconds, "", 1.0, words, tokens=words[:2])))
    assert set(tiers) == {"words", "tokens"} if words else {"words"}
    for name, some in (("words", words), ("tokens", words[:2])):
        if name not in tiers:
            continue
        told = [(start, end, text) for start, end, text in tiers[name] if text]
        assert [text for _, _, text in told] == [word.text for word in some]
        for (start, end, _), word in zip(told, some, strict=True):
            assert (start, end) == pytest.approx((word.start, word.end), abs=1e-6)
        edges = [0.0, *(end for _, end, _ in tiers[name])]
        assert edges[:-1] == [start for start, _, _ in tiers[name]]
        assert edges[-1] == pytest.approx(seconds, abs=1e-6)


def test_it_is_read_back_as_a_corpus_would_be(tmp_path):
    words = spoken([(1, 3), (0, 2), (5, 4)], ["Say", '"yes"', "now"])
    (tmp_path / "a.TextGrid").write_text(as_textgrid(Transcript("a.wav", 2.0, "", 1.0, words, lines=words[1:2])))
    lines, said = read_textgrid(str(tmp_path / "a.TextGrid"), "").tiers
    assert (lines.name, said.name) == ("lines", "words")
    assert [one.text for one in said.intervals if one.text] == ["Say", '"yes"', "now"]
