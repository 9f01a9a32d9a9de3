from __future__ import annotations

import gzip
import json
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sonant.base.errors import ConfigError, SourceError
from sonant.corpus.documents import read_pieces
from sonant.corpus.manifest import open_corpus
from sonant.corpus.preparation.config import PrepareConfig
from sonant.corpus.preparation.run import prepare
from sonant.corpus.sources.documents import LARGEST
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.registry import recognise

ARTICLE = "A sentence of some words.\n" * 80
PLAY = "First:\nHear me.\n\nAll:\nSpeak, speak.\n"
ROWS = [{"id": "a", "text": "one\n\ntwo ", "lang": "en"}, {"id": "b", "text": " three", "lang": "de"}]


def test_long_blocks_are_documents_and_short_ones_are_paragraphs_of_one_text(lay, read):
    folder = lay({"news.txt": f"{ARTICLE}\n{ARTICLE}\n\n{ARTICLE}", "play.txt": PLAY})
    utterances, findings = read(f"{folder}/news.txt")
    assert [(one.id, one.place.rpartition(":")[2]) for one in utterances] == [
        ("news-0001", "1"),
        ("news-0002", "82"),
        ("news-0003", "164"),
    ]
    assert all(one.text == ARTICLE.rstrip("\n") and one.audio is None for one in utterances)
    (one,), _ = read(f"{folder}/play.txt")
    assert (one.id, one.text, one.extra, findings) == ("play", PLAY, {}, [])


@pytest.mark.parametrize(("documents", "count"), [("file", 1), ("block", 2), ("line", 4)])
def test_what_a_document_is_may_be_said(lay, read, documents, count):
    assert len(read(lay({"a.txt": PLAY}) + "/a.txt", documents=documents)[0]) == count


@pytest.mark.parametrize("content", [PLAY.encode("utf-16"), PLAY.replace("\n", "\r\n").encode("utf-8-sig")])
def test_encodings_and_line_ends_make_no_difference(lay, read, content):
    (one,), _ = read(lay({"a.txt": content}) + "/a.txt")
    assert one.text == PLAY


def test_a_compressed_text_is_read_as_it_is(lay, read):
    (one,), _ = read(lay({"a.txt.gz": gzip.compress(PLAY.encode())}) + "/a.txt.gz")
    assert (one.id, one.text) == ("a", PLAY)


def test_a_folder_of_texts_is_recognised_and_read_in_the_order_of_its_numbers(lay, read):
    folder = lay({"part2.txt": "b", "part10.txt": "c", "sub/x.txt": "d", "LICENSE": "x"})
    assert recognise(folder) == "text"
    assert [one.id for one in read(folder)[0]] == ["part2", "part10", "sub/x"]


def test_files_named_after_splits_belong_to_them(lay, read):
    folder = lay({"train.txt": "a", "valid.txt": "b"})
    assert {one.id: one.split for one in read(folder)[0]} == {"train": "train", "valid": "dev"}
    assert {one.split for one in read(f"{folder}/train.txt")[0]} == {None}
    assert {one.split for one in read(folder, split="test")[0]} == {"test"}


def as_parquet(folder: str) -> bytes:
    path = f"{folder}/t.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    with open(path, "rb") as file:
        return file.read()


@pytest.mark.parametrize("name", ["t.csv", "t.json", "t.jsonl", "t.parquet"])
def test_each_row_of_a_table_is_a_document_with_all_its_characters(lay, read, tmp_path, name):
    content = {
        "t.csv": 'id,text,lang\na,"one\n\ntwo ",en\nb, three,de\n',
        "t.json": json.dumps(ROWS),
        "t.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
        "t.parquet": as_parquet(str(tmp_path)),
    }[name]
    utterances, findings = read(lay({name: content}) + f"/{name}", format="text")
    assert [(one.id, one.text, one.extra) for one in utterances] == [
        ("a", "one\n\ntwo" if name == "t.csv" else "one\n\ntwo ", {"lang": "en"}),
        ("b", "three" if name == "t.csv" else " three", {"lang": "de"}),
    ]  # the spaces around a cell of delimited text are part of its layout
    assert findings == []


def test_the_column_of_the_text_is_known_by_its_name_or_told(lay, read):
    lines = '{"content": "x", "title": "t"}\n{"content": "y"}\n'
    path = lay({"t.jsonl": lines}) + "/t.jsonl"
    assert [(one.id, one.text) for one in read(path, format="text")[0]] == [("t-0001", "x"), ("t-0002", "y")]
    assert [one.text for one in read(path, format="text", columns={"text": "title"})[0]] == ["t", None]
    with pytest.raises(SourceError, match=r"columns are a, b\. .*--columns text=COLUMN"):
        read(lay({"u.jsonl": '{"a": "x", "b": "y"}\n'}) + "/u.jsonl", format="text")


def test_how_documents_are_divided_is_no_question_to_a_table(lay, read):
    with pytest.raises(ConfigError, match="every row is a document"):
        read(lay({"t.jsonl": '{"text": "x"}\n'}) + "/t.jsonl", format="text", documents="line")


def test_texts_beside_tables_are_not_mixed(lay, read):
    with pytest.raises(SourceError, match=r"texts \('a.txt'\) and tables \('t.csv'\)"):
        read(lay({"a.txt": "x", "t.csv": "text\ny\n"}), format="text")
    with pytest.raises(SourceError, match="neither text nor table"):
        read(lay({"only/a.pdf": "x"}) + "/only", format="text")


def test_a_prepared_text_comes_back_to_the_character(lay, tmp_path):
    text = "".join(f"{number}:\nHear me, {number}.\n\n" for number in range(5000))
    assert len(text) > 2 * LARGEST
    corpus = str(tmp_path / "corpus")
    source = lay({"play.txt": text, "long.jsonl": json.dumps({"text": text}) + "\n" + '{"text": "short"}\n'})
    prepare(f"{source}/play.txt", corpus)
    assert "".join(piece.text for piece in read_pieces(corpus)) == text
    assert {piece.document for piece in read_pieces(corpus)} == {"play"}
    splits = {name: "".join(piece.text for piece in read_pieces(corpus, name)) for name in open_corpus(corpus).splits}
    assert sum(map(len, splits.values())) == len(text)
    assert len(splits) > 1
    prepare(f"{source}/long.jsonl", corpus, PrepareConfig(source=SourceOptions(format="text")))
    pieces = list(read_pieces(corpus))
    assert "".join(one.text for one in pieces if one.document == "long-0001") == text
    assert [one.text for one in pieces if one.document != "long-0001"] == ["short"]


def test_an_empty_document_is_told_with_its_line(lay, tmp_path):
    source = lay({"t.jsonl": '{"text": "x"}\n{"text": ""}\n'})
    config = PrepareConfig(source=SourceOptions(format="text"), skip_invalid=True)
    assert prepare(f"{source}/t.jsonl", str(tmp_path / "corpus"), config).rejected == {"empty-text": 1}


def test_memory_does_not_grow_with_the_text(lay, read, tmp_path):
    path = tmp_path / "large.txt"
    path.write_text("word " * 4_000_000)  # 20 MB in one line
    from sonant.corpus.sources.registry import open_source

    rows = open_source(str(path)).rows()
    next(iter(rows))
    tracemalloc.start()
    assert sum(len(one.text) for one in rows) > 19_000_000
    assert tracemalloc.get_traced_memory()[1] < 3_000_000
    tracemalloc.stop()
