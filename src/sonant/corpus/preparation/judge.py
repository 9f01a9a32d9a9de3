"""Judges one utterance by what was heard in it and by what is written about it.

Faults come as pairs of rule and words; how grave they are is for `rules` and the user to say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from sonant.corpus.preparation.config import Limits
from sonant.corpus.preparation.facts import RecordingFacts, SpanFacts
from sonant.corpus.utterance import Utterance


class Fault(NamedTuple):
    """A rule that is broken, how, and what to do about it."""

    rule: str
    problem: str
    action: str


def faults_of(utterance: Utterance, facts: RecordingFacts, heard: SpanFacts | None, limits: Limits) -> Iterator[Fault]:
    """All that is wrong with an utterance; what follows from something else that is wrong is left out."""
    if utterance.audio is None:
        yield from text_faults(utterance, 0.0, limits)
        return
    grave = time_fault(utterance) or recording_fault(utterance, facts)
    if grave or heard is None:
        yield from [grave] if grave else []
        return
    seconds = heard.num_samples / facts.sample_rate
    extent = extent_fault(utterance, facts, limits)
    yield from [extent] if extent else []
    yield from sound_faults(utterance, heard, seconds, limits)
    yield from text_faults(utterance, 0.0 if extent else seconds, limits)  # no pace where the sound is incomplete


def time_fault(utterance: Utterance) -> Fault | None:
    """Times that no recording can have; such an utterance is not measured at all."""
    start, seconds = utterance.start, utterance.seconds
    if not (math.isfinite(start) and start >= 0):
        return Fault("bad-time", f"'{utterance.id}' starts at {start:g} s.", "Give a start of 0 s or later.")
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        found = f"ends {-seconds:g} s before it starts" if seconds < 0 else f"lasts {seconds:g} s"
        return Fault("bad-time", f"'{utterance.id}' {found}.", "Correct its start or its end.")
    return None


def recording_fault(utterance: Utterance, facts: RecordingFacts) -> Fault | None:
    """What keeps every sound from being heard; nothing else needs to be asked then."""
    if facts.rule:
        return Fault(facts.rule, f"{utterance.audio}: {facts.problem}", facts.action)
    if not facts.num_samples:
        return Fault("empty-audio", f"{utterance.audio} holds no samples.", "Record it again, or drop the line.")
    if utterance.channel is not None and utterance.channel >= facts.num_channels:
        found = f"channel {utterance.channel} is asked for, {utterance.audio} has {facts.num_channels} (from 0)."
        return Fault("missing-channel", found, "Correct the channel.")
    return None


def extent_fault(utterance: Utterance, facts: RecordingFacts, limits: Limits) -> Fault | None:
    """Where the utterance lies in its recording."""
    lasts = facts.num_samples / facts.sample_rate
    promised = facts.num_promised / facts.sample_rate
    end = promised if utterance.seconds is None else utterance.start + utterance.seconds
    tolerated = lasts + limits.end_tolerance_seconds
    if facts.num_promised > facts.num_samples and tolerated < end <= promised + limits.end_tolerance_seconds:
        found = f"{utterance.audio} is cut short: its header promises {promised:.2f} s, {lasts:.2f} s are there."
        return Fault("truncated-audio", found, "Copy the file again.")
    if end > tolerated:
        found = f"'{utterance.id}' ends at {end:.2f} s, but its recording lasts {lasts:.2f} s."
        return Fault("end-beyond-recording", found, "Correct the end, or drop the line with --skip-invalid.")
    return None


def sound_faults(utterance: Utterance, heard: SpanFacts, seconds: float, limits: Limits) -> Iterator[Fault]:
    """What was heard."""
    if not heard.num_samples:
        yield Fault("empty-audio", f"nothing of '{utterance.id}' lies within its recording.", "Correct its times.")
        return
    if seconds < limits.min_seconds:
        found = f"'{utterance.id}' lasts {seconds:.3f} s; {limits.min_seconds:g} s are required."
        yield Fault("too-short", found, "Drop the line, or lower limits.min_seconds.")
    if seconds > limits.max_seconds:
        found = f"'{utterance.id}' lasts {seconds:.1f} s; at most {limits.max_seconds:g} s are allowed."
        yield Fault("too-long", found, "Cut it with a start and an end in the table, or raise limits.max_seconds.")
    if heard.num_not_finite:
        found = f"{heard.num_not_finite} samples of '{utterance.id}' are no numbers (NaN or infinite)."
        yield Fault("not-finite-audio", found, "Export the recording again.")
    elif heard.level is None or heard.level < limits.silence_db:
        level = "digital silence" if heard.level is None else f"{-heard.level:.0f} dB below full scale"
        found = f"nothing can be heard in '{utterance.id}': {level}."
        yield Fault("silent-audio", found, "Listen to it: drop the line, or record again.")
    if heard.clipped_share > limits.clipped_share:
        found = f"{heard.clipped_share:.0%} of the samples of '{utterance.id}' are at full scale."
        yield Fault("clipped-audio", found, "Record at a lower level.")


def text_faults(utterance: Utterance, seconds: float, limits: Limits) -> Iterator[Fault]:
    """What is written, alone and beside the sound. Whether a text is missing is seen only in the whole source."""
    text = (utterance.text or "").strip()
    if limits.alphabet and (strange := sorted(set(text) - set(limits.alphabet) - {" "})):
        shown = " ".join(f"'{character}'" for character in strange[:10]) + (" …" if len(strange) > 10 else "")
        found = f"the text of '{utterance.id}' has characters outside the alphabet: {shown}."
        yield Fault("outside-alphabet", found, "Correct the text, normalise it, or add them to limits.alphabet.")
    if not text or utterance.audio is None or seconds <= 0:
        return
    pace = len(text) / seconds
    found = f"'{utterance.id}' has {len(text)} characters in {seconds:.2f} s, {pace:.3g} a second ({shortened(text)})"
    if pace > limits.max_characters_per_second:
        said = f"{found}; {limits.max_characters_per_second:g} are the most."
        yield Fault("too-much-text", said, "Correct its text or its times: they do not belong together.")
    elif pace < limits.min_characters_per_second:
        said = f"{found}; {limits.min_characters_per_second:g} are the least."
        yield Fault("too-little-text", said, "Cut the utterance where nobody speaks, or complete its text.")


def shortened(text: str) -> str:
    """A text as errors cite it."""
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}…'"
