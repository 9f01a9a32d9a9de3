"""Which file and channel Lhotse's objects mean. What Lhotse would compute while reading is refused, with what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sonant.corpus.sources.tables.cells import CellError, seconds_of

_SAVE = "Save them as recordings first: CutSet.save_audios(folder)."
_FILES = ("file", "url")
_HARMLESS = ("Resample",)  # Sonant resamples by itself


def cut_within(cut: Mapping[str, Any]) -> Mapping[str, Any]:
    """The cut of one recording that this is, or that it is but for padding behind."""
    tracks = cut.get("tracks")
    if not isinstance(tracks, list):
        if "PaddingCut" in str(cut.get("type")):
            raise CellError("missing-audio", "this is padding and no recording", "Remove the line.")
        return cut
    heard = [one for one in tracks if "PaddingCut" not in str(one.get("cut", one).get("type", ""))]
    if len(heard) == 1 and seconds_of(heard[0].get("offset") or 0.0) == 0:
        within: Mapping[str, Any] = heard[0].get("cut", heard[0])
        return within
    found = f"mixes {len(heard)} tracks into one" if len(heard) > 1 else "puts silence before its recording"
    raise CellError("computed-audio", f"it {found}", _SAVE)


def audio_of(recording: Any, wanted: Any = None) -> tuple[str, int | None]:
    """The file of a recording, and the channel in it: None where all of it is heard."""
    if not isinstance(recording, dict):
        problem = "it has no recording (of features alone nothing can be heard)"
        raise CellError("missing-audio", problem, "Write its 'recording' into the manifest.")
    _refuse_transforms(recording)
    sources = [one for one in recording.get("sources") or [] if isinstance(one, dict)]
    if not sources:
        raise CellError("missing-audio", "its recording has no 'sources'", "Write the manifest again with Lhotse.")
    channels = [list(one.get("channels") or [0]) for one in sources]
    every = sorted({channel for one in channels for channel in one})
    asked = every if wanted is None else sorted(wanted) if isinstance(wanted, list) else [wanted]
    for source, has in zip(sources, channels, strict=True):
        if asked == sorted(has):
            return _file_of(source), None
        if len(asked) == 1 and asked[0] in has:
            return _file_of(source), has.index(asked[0])
    shown = ", ".join(map(str, asked))
    problem = f"it is heard in channels {shown}, while its recording has {', '.join(map(str, every))}"
    raise CellError("bad-channel", problem, "Choose one channel, or all channels of one file.")


def _refuse_transforms(recording: Mapping[str, Any]) -> None:
    names = [str(one.get("name", "")) for one in recording.get("transforms") or [] if isinstance(one, dict)]
    changing = [name for name in names if name not in _HARMLESS]
    if changing:
        raise CellError("computed-audio", f"its recording would be changed by {', '.join(changing)}", _SAVE)


def _file_of(source: Mapping[str, Any]) -> str:
    kind, place = source.get("type"), source.get("source")
    if kind == "command":
        action = f"Run it once ({place} > FILE), and write that file into the manifest with type 'file'."
        raise CellError("piped-command", f"its recording is the output of a command, never run: {place}", action)
    if kind not in _FILES or not isinstance(place, str) or not place:
        raise CellError("computed-audio", f"its recording is of type '{kind}', which names no file", _SAVE)
    return place
