"""Tokenizes texts into a token file: in parallel, in their order, whole or not at all, and only once.

The folder is named after what it is made from (texts, tokenizer, separators, budget): the same is found again, anything
else is made anew. Who comes second while it is being written waits for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sonant.base import storage
from sonant.base.errors import ConfigError, SourceError
from sonant.base.progress import Progress
from sonant.batches.tokens.documents import Stretch, Texts, digest_of
from sonant.batches.tokens.token_file import (
    COLUMNS,
    DESCRIPTION,
    DOCUMENTS,
    FORMAT_VERSION,
    TOKENS,
    TokenFile,
    dtype_for,
    open_token_file,
)
from sonant.batches.workers import Workers
from sonant.text.bulk import BulkCoder
from sonant.text.coding import Tokenizer

_TASK_CHARACTERS = 1 << 19
_PATIENCE_SECONDS = 3600.0  # one task takes less than a second, its reading perhaps longer


@dataclass(frozen=True, kw_only=True)
class TokenizingConfig:
    separators: Literal["end", "begin", "both", "none"] = "end"  # eos behind, bos (or else eos) before a document
    max_tokens: int | None = None  # a budget: reading stops with the document that fills it
    workers: int = 0  # threads; 0: as many as there are processors

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ConfigError("max_tokens", f"{self.max_tokens} was found, 1 or more is required.", "Raise it.")
        if self.workers < 0:
            raise ConfigError("workers", f"{self.workers} was found, 0 or more is required.", "Raise it.")


def tokenized(texts: Texts, tokenizer: Tokenizer, folder: str, config: TokenizingConfig | None = None) -> TokenFile:
    """The token file of these texts below a folder: found there, or written."""
    config = config or TokenizingConfig()
    before, behind = _separators(tokenizer, config)
    made_from = (FORMAT_VERSION, texts.fingerprint, _digest(tokenizer), before, behind, config.max_tokens)
    place = os.path.join(folder, f"tokens-{digest_of(*made_from)}")
    with storage.storage_errors(folder):
        os.makedirs(folder, exist_ok=True)
        with _locked(place + ".lock"):
            if not os.path.isdir(place):
                _write(place, texts, tokenizer, config, (before, behind))
    return open_token_file(place)


def _write(
    place: str,
    texts: Texts,
    tokenizer: Tokenizer,
    config: TokenizingConfig,
    separators: tuple[list[int], list[int]],
) -> None:
    temporary = place + ".part"
    shutil.rmtree(temporary, ignore_errors=True)  # of one that was killed: the lock is ours
    os.makedirs(temporary)
    try:
        kind = dtype_for(tokenizer.size)
        with open(os.path.join(temporary, TOKENS), "wb") as file:
            documents, is_cut_short = _tokenize(file, kind, texts, tokenizer, config, separators)
            _sync(file)
        if not documents.num_rows:
            raise SourceError(texts.fingerprint.split(" ")[0], "there is no text.", "Look at what it holds.")
        with open(os.path.join(temporary, DOCUMENTS), "wb") as file:
            pq.write_table(documents, file, compression="zstd")
            _sync(file)
        description = {
            "format": FORMAT_VERSION,
            "fingerprint": os.path.basename(place),
            "dtype": kind,
            "separators": [len(one) for one in separators],
            "is_cut_short": is_cut_short,  # the budget was full before the texts ended
        }
        with open(os.path.join(temporary, DESCRIPTION), "wb") as file:
            file.write(json.dumps(description, indent=1).encode())
            _sync(file)
        os.rename(temporary, place)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _tokenize(
    file: IO[bytes],
    kind: str,
    texts: Texts,
    tokenizer: Tokenizer,
    config: TokenizingConfig,
    separators: tuple[list[int], list[int]],
) -> tuple[pa.Table, bool]:
    """Writes the tokens; gives the table of documents, and whether the budget ended it."""
    table = _Documents(separators)
    coder = BulkCoder(tokenizer)
    workers: Workers[_Coded] = Workers(config.workers or len(os.sched_getaffinity(0)))
    tasks = (partial(_coded, task, coder, tokenizer) for task in _tasks(texts.stretches()))
    coming = workers.in_order(tasks, ahead=2 * len(workers.threads), patience_seconds=_PATIENCE_SECONDS)
    try:
        with Progress("tokenizing", unit="characters") as bar:
            for coded in coming:
                for tokens in table.add(coded, config.max_tokens):
                    file.write(tokens.astype(kind).tobytes())
                if table.is_full:
                    return table.table(), True
                bar.advance(sum(len(stretch.text) for stretch in coded.stretches))
    finally:
        coming.close()  # type: ignore[attr-defined]  # a generator
        workers.close()
    return table.table(), False


@dataclass(frozen=True)
class _Coded:
    """Stretches, their ids in one array, and what is counted of each (S, 5): tokens and the columns of a document."""

    stretches: Sequence[Stretch]
    ids: np.ndarray
    counts: np.ndarray


def _coded(stretches: Sequence[Stretch], coder: BulkCoder, tokenizer: Tokenizer) -> _Coded:
    texts = [tokenizer.normalizer(stretch.text) for stretch in stretches]
    ids, tokens = coder(texts)
    characters = [len(text) for text in texts]
    sizes = [len(text) if text.isascii() else len(text.encode()) for text in texts]
    words = [len(text.split()) for text in texts]
    behind = np.concatenate([[0], np.cumsum(ids == (-1 if tokenizer.unknown_id is None else tokenizer.unknown_id))])
    ends = np.cumsum(tokens)
    unknown = behind[ends] - behind[ends - tokens]
    return _Coded(stretches, ids, np.stack([tokens, characters, sizes, words, unknown], axis=1))


def _tasks(stretches: Iterable[Stretch]) -> Iterator[list[Stretch]]:
    """Some stretches at a time: enough to be worth handing over."""
    held: list[Stretch] = []
    size = 0
    for stretch in stretches:
        held.append(stretch)
        size += len(stretch.text)
        if size >= _TASK_CHARACTERS:
            yield held
            held, size = [], 0
    if held:
        yield held


class _Documents:
    """Grows the table of documents, and puts separators around each."""

    def __init__(self, separators: tuple[list[int], list[int]]) -> None:
        self._before, self._behind = (np.array(one, np.int64) for one in separators)
        self._rows: list[tuple[str, str, int, int, int, int, int]] = []
        self._sums = np.zeros(4, np.int64)  # of the document that is not complete yet
        self._end = 0
        self._is_open = False
        self.is_full = False

    def add(self, coded: _Coded, budget: int | None) -> Iterator[np.ndarray]:
        """The tokens to be written, in order."""
        first = 0
        for stretch, counts in zip(coded.stretches, coded.counts, strict=True):
            if not self._is_open:
                yield self._placed(self._before)
            yield self._placed(coded.ids[first : first + counts[0]])
            first += int(counts[0])
            self._sums += counts[1:]
            self._is_open = not stretch.is_last
            if stretch.is_last:
                yield self._placed(self._behind)
                self._close(stretch)
            if budget is not None and self._end >= budget:
                if self._is_open:
                    self._close(stretch)
                self.is_full = True
                return

    def _placed(self, tokens: np.ndarray) -> np.ndarray:
        self._end += len(tokens)
        return tokens

    def _close(self, stretch: Stretch) -> None:
        characters, sizes, words, unknown = self._sums.tolist()
        self._rows.append((stretch.document, stretch.split, self._end, characters, sizes, words, unknown))
        self._sums[:] = 0
        self._is_open = False

    def table(self) -> pa.Table:
        columns = zip(*self._rows, strict=True) if self._rows else [[] for _ in COLUMNS]
        return pa.table([list(column) for column in columns], schema=COLUMNS)


def _separators(tokenizer: Tokenizer, config: TokenizingConfig) -> tuple[list[int], list[int]]:
    """The symbols before and behind each document; a tokenizer without any has none."""
    end = tokenizer.eos_id if tokenizer.eos_id is not None else tokenizer.bos_id
    begin = tokenizer.bos_id if tokenizer.bos_id is not None else tokenizer.eos_id
    before = [begin] if begin is not None and config.separators in ("begin", "both") else []
    behind = [end] if end is not None and config.separators in ("end", "both") else []
    return before, behind


def _digest(tokenizer: Tokenizer) -> str:
    """Changes with anything that the tokenizer does."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        files = sorted(os.listdir(folder))
        return digest_of(*(f"{name} {storage.read_bytes(os.path.join(folder, name))!r}" for name in files))


@contextmanager
def _locked(place: str) -> Iterator[None]:
    with open(place, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
