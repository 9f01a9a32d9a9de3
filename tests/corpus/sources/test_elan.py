from __future__ import annotations

import pytest

EAF = """<?xml version="1.0" encoding="{declared}"?>
<ANNOTATION_DOCUMENT FORMAT="3.0">
  <HEADER TIME_UNITS="milliseconds">
    <MEDIA_DESCRIPTOR MEDIA_URL="file:///C:/x/{media}" RELATIVE_MEDIA_URL="./{media}"/>
  </HEADER>
  <TIME_ORDER>
    <TIME_SLOT TIME_SLOT_ID="ts1" TIME_VALUE="0"/>
    <TIME_SLOT TIME_SLOT_ID="ts2" TIME_VALUE="1500"/>
    <TIME_SLOT TIME_SLOT_ID="ts3" TIME_VALUE="2250"/>
    <TIME_SLOT TIME_SLOT_ID="ts4"/>
  </TIME_ORDER>
{tiers}
</ANNOTATION_DOCUMENT>
"""
ALIGNED = """<ANNOTATION>
<ALIGNABLE_ANNOTATION ANNOTATION_ID="{id}" TIME_SLOT_REF1="{first}" TIME_SLOT_REF2="{second}">
<ANNOTATION_VALUE>{text}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>
"""
REFERRING = """<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="{id}" ANNOTATION_REF="{parent}">
<ANNOTATION_VALUE>{text}</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION>
"""


def tier(name: str, *annotations: str, kind: str = "utterance", who: str = "", parent: str = "") -> str:
    facts = (f' PARTICIPANT="{who}"' if who else "") + (f' PARENT_REF="{parent}"' if parent else "")
    return f'<TIER TIER_ID="{name}" LINGUISTIC_TYPE_REF="{kind}"{facts}>\n{"".join(annotations)}</TIER>\n'


def aligned(id: str, first: str, second: str, text: str) -> str:
    return ALIGNED.format(id=id, first=first, second=second, text=text)


def referring(id: str, parent: str, text: str) -> str:
    return REFERRING.format(id=id, parent=parent, text=text)


def eaf(*tiers: str, declared: str = "UTF-8", media: str = "talk.wav") -> str:
    return EAF.format(declared=declared, media=media, tiers="".join(tiers))


DIALOGUE = (
    tier("ref@A", referring("r1", "a1", "oui"), kind="translation", who="Ann", parent="A"),
    tier("A", aligned("a1", "ts1", "ts2", "yes &amp; no"), aligned("a2", "ts2", "ts3", " "), who="Ann"),
    tier("B", aligned("b1", "ts2", "ts3", "Grüße"), who="Bob"),
    tier("gesture@B", aligned("g1", "ts1", "ts2", "waves"), who="Bob"),
)


@pytest.mark.parametrize(("declared", "encoding"), [("UTF-8", "utf-8"), ("UTF-16", "utf-16"), ("UTF-8", "cp1252")])
def test_tiers_of_one_type_are_the_participants_of_a_talk(lay, read, declared, encoding):
    folder = lay({"talk.eaf": eaf(*DIALOGUE, declared=declared).encode(encoding)}, audio="talk.wav")
    utterances, findings = read(folder)
    assert [(one.id, one.speaker, one.start, one.seconds, one.text) for one in utterances] == [
        ("talk-0001", "Ann", 0.0, 1.5, "yes & no"),
        ("talk-0002", "Bob", 1.5, 0.75, "Grüße"),
    ]
    assert [one.rule for one in findings] == ["guessed-encoding"] * (encoding == "cp1252") + ["unread-tier"]
    assert "'gesture@B', 'ref@A'" in findings[-1].problem


def test_the_place_is_the_line_of_the_annotation(lay, read):
    content = eaf(*DIALOGUE)
    folder = lay({"talk.eaf": content}, audio="talk.wav")
    lines = [int(one.place.rpartition(":")[2]) for one in read(folder)[0]]
    assert ['"a1"' in content.splitlines()[lines[0] - 1], '"b1"' in content.splitlines()[lines[1] - 1]] == [True, True]


def test_annotations_that_refer_to_others_have_their_times(lay, read):
    words = [referring("w1", "r1", "oui"), referring("w2", "r1", "oui")]
    tiers = (
        tier("A", aligned("a1", "ts1", "ts2", "yes"), who="Ann"),
        tier("t", referring("r1", "a1", "oui oui"), who="Ann", parent="A"),
        tier("w", *words, who="Ann", parent="t"),
    )
    folder = lay({"talk.eaf": eaf(*tiers)}, audio="talk.wav")
    for name in ("t", "w"):
        (one,), _ = read(folder, tiers=(name,))
        assert (one.start, one.seconds, one.text, one.speaker) == (0.0, 1.5, "oui oui", "Ann")


def test_an_annotation_without_times_is_told_with_its_line(lay, read):
    content = eaf(tier("A", aligned("a1", "ts1", "ts2", "yes"), aligned("a2", "ts2", "ts4", "lost")))
    folder = lay({"talk.eaf": content}, audio="talk.wav")
    (one,), (finding,) = read(folder)
    assert (one.text, one.speaker) == ("yes", None)
    line = next(number for number, text in enumerate(content.splitlines(), 1) if '"a2"' in text)
    assert (finding.rule, finding.place) == ("bad-time", f"{folder}/talk.eaf:{line}")
    assert "'lost'" in finding.problem


def test_the_recording_may_have_the_name_that_the_file_gives(lay, read):
    folder = lay({"session.eaf": eaf(*DIALOGUE, media="media/video 1.mp4"), "media/video 1.mp4": ""})
    utterances, _ = read(folder)
    assert {one.audio for one in utterances} == {f"{folder}/media/video 1.mp4"}
    assert utterances[0].id == "session-0001"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (eaf(*DIALOGUE).replace("</TIER>", "</TEIR>"), 15),
        ("no XML", 1),
        (eaf(*DIALOGUE).replace(' ANNOTATION_ID="r1"', ""), None),
    ],
)
def test_a_damaged_file_is_told(lay, read, content, line):
    folder = lay({"talk.eaf": content}, audio="talk.wav")
    utterances, (finding,) = read(folder)
    assert (utterances, finding.rule) == ([], "unreadable-text")
    assert finding.place == f"{folder}/talk.eaf" + (f":{line}" if line else "")
