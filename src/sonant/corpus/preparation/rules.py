"""Every rule by which a corpus is judged: what it says, and how grave a breach is unless the user says otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sonant.corpus.utterance import Finding

Severity = Literal["error", "warning", "off"]


@dataclass(frozen=True)
class Rule:
    """An error rejects the utterance and, without --skip-invalid, the corpus; a warning is told and counted."""

    severity: Severity
    says: str
    is_fixed: bool = False  # nothing could be trained on what breaks it, so that it stays an error


RULES: dict[str, Rule] = {
    # what the source itself says
    "bad-line": Rule("error", "Every line of a table or list can be understood.", is_fixed=True),
    "bad-path": Rule("error", "Every path follows the pattern that was given.", is_fixed=True),
    "missing-audio": Rule("error", "Every recording that is named exists.", is_fixed=True),
    "piped-command": Rule("error", "Recordings are files: commands are never run.", is_fixed=True),
    "computed-audio": Rule("error", "Recordings are files: nothing is mixed or changed on the way.", is_fixed=True),
    "unreadable-archive": Rule("error", "Every archive can be read to its end."),
    "ambiguous-audio": Rule("error", "Every recording that is named is one file.", is_fixed=True),
    "unreadable-text": Rule("error", "Every file of texts or times can be understood."),
    "unused-recording": Rule("warning", "Every recording that is listed has something said about it."),
    "unread-table": Rule("warning", "Tables beside recordings are read."),
    "unread-tier": Rule("warning", "Tiers that hold text are read."),
    "bad-channel": Rule("error", "A channel is a number or a side.", is_fixed=True),
    "contradicting-speakers": Rule("error", "Files agree on who speaks.", is_fixed=True),
    "overlapping-times": Rule("warning", "One speaker says one thing at a time."),
    "missing-annotation": Rule("warning", "Tables of annotations speak of every utterance."),
    "unused-annotation": Rule("warning", "Tables of annotations speak of nothing else."),
    "guessed-encoding": Rule("warning", "Text files are UTF-8, or their encoding is named."),
    "missing-shard": Rule("error", "Of a dataset in numbered parts every part is there."),
    "unknown-token": Rule("error", "Every token id is in the vocabulary.", is_fixed=True),
    "nameless-tokens": Rule("warning", "The text of token ids is known."),
    "unlike-length": Rule("error", "Rows hold as many samples as they say."),
    "unsafe-member": Rule("error", "Nothing in an archive points out of it.", is_fixed=True),
    "skipped-member": Rule("warning", "Archives hold recordings and what is written about them."),
    "kept-copy": Rule("warning", "Archives can be read where they lie."),
    # the recording
    "unreadable-audio": Rule("error", "Every recording can be decoded to its end.", is_fixed=True),
    "recording-unstable": Rule("error", "Recordings keep still while they are read.", is_fixed=True),
    "recording-changed": Rule("warning", "Recordings do not change while a corpus is prepared."),
    "truncated-audio": Rule("error", "Recordings hold as many samples as their header promises."),
    "empty-audio": Rule("error", "An utterance has sound.", is_fixed=True),
    "missing-channel": Rule("error", "The channel of an utterance exists in its recording.", is_fixed=True),
    "bad-time": Rule("error", "An utterance starts at 0 s or later and lasts longer than nothing.", is_fixed=True),
    "end-beyond-recording": Rule("error", "An utterance ends before its recording does."),
    "silent-audio": Rule("error", "Something can be heard."),
    "clipped-audio": Rule("warning", "The recording level was not too high."),
    "not-finite-audio": Rule("error", "Samples are numbers."),
    "too-short": Rule("error", "An utterance lasts long enough to say something."),
    "too-long": Rule("error", "An utterance is short enough for a batch."),
    "sample-rate-surprise": Rule("warning", "Recordings have the sample rate that nearly all others have."),
    "channel-surprise": Rule("warning", "Recordings have the number of channels that nearly all others have."),
    "local-audio": Rule("warning", "A corpus in a bucket points to recordings that other machines can reach."),
    # the annotations
    "empty-text": Rule("error", "Where a source has texts, every utterance has one."),
    "outside-alphabet": Rule("error", "Texts are written in the declared alphabet."),
    "rare-character": Rule("warning", "Every character occurs often enough to be learnt."),
    "too-much-text": Rule("error", "Nobody speaks so fast: text and sound belong together."),
    "too-little-text": Rule("warning", "Nobody speaks so slowly: text and sound belong together."),
    "mixed-labels": Rule("warning", "The values of a label are all numbers, all strings or all lists."),
    "label-spelling": Rule("warning", "A value of a label is spelt in one way."),
    # the corpus as a whole
    "duplicated-id": Rule("error", "An id stands for one utterance.", is_fixed=True),
    "duplicated-audio": Rule("error", "The same sound occurs once."),
    "duplicated-text": Rule("warning", "The same text occurs once."),
    "unknown-speakers": Rule("warning", "Speakers are named, so that nobody is in training and in a test."),
    "speaker-in-two-splits": Rule("error", "Nobody is heard in training and in a test."),
    "text-in-two-splits": Rule("warning", "A text of a test does not occur in training."),
    "split-for-unknown-id": Rule("warning", "Saved splits name utterances of this corpus."),
    "id-without-split": Rule("warning", "Saved splits name every utterance of this corpus."),
    "no-split": Rule("warning", "Where there are splits, every utterance is in one."),
}


def new_finding(rule: str, place: str, problem: str, action: str, id: str = "") -> Finding:
    """A breach of a rule, as grave as the rule is by itself."""
    is_error = RULES[rule].severity == "error"
    return Finding(rule=rule, place=place, problem=problem, action=action, id=id, is_error=is_error)


def judged(finding: Finding, severities: dict[str, Severity]) -> Finding | None:
    """The finding with the severity that the user wants, or None where they do not want to hear of it."""
    severity = severities.get(finding.rule)
    if severity == "off":
        return None
    return finding if severity is None else replace(finding, is_error=severity == "error")
