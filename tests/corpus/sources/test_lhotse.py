from __future__ import annotations

import gzip
import json

import fsspec
import pytest

from sonant.base.errors import SourceError
from sonant.corpus.sources.registry import recognise

AUDIO = "wav/a.wav wav/b.flac"


def recording(id="r1", source="wav/a.wav", channels=(0,), **fields) -> dict:
    sources = [{"type": "file", "channels": list(channels), "source": source}]
    return {
        "id": id,
        "sources": sources,
        "sampling_rate": 16000,
        "num_samples": 160000,
        "duration": 10.0,
        "channel_ids": list(channels),
    } | fields


def said(id="s1", start=0.0, duration=2.0, channel=0, **fields) -> dict:
    return {"id": id, "recording_id": "r1", "start": start, "duration": duration, "channel": channel} | fields


def cut(id="c1", start=0.0, duration=2.0, channel=0, supervisions=(), of=None, **fields) -> dict:
    return {
        "id": id,
        "start": start,
        "duration": duration,
        "channel": channel,
        "supervisions": list(supervisions),
        "recording": recording() if of is None else of,
        "type": "MonoCut",
    } | fields


def written(objects, end="\n") -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + end for one in objects)


ONE = said(text="zwölf", speaker="sp1", language="German", gender="F", custom={"snr": 12, "embedding": {"array": 1}})
CUTS = [cut(start=1.5, supervisions=[ONE]), cut("c2", of=recording("r2", "wav/b.flac"))]


def test_cuts_say_where_an_utterance_lies_and_what_is_said(lay, read):
    folder = lay({"cuts_train.jsonl": written(CUTS)}, audio=AUDIO)
    assert recognise(folder) == recognise(f"{folder}/cuts_train.jsonl") == "lhotse"
    (first, second), findings = read(folder)
    assert findings == []
    assert (first.id, first.audio, first.start, first.seconds) == ("c1", f"{folder}/wav/a.wav", 1.5, 2.0)
    assert (first.text, first.speaker, first.channel, first.split) == ("zwölf", "sp1", None, "train")
    assert first.extra == {"language": "German", "gender": "F", "snr": 12}
    assert (second.id, second.audio, second.text) == ("c2", f"{folder}/wav/b.flac", None)
    assert second.place == f"{folder}/cuts_train.jsonl:2"


def test_several_supervisions_of_a_cut_are_utterances_of_their_own(lay, read):
    supervisions = [said("s1", 0.5, 1, text="one"), said("s2", 3, 0.25, text="two")]
    folder = lay({"cuts.jsonl": written([cut(start=2, duration=8, supervisions=supervisions)])}, audio=AUDIO)
    assert [(one.id, one.start, one.seconds, one.text) for one in read(folder)[0]] == [
        ("s1", 2.5, 1.0, "one"),
        ("s2", 5.0, 0.25, "two"),
    ]


def test_a_supervision_that_is_rounded_apart_from_its_cut_is_cut_at_its_end_and_a_longer_one_told(lay, read):
    folder = lay({"cuts.jsonl": written([cut(supervisions=[said(start=-0.01, duration=2.03)])])}, audio=AUDIO)
    assert [(one.start, one.seconds) for one in read(folder)[0]] == [(0.0, 2.0)]
    lay({"cuts.jsonl": written([cut(), cut("c2", supervisions=[said(duration=2.5)])])})
    utterances, (finding,) = read(folder)
    assert (len(utterances), finding.rule, finding.place) == (1, "bad-time", f"{folder}/cuts.jsonl:2")
    assert "0.50 s beyond the cut" in finding.problem


def test_times_of_words_count_from_the_utterance(lay, read):
    words = {"word": [["good", 0.6, 0.3, 0.9], ["day", 0.95, 0.25]]}
    one = said(start=0.5, duration=1, text="good day", alignment=words)
    (utterance,), _ = read(lay({"cuts.jsonl": written([cut(supervisions=[one])])}, audio=AUDIO))
    assert json.loads(utterance.extra["words"]) == [["good", 0.1, 0.4], ["day", 0.45, 0.7]]


STEREO = recording(channels=(0, 1))
TWO_FILES = STEREO | {
    "sources": [
        {"type": "file", "channels": [0], "source": "wav/a.wav"},
        {"type": "file", "channels": [1], "source": "wav/b.flac"},
    ]
}


@pytest.mark.parametrize(
    ("of", "wanted", "file", "channel"),
    [
        (recording(), 0, "a.wav", None),
        (STEREO, 1, "a.wav", 1),
        (STEREO, [0, 1], "a.wav", None),
        (STEREO, [1], "a.wav", 1),
        (TWO_FILES, 1, "b.flac", None),
        (TWO_FILES, 0, "a.wav", None),
        (recording(channels=(2, 3)), 3, "a.wav", 1),
    ],
)
def test_channels_are_those_of_the_file_that_holds_them(lay, read, of, wanted, file, channel):
    folder = lay({"cuts.jsonl": written([cut(channel=wanted, of=of)])}, audio=AUDIO)
    (one,), findings = read(folder)
    assert (one.audio, one.channel, findings) == (f"{folder}/wav/{file}", channel, [])


@pytest.mark.parametrize(
    ("line", "rule", "says"),
    [
        (cut("x", channel=2, of=STEREO), "bad-channel", "channels 2, while its recording has 0, 1"),
        (cut("x", channel=[0, 1], of=TWO_FILES), "bad-channel", "channels 0, 1"),
        (cut("x", of=recording(source="wav/c.wav")), "missing-audio", "'wav/c.wav' is neither"),
        (cut("x", start=-1), "bad-time", "starts at -1 s"),
        (cut("x", duration=-1), "bad-time", "lasts -1 s"),
        (cut("x", duration=0), "bad-time", "lasts 0 s"),
        (cut("x", start="soon"), "bad-time", "'soon' is not a time"),
        ({"id": "x", "duration": 1, "recording": recording(), "type": "MonoCut"}, "bad-line", "no 'start'"),
        (cut("x", supervisions=["s1"]), "bad-line", "'supervisions' is no list of objects"),
        (cut("x", supervisions=[{"id": "x", "start": 0}]), "bad-line", "no 'duration'"),
        (cut("x") | {"recording": None, "features": {}}, "missing-audio", "of features alone"),
        (cut("x", of=recording(sources=[])), "missing-audio", "no 'sources'"),
        (cut("x", of=recording(transforms=[{"name": "Speed"}])), "computed-audio", "changed by Speed"),
        (cut("x", of=recording(sources=[{"type": "memory", "source": "UklGRg=="}])), "computed-audio", "'memory'"),
        (cut("x", of=recording(sources=[{"type": "command", "source": "sox a -"}])), "piped-command", "sox a -"),
        ({"id": "x", "duration": 2, "type": "PaddingCut"}, "missing-audio", "padding"),
        (
            {"id": "x", "type": "MixedCut", "tracks": [{"cut": cut()}, {"cut": cut(), "offset": 1}]},
            "computed-audio",
            "mixes 2 tracks",
        ),
        ({"id": "x", "type": "MixedCut", "tracks": [{"cut": cut(), "offset": 1}]}, "computed-audio", "silence before"),
        (["x"], "bad-line", "a row is an object"),
    ],
)
def test_cuts_that_mean_no_stretch_of_a_file_are_told_with_their_line(lay, read, line, rule, says):
    folder = lay({"cuts.jsonl": written([*CUTS, line])}, audio=AUDIO)
    utterances, (finding,) = read(folder)
    assert (len(utterances), finding.rule, finding.place) == (2, rule, f"{folder}/cuts.jsonl:3")
    assert finding.id == ("" if isinstance(line, list) else "x")
    assert says in finding.problem


def test_resampling_and_padding_behind_change_nothing(lay, read):
    padding = {"cut": {"id": "p", "duration": 1, "type": "PaddingCut"}, "offset": 2}
    padded = {"id": "m", "type": "MixedCut", "tracks": [{"cut": CUTS[0], "offset": 0}, padding]}
    resampled = cut("c2", of=recording(transforms=[{"name": "Resample", "kwargs": {}}]))
    utterances, findings = read(lay({"cuts.jsonl": written([padded, resampled])}, audio=AUDIO))
    assert ([(one.id, one.seconds) for one in utterances], findings) == ([("m", 2.0), ("c2", 2.0)], [])


def test_recordings_and_supervisions_are_joined(lay, read):
    files = {
        "x_recordings_dev.jsonl": written([recording(), recording("r2", "wav/b.flac", custom={"room": "A"})]),
        "x_supervisions_dev.jsonl": written(
            [said(text="one", start=1), said("s2", recording_id="r2", text="two"), said("s3", 4, 1, text="three")]
        ),
    }
    folder = lay(files, audio=AUDIO)
    assert recognise(folder) == "lhotse"
    utterances, findings = read(folder)
    assert findings == []
    assert [(one.id, one.text, one.start, one.seconds) for one in utterances] == [
        ("s1", "one", 1.0, 2.0),
        ("s3", "three", 4.0, 1.0),
        ("s2", "two", 0.0, 2.0),
    ]
    assert ({one.split for one in utterances}, utterances[2].extra) == ({"dev"}, {"room": "A"})
    assert read(f"{folder}/x_supervisions_dev.jsonl")[0] == utterances


def test_supervisions_of_unknown_recordings_and_recordings_without_any_are_told(lay, read):
    files = {
        "recordings.jsonl": written([recording(), recording("r2", "wav/b.flac"), recording()]),
        "supervisions.jsonl": written([said(), said("s2", recording_id="r9"), said("s3", start=-1)]),
    }
    folder = lay(files, audio=AUDIO)
    utterances, findings = read(folder)
    assert [one.id for one in utterances] == ["s1"]
    assert sorted((one.rule, one.place.removeprefix(folder), one.id) for one in findings) == [
        ("bad-line", "/recordings.jsonl:3", ""),
        ("bad-time", "/supervisions.jsonl:3", "s3"),
        ("missing-audio", "/supervisions.jsonl:2", "s2"),
        ("unused-recording", "/recordings.jsonl:2", ""),
    ]


def test_supervisions_without_recordings_are_one_error(lay, read):
    folder = lay({"supervisions.jsonl": written([said()])}, audio=AUDIO)
    with pytest.raises(SourceError, match=r"0 manifests of recordings.*recordings\.jsonl"):
        read(folder)


def test_recordings_alone_are_utterances_without_text(lay, read):
    folder = lay({"recordings.jsonl": written([recording(), recording("r2", sources=[])])}, audio=AUDIO)
    (one,), (finding,) = read(folder)
    assert (one.id, one.seconds, one.text, one.channel) == ("r1", None, None, None)
    assert (finding.rule, finding.place) == ("missing-audio", f"{folder}/recordings.jsonl:2")


def test_cuts_are_read_where_there_are_recordings_and_supervisions_too(lay, read):
    folder = lay({"cuts.jsonl": written(CUTS), "recordings.jsonl": written([recording()])}, audio=AUDIO)
    lay({"supervisions.jsonl": written([said()])})
    assert [one.id for one in read(folder)[0]] == ["c1", "c2"]
    assert [one.id for one in read(folder, table="supervisions.jsonl")[0]] == ["s1"]


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(written(CUTS).encode()),
        gzip.compress(b"\xef\xbb\xbf" + written(CUTS, "\r\n\r\n").encode()),
        gzip.compress(json.dumps(CUTS, indent=2).encode()),
    ],
    ids=["plain", "BOM, CRLF, blank lines", "a list"],
)
def test_gzipped_manifests_may_be_written_in_any_fashion(lay, read, content):
    folder = lay({"cuts.jsonl.gz": content}, audio=AUDIO)
    utterances, findings = read(folder)
    assert ([one.id for one in utterances], findings) == (["c1", "c2"], [])


def test_fields_may_be_labels(lay, read):
    cuts = [cut(str(n), custom={"score": n, "text": "odd"}, supervisions=[said(f"s{n}", text="x")]) for n in range(2)]
    folder = lay({"cuts.jsonl": written(cuts)}, audio=AUDIO)
    utterances, _ = read(folder, labels=("score",))
    assert [(one.labels, one.text, one.extra) for one in utterances] == [
        ({"score": 0.0}, "x", {"source_text": "odd"}),
        ({"score": 1.0}, "x", {"source_text": "odd"}),
    ]
    with pytest.raises(SourceError, match="Did you mean 'score'"):
        read(folder, labels=("scores",))


def test_what_is_no_manifest_is_told(lay, read):
    folder = lay({"x.jsonl": '{"a": 1}\n'})
    with pytest.raises(SourceError, match="no cut, supervision or recording"):
        read(f"{folder}/x.jsonl", format="lhotse")
    with pytest.raises(SourceError, match="holds cuts, supervisions or recordings"):
        read(folder, format="lhotse")


def test_manifests_in_a_bucket_are_read_as_local_ones(read):
    system = fsspec.filesystem("memory")
    system.pipe("/bucket/m/cuts.jsonl.gz", gzip.compress(written(CUTS).encode()))
    for name in AUDIO.split():
        system.pipe(f"/bucket/{name}", b"")
    try:
        for location in ("memory://bucket/m", "memory://bucket/m/cuts.jsonl.gz"):
            utterances, findings = read(location)
            assert [one.audio for one in utterances][:1] == ["memory://bucket/wav/a.wav"]
            assert findings == []
    finally:
        system.rm("/bucket", recursive=True)
