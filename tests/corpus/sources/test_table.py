from __future__ import annotations

import io
import json
import threading
import unicodedata
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sonant.base.errors import SourceError

ZOE = unicodedata.normalize("NFC", "zoë")
HEADER = ("uttid", "path", "sentence", "speaker", "score")
ROWS = [("007", "sub/a.wav", "one, two", "s1", 1.5), ("b", r"C:\old\sub\b.wav", "drei\nvier", "s2", None)]


def as_csv(delimiter=",", end="\n", decimal=".") -> str:
    lines = [delimiter.join(HEADER)]
    for *words, score in ROWS:
        cells = [f'"{word}"' if delimiter in word or "\n" in word else word for word in words]
        lines.append(delimiter.join([*cells, "" if score is None else str(score).replace(".", decimal)]))
    return end.join([*lines, ""])


def as_sheet() -> bytes:
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in (HEADER, *ROWS):
        book.active.append(row)
    book.save(file)
    return file.getvalue()


def as_parquet() -> bytes:
    file = io.BytesIO()
    pq.write_table(
        pa.table({name: list(cells) for name, cells in zip(HEADER, zip(*ROWS, strict=True), strict=True)}), file
    )
    return file.getvalue()


OBJECTS = [dict(zip(HEADER, row, strict=True)) for row in ROWS]
TABLES = {
    "t.csv": as_csv(),
    "t.CSV": as_csv(end="\r\n"),
    "semicolons.csv": as_csv(";", decimal=","),
    "t.tsv": as_csv("\t"),
    "t.psv": as_csv("|"),
    "bom.csv": b"\xef\xbb\xbf" + as_csv().encode(),
    "excel.csv": as_csv("\t", "\r\n").encode("utf-16"),
    "t.jsonl": "".join(json.dumps(row) + "\n" for row in OBJECTS),
    "t.json": json.dumps(OBJECTS),
    "t.parquet": as_parquet(),
    "t.xlsx": as_sheet(),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_says_the_same_in_every_format(lay, read, name):
    folder = lay({name: TABLES[name]}, audio="sub/a.wav sub/b.FLAC")
    utterances, findings = read(f"{folder}/{name}", labels=("score",), format="table")
    assert findings == []
    first, second = utterances
    assert (first.id, first.audio, first.text, first.speaker) == ("007", f"{folder}/sub/a.wav", "one, two", "s1")
    assert (second.id, second.audio, second.text) == ("b", f"{folder}/sub/b.FLAC", "drei vier")
    assert (first.labels, second.labels) == ({"score": 1.5}, {"score": None})


def test_a_folder_with_a_table_is_recognised(lay, read):
    folder = lay({"t.csv": "path,text\na.wav,x\n", "._t.csv": "junk"}, audio="a.wav")
    utterances, findings = read(folder)
    assert ([one.id for one in utterances], findings) == (["a"], [])
    assert utterances[0].place == f"{folder}/t.csv:2"


def test_tables_named_after_splits_are_read_together(lay, read):
    folder = lay({"train.csv": "path\na.wav\n", "validation.tsv": "path\nb.wav\n"}, audio="a.wav b.wav")
    assert {one.id: one.split for one in read(folder)[0]} == {"a": "train", "b": "dev"}
    assert {one.id: one.split for one in read(folder, split="test")[0]} == {"a": "test", "b": "test"}


def test_among_several_tables_one_must_be_named(lay, read):
    folder = lay({"a.csv": "path\nx.wav\n", "b.csv": "path\nx.wav\n", "c.txt": "path\nx.wav\n"}, audio="x.wav")
    with pytest.raises(SourceError, match=r"2 tables \(a\.csv, b\.csv\).*--table"):
        read(folder, format="table")
    assert read(folder, table="c.txt", format="table")[0][0].place == f"{folder}/c.txt:2"
    lay({"metadata.csv": "path\nx.wav\n"})
    assert read(folder)[0][0].place == f"{folder}/metadata.csv:2"


def test_recordings_are_found_by_id_where_no_column_names_them(lay, read):
    folder = lay({"t.csv": "id,text\n007,x\nb,y\nc,z\n"}, audio="sub/007.wav b/waveform.ogg")
    utterances, (finding,) = read(folder)
    assert [(one.id, one.audio) for one in utterances] == [
        ("007", f"{folder}/sub/007.wav"),
        ("b", f"{folder}/b/waveform.ogg"),
    ]
    assert (finding.rule, finding.place, finding.id) == ("missing-audio", f"{folder}/t.csv:4", "c")


def test_an_utterance_without_an_id_is_called_by_its_path(lay, read):
    folder = lay({"t.csv": f"path\nsub/a.wav\n{ZOE}.wav\nb/waveform.wav\n"})
    lay({"sub/a.wav": "", unicodedata.normalize("NFD", ZOE) + ".wav": "", "b/waveform.wav": ""})
    assert [unicodedata.normalize("NFC", one.id) for one in read(folder)[0]] == ["sub/a", ZOE, "b"]


def test_stretches_of_one_recording_are_numbered_and_stand_together(lay, read):
    content = 'path,start,end\na.wav,0,1.5\nb.wav,"0,5",2\na.wav,0:00:02.25,3\nb.wav,3,\n'
    utterances, findings = read(lay({"t.csv": content}, audio="a.wav b.wav"))
    assert findings == []
    assert [(one.id, one.start, one.seconds) for one in utterances] == [
        ("a-0001", 0.0, 1.5),
        ("a-0002", 2.25, 0.75),
        ("b-0001", 0.5, 1.5),
        ("b-0002", 3.0, None),
    ]
    assert [one.place.rpartition(":")[2] for one in utterances] == ["2", "4", "3", "5"]


def test_times_may_be_in_milliseconds(lay, read):
    folder = lay({"t.csv": "path,begin_ms,len\na.wav,1500,250\n"}, audio="a.wav")
    (one,), _ = read(folder, columns={"seconds_ms": "len"})
    assert (one.start, one.seconds) == (1.5, 0.25)


@pytest.mark.parametrize(
    ("start", "end", "says"),
    [
        ("soon", "2", "'soon' is not a time"),
        ("3", "2", "ends at 2 s, but starts at 3 s"),
        ("2", "2", "ends at 2 s, but starts at 2 s"),
        ("-1", "2", "starts at -1 s"),
    ],
)
def test_impossible_times_are_told_with_their_line(lay, read, start, end, says):
    folder = lay({"t.csv": f"id,path,start,end\nx,a.wav,0,1\ny,a.wav,{start},{end}\n"}, audio="a.wav")
    utterances, (finding,) = read(folder)
    assert [one.id for one in utterances] == ["x"]
    assert (finding.rule, finding.place, finding.id) == ("bad-time", f"{folder}/t.csv:3", "y")
    assert says in finding.problem


@pytest.mark.parametrize(("cell", "channel"), [("0", 0), ("1", 1), ("A", 0), ("right", 1), ("", None)])
def test_channels_are_numbers_from_zero_or_sides(lay, read, cell, channel):
    (one,), _ = read(lay({"t.csv": f"path,channel\na.wav,{cell}\n"}, audio="a.wav"))
    assert one.channel == channel


def test_an_unknown_channel_is_told_with_its_line(lay, read):
    _, (finding,) = read(lay({"t.csv": "path,channel\na.wav,centre\n"}, audio="a.wav"))
    assert (finding.rule, finding.place.rpartition(":")[2]) == ("bad-channel", "2")


def test_missing_cells_are_missing_values(lay, read):
    content = "path,text,speaker,score,note\na.wav,NA,,n/a,?\nb.wav,x,s,2,y\n"
    folder = lay({"t.csv": content}, audio="a.wav b.wav")
    first, second = read(folder, labels=("score",))[0]
    assert (first.text, first.speaker, first.labels, first.extra) == (None, None, {"score": None}, {"note": None})
    assert (second.labels, second.extra) == ({"score": 2.0}, {"note": "y"})
    first, _ = read(folder, labels=("score",), missing=("x",))[0]
    assert (first.text, first.labels, first.speaker) == ("NA", {"score": "n/a"}, "")


def test_a_row_without_any_name_is_told_with_its_line(lay, read):
    _, (finding,) = read(lay({"t.csv": "path,text\na.wav,x\n,y\n"}, audio="a.wav"))
    assert (finding.rule, finding.place.rpartition(":")[2]) == ("missing-audio", "3")
    assert "'path' is empty" in finding.problem


def test_a_bad_row_and_a_guessed_encoding_are_told_beside_the_good_rows(lay, read):
    folder = lay({"t.csv": "path,text\na.wav,Grüße\nb.wav,one,two\n".encode("cp1252")}, audio="a.wav b.wav")
    (one,), findings = read(folder)
    assert one.text == "Grüße"
    assert [(found.rule, found.place) for found in findings] == [
        ("guessed-encoding", f"{folder}/t.csv:2"),
        ("bad-line", f"{folder}/t.csv:3"),
    ]


def test_a_table_all_of_whose_recordings_are_missing_is_one_error(lay, read):
    rows = "".join(f"x/{number}.wav,t\n" for number in range(20))
    folder = lay({"t.csv": "path,text\n" + rows})
    with pytest.raises(SourceError, match=r"none of its 20 recordings.*--audio"):
        read(folder)
    folder = lay({"t.csv": "path,text\n" + rows + "a.wav,t\n"}, audio="a.wav")
    utterances, findings = read(folder)
    assert (len(utterances), len(findings)) == (1, 20)


def test_recordings_may_lie_in_another_folder(lay, read, tmp_path):
    folder = lay({"t.csv": "path\na.wav\n"})
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "a.wav").write_bytes(b"")
    (one,), _ = read(folder, audio="../clips")
    assert (one.id, one.audio) == ("a", f"{tmp_path}/clips/a.wav")


def test_a_column_called_utterance_is_what_was_uttered_if_it_holds_sentences(lay, read):
    folder = lay({"t.csv": "path,utterance\na.wav,good morning\n"}, audio="a.wav")
    assert [(one.id, one.text) for one in read(folder)[0]] == [("a", "good morning")]
    lay({"t.csv": "path,utterance\na.wav,u7\n"})
    assert [(one.id, one.text) for one in read(folder)[0]] == [("u7", None)]


def test_a_table_that_names_no_recordings_says_which_columns_it_has(lay, read):
    with pytest.raises(SourceError, match=r"columns are Satz, Note\. .*--columns audio="):
        read(lay({"t.csv": "Satz,Note\nx,y\n"}))


def test_a_table_in_a_bucket_is_read_as_a_local_one(read):
    system = fsspec.filesystem("memory")
    system.pipe("/bucket/t.csv", b"path,text\nsub/a.wav,x\n")
    system.pipe("/bucket/sub/a.wav", b"")
    try:
        for location in ("memory://bucket", "memory://bucket/t.csv"):
            (one,), findings = read(location)
            assert (one.id, one.audio, findings) == ("sub/a", "memory://bucket/sub/a.wav", [])
    finally:
        system.rm("/bucket", recursive=True)


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


def test_a_table_on_the_web_is_read_with_recordings_beside_it(lay, read):
    folder = lay({"t.csv": "path,text\nsub/a.wav,x\nhttps://else/b.wav,y\n"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_port}"
        utterances, findings = read(f"{base}/t.csv")
        assert findings == []
        assert [(one.id, one.audio) for one in utterances] == [
            ("sub/a", f"{base}/sub/a.wav"),
            ("b", "https://else/b.wav"),
        ]
    finally:
        server.shutdown()
        server.server_close()
