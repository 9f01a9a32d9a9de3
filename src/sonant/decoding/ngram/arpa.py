r"""ARPA files, plain or gzipped: read in blocks, written whole.

\data\
ngram 1=3
\1-grams:
-1.2<tab>word<tab>-0.3      log10 of the probability, the words, log10 of the backoff (0 when left out)
\end\
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from itertools import islice
from typing import IO, cast

import numpy as np

from sonant.base import storage
from sonant.base.errors import TextError
from sonant.decoding.ngram.model import NgramModel, build_model
from sonant.decoding.ngram.tables import NgramTable, NgramTables

_BLOCK = 100_000  # lines


def read_arpa(location: str) -> NgramModel:
    """A model from a file that any toolkit wrote."""
    return build_model(read_tables(location))


def read_tables(location: str) -> NgramTables:
    with storage.open_binary(location) as file:
        is_zipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if is_zipped else file
        try:
            return _Reader(location, io.BufferedReader(cast("io.RawIOBase", stream), 1 << 20)).tables()
        except (EOFError, gzip.BadGzipFile) as error:
            raise TextError(location, f"the packed file is damaged: {error}.", "Copy it again.") from error


def write_arpa(tables: NgramTables, location: str) -> None:
    """Written whole or not at all; a name that ends in .gz is packed."""

    def write(file: IO[bytes]) -> None:
        if location.endswith(".gz"):
            with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) as packed:
                packed.writelines(_lines(tables))
        else:
            file.writelines(_lines(tables))

    storage.write_whole(location, write)


def _lines(tables: NgramTables) -> Iterator[bytes]:
    yield b"\\data\\\n"
    for order, table in enumerate(tables.orders, 1):
        yield b"ngram %d=%d\n" % (order, len(table))
    words = [word.encode() for word in tables.words]
    for order, table in enumerate(tables.orders, 1):
        yield b"\n\\%d-grams:\n" % order
        has_backoffs = order < len(tables.orders)
        columns = table.words.tolist(), table.log10_probs.tolist(), table.log10_backoffs.tolist()
        for ngram, log_prob, backoff in zip(*columns, strict=True):
            text = b" ".join([words[word] for word in ngram])
            yield b"%.7g\t%s\t%.7g\n" % (log_prob, text, backoff) if has_backoffs else b"%.7g\t%s\n" % (log_prob, text)
    yield b"\n\\end\\\n"


class _Reader:
    """Goes through the lines once and knows where it stands."""

    def __init__(self, location: str, stream: IO[bytes]) -> None:
        self.location, self.stream, self.number = location, stream, 0
        self.ids: dict[bytes, int] = {}

    def tables(self) -> NgramTables:
        counts = self._counts()
        orders = [self._section(order, count) for order, count in enumerate(counts, 1)]
        if self._next_heading() != b"\\end\\":
            raise self._error(r"more follows where \end\ is due.", r"Correct the counts below \data\.")
        words = [word.decode("utf-8", "replace") for word in self.ids]
        return NgramTables(tuple(words), tuple(orders))

    def _counts(self) -> list[int]:
        if self._next_heading() != b"\\data\\":
            raise self._error(r"a file of n-grams in the ARPA format begins with \data\.", "Give such a file.")
        counts: list[int] = []
        for line in self.stream:
            self.number += 1
            if not line.strip():
                break
            name, _, count = line.partition(b"=")
            if name.split() != [b"ngram", b"%d" % (len(counts) + 1)] or not count.strip().isdigit():
                raise self._error(f"'ngram {len(counts) + 1}=COUNT' is due here.", "Copy the file again.")
            counts.append(int(count))
        if not counts:
            raise self._error("no order is announced.", "Give a file with at least single words.")
        return counts

    def _next_heading(self) -> bytes:
        """The next line that is not empty."""
        for line in self.stream:
            self.number += 1
            if line.strip():
                return line.strip()
        return b""

    def _section(self, order: int, count: int) -> NgramTable:
        heading = self._next_heading()
        if heading != b"\\%d-grams:" % order:
            found = heading[:60].decode("utf-8", "replace") or "the end of the file"
            problem = f"'\\{order}-grams:' is due here, but '{found}' was found."
            raise self._error(problem, "Copy the file again, or correct its counts.")
        blocks, left = [(np.zeros((0, order), np.int32), np.zeros(0), np.zeros(0))], count
        while left:
            lines = list(islice(self.stream, min(left, _BLOCK)))
            if not lines:
                raise self._error(f"the file ends {left} n-grams of order {order} early.", "Copy it again.")
            blocks.append(self._block([line.split() for line in lines], order))
            self.number += len(lines)
            left -= len(lines)
        words, log_probs, backoffs = (np.concatenate(column) for column in zip(*blocks, strict=True))
        return NgramTable(words, log_probs, backoffs)

    def _block(self, rows: list[list[bytes]], order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Words (N, order), log-probabilities and backoffs (N,) of some lines."""
        known = len(self.ids)
        try:
            if order == 1:
                self.ids.update((row[1], known + place) for place, row in enumerate(rows))
            words = [[self.ids[word] for word in row[1 : order + 1]] for row in rows]
            log_probs = np.array([float(row[0]) for row in rows])
            backoffs = np.array([float(row[order + 1]) if len(row) > order + 1 else 0.0 for row in rows])
            array = np.array(words, np.int32).reshape(len(rows), order)
        except (KeyError, ValueError, IndexError) as error:
            raise self._fault(rows, order, known) from error
        if order == 1 and len(self.ids) != known + len(rows):
            raise self._fault(rows, order, known)
        return array, log_probs, backoffs

    def _fault(self, rows: list[list[bytes]], order: int, known: int) -> TextError:
        """Names the first line that is not an n-gram of words that were known before, or of any in longer ones."""
        seen = set(islice(self.ids, known))
        for offset, row in enumerate(rows, 1):
            line = b" ".join(row)[:60].decode("utf-8", "replace")
            if not order + 1 <= len(row) <= order + 2 or not all(map(_is_number, (row[0], *row[order + 1 :]))):
                problem = f"'{line}' was found, but a number, {order} words and perhaps a number are due."
            elif order == 1 and row[1] in seen:
                problem = f"'{line}' repeats a word."
            elif order > 1 and not seen.issuperset(row[1 : order + 1]):
                problem = f"'{line}' has a word that is not among the single words."
            else:
                seen.add(row[1])
                continue
            self.number += offset
            return self._error(problem, "Correct the line, or copy the file again.")
        raise AssertionError("a block was refused without a fault")

    def _error(self, problem: str, action: str) -> TextError:
        return TextError(f"{self.location}:{self.number}", problem, action)


def _is_number(text: bytes) -> bool:
    try:
        return not np.isnan(float(text))
    except ValueError:
        return False
