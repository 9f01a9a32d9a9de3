from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import SourceError
from sonant.corpus.sources.lines import decode_text

TEXT = "id,text\n007,Grüße aus Zürich\nb,naïve café – “so”\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "cp1252"])
def test_the_encoding_of_a_file_does_not_matter(tmp_path, encoding):
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT.encode(encoding))
    assert decode_text(str(path)).read() == TEXT


@settings(max_examples=40, deadline=None)
@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))), min_size=1, max_size=5),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_lines_are_the_same_whatever_ends_them(tmp_path_factory, lines, end, encoding):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes("".join(line + end for line in lines).encode(encoding))
    assert list(decode_text(str(path)).numbered()) == list(enumerate(lines, start=1))


def test_a_guessed_encoding_is_told_with_the_line_that_made_it_a_guess(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("id,text\r\na,plain\r\nb,Grüße\r\n".encode("cp1252"))
    (finding,) = decode_text(str(path)).findings
    assert (finding.rule, finding.place, finding.is_error) == ("guessed-encoding", f"{path}:3", False)
    assert "0xfc" in finding.problem


def test_a_named_encoding_is_taken_without_a_finding(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("тест\n".encode("cp1251"))
    text = decode_text(str(path), "cp1251")
    assert (list(text), text.findings) == (["тест"], ())


@pytest.mark.parametrize(
    ("content", "encoding", "line"),
    [
        (b"a\nb\x81c\n", "", 2),  # neither UTF-8 nor cp1252
        (b"\xef\xbb\xbfa\nb\nc\xe4\n", "", 3),  # marked as UTF-8, but it is not
        ("a\nb\n".encode("utf-16")[:-1], "", 2),  # cut in the middle of a character
        ("a\nGrüße\n".encode("cp1252"), "utf-8", 2),
    ],
)
def test_bytes_that_mean_nothing_are_an_error_that_names_the_line(tmp_path, content, encoding, line):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(SourceError) as caught:
        decode_text(str(path), encoding)
    assert caught.value.where == f"{path}:{line}"
    assert "--encoding" in caught.value.action


def test_an_unknown_encoding_is_answered_with_the_nearest(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a\n")
    with pytest.raises(SourceError, match="Did you mean 'cp1252'"):
        decode_text(str(path), "cp-1252x")


def test_what_is_no_text_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"RIFF\x00\x01\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x00\x00" * 20)
    with pytest.raises(SourceError, match="not a text file"):
        decode_text(str(path))


def test_gzipped_text_is_read_and_damage_is_told(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    assert decode_text(str(path)).read() == TEXT
    path.write_bytes(gzip.compress(TEXT.encode() * 1000)[:-20])
    with pytest.raises(SourceError, match="gzip"):
        decode_text(str(path))
