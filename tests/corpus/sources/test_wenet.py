from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace

import fsspec
import numpy as np
import pytest
import soundfile

import sonant
from sonant.audio.recording import open_recording
from sonant.base.errors import ConfigError, SourceError
from sonant.corpus.sources.registry import recognise

LINES = [{"key": "u1", "wav": "wav/a.wav", "txt": "one"}, {"key": "u2", "wav": "wav/b.flac", "txt": "zwölf"}]
AUDIO = "wav/a.wav wav/b.flac"
MEMBERS = {"u1.txt": "one", "u1.wav": b"RIFF", "u2.txt": "zwölf", "u2.flac": b"fLaC", "u2.spk": "s2", "u2.lang": "de"}


def written(lines, end="\n") -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + end for line in lines)


def packed(members=MEMBERS, **options) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", **options) as archive:
        for name, member in members.items():
            content = member.encode() if isinstance(member, str) else member
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def told(utterances) -> list[tuple[str, str | None, str]]:
    return [(one.id, one.text, one.audio.rpartition("/")[2]) for one in utterances]


def test_raw_lists_are_read(lay, read):
    folder = lay({"train/data.list": written(LINES)}, audio="train/wav/a.wav train/wav/b.flac")
    assert recognise(f"{folder}/train") == recognise(f"{folder}/train/data.list") == "wenet"
    utterances, findings = read(f"{folder}/train")
    assert findings == []
    assert told(utterances) == [("u1", "one", "a.wav"), ("u2", "zwölf", "b.flac")]
    assert {one.split for one in utterances} == {"train"}
    assert utterances[1].place == f"{folder}/train/data.list:2"


def test_lists_of_other_names_are_recognised_by_their_first_line(lay, read):
    files = {"dev.list": written(LINES), "shards.list": "\n0.tar\r\n", "todo.list": "milk\n"}
    folder = lay(files, audio=AUDIO)
    assert recognise(f"{folder}/dev.list") == recognise(f"{folder}/shards.list") == "wenet"
    assert {one.split for one in read(f"{folder}/dev.list")[0]} == {"dev"}
    with pytest.raises(SourceError):
        recognise(f"{folder}/todo.list")


@pytest.mark.parametrize(
    "content",
    [
        written(LINES, "\r\n").encode(),
        b"\xef\xbb\xbf" + written(LINES).encode(),
        ("\n" + written(LINES, "\n\n")).encode(),
    ],
    ids=["CRLF", "BOM", "blank lines"],
)
def test_lists_may_be_written_in_any_fashion(lay, read, content):
    utterances, findings = read(lay({"data.list": content}, audio=AUDIO))
    assert ([one.text for one in utterances], findings) == (["one", "zwölf"], [])


def test_times_in_a_raw_list_cut_and_further_keys_are_kept(lay, read):
    lines = [{**LINES[0], "key": str(at), "start": at, "end": at + 0.5, "spk": "s", "lang": "de"} for at in (0, 1.25)]
    utterances, _ = read(lay({"data.list": written(lines)}, audio=AUDIO), labels=("lang",))
    assert [(one.id, one.start, one.seconds, one.speaker, one.labels) for one in utterances] == [
        ("0", 0.0, 0.5, "s", {"lang": "de"}),
        ("1.25", 1.25, 0.5, "s", {"lang": "de"}),
    ]


@pytest.mark.parametrize(
    ("line", "rule", "says"),
    [
        ('{"key": "x", "txt": "one"}', "bad-line", "has no 'wav'"),
        ('{"wav": "wav/a.wav", "txt": "one"}', "bad-line", "has no 'key'"),
        ('{"key": "x", "wav": "wav/c.wav"}', "missing-audio", "'wav/c.wav' is neither"),
        ('{"key": "x", "wav": "wav/a.wav", "start": -1, "end": 2}', "bad-time", "starts at -1 s"),
        ('{"key": "x", "wav": "wav/a.wav", "start": 2, "end": 1}', "bad-time", "ends at 1 s"),
        ('{"key": "x", "wav"', "bad-line", "not JSON"),
    ],
)
def test_objects_that_mean_nothing_are_told_with_their_line(lay, read, line, rule, says):
    folder = lay({"data.list": written(LINES) + line + "\n"}, audio=AUDIO)
    utterances, (finding,) = read(folder)
    assert (len(utterances), finding.rule, finding.place) == (2, rule, f"{folder}/data.list:3")
    assert says in finding.problem


def test_members_of_tars_are_addressed_without_unpacking(lay, read):
    folder = lay({"data.list": "shards/0.tar\nshards/1.tar\n", "shards/0.tar": packed()})
    lay(
        {
            "shards/1.tar": packed(
                {"./sub/u3.wav": b"RIFF", "./sub/u3.txt": "three\r\n", "._u4.wav": b"", "u5.png": b"\xff"}
            )
        }
    )
    utterances, findings = read(folder)
    assert told(utterances) == [
        ("u1", "one", "0.tar#u1.wav"),
        ("u2", "zwölf", "0.tar#u2.flac"),
        ("sub/u3", "three", "u3.wav"),
    ]
    assert utterances[2].audio == f"{folder}/shards/1.tar#sub/u3.wav"
    assert (utterances[1].speaker, utterances[1].extra) == ("s2", {"lang": "de"})
    assert utterances[1].place == f"{folder}/shards/0.tar#u2.txt"
    assert findings == []


def test_further_members_may_be_labels(lay, read):
    members = {f"u{number}.{kind}": text for number in (1, 2) for kind, text in (("wav", b""), ("score", str(number)))}
    folder = lay({"data.list": "0.tar\n", "0.tar": packed(members)})
    assert [one.labels for one in read(folder, labels=("score",))[0]] == [{"score": 1.0}, {"score": 2.0}]
    with pytest.raises(ConfigError, match="Did you mean 'score'"):
        read(folder, labels=("scores",))
    with pytest.raises(SourceError, match="no columns"):
        read(folder, columns={"text": "txt"})


def test_a_recording_without_a_text_is_an_utterance_and_a_text_without_a_recording_a_fault(lay, read):
    members = {"u1.wav": b"", "u2.txt": "lost", "u3.wav": b"", "u3.txt": "three"}
    folder = lay({"data.list": "0.tar\n", "0.tar": packed(members)})
    utterances, (finding,) = read(folder)
    assert [(one.id, one.text, one.place) for one in utterances] == [
        ("u1", None, f"{folder}/0.tar#u1.wav"),
        ("u3", "three", f"{folder}/0.tar#u3.txt"),
    ]
    assert (finding.rule, finding.place, finding.id) == ("missing-audio", f"{folder}/0.tar#u2.txt", "u2")


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (-9728, "ends inside its last member"),  # within u9.wav; a tar is filled up to 10240 bytes
        (6 * 512 + 100, "its end is missing"),  # within the header of u3
        (6 * 512, "its end is missing"),  # between two examples
    ],
)
def test_a_tar_that_is_cut_short_is_told_and_read_as_far_as_it_goes(lay, read, end, says):
    members = {}
    for number in range(1, 10):
        members |= {f"u{number}.txt": "x", f"u{number}.wav": b"R" * (512 if number < 9 else 10_000)}
    content = packed(members)
    content = content[: content.rindex(b"R") - 600] if end < 0 else content[: end + 2 * 512]
    folder = lay({"data.list": "0.tar\n", "0.tar": content})
    utterances, (finding,) = read(folder)
    assert [one.id for one in utterances] == [f"u{number}" for number in range(1, 9 if end < 0 else 3)]
    assert (finding.rule, finding.place) == ("unreadable-archive", f"{folder}/0.tar")
    assert says in finding.problem


def test_a_tar_with_a_damaged_header_is_told_and_read_up_to_it(lay, read):
    content = bytearray(packed())
    content[4 * 512 : 5 * 512] = b"X" * 512  # the header of u2.txt
    folder = lay({"data.list": "0.tar\n", "0.tar": bytes(content)})
    utterances, (finding,) = read(folder)
    assert ([one.id for one in utterances], finding.rule) == (["u1"], "unreadable-archive")
    assert "what follows 'u1' is lost" in finding.problem


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (packed(format=tarfile.PAX_FORMAT)[:100], "cannot be read to its end"),
        (b"", "cannot be read to its end"),
        (b"no tar at all" * 100, "cannot be read to its end"),
        (b"\x1f\x8b" + bytes(1000), "compressed with gzip"),
    ],
    ids=["cut header", "empty", "no tar", "gzip"],
)
def test_what_is_no_tar_is_told(lay, read, content, says):
    folder = lay({"data.list": "0.tar\n1.tar\n", "0.tar": content, "1.tar": packed()})
    utterances, (finding,) = read(folder)
    assert (len(utterances), finding.rule, finding.place) == (2, "unreadable-archive", f"{folder}/0.tar")
    assert says in finding.problem


def test_texts_in_tars_are_of_the_encoding_that_is_told(lay, read):
    members = {"u1.wav": b"", "u1.txt": "zwölf".encode("cp1252"), "u2.wav": b"", "u2.txt": b"\xef\xbb\xbftwo"}
    folder = lay({"data.list": "0.tar\n", "0.tar": packed(members)})
    utterances, (finding,) = read(folder)
    assert [one.text for one in utterances] == ["two"]
    assert (finding.rule, finding.place, finding.id) == ("unreadable-text", f"{folder}/0.tar#u1.txt", "u1")
    assert read(folder, encoding="cp1252")[0][0].text == "zwölf"
    with pytest.raises(SourceError, match="'utf-9' is not known"):
        read(folder, encoding="utf-9")


def test_a_tar_that_is_not_there_is_told_with_its_line_and_a_moved_one_is_found(lay, read):
    content = "/old/place/0.tar\n\n" + r"C:\old\1.tar" + "\nlost/2.tar\n"
    folder = lay({"lists/data.list": content, "lists/0.tar": packed(), "lists/1.tar": packed({"u3.wav": b""})})
    utterances, (finding,) = read(f"{folder}/lists")
    assert [one.id for one in utterances] == ["u1", "u2", "u3"]
    assert (finding.rule, finding.place) == ("missing-audio", f"{folder}/lists/data.list:4")
    lay({"lists/data.list": "".join(f"lost/{number}.tar\n" for number in range(2, 14))})
    with pytest.raises(SourceError, match="none of its 12 recordings"):
        read(f"{folder}/lists")


def test_a_folder_of_lists_is_read_with_their_splits(lay, read):
    folder = lay({f"{name}/data.list": "0.tar\n" for name in ("train", "dev")})
    lay({f"{name}/0.tar": packed({f"{name}.wav": b""}) for name in ("train", "dev")})
    assert recognise(folder) == "wenet"
    assert {one.id: one.split for one in read(folder)[0]} == {"train": "train", "dev": "dev"}


def test_a_folder_without_a_list_and_an_empty_list_are_errors(lay, read):
    folder = lay({"data.list": "\n"})
    with pytest.raises(SourceError, match="the list is empty"):
        read(folder)
    with pytest.raises(SourceError, match=r"no data\.list in this folder"):
        read(lay({"x/y.txt": ""}) + "/x", format="wenet")


def test_tars_in_a_bucket_are_read_as_local_ones(read):
    system = fsspec.filesystem("memory")
    system.pipe("/bucket/data.list", b"shards/0.tar\nmemory://bucket/shards/1.tar\n")
    system.pipe("/bucket/shards/0.tar", packed())
    system.pipe("/bucket/shards/1.tar", packed({"u3.wav": b"RIFF"}))
    try:
        utterances, findings = read("memory://bucket")
        assert [one.audio for one in utterances] == [
            "memory://bucket/shards/0.tar#u1.wav",
            "memory://bucket/shards/0.tar#u2.flac",
            "memory://bucket/shards/1.tar#u3.wav",
        ]
        assert findings == []
    finally:
        system.rm("/bucket", recursive=True)


def sound(voiced, seed: int) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, voiced(0.5, 8000, seed=seed), 8000, format="WAV")
    return file.getvalue()


def test_what_is_read_from_a_tar_is_what_was_packed(lay, read, voiced):
    folder = lay({"data.list": "0.tar\n", "0.tar": packed({"u1.txt": "one", "u1.wav": sound(voiced, 1)})})
    (one,), _ = read(folder)
    with open_recording(one.audio) as recording:
        samples = np.concatenate(list(recording.blocks(1 << 16)))[:, 0]
    np.testing.assert_allclose(samples, voiced(0.5, 8000, seed=1), atol=1 / 32768)


def test_shards_are_prepared_and_an_utterance_without_text_is_rejected_by_name(lay, voiced, tmp_path):
    members = {f"u{number}.wav": sound(voiced, number) for number in range(4)}
    members |= {f"u{number}.txt": f"say {word}" for number, word in enumerate(("one", "two", "one two"))}
    members = dict(sorted(members.items()))
    folder = lay({"data.list": "0.tar\n", "0.tar": packed(members)})
    config = replace(sonant.PrepareConfig(workers=1), skip_invalid=True)
    result = sonant.prepare(folder, str(tmp_path / "corpus"), config)
    rejected = (tmp_path / "corpus" / "rejected.csv").read_text()
    assert result.num_utterances == 3
    assert "empty-text" in rejected
    assert f"{folder}/0.tar#u3.wav" in rejected
