from __future__ import annotations

import gzip
import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pytest

from sonant.base.errors import SourceError
from sonant.corpus.sources.registry import recognise

LINES = [
    {"audio_filepath": "wav/a.wav", "duration": 1.5, "text": "one", "speaker": "s1", "lang": "de"},
    {"audio_filepath": "wav/b.flac", "duration": 2, "text": "zwölf", "speaker": "s2", "lang": "en"},
]
CUT = [{"audio_filepath": "wav/a.wav", "offset": at, "duration": 0.5, "text": str(at)} for at in (0, 0.75, 10)]
AUDIO = "wav/a.wav wav/b.flac"


def written(lines, end="\n") -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + end for line in lines)


def test_recordings_texts_and_durations_are_read(lay, read):
    folder = lay({"manifest.json": written(LINES)}, audio=AUDIO)
    assert recognise(folder) == recognise(f"{folder}/manifest.json") == "nemo"
    utterances, findings = read(folder)
    assert findings == []
    first, second = utterances
    assert (first.id, first.audio, first.text, first.speaker) == ("wav/a", f"{folder}/wav/a.wav", "one", "s1")
    assert (first.start, first.seconds, first.extra) == (0.0, 1.5, {"lang": "de"})
    assert (second.text, second.place) == ("zwölf", f"{folder}/manifest.json:2")


def test_offsets_cut_recordings(lay, read):
    lines = [{"start": 99, **line} for line in CUT]  # somebody's own key
    utterances, findings = read(lay({"m.jsonl": written(lines)}, audio=AUDIO))
    assert findings == []
    assert [(one.id, one.start, one.seconds) for one in utterances] == [
        ("wav/a-0001", 0.0, 0.5),
        ("wav/a-0002", 0.75, 0.5),
        ("wav/a-0003", 10.0, 0.5),
    ]


@pytest.mark.parametrize(
    "content",
    [
        written(LINES, "\r\n").encode(),
        b"\xef\xbb\xbf" + written(LINES).encode(),
        written(LINES).encode("utf-16"),
        ("\n" + written(LINES, "\n\n")).encode(),
        json.dumps(LINES, indent=1).encode(),
    ],
    ids=["CRLF", "BOM", "UTF-16", "blank lines", "a list"],
)
def test_manifests_may_be_written_in_any_fashion(lay, read, content):
    folder = lay({"m.json": content}, audio=AUDIO)
    utterances, findings = read(f"{folder}/m.json", format="nemo")
    assert ([one.text for one in utterances], findings) == (["one", "zwölf"], [])


def test_a_gzipped_manifest_says_the_same(lay, read):
    folder = lay({"m.json.gz": gzip.compress(written(LINES).encode())}, audio=AUDIO)
    assert [one.text for one in read(folder)[0]] == ["one", "zwölf"]
    lay({"m.json.gz": gzip.compress(written(LINES * 500).encode())[:-20]})
    with pytest.raises(SourceError, match="gzip file is damaged"):
        read(folder, format="nemo")


@pytest.mark.parametrize(
    ("line", "rule", "says"),
    [
        ({"duration": 1, "text": "x"}, "bad-line", "has no 'audio_filepath'"),
        ({"audio_filepath": "", "duration": 1}, "bad-line", "has no 'audio_filepath'"),
        ({"audio_filepath": ["wav/a.wav", "wav/b.flac"]}, "bad-line", "a list of 2 files"),
        ({"audio_filepath": "wav/c.wav"}, "missing-audio", "'wav/c.wav' is neither at that path nor below"),
        ({"audio_filepath": "wav/a.wav", "duration": -1}, "bad-time", "lasts -1 s"),
        ({"audio_filepath": "wav/a.wav", "duration": 0}, "bad-time", "lasts 0 s"),
        ({"audio_filepath": "wav/a.wav", "duration": "long"}, "bad-time", "'long' is not a time"),
        ({"audio_filepath": "wav/a.wav", "offset": -0.5, "duration": 1}, "bad-time", "starts at -0.5 s"),
        ([1, 2], "bad-line", "a row is an object"),
    ],
)
def test_objects_that_mean_nothing_are_told_with_their_line(lay, read, line, rule, says):
    folder = lay({"m.json": written([*LINES, line])}, audio=AUDIO)
    utterances, (finding,) = read(folder)
    assert (len(utterances), finding.rule, finding.place) == (2, rule, f"{folder}/m.json:3")
    assert says in finding.problem


@pytest.mark.parametrize("broken", ['{"audio_filepath": "wav/a.wav",}\n', '{"audio_filepath": }\n'])
def test_a_line_that_is_no_json_is_told_wherever_it_stands(lay, read, broken):
    folder = lay({"m.json": written(LINES) + broken}, audio=AUDIO)
    assert [(one.rule, one.place) for one in read(folder)[1]] == [("bad-line", f"{folder}/m.json:3")]
    lay({"m.json": broken + written(LINES)})
    utterances, findings = read(folder, format="nemo", table="m.json")
    assert (len(utterances), [one.place for one in findings]) == (2, [f"{folder}/m.json:1"])


def test_manifests_named_after_splits_are_read_together(lay, read):
    folder = lay({f"{name}_manifest.json": written(LINES[:1]) for name in ("train", "dev")}, audio=AUDIO)
    assert sorted(one.split for one in read(folder)[0]) == ["dev", "train"]
    assert [one.split for one in read(f"{folder}/dev_manifest.json")[0]] == ["dev"]
    lay({"all.json": written(LINES)})
    with pytest.raises(SourceError, match=r"only some are named after a split.*--table"):
        read(folder)
    assert [one.split for one in read(folder, table="all.json")[0]] == [None, None]


def test_numbered_manifests_are_parts_of_one(lay, read):
    folder = lay({f"manifest_{number}.json": written([line]) for number, line in enumerate(LINES)}, audio=AUDIO)
    assert [one.text for one in read(folder)[0]] == ["one", "zwölf"]


def test_recordings_packed_into_tars_are_addressed_there(lay, read):
    lines = [{"audio_filepath": f"a{number}.wav", "duration": 1, "shard_id": number} for number in range(2)]
    folder = lay({"tarred_audio_manifest.json": written(lines)}, audio="audio_0.tar audio_1.tar")
    assert [one.audio for one in read(folder)[0]] == [f"{folder}/audio_{n}.tar#a{n}.wav" for n in range(2)]
    lay({"tarred_audio_manifest.json": written([{**lines[0], "shard_id": 7}])})
    _, (finding,) = read(folder)
    assert (finding.rule, "audio_7.tar" in finding.problem) == ("missing-audio", True)


def test_keys_may_be_labels_and_other_keys_may_name_columns(lay, read):
    lines = [{**line, "answer": "x", "score": number} for number, line in enumerate(LINES)]
    folder = lay({"m.json": written(lines)}, audio=AUDIO)
    utterances, _ = read(folder, labels=("score",), columns={"text": "answer"})
    assert [(one.labels, one.text) for one in utterances] == [({"score": 0.0}, "x"), ({"score": 1.0}, "x")]
    with pytest.raises(SourceError, match="Did you mean 'score'"):
        read(folder, labels=("scor",))


@pytest.mark.parametrize("path", ["a.wav", "/data/old/wav/a.wav", r"D:\set\wav\a.wav", "../wav/a.wav"])
def test_paths_of_elsewhere_are_found(lay, read, path):
    folder = lay({"m/m.json": written([{"audio_filepath": path, "duration": 1}])}, audio="m/wav/a.wav wav/a.wav")
    (one,), _ = read(f"{folder}/m")
    assert one.audio == f"{folder}/{'' if path.startswith('..') else 'm/'}wav/a.wav"


def test_paths_may_start_from_folders_above(lay, read):
    folder = lay({"data/set/m/m.json": written(LINES[:1])}, audio=AUDIO)
    assert read(f"{folder}/data/set/m")[0][0].audio == f"{folder}/wav/a.wav"


def test_a_manifest_without_recordings_is_one_error(lay, read):
    folder = lay({"m.json": written([{"audio": "a.wav"}])})
    with pytest.raises(SourceError, match="no object in it has 'audio_filepath'"):
        read(f"{folder}/m.json", format="nemo")
    with pytest.raises(SourceError, match="no file of JSON in this folder"):
        read(folder, format="nemo")


def test_a_manifest_in_a_bucket_is_read_as_a_local_one(read):
    system = fsspec.filesystem("memory")
    for name, content in {"m.json": written(LINES), **dict.fromkeys(AUDIO.split(), "")}.items():
        system.pipe(f"/bucket/{name}", content.encode())
    try:
        for location in ("memory://bucket", "memory://bucket/m.json"):
            utterances, findings = read(location)
            assert [one.audio for one in utterances][:1] == ["memory://bucket/wav/a.wav"]
            assert findings == []
    finally:
        system.rm("/bucket", recursive=True)


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


def test_a_manifest_on_the_web_is_read_with_recordings_beside_it(lay, read):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=lay({"m.json": written(LINES)})))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_port}"
        utterances, findings = read(f"{base}/m.json")
        assert ([one.audio for one in utterances], findings) == ([f"{base}/wav/a.wav", f"{base}/wav/b.flac"], [])
    finally:
        server.shutdown()
        server.server_close()
