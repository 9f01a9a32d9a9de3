"""Token files: every text is found again, once, whatever happened while it was written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sonant
from sonant.base.errors import SonantError, SourceError, StorageError
from sonant.batches.tokens.documents import Stretch, Texts, texts_of_corpus, texts_of_files, texts_of_stream
from sonant.batches.tokens.token_file import TOKENS, TokenFile, dtype_for, open_token_file
from sonant.batches.tokens.writing import TokenizingConfig, tokenized


def texts_in(file: TokenFile, tokenizer) -> dict[str, str]:
    """Every document by its id, decoded."""
    spans = zip(file.documents["id"].to_pylist(), file.starts, file.ends, strict=True)
    return {id: tokenizer.decode(file.tokens[start:end].tolist()) for id, start, end in spans}


def test_every_document_is_found_again_to_the_character(file, documents, tokenizer):
    assert texts_in(file, tokenizer) == dict(documents)
    assert file.column("characters").tolist() == [len(text) for _, text in documents]
    assert file.column("words").tolist() == [len(text.split()) for _, text in documents]
    assert all(file.tokens[end - 1] == tokenizer.eos_id for end in file.ends)


@pytest.mark.parametrize(("separators", "before", "behind"), [("none", 0, 0), ("begin", 1, 0), ("both", 1, 1)])
def test_separators_stand_where_they_are_asked_for(tmp_path, texts, documents, tokenizer, separators, before, behind):
    file = tokenized(texts, tokenizer, str(tmp_path), TokenizingConfig(separators=separators))
    assert file.separators == (before, behind)
    assert (file.ends - file.starts).tolist() == [before + len(text) + behind for _, text in documents]
    assert (file.tokens[file.starts] == tokenizer.eos_id).all() == bool(before)


def test_workers_change_nothing(tmp_path, texts, tokenizer, file):
    other = tokenized(texts, tokenizer, str(tmp_path), TokenizingConfig(workers=1))
    np.testing.assert_array_equal(other.tokens, file.tokens)
    assert other.documents.equals(file.documents)


def test_a_document_that_comes_in_stretches_is_one(tmp_path, tokenizer):
    stretches = [Stretch("long", "", "abc", is_last=False), Stretch("long", "", " def"), Stretch("short", "", "g")]
    file = tokenized(Texts(lambda: iter(stretches), "stretches"), tokenizer, str(tmp_path))
    assert texts_in(file, tokenizer) == {"long": "abc def", "short": "g"}
    assert file.column("characters").tolist() == [7, 1]


def test_a_very_long_document_is_one(tmp_path, tokenizer):
    text = "the long and the short of it " * 100_000  # more than a stretch
    file = tokenized(texts_of_stream([text], "long"), tokenizer, str(tmp_path))
    assert texts_in(file, tokenizer) == {"1": text}


def test_what_was_written_once_is_not_written_again(tmp_path, texts, tokenizer):
    first = tokenized(texts, tokenizer, str(tmp_path))
    before = os.stat(os.path.join(first.folder, TOKENS))
    second = tokenized(texts, tokenizer, str(tmp_path))
    assert (second.folder, os.stat(os.path.join(second.folder, TOKENS))) == (first.folder, before)
    other = tokenized(texts, tokenizer, str(tmp_path), TokenizingConfig(separators="none"))
    assert other.folder != first.folder


def test_a_budget_ends_the_reading_of_an_endless_stream(tmp_path, tokenizer):
    read = []

    def endless():
        while True:
            read.append(1)
            yield "abc " * 1000

    file = tokenized(
        texts_of_stream(endless(), "endless"), tokenizer, str(tmp_path), TokenizingConfig(max_tokens=10_000)
    )
    assert 10_000 <= len(file) <= 10_000 + 4001
    assert file.description["is_cut_short"]
    assert len(read) < 5000


def test_what_the_vocabulary_lacks_is_counted(tmp_path, tokenizer):
    file = tokenized(texts_of_stream(["abc", "a1b2"], "odd"), tokenizer, str(tmp_path))
    assert file.column("unknown").tolist() == [0, 2]


@pytest.mark.parametrize(("symbols", "dtype"), [(1 << 16, "uint16"), ((1 << 16) + 1, "uint32")])
def test_a_token_takes_two_bytes_as_long_as_the_vocabulary_allows(symbols, dtype):
    assert dtype_for(symbols) == dtype
    assert np.iinfo(dtype).max >= symbols - 1


def test_text_files_and_tables_are_read_without_preparing_them(tmp_path, tokenizer):
    Path(tmp_path, "a.txt").write_text("one\n\ntwo\n")
    Path(tmp_path, "b.jsonl").write_text('{"text": "three"}\n{"text": ""}\n{"text": "four"}\n')
    Path(tmp_path, "c.csv").write_text("text\nfive\n")
    findings = []
    texts = texts_of_files([str(tmp_path / name) for name in ("a.txt", "b.jsonl", "c.csv")], on_finding=findings.append)
    file = tokenized(texts, tokenizer, str(tmp_path / "tokens"))
    assert "".join(texts_in(file, tokenizer).values()) == "one⁇⁇two⁇threefourfive"
    assert [finding.rule for finding in findings] == ["no-text"]


def test_a_changed_file_is_tokenized_anew(tmp_path, tokenizer):
    Path(tmp_path, "a.txt").write_text("one")
    first = tokenized(texts_of_files([str(tmp_path / "a.txt")]), tokenizer, str(tmp_path / "tokens"))
    Path(tmp_path, "a.txt").write_text("two words")
    second = tokenized(texts_of_files([str(tmp_path / "a.txt")]), tokenizer, str(tmp_path / "tokens"))
    assert (len(first), len(second)) == (4, 10)


def test_a_prepared_corpus_gives_its_documents_with_their_splits(tmp_path, tokenizer):
    Path(tmp_path, "texts").mkdir()
    for name in ("train", "test"):
        Path(tmp_path, "texts", f"{name}.txt").write_text(f"some words of {name} " * 4000)
    sonant.prepare(str(tmp_path / "texts"), str(tmp_path / "corpus"))
    file = tokenized(texts_of_corpus(str(tmp_path / "corpus")), tokenizer, str(tmp_path / "tokens"))
    found = dict(zip(file.documents["split"].to_pylist(), texts_in(file, tokenizer).values(), strict=True))
    assert found == {name: f"some words of {name} " * 4000 for name in ("train", "test")}


def test_texts_without_text_are_told(tmp_path, tokenizer):
    with pytest.raises(SourceError, match="there is no text"):
        tokenized(texts_of_stream([], "nothing"), tokenizer, str(tmp_path))
    assert not list(tmp_path.glob("tokens-*[0-9a-f]"))


def test_a_file_that_lost_its_end_is_told(tmp_path, texts, tokenizer):
    file = tokenized(texts, tokenizer, str(tmp_path))
    with open(os.path.join(file.folder, TOKENS), "r+b") as tokens:
        tokens.truncate(10)
    with pytest.raises(StorageError, match="has 10 bytes"):
        open_token_file(file.folder)


def test_a_place_that_cannot_be_written_is_told(tmp_path, texts, tokenizer):
    Path(tmp_path, "file").write_text("")
    with pytest.raises(SonantError):
        tokenized(texts, tokenizer, str(tmp_path / "file"))


SCRIPT = """
import sys, time
from sonant.batches.tokens.documents import texts_of_stream
from sonant.batches.tokens.writing import tokenized
from sonant.text.tokenizer import load_tokenizer
def slowly():
    for number in range(400):
        time.sleep(0.005)
        yield "some words " * 2000
    print("read", flush=True)
print("begun", flush=True)
print(len(tokenized(texts_of_stream(slowly(), "slow"), load_tokenizer(sys.argv[1]), sys.argv[2])))
"""


@pytest.mark.slow
def test_a_kill_leaves_nothing_that_is_taken_for_whole(tmp_path, tokenizer):
    tokenizer.save(str(tmp_path / "tokenizer"))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "tokenizer"), str(tmp_path / "tokens")]
    for seconds in (0.2, 0.8, 1.6):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)
        assert not [path for path in (tmp_path / "tokens").glob("tokens-*") if path.suffix == ""]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) == 400 * (len("some words ") * 2000 + 1)
    assert {path.suffix for path in (tmp_path / "tokens").iterdir()} == {"", ".lock"}


@pytest.mark.slow
def test_two_at_once_write_one_file(tmp_path, tokenizer):
    tokenizer.save(str(tmp_path / "tokenizer"))
    script = SCRIPT.replace("range(400)", "range(20)")
    command = [sys.executable, "-c", script, str(tmp_path / "tokenizer"), str(tmp_path / "tokens")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[0].split() for process in running]
    assert sum("read" in words for words in said) == 1
    assert said[0][-1] == said[1][-1]
    described = [json.loads(path.read_text()) for path in (tmp_path / "tokens").glob("*/tokens.json")]
    assert len(described) == 1
