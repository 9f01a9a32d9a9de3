from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pytest

from sonant.base.errors import ConfigError, SourceError
from sonant.corpus.sources.registry import recognise

SCP = "u1 wav/a.wav\nu2 wav/b.flac\n"
FILES = {
    "wav.scp": SCP,
    "text": "u1 good morning\nu2 zwölf  Uhr\n",
    "utt2spk": "u1 s1\nu2 s2\n",
    "spk2gender": "s1 f\ns2 m\n",
}
AUDIO = "wav/a.wav wav/b.flac"
CUT = {
    "wav.scp": "r1 wav/a.wav\nr2 wav/b.flac\n",
    "segments": "r1-1 r1 0.5 2.25\nr1-2 r1 2.25 -1\nr2-1 r2 00010.0 11,5\n",
    "text": "r1-1 one\nr1-2 two\nr2-1 three\n",
}


@pytest.fixture
def places(lay):
    """Rule, place below the folder and id of findings."""

    def told(findings) -> list[tuple[str, str, str]]:
        return [(one.rule, one.place.removeprefix(lay() + "/"), one.id) for one in findings]

    return told


def test_recordings_texts_speakers_and_facts_are_read(lay, read):
    folder = lay(FILES, audio=AUDIO)
    utterances, findings = read(folder)
    assert findings == []
    first, second = utterances
    assert (first.id, first.audio, first.text, first.speaker) == ("u1", f"{folder}/wav/a.wav", "good morning", "s1")
    assert (first.start, first.seconds, first.channel, first.split) == (0.0, None, None, None)
    assert (first.extra, second.extra) == ({"gender": "f"}, {"gender": "m"})
    assert second.text == "zwölf  Uhr"
    assert second.place == f"{folder}/text:2"


def test_the_file_itself_may_be_named(lay, read):
    folder = lay(FILES, audio=AUDIO)
    assert recognise(f"{folder}/wav.scp") == "kaldi"
    assert read(f"{folder}/wav.scp") == read(folder)


def test_segments_cut_recordings(lay, read):
    folder = lay(CUT, audio=AUDIO)
    utterances, findings = read(folder)
    assert findings == []
    assert [(one.id, one.start, one.seconds, one.text) for one in utterances] == [
        ("r1-1", 0.5, 1.75, "one"),
        ("r1-2", 2.25, None, "two"),
        ("r2-1", 10.0, 1.5, "three"),
    ]
    assert [one.audio.removeprefix(folder) for one in utterances] == ["/wav/a.wav", "/wav/a.wav", "/wav/b.flac"]
    assert utterances[0].place == f"{folder}/segments:1"


@pytest.mark.parametrize("shuffled", ["text", "utt2spk", "wav.scp"])
def test_the_order_of_lines_makes_no_difference(lay, read, shuffled):
    sorted_rows, _ = read(lay(FILES, audio=AUDIO))
    lay({shuffled: "".join(reversed(FILES[shuffled].splitlines(keepends=True)))})
    utterances, findings = read(lay())
    assert sorted(utterances, key=lambda one: one.id) == [
        one if shuffled != "text" else one.__class__(**{**vars(one), "place": utterances[number].place})
        for number, one in enumerate(sorted_rows)
    ]
    assert findings == []


def test_segments_in_any_order_stand_together_by_recording(lay, read):
    folder = lay(CUT | {"segments": "r1-1 r1 0 1\nr2-1 r2 0 1\nr1-2 r1 1 2\n"}, audio=AUDIO)
    utterances, _ = read(folder)
    assert [(one.id, one.text) for one in utterances] == [("r1-1", "one"), ("r1-2", "two"), ("r2-1", "three")]


@pytest.mark.parametrize(
    ("content", "encoded"),
    [
        (FILES["text"].replace("\n", "\r\n"), "utf-8"),
        (FILES["text"], "utf-8-sig"),
        (FILES["text"], "utf-16"),
        (FILES["text"].replace(" ", "\t", 1), "utf-8"),
        ("  " + FILES["text"] + "\n\n", "utf-8"),
    ],
    ids=["CRLF", "BOM", "UTF-16", "tab", "blanks around"],
)
def test_texts_may_be_written_in_any_fashion(lay, read, content, encoded):
    expected = read(lay(FILES, audio=AUDIO))
    lay({"text": content.encode(encoded)})
    assert read(lay()) == expected


def test_a_text_that_is_not_utf_8_is_read_as_cp1252_and_told(lay, read, places):
    folder = lay(FILES | {"text": FILES["text"].encode("cp1252")}, audio=AUDIO)
    utterances, findings = read(folder)
    assert utterances[1].text == "zwölf  Uhr"
    assert places(findings) == [("guessed-encoding", "text:2", "")]


def test_empty_lines_are_told_once_for_each_file(lay, read, places):
    folder = lay(FILES | {"text": "u1 good\n\n\nu2 bad\n\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert [one.text for one in utterances] == ["good", "bad"]
    assert places(findings) == [("bad-line", "text:2", "")]
    assert "2 lines are empty" in findings[0].problem
    assert not findings[0].is_error


def test_a_text_without_a_recording_is_told_with_its_line(lay, read, places):
    folder = lay(FILES | {"text": "u0 lost\nu1 good\nu2 bad\nu3 lost\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert len(utterances) == 2
    assert places(findings) == [("missing-audio", "text:1", "u0"), ("missing-audio", "text:4", "u3")]
    assert f"'u0' has a text, but no line in {folder}/wav.scp" in findings[0].problem


def test_an_utterance_without_a_text_points_to_its_own_line(lay, read):
    folder = lay(FILES | {"text": "u1 good\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert [(one.text, one.place) for one in utterances] == [
        ("good", f"{folder}/text:1"),
        (None, f"{folder}/wav.scp:2"),
    ]
    assert findings == []


@pytest.mark.parametrize(
    ("file", "line", "number"), [("text", "u1 x", 3), ("utt2spk", "u1 s9", 3), ("spk2gender", "s1 m", 3)]
)
def test_a_second_line_for_a_key_is_told_with_the_first(lay, read, places, file, line, number):
    folder = lay(FILES | {file: FILES[file] + line + "\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert [(one.text, one.speaker, one.extra["gender"]) for one in utterances][:1] == [("good morning", "s1", "f")]
    assert places(findings) == [("bad-line", f"{file}:{number}", line.split()[0])]
    assert f"{folder}/{file}:1" in findings[0].problem


def test_a_second_line_for_a_recording_or_a_segment_is_told(lay, read, places):
    folder = lay(FILES | {"wav.scp": SCP + "u1 wav/b.flac\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert (len(utterances), places(findings)) == (2, [("bad-line", "wav.scp:3", "u1")])
    folder = lay(CUT | {"segments": CUT["segments"] + "r1-1 r1 3 4\n", "wav.scp": CUT["wav.scp"] + "r1 wav/b.flac\n"})
    utterances, findings = read(folder)
    assert (len(utterances), utterances[0].seconds) == (3, 1.75)
    assert places(findings)[:1] == [("bad-line", "wav.scp:3", "r1")]
    assert ("bad-line", "segments:4", "r1-1") in places(findings)


def test_speakers_that_two_files_contradict_each_other_about_are_told(lay, read, places):
    folder = lay(FILES | {"spk2utt": "s1 u1 u2\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert [one.id for one in utterances] == ["u1"]
    assert places(findings) == [("contradicting-speakers", "utt2spk:2", "u2")]
    assert f"{folder}/spk2utt:1 gives it to 's1'" in findings[0].problem
    lay({"spk2utt": "s2 u2\ns1 u1\n"})
    assert (len(read(folder)[0]), read(folder)[1]) == (2, [])


def test_speakers_are_read_from_the_other_file_too(lay, read):
    folder = lay({"wav.scp": SCP, "spk2utt": "s1 u1\ns2 u2\n", "spk2age": "s2 44\n"}, audio=AUDIO)
    utterances, _ = read(folder, labels=("age",))
    assert [(one.speaker, one.labels) for one in utterances] == [("s1", {"age": None}), ("s2", {"age": 44.0})]


def test_utterances_without_speaker_and_speakers_of_nothing_are_told_once(lay, read, places):
    folder = lay(FILES | {"utt2spk": "u0 s1\nu1 s1\nu3 s3\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert [one.speaker for one in utterances] == ["s1", None]
    assert places(findings) == [("missing-annotation", "utt2spk", ""), ("unused-annotation", "utt2spk:1", "")]
    assert not any(one.is_error for one in findings)


def test_facts_of_utterances_come_before_those_of_speakers(lay, read):
    folder = lay(FILES | {"utt2lang": "u1 de\nu2 en\n", "utt2gender": "u2 x\n", "utt2dur": "u1 1\n"}, audio=AUDIO)
    assert [one.extra for one in read(folder)[0]] == [{"gender": "f", "lang": "de"}, {"gender": "x", "lang": "en"}]


def test_facts_may_be_labels(lay, read):
    folder = lay(FILES | {"utt2score": "u1 7\nu2 8.5\n", "spk2gender": "s1 f|x\ns2 m\n"}, audio=AUDIO)
    utterances, _ = read(folder, labels=("score", "gender"), label_separator="|")
    assert [one.labels for one in utterances] == [
        {"score": 7.0, "gender": ["f", "x"]},
        {"score": 8.5, "gender": ["m"]},
    ]
    with pytest.raises(ConfigError, match=r"utt2gendre or spk2gendre.*Did you mean 'gender'"):
        read(folder, labels=("gendre",))


@pytest.mark.parametrize(
    ("line", "rule", "says"),
    [
        ("x r1 1", "bad-line", "has 3 parts"),
        ("x r9 1 2", "missing-audio", "'r9', which has no line in"),
        ("x r1 2 1", "bad-time", "ends at 1 s, but starts at 2 s"),
        ("x r1 1 1", "bad-time", "ends at 1 s, but starts at 1 s"),
        ("x r1 -2 1", "bad-time", "starts at -2 s"),
        ("x r1 soon 1", "bad-time", "'soon' is not a time"),
        ("x r1 0 nan", "bad-time", "'nan' is not a time"),
        ("x r1 0 1 front", "bad-channel", "'front' is not a channel"),
    ],
)
def test_segments_that_mean_nothing_are_told_with_their_line(lay, read, places, line, rule, says):
    folder = lay(CUT | {"segments": CUT["segments"] + line + "\n", "text": CUT["text"] + "x four\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert (len(utterances), places(findings)) == (3, [(rule, "segments:4", "x")])
    assert says in findings[0].problem


def test_recordings_without_segments_are_told_once(lay, read, places):
    folder = lay(CUT | {"segments": "r1-1\tr1\t0\t1\n", "text": "r1-1 one\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert (len(utterances), places(findings)) == (1, [("unused-recording", "wav.scp:2", "")])


def test_channels_come_from_segments_or_from_the_table_of_channels(lay, read, places):
    folder = lay(
        {
            "wav.scp": "c-A wav/a.wav\nc-B wav/a.wav\n",
            "segments": "1 c-A 0 1\n2 c-B 0 1\n3 c-A 1 2 1\n4 c-B 1 2 -1\n",
            "reco2file_and_channel": "c-A c A\nc-B c B\n",
        },
        audio=AUDIO,
    )
    assert {one.id: one.channel for one in read(folder)[0]} == {"1": 0, "2": 1, "3": 1, "4": 1}
    lay({"wav.scp": "c-A wav/a.wav\nc-B wav/b.flac\n"})  # taken apart before
    assert {one.id: one.channel for one in read(folder)[0]} == {"1": None, "2": None, "3": 1, "4": None}
    lay({"reco2file_and_channel": "c-A c A\nc-B c left\n"})
    assert places(read(folder)[1]) == [("bad-channel", "reco2file_and_channel:2", "c-B")]


@pytest.mark.parametrize(
    "command",
    [
        "flac -dc wav/b.flac |",
        "flac -c -d -s wav/b.flac|",
        "/usr/bin/flac -cds 'wav/b.flac' |",
        "flac --decode --stdout --silent wav/b.flac |",
        "sph2pipe -f wav wav/b.flac |",
        "tools/sph2pipe -f wav -p wav/b.flac |",
    ],
)
def test_plain_decoding_commands_are_read_as_the_file_they_name(lay, read, command):
    folder = lay({"wav.scp": f"u1 wav/a.wav\nu2 {command}\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert (utterances[1].audio, utterances[1].channel, findings) == (f"{folder}/wav/b.flac", None, [])


@pytest.mark.parametrize(("options", "channel"), [("-f wav -p -c 1", 0), ("-c2 -f rif", 1)])
def test_the_channel_that_sph2pipe_picks_is_picked(lay, read, options, channel):
    folder = lay({"wav.scp": f"u sph2pipe {options} wav/a.sph |\n"}, audio="wav/a.sph")
    assert read(folder)[0][0].channel == channel


@pytest.mark.parametrize(
    "command",
    [
        "sox wav/a.wav -t wav - speed 0.9",
        "flac -dc wav/b.flac; touch proof",
        "flac -dc $(touch proof)",
        "flac -dc `touch proof`",
        "flac -dc wav/b.flac | sox - -t wav -",
        "flac -dc --skip=100 wav/b.flac",
        "flac wav/b.flac",
        "flac -c wav/b.flac",
        "flac -dc wav/b.flac>proof",
        "flac -dc $HOME/b.flac",
        "flac -dc wav/a.wav wav/b.flac",
        "sph2pipe -f raw wav/a.wav",
        "sph2pipe -f wav -t 1:2 wav/a.wav",
        "touch proof",
        "cat 'unclosed",
    ],
)
def test_other_commands_are_refused_by_line_with_what_to_type_and_never_run(
    lay, read, places, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    folder = lay({"wav.scp": f"u1 wav/a.wav\nu2 {command} |\n", "text": "u1 a\nu2 b\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert (len(utterances), places(findings)) == (1, [("piped-command", "wav.scp:2", "u2")])
    assert f"{command} > wav/u2.wav" in findings[0].action
    assert not list(tmp_path.rglob("proof"))


@pytest.mark.parametrize(
    ("value", "rule", "says"),
    [
        ("", "bad-line", "'u2' has no recording"),
        ("-", "piped-command", "is a stream"),
        ("| tee x", "piped-command", "is a stream"),
        ("raw.ark:12[0:30]", "bad-line", "asks for a range"),
        ("wav/c.wav", "missing-audio", "'wav/c.wav' is neither at that path nor below"),
    ],
)
def test_lines_that_name_no_recording_are_told(lay, read, places, value, rule, says):
    folder = lay({"wav.scp": f"u1 wav/a.wav\nu2 {value}\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert (len(utterances), places(findings)) == (1, [(rule, "wav.scp:2", "u2")])
    assert says in findings[0].problem


def test_a_refused_recording_refuses_each_of_its_segments(lay, read, places):
    folder = lay(CUT | {"wav.scp": "r1 sox x -t wav - |\nr2 wav/b.flac\n"}, audio=AUDIO)
    utterances, findings = read(folder)
    assert [one.id for one in utterances] == ["r2-1"]
    assert places(findings) == [("piped-command", "wav.scp:1", "r1-1"), ("piped-command", "wav.scp:1", "r1-2")]


def test_a_missing_recording_of_segments_is_told_with_the_line_that_names_it(lay, read, places):
    folder = lay(CUT, audio="wav/a.wav")
    assert places(read(folder)[1]) == [("missing-audio", "wav.scp:2", "r2-1")]


def test_places_in_archives_are_addresses(lay, read):
    folder = lay({"wav.scp": "u1 raw#1.ark:23\nu2 raw#1.ark:4567\n"}, audio="raw#1.ark")
    assert [one.audio for one in read(folder)[0]] == [f"{folder}/raw%231.ark#23", f"{folder}/raw%231.ark#4567"]


@pytest.mark.parametrize("name", ["raw.ark", "/old/exp/raw.ark", r"D:\old\raw.ark"])
def test_a_moved_archive_is_known_by_its_name(lay, read, places, name):
    folder = lay({"wav.scp": f"u1 {name}:23\nu2 lost.ark:23\n"}, audio="raw.ark")
    (one,), findings = read(folder)
    assert one.audio == f"{folder}/raw.ark#23"
    assert places(findings) == [("missing-audio", "wav.scp:2", "u2")]


@pytest.mark.parametrize("name", ["wav/a.wav", "data/wav/a.wav", r"C:\corpora\wav\a.wav", "/elsewhere/wav/a.wav"])
def test_paths_start_from_the_folder_from_above_or_from_elsewhere(lay, read, name):
    folder = lay({"data/train/wav.scp": f"u1 {name}\n"}, audio="data/train/wav/a.wav data/wav/a.wav")
    (one,), _ = read(f"{folder}/data/train")
    assert one.audio == f"{folder}/data/{'' if name.startswith('data') else 'train/'}wav/a.wav"


def test_recordings_may_lie_in_a_folder_that_is_told(lay, read):
    folder = lay({"data/train/wav.scp": "u1 a.wav\n"}, audio="clips/a.wav")
    assert read(f"{folder}/data/train", audio="../../clips")[0][0].audio == f"{folder}/clips/a.wav"


def test_a_folder_of_data_folders_is_read_with_their_splits(lay, read):
    files = {f"{name}/wav.scp": f"{name} wav/a.wav\n" for name in ("train_clean", "dev", "test-other", "scored")}
    folder = lay(files, audio="wav/a.wav")
    assert recognise(folder) == "kaldi"
    splits = {one.id: one.split for one in read(folder)[0]}
    assert splits == {"train_clean": "train", "dev": "dev", "test-other": "test", "scored": None}
    assert read(f"{folder}/dev")[0] == [one for one in read(folder)[0] if one.id == "dev"]
    assert {one.split for one in read(folder, split="x")[0]} == {"x"}


def test_a_folder_without_recordings_or_with_none_that_exist_is_one_error(lay, read):
    with pytest.raises(SourceError, match=r"no wav\.scp in this folder"):
        read(lay({"text": "u1 x\n"}), format="kaldi")
    folder = lay({"text": "", "wav.scp": "".join(f"u{number:02} x/{number}.wav\n" for number in range(20))})
    with pytest.raises(SourceError, match=r"wav\.scp: none of its 20 recordings.*--audio"):
        read(folder)


def test_a_folder_in_a_bucket_is_read_as_a_local_one(lay, read):
    system = fsspec.filesystem("memory")
    for name, content in {**FILES, **dict.fromkeys(AUDIO.split(), "")}.items():
        system.pipe(f"/bucket/train/{name}", content.encode())
    try:
        utterances, findings = read("memory://bucket/train")
        assert [(one.audio, one.text, one.split) for one in utterances][:1] == [
            ("memory://bucket/train/wav/a.wav", "good morning", "train")
        ]
        assert findings == []
    finally:
        system.rm("/bucket", recursive=True)


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


def test_a_folder_on_the_web_is_read_when_its_layout_is_told(lay, read):
    folder = lay(FILES, audio=AUDIO)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_port}"
        for location in (base, f"{base}/wav.scp"):
            utterances, findings = read(location, format="kaldi")
            assert [(one.audio, one.speaker) for one in utterances][:1] == [(f"{base}/wav/a.wav", "s1")]
            assert findings == []
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.slow
def test_memory_does_not_grow_with_sorted_files(lay, read):
    import tracemalloc

    def peak(count: int) -> int:
        folder = lay(
            {
                "wav.scp": "".join(f"u{number:06} wav/a.wav\n" for number in range(count)),
                "text": "".join(f"u{number:06} {'word ' * 20}\n" for number in range(count)),
            },
            audio="wav/a.wav",
        )
        tracemalloc.start()
        from sonant.corpus.sources.registry import open_source

        assert sum(1 for _ in open_source(folder).rows()) == count
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(8000) < peak(1000) + 1_000_000  # the texts alone are 1.1 MB, and more as objects
