from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sonant.corpus.sources import documents
from sonant.corpus.sources.documents import LARGEST, Piece, pieces_of

SPEECHES = "First:\nHear me.\n\nAll:\nSpeak, speak.\n"


def in_blocks(text: str, size: int) -> list[str]:
    return [text[first : first + size] for first in range(0, len(text), size)]


def joined(pieces: list[Piece]) -> list[str]:
    return ["".join(one.text for one in parts) for _, parts in groupby(pieces, lambda one: one.document)]


texts = st.text(st.sampled_from("ab \n"), max_size=200)


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(1, 9), st.integers(4, 40))
def test_the_parts_of_a_file_are_the_file_to_the_character(text, block, largest):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "LARGEST", largest)
        pieces = list(pieces_of(in_blocks(text, block), "file"))
    assert "".join(one.text for one in pieces) == (text if text.strip() else "")
    assert all(one.text.strip() for one in pieces)
    assert [one.part for one in pieces] == list(range(1, len(pieces) + 1))
    assert [one.is_last for one in pieces] == [False] * (len(pieces) - 1) + [True] * bool(pieces)


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(1, 9), st.integers(4, 40))
def test_blocks_and_lines_are_what_splitting_the_whole_text_gives(text, block, largest):
    rows = text.split("\n")
    assume(all(len(line) < largest for line in rows if not line.strip()))  # a blank line is no longer than a part
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "LARGEST", largest)
        lines = list(pieces_of(in_blocks(text, block), "line"))
        blocks = list(pieces_of(in_blocks(text, block), "block"))
    assert joined(lines) == [line for line in rows if line.strip()]
    grouped = groupby(rows, lambda line: bool(line.strip()))
    assert joined(blocks) == ["\n".join(group) for is_text, group in grouped if is_text]
    assert all(text.split("\n")[one.line - 1].startswith(one.text[:1]) for one in lines if one.part == 1)


def test_no_part_is_larger_than_a_row_may_be_however_long_the_lines():
    text = "word " * LARGEST + "\n" + "x" * (2 * LARGEST) + "\n" + "a line\n" * LARGEST
    pieces = list(pieces_of(in_blocks(text, 1000), "file"))
    assert max(len(one.text) for one in pieces) <= LARGEST
    assert "".join(one.text for one in pieces) == text
    assert all(one.text.endswith("word ") for one in pieces[:4])


def test_a_part_ends_at_a_blank_line_where_there_is_one():
    pieces = list(pieces_of([SPEECHES.rstrip("\n") + "\n\n"] * 3000, "file"))
    assert len(pieces) > 2
    assert all(one.text.startswith(("First:", "All:")) for one in pieces)


def test_documents_know_their_first_line():
    assert [(one.line, one.document) for one in pieces_of([SPEECHES], "block")] == [(1, 1), (4, 2)]
    assert [one.line for one in pieces_of([SPEECHES], "line")] == [1, 2, 4, 5]
