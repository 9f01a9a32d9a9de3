"""Copies the utterances into the corpus itself, so that it stands without its sources: shards `audio/*.tar`.

What was 16 or 24 bits becomes FLAC, everything else float WAV: the samples stay what they were. A shard is named after
what it holds, so that a killed run goes on with the next one, and preparing again writes nothing anew.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, NamedTuple
from urllib.parse import quote

import numpy as np

from sonant.audio.address import Address
from sonant.audio.recording import open_recording
from sonant.base import storage
from sonant.base.errors import AudioError, StorageError
from sonant.corpus.preparation.draft import Draft, Row
from sonant.corpus.preparation.engines import Engine, in_order
from sonant.corpus.preparation.facts import Span, content_of, part_of, positions

FOLDER = "audio"
_SHARD_BYTES = 256_000_000  # of 16-bit samples before they are compressed
_BATCH = 32


class Piece(NamedTuple):
    """An utterance to be copied."""

    position: int
    id: str
    audio: str
    span: Span
    sample_rate: int
    content: str

    @property
    def name(self) -> str:
        """Of the member, without its extension."""
        return quote(self.id, safe=" ")


def pack(draft: Draft, folder: str, engine: Engine) -> list[str]:
    """Writes the shards and lets the draft point into them; gives their locations."""
    shards = []
    for number, pieces in enumerate(_shards(draft.kept())):
        shards.append(_write_shard(folder, number, pieces, engine, draft))
    return shards


def remove_others(folder: str, shards: Sequence[str]) -> None:
    """Removes shards that belonged to an earlier corpus."""
    where = storage.join(folder, FOLDER)
    names = {os.path.basename(shard) for shard in shards}
    for location in list(storage.list_files(where)) if storage.exists(where) else []:
        if location.endswith(".tar") and os.path.basename(location) not in names:
            storage.remove(location)


def _shards(rows: Iterable[Row]) -> Iterator[list[Piece]]:
    pieces: list[Piece] = []
    num_bytes = 0.0
    for row in rows:
        if row.audio is None:
            continue
        assert row.sample_rate is not None
        assert row.content is not None
        span = Span(row.start, row.seconds, row.channel)
        pieces.append(Piece(row.position, row.id, row.audio, span, row.sample_rate, row.content))
        num_bytes += row.seconds * row.sample_rate * 2
        if num_bytes >= _SHARD_BYTES:
            yield pieces
            pieces, num_bytes = [], 0.0
    if pieces:
        yield pieces


def _write_shard(folder: str, number: int, pieces: Sequence[Piece], engine: Engine, draft: Draft) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for piece in pieces:
        digest.update(f"{piece.name}\0{piece.content}\0{piece.sample_rate}\n".encode())
    shard = storage.join(folder, FOLDER, f"{number:05d}-{digest.hexdigest()}.tar")
    if not storage.exists(shard):
        storage.write_whole(shard, lambda file: _fill(file, pieces, engine))
    names = {name.rpartition(".")[0]: name for name in _members(shard)}
    draft.move_audio((str(Address(shard, names[piece.name])), piece.position) for piece in pieces)
    return shard


def _members(shard: str) -> list[str]:
    with storage.open_binary(shard) as file, tarfile.open(fileobj=file) as archive:
        return archive.getnames()


def _fill(file: IO[bytes], pieces: Sequence[Piece], engine: Engine) -> None:
    with tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        batches = (pieces[first : first + _BATCH] for first in range(0, len(pieces), _BATCH))
        for batch, encoded in in_order(engine, encode_all, ((batch, batch) for batch in batches), _crashed):
            for piece, (extension, content) in zip(batch, encoded, strict=True):
                info = tarfile.TarInfo(f"{piece.name}.{extension}")  # its time is 0: the same shard, the same bytes
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))


def encode_all(pieces: Sequence[Piece]) -> list[tuple[str, bytes]]:
    """What a worker does with its share: extension and bytes of each."""
    return [_encoded(piece) for piece in pieces]


def _encoded(piece: Piece) -> tuple[str, bytes]:
    with open_recording(piece.audio, sample_rate=piece.sample_rate) as recording:
        first, last = positions(piece.span, recording.info.sample_rate)
        block = recording.read(first, int(last - first))
    samples = part_of(block, piece.span.channel)
    if content_of(samples) != piece.content:
        raise StorageError(piece.audio, "it has changed since it was checked.", "Prepare again when it is whole.")
    return _as_flac(samples, piece.sample_rate) or ("wav", _written(samples, piece.sample_rate, "WAV", "FLOAT"))


def _as_flac(samples: np.ndarray, sample_rate: int) -> tuple[str, bytes] | None:
    """FLAC where it holds these samples to the bit."""
    for bits, subtype in ((16, "PCM_16"), (24, "PCM_24")):
        scaled = samples.astype(np.float64) * 2 ** (bits - 1)
        whole = np.rint(scaled)
        if np.array_equal(scaled, whole) and np.abs(whole + 0.5).max(initial=0) < 2 ** (bits - 1):
            integers = whole.astype(np.int32) << (32 - bits)
            return "flac", _written(integers, sample_rate, "FLAC", subtype)
    return None


def _written(samples: np.ndarray, sample_rate: int, container: str, subtype: str) -> bytes:
    import soundfile

    target = io.BytesIO()
    soundfile.write(target, samples, sample_rate, format=container, subtype=subtype)
    return target.getvalue()


def _crashed(piece: Piece) -> tuple[str, bytes]:
    raise AudioError(piece.audio, "decoding it brought the process down.", "Convert it to WAV or FLAC.")
