from __future__ import annotations

import pytest

from sonant.base.errors import SourceError

LONG = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 3.5
tiers? <exists>
size = {size}
item []:
"""
TIER = """    item [{number}]:
        class = "IntervalTier"
        name = "{name}"
        xmin = 0
        xmax = 3.5
        intervals: size = {size}
"""
INTERVAL = """        intervals [{number}]:
            xmin = {start}
            xmax = {end}
            text = "{text}"
"""
POINTS = """    item [{number}]:
        class = "TextTier"
        name = "points"
        xmin = 0
        xmax = 3.5
        points: size = 1
        points [1]:
            number = 0.5
            mark = "click 1"
"""
WORDS = [(0, 0.5, ""), (0.5, 1.25, 'say ""hi"" 2 you'), (1.25, 2, " "), (2, 3.5, "Grüße")]


def long_form(tiers: dict[str, list], points: bool = False) -> str:
    made = LONG.format(size=len(tiers) + points)
    if points:
        made += POINTS.format(number=1)
    for number, (name, intervals) in enumerate(tiers.items(), start=1 + points):
        made += TIER.format(number=number, name=name, size=len(intervals))
        for index, (start, end, text) in enumerate(intervals, start=1):
            made += INTERVAL.format(number=index, start=start, end=end, text=text)
    return made


def short_form(tiers: dict[str, list]) -> str:
    lines = ['File type = "ooTextFile short"', '"TextGrid"', "", "0", "3.5", "<exists>", str(len(tiers))]
    for name, intervals in tiers.items():
        lines += ['"IntervalTier"', f'"{name}"', "0", "3.5", str(len(intervals))]
        for start, end, text in intervals:
            lines += [str(start), str(end), f'"{text}"']
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("form", [long_form, short_form])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_interval_that_says_something_is_an_utterance(lay, read, form, encoding, end):
    content = form({"words": WORDS}).replace("\n", end)
    folder = lay({"talk.TextGrid": content.encode(encoding)}, audio="talk.wav")
    utterances, findings = read(folder)
    assert findings == []
    assert [(one.id, one.start, one.seconds, one.text) for one in utterances] == [
        ("talk-0001", 0.5, 0.75, 'say "hi" 2 you'),
        ("talk-0002", 2.0, 1.5, "Grüße"),
    ]
    assert {(one.audio, one.speaker) for one in utterances} == {(f"{folder}/talk.wav", None)}


def test_the_place_is_the_line_where_the_interval_begins(lay, read):
    folder = lay({"talk.TextGrid": long_form({"words": WORDS})}, audio="talk.wav")
    lines = [int(one.place.rpartition(":")[2]) for one in read(folder)[0]]
    content = long_form({"words": WORDS}).splitlines()
    assert [content[line - 1].strip() for line in lines] == ["xmin = 0.5", "xmin = 2"]


def test_the_first_tier_with_text_is_read_and_the_others_are_told(lay, read):
    tiers = {"empty": [(0, 3.5, "")], "A": [(0, 1, "yes")], "B": [(1, 2, "no")]}
    folder = lay({"talk.TextGrid": long_form(tiers, points=True)}, audio="talk.wav")
    (one,), (finding,) = read(folder)
    assert (one.text, one.speaker) == ("yes", None)
    assert (finding.rule, finding.place, finding.is_error) == ("unread-tier", f"{folder}/talk.TextGrid", False)
    assert "'B'" in finding.problem
    assert "--tiers" in finding.action


def test_several_tiers_are_several_speakers(lay, read):
    folder = lay({"talk.TextGrid": long_form({"A": [(1, 2, "no")], "B": [(0, 1.5, "yes")]})}, audio="talk.wav")
    for tiers in (("A", "B"), ("*",), ("a", "b")):
        utterances, findings = read(folder, tiers=tiers)
        assert [(one.id, one.speaker, one.text) for one in utterances] == [
            ("talk-0001", "B", "yes"),
            ("talk-0002", "A", "no"),
        ]
        assert findings == []


def test_a_star_in_the_name_of_a_tier_is_the_speaker(lay, read):
    tiers = {"Ann - words": [(0, 1, "yes")], "Ann - phones": [(0, 1, "j")], "Bob - words": [(1, 2, "no")]}
    folder = lay({"talk.TextGrid": long_form(tiers)}, audio="talk.wav")
    utterances, (finding,) = read(folder, tiers=("* - words",))
    assert [(one.speaker, one.text) for one in utterances] == [("Ann", "yes"), ("Bob", "no")]
    assert "'Ann - phones'" in finding.problem


def test_a_misspelt_tier_is_answered_with_the_nearest(lay, read):
    folder = lay({"talk.TextGrid": long_form({"words": WORDS})}, audio="talk.wav")
    with pytest.raises(SourceError, match=r"no file has a tier called wrds.*Did you mean 'words'"):
        read(folder, tiers=("wrds",))


def test_impossible_intervals_are_told_with_their_line(lay, read):
    content = long_form({"words": [(0, 1, "a"), (2, 1.5, "b"), (3, 3.5, "c")]})
    folder = lay({"talk.TextGrid": content}, audio="talk.wav")
    utterances, (finding,) = read(folder)
    assert [one.text for one in utterances] == ["a", "c"]
    line = content.splitlines().index("            xmin = 2") + 1
    assert (finding.rule, finding.place) == ("bad-time", f"{folder}/talk.TextGrid:{line}")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (long_form({"words": WORDS}).replace("xmin = 1.25", "xmin = none"), 26),
        (short_form({"words": WORDS}).rpartition('"Grüße"')[0], 23),
        ("hello", 1),
        (b"ooBinaryFile\x08TextGrid", None),
    ],
)
def test_a_damaged_file_is_told_with_its_line_and_costs_no_other(lay, read, content, line):
    folder = lay({"bad.TextGrid": content, "good.TextGrid": short_form({"words": WORDS})}, audio="bad.wav good.wav")
    utterances, (finding,) = read(folder)
    assert [one.id for one in utterances] == ["good-0001", "good-0002"]
    assert finding.rule == "unreadable-text"
    assert finding.place == f"{folder}/bad.TextGrid" + (f":{line}" if line else "")


def test_a_file_without_its_recording_is_told(lay, read):
    folder = lay({"talk.TextGrid": short_form({"words": WORDS})}, audio="other.wav")
    _, (finding,) = read(folder)
    assert (finding.rule, finding.place) == ("missing-audio", f"{folder}/talk.TextGrid")


def test_recordings_may_lie_elsewhere_and_names_may_repeat(lay, read):
    grid = short_form({"words": WORDS})
    folder = lay({"grids/x/1.TextGrid": grid, "grids/y/1.TextGrid": grid}, audio="sound/x/1.wav sound/y/1.wav")
    utterances, findings = read(f"{folder}/grids", audio="../sound")
    assert findings == []
    assert [(one.id, one.audio.removeprefix(folder)) for one in utterances][::2] == [
        ("x/1-0001", "/sound/x/1.wav"),
        ("y/1-0001", "/sound/y/1.wav"),
    ]
    assert [one.id for one in read(f"{folder}/grids/x/1.TextGrid", audio="../../sound/x")[0]] == ["1-0001", "1-0002"]
