"""Which column of somebody's table is which column of the manifest: told by the user, else known by its name.

Names are compared without case, spaces and punctuation, so `Audio File`, `audio_file` and `audioFile` are one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sonant.base.errors import ConfigError, SourceError
from sonant.base.names import suggestion
from sonant.corpus.manifest import FIXED_COLUMNS, MEASURED_COLUMNS
from sonant.corpus.sources.options import SourceOptions

# Best name first. Times in milliseconds are targets of their own; they end up as `start` and `seconds`.
KNOWN: dict[str, list[str]] = {
    "id": ("id utt_id utterance_id utt uid uuid item_id clip_id segment_id sample_id utterance key name").split(),
    "audio": (
        "audio audio_path audio_file audio_file_path audio_file_name path file file_path file_name "
        "wav wav_path wav_file wav_file_name recording recording_path recording_file "
        "sound sound_file clip clip_path media uri url recording_id file_id"
    ).split(),
    "text": (
        "text transcript transcription sentence transcription_text transcript_text raw_text orthography prompt phrase"
    ).split(),
    "speaker": (
        "speaker speaker_id spk spk_id speaker_name client_id subject subject_id participant participant_id "
        "patient patient_id talker talker_id reader reader_id user user_id"
    ).split(),
    "start": "start start_time start_seconds start_sec start_s begin begin_time begin_s onset tmin xmin offset".split(),
    "end": "end end_time end_seconds end_sec end_s stop stop_time tmax xmax offset".split(),
    "seconds": "seconds duration duration_seconds duration_sec duration_s dur audio_duration".split(),
    "start_ms": "start_ms start_time_ms begin_ms onset_ms offset_ms start_milliseconds".split(),
    "end_ms": "end_ms end_time_ms stop_ms end_milliseconds".split(),
    "seconds_ms": "duration_ms dur_ms seconds_ms duration_milliseconds".split(),
    "channel": "channel channel_id chan ch".split(),
    "split": "split set subset partition".split(),
}
TIMES = {"start_ms": "start", "end_ms": "end", "seconds_ms": "seconds"}
_VAGUE_IDS = ("key", "name")  # beside a column of recordings these may be anybody's name
_RESERVED = {column.name for column in (*FIXED_COLUMNS, *MEASURED_COLUMNS)} | {"labels", "tokens", "place"}


def folded(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


_FOLDED = {target: tuple(folded(name) for name in names) for target, names in KNOWN.items()}
_EVERY_NAME = frozenset(name for names in _FOLDED.values() for name in names)


def is_known(name: str) -> bool:
    """True for names that mean something by themselves."""
    return folded(name) in _EVERY_NAME


@dataclass(frozen=True)
class Meaning:
    """What each column of a table is for."""

    columns: Mapping[str, str]  # manifest column -> column of the table
    labels: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)  # further column -> column of the table


def meaning_of(location: str, columns: Sequence[str], options: SourceOptions, *, has_header: bool = True) -> Meaning:
    """Decides for every column; what the user named must be there."""
    told = {}
    for target, name in options.columns.items():
        if target not in KNOWN and target not in ("duration", "duration_ms"):
            raise ConfigError("--columns", f"the manifest has no column '{target}'.", suggestion(target, KNOWN))
        told[target.replace("duration", "seconds")] = find_column(location, columns, name, f"--columns {target}={name}")
    labels = tuple(find_column(location, columns, name, "--labels") for name in options.labels)
    free = [name for name in columns if name not in told.values()]
    guessed = _by_name(free, told) if has_header else _by_position(location, columns, told)
    meaning = told | {target: name for target, name in guessed.items() if name not in labels}
    used = {*meaning.values(), *labels}
    nameless = {name for number, name in enumerate(columns, 1) if has_header and name == str(number)}
    return Meaning(
        meaning, labels, {extra_name(name): name for name in columns if name not in used and name not in nameless}
    )


def find_column(location: str, columns: Sequence[str], name: str, asked_by: str) -> str:
    """The column called so, in whatever spelling; an error lists those that there are."""
    if name in columns:
        return name
    alike = [column for column in columns if folded(column) == folded(name)]
    if len(alike) == 1:
        return alike[0]
    problem = f"{asked_by} means a column '{name}', but the columns are {', '.join(columns)}."
    raise SourceError(location, problem, suggestion(name, columns))


def extra_name(name: str) -> str:
    """A further column must not be taken for one of the manifest's own."""
    return f"source_{name}" if name in _RESERVED else name


def _by_name(columns: Sequence[str], told: Mapping[str, str]) -> dict[str, str]:
    """The columns whose names are known, for whatever was not told."""
    by_folded = {folded(name): name for name in reversed(columns)}
    found: dict[str, str] = {}
    for target, names in _FOLDED.items():
        if target in told or f"{target}_ms" in told or TIMES.get(target) in {*told, *found}:
            continue
        free = [by_folded[name] for name in names if name in by_folded and by_folded[name] not in found.values()]
        # "offset" ends what "onset" begins; elsewhere it is a start.
        if free and not (target == "end" and folded(free[0]) == "offset" and "onset" not in by_folded):
            found[target] = free[0]
    if "audio" in {*told, *found} and folded(found.get("id", "")) in _VAGUE_IDS:
        found.pop("id")
    return _without_plain_duration(found, told)


def _without_plain_duration(found: dict[str, str], told: Mapping[str, str]) -> dict[str, str]:
    """A duration beside no start describes the file, often rounded: cutting the recording there would lose speech."""
    has_start = {"start", "start_ms"} & {*found, *told}
    if not has_start and folded(found.get("seconds", "")) != "seconds":
        found.pop("seconds", None)
        found.pop("seconds_ms", None)
    return found


def _by_position(location: str, columns: Sequence[str], told: Mapping[str, str]) -> dict[str, str]:
    """Without a header: the first column names the recording and, where there are two, the other is the text."""
    if len(columns) > 2 and not told:
        problem = f"the table has no header and {len(columns)} columns, so that their meaning cannot be known."
        raise SourceError(location, problem, "Count them for it: --columns audio=1,text=2")
    guessed = {} if {"audio", "id"} & {*told} else {"audio": columns[0]}
    if len(columns) == 2 and "text" not in told:
        guessed["text"] = columns[1]
    return {target: name for target, name in guessed.items() if name not in told.values()}
