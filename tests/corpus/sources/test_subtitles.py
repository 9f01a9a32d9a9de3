from __future__ import annotations

import pytest

SRT = """1
00:00:01,000 --> 00:00:02,500 X1:100 X2:200
<i>Hello</i> {\\an8}there,
world &amp; all

2
00:00:03,000 --> 00:00:04,000

3
01:00:00,250 --> 01:00:01,250
Last
"""
VTT = """WEBVTT - title
Kind: captions

NOTE
nothing --> here is a cue

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.500 align:start position:10%
<v Ann Lee>Hello <c.red>there</c><00:01.500>, &lt;you&gt;</v>

00:02.000 --> 00:03.000
<v.loud Bob>No&nbsp;way

00:03.000 --> 00:04.000
<v Ann Lee>Yes</v> <v Bob>No</v>
"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_cue_of_subrip_is_an_utterance(lay, read, encoding, end):
    folder = lay({"talk.srt": SRT.replace("\n", end).encode(encoding)}, audio="talk.mp4")
    utterances, findings = read(folder)
    assert findings == []
    assert [(one.id, one.start, one.seconds, one.text) for one in utterances] == [
        ("talk-0001", 1.0, 1.5, "Hello there, world & all"),
        ("talk-0002", 3600.25, 1.0, "Last"),
    ]
    assert [one.place for one in utterances] == [f"{folder}/talk.srt:2", f"{folder}/talk.srt:10"]


def test_webvtt_names_its_speakers(lay, read):
    folder = lay({"talk.vtt": VTT}, audio="talk.wav")
    utterances, findings = read(folder)
    assert findings == []
    assert [(one.speaker, one.text, one.start) for one in utterances] == [
        ("Ann Lee", "Hello there, <you>", 1.0),
        ("Bob", "No way", 2.0),
        (None, "Yes No", 3.0),
    ]


@pytest.mark.parametrize("audio", ["talk.wav", "talk.en.wav"])
def test_the_language_in_a_name_is_not_part_of_the_recording(lay, read, audio):
    folder = lay({"talk.en.srt": SRT}, audio=audio)
    utterances, findings = read(folder)
    assert ({one.audio for one in utterances}, findings) == ({f"{folder}/{audio}"}, [])


@pytest.mark.parametrize(
    ("cue", "rule", "line", "is_error"),
    [
        ("00:00:05,000 --> 00:00:04,000\nx", "bad-time", 6, True),
        ("00:00:05,000 --> soon\nx", "bad-time", 6, True),
        ("00:61:05,000 -->\nx", "bad-time", 6, True),
        ("00:00:01,500 --> 00:00:03,000\nx", "overlapping-times", 6, False),
        ("12\nx without its times", "bad-time", 6, True),
    ],
)
def test_faults_are_told_with_their_line(lay, read, cue, rule, line, is_error):
    content = f"1\n00:00:00,000 --> 00:00:02,000\none\n\n\n{cue}\n\n9\n00:01:00,000 --> 00:01:01,000\nlast\n"
    folder = lay({"talk.srt": content}, audio="talk.wav")
    utterances, (finding,) = read(folder)
    assert (finding.rule, finding.place, finding.is_error) == (rule, f"{folder}/talk.srt:{line}", is_error)
    assert [one.text for one in utterances] == ["one", *(["x"] if not is_error else []), "last"]


def test_speakers_may_speak_at_once(lay, read):
    content = "WEBVTT\n\n00:00.000 --> 00:02.000\n<v A>one\n\n00:01.000 --> 00:03.000\n<v B>two\n"
    assert read(lay({"talk.vtt": content}, audio="talk.wav"))[1] == []


def test_a_forgotten_blank_line_costs_nothing(lay, read):
    content = "1\n00:00:00,000 --> 00:00:02,000\none\n2\n00:00:02,000 --> 00:00:03,000\ntwo\n"
    assert [one.text for one in read(lay({"talk.srt": content}, audio="talk.wav"))[0]] == ["one", "two"]
