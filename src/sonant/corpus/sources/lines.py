"""Text files as people have them: with or without a byte-order mark, UTF-8, UTF-16 or cp1252, plain or gzipped.

text = decode_text("recordings.csv")       # decides the encoding on the whole file, then reads lazily
yield from text.findings                   # says so when the encoding had to be guessed
for number, line in text.numbered():       # physical lines, without their ends
    ...
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from sonant.base import storage
from sonant.base.errors import SourceError
from sonant.base.names import suggestion
from sonant.corpus.utterance import Finding

_BLOCK = 1 << 20
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as UTF-16 does, so it is asked first
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_KNOWN = ("utf-8", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1", "cp1251", "shift_jis", "gb18030", "big5")


@dataclass(frozen=True)
class Text:
    """A text file whose encoding is decided; it is read anew by each iteration, block by block."""

    location: str
    encoding: str
    findings: tuple[Finding, ...] = ()

    def __iter__(self) -> Iterator[str]:
        """The lines without their ends; `\\n`, `\\r\\n` and `\\r` all end one."""
        for line in self.with_ends():
            yield line.rstrip("\r\n")

    def numbered(self) -> Iterator[tuple[int, str]]:
        return enumerate(self, start=1)

    def with_ends(self) -> Iterator[str]:
        """The lines as written, ends included: what the csv module wants."""
        with open_bytes(self.location) as file:
            yield from io.TextIOWrapper(file, encoding=self.encoding, newline="")

    def blocks(self, num_characters: int) -> Iterator[str]:
        """The text in stretches of at most so many characters, however long its lines; every line end is `\\n`."""
        with open_bytes(self.location) as file:
            stream = io.TextIOWrapper(file, encoding=self.encoding)
            while block := stream.read(num_characters):
                yield block

    def read(self) -> str:
        return "".join(self.with_ends())


def decode_text(location: str, encoding: str = "") -> Text:
    """Decides the encoding: the one given, else the byte-order mark, else UTF-8 if all of it is, else cp1252."""
    with open_bytes(location) as file:
        head = file.read(4096)
    if encoding:
        chosen = _looked_up(location, encoding)
        return Text(location, "utf-8-sig" if chosen == "utf-8" and head.startswith(codecs.BOM_UTF8) else chosen)
    for mark, marked in _MARKS:
        if head.startswith(mark):
            return Text(location, _looked_up(location, marked))
    if b"\0" in head:
        return Text(location, _unmarked_utf16(location, head))
    fault = _first_fault(location, "utf-8")
    return Text(location, "utf-8") if fault is None else _guessed(location, fault)


@contextmanager
def open_bytes(location: str) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed on the way when its name ends in .gz."""
    with storage.open_binary(location) as file:
        if not location.casefold().endswith(".gz"):
            yield file
            return
        try:
            with gzip.open(file) as unpacked:
                yield io.BufferedReader(unpacked)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise SourceError(location, f"this gzip file is damaged: {error}.", "Copy it again.") from error


def _looked_up(location: str, encoding: str) -> str:
    try:
        chosen = codecs.lookup(encoding).name
    except LookupError as error:
        raise SourceError(location, f"the encoding '{encoding}' is not known.", suggestion(encoding, _KNOWN)) from error
    fault = _first_fault(location, chosen)
    if fault is not None:
        line, found = fault
        action = "Name the encoding of the file with --encoding, or save it anew as UTF-8."
        raise SourceError(f"{location}:{line}", f"{found} is not {encoding.removesuffix('-sig').upper()}.", action)
    return chosen


def _unmarked_utf16(location: str, head: bytes) -> str:
    """Every other byte of western UTF-16 is zero; a zero anywhere else means that this is no text."""
    low, high = head[0::2].count(0), head[1::2].count(0)
    guess = "utf-16-le" if high > low else "utf-16-be"
    if min(low, high) * 10 > max(low, high) or _first_fault(location, guess) is not None:
        raise SourceError(location, "this is not a text file: it holds zero bytes.", "Name its encoding, or remove it.")
    return guess


def _guessed(location: str, fault: tuple[int, str]) -> Text:
    line, found = fault
    undefined = _first_fault(location, "cp1252")
    if undefined is not None:
        raise SourceError(
            f"{location}:{undefined[0]}",
            f"{undefined[1]} is neither UTF-8 nor cp1252.",
            "Name the encoding of the file with --encoding.",
        )
    finding = Finding(
        rule="guessed-encoding",
        place=f"{location}:{line}",
        problem=f"{found} is not UTF-8; the file was read as cp1252.",
        action="Name the encoding with --encoding, or save the file as UTF-8.",
        is_error=False,
    )
    return Text(location, "cp1252", (finding,))


def _first_fault(location: str, encoding: str) -> tuple[int, str] | None:
    """Line and bytes of the first thing that this encoding cannot mean."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with open_bytes(location) as file:
        while True:
            block = file.read(_BLOCK)
            try:
                line += _line_ends(decoder.decode(block, final=not block))
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(encoding, "replace")
                wrong = error.object[error.start : error.start + 1]
                return line + _line_ends(before), f"byte 0x{wrong.hex()}"
            if not block:
                return None


def _line_ends(text: str) -> int:
    return text.count("\n") or len(re.findall("\r", text))
