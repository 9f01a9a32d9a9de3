"""Rules that the lines of a single table do not show: other layouts, annotations, splits and the corpus as a whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import sonant
from sonant.corpus.preparation.rules import RULES
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.splits import SplitConfig


def _bad_line(laid):
    laid.table()
    with open(laid.folder / "table.csv", "a") as table:
        table.write("a1.wav,go,on,s1\n")
    return {"source": SourceOptions(table="table.csv")}


def _bad_path(laid):
    laid.write("x1/digit.wav", laid.speech(seed=50))
    laid.write("x1/7_one.wav", laid.speech(seed=51))
    return {"folder": "x1", "source": SourceOptions(pattern="{digit}_{take}")}


def _ambiguous(laid):
    for name in ("b/same.wav", "c/same.wav"):
        laid.write(name, laid.speech(seed=len(name)))
    laid.add("same.wav")
    return {}


def _not_text(laid):
    for number in range(3):
        laid.write(f"x1/{number}.wav", laid.speech(seed=50 + number))
        (laid.folder / f"x1/{number}.txt").write_text("go on")
    (laid.folder / "x1/1.txt").write_bytes(b"go\0\1\2" * 20)
    return {"folder": "x1"}


def _textgrid(*tiers):
    head = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n0.5\n<exists>\n' + f"{len(tiers)}\n"
    return head + "".join(
        f'"IntervalTier"\n"{name}"\n0\n0.5\n{len(parts)}\n'
        + "".join(f'{first}\n{last}\n"{text}"\n' for first, last, text in parts)
        for name, parts in tiers
    )


def _two_tiers(laid):
    laid.write("x1/a.wav", laid.speech(seed=50))
    (laid.folder / "x1/a.TextGrid").write_text(_textgrid(("words", [(0, 0.5, "go")]), ("notes", [(0, 0.5, "loud")])))
    return {"folder": "x1"}


def _overlapping(laid):
    laid.write("x1/a.wav", laid.speech(seed=50))
    parts = [(0, 0.3, "go"), (0.2, 0.5, "on")]
    (laid.folder / "x1/a.TextGrid").write_text(_textgrid(("words", parts)))
    return {"folder": "x1"}


def _half_annotated(laid):
    (laid.folder / "scores.csv").write_text("id,score\n" + "".join(f"a{number},3\n" for number in range(5)))
    return {"source": SourceOptions(annotations=("scores.csv",), labels=("score",), table="table.csv")}


def _annotated_beyond(laid):
    names = [*(f"a{number}" for number in range(8)), "nobody"]
    (laid.folder / "scores.csv").write_text("id,score\n" + "".join(f"{name},3\n" for name in names))
    return {"source": SourceOptions(annotations=("scores.csv",), labels=("score",), table="table.csv")}


def _unread_table(laid):
    laid.write("x1/a.wav", laid.speech(seed=50))
    (laid.folder / "x1/speakers.json").write_text('{"a": {"age": 3}}')
    return {"folder": "x1"}


def _cp1252(laid):
    laid.rows[2]["text"] = "go ön"
    return {"encoding": "cp1252"}


def _behind_its_end(laid):
    laid.add("bad.wav", laid.speech(), start="0.8")
    return {}


def _spelling(laid):
    for row in laid.rows:
        row["smoker"] = "no"
    laid.rows[4]["smoker"] = "No "
    laid.rows[6]["smoker"] = "no way"
    return {"source": SourceOptions(labels=("smoker",))}


def _nameless(laid):
    for row in laid.rows:
        del row["speaker"]
    return {}


def _saved_splits(laid, ids):
    path = laid.folder / "saved.json"
    path.write_text(json.dumps({"train": ids[:4], "test": ids[4:]}))
    return {"splits": SplitConfig(by="file", file=str(path))}


def _split_of_a_stranger(laid):
    return _saved_splits(laid, [*(f"a{number}" for number in range(8)), "stranger"])


def _without_split(laid):
    return _saved_splits(laid, [f"a{number}" for number in range(7)])


MAKERS = [
    ("bad-line", _bad_line, "table.csv:10", "4"),
    ("bad-path", _bad_path, "x1/digit.wav", "digit"),
    ("ambiguous-audio", _ambiguous, "table.csv:10", "same.wav"),
    ("unreadable-text", _not_text, "x1/1.txt", "text"),
    ("unread-tier", _two_tiers, r"a.TextGrid(:\d+)?", "notes"),
    ("overlapping-times", _overlapping, r"a.TextGrid:\d+", "0.2"),
    ("missing-annotation", _half_annotated, "scores.csv", "no row for 3 utterances"),
    ("unused-annotation", _annotated_beyond, "scores.csv", "nobody"),
    ("unread-table", _unread_table, "speakers.json", "not read"),
    ("guessed-encoding", _cp1252, r"table.csv(:\d+)?", "cp1252"),
    ("empty-audio", _behind_its_end, "table.csv:10", "nothing of 'bad-0001' lies within its recording"),
    ("label-spelling", _spelling, "table.csv:6", "'smoker' is 'no' (×6) and 'No' (×1): they"),
    ("unknown-speakers", _nameless, "table.csv:2", "no utterance names its speaker"),
    ("split-for-unknown-id", _split_of_a_stranger, "saved.json", "stranger"),
    ("id-without-split", _without_split, "saved.json", "a7"),
]


@pytest.mark.parametrize(("rule", "spoil", "place", "says"), MAKERS, ids=[maker[0] for maker in MAKERS])
def test_a_breach_is_found_where_it_is(lay, prepared, listed, rule, spoil, place, says):
    laid = lay()
    fields = spoil(laid)
    if not (laid.folder / "table.csv").exists():
        laid.table(encoding=fields.pop("encoding", "utf-8"))
    is_folder = "folder" in fields or fields.get("source", SourceOptions()).table
    source = laid.folder / (fields.pop("folder", "") if is_folder else "table.csv")
    prepared(str(source), skip_invalid=True, **fields)
    (found,) = (line for line in listed("findings.csv") if line["rule"] == rule)
    assert re.search(rf"{place}$", found["place"]), found["place"]
    assert says in found["problem"]
    assert found["action"]
    assert found["severity"] == ("error" if RULES[rule].severity == "error" else "warning")


def test_a_label_that_is_a_number_here_and_a_word_there_is_told_and_taken_as_words(lay, prepared, listed, tmp_path):
    numbers, words = lay(4, "numbers"), lay(0, "words")
    for number in range(3):
        words.add(f"b{number}.wav", words.speech(seed=60 + number), score="high")
    for row in numbers.rows:
        row["score"] = "3.5"
    result = prepared([numbers.table(), words.table()], source=SourceOptions(labels=("score",)))
    assert result.warnings["mixed-labels"] == 1
    (found,) = (line for line in listed("findings.csv") if line["rule"] == "mixed-labels")
    assert found["problem"].startswith("'score' has values of different kinds (4 of kind number, 3 of kind string)")
    assert found["place"].endswith("numbers/table.csv:2")
    corpus = sonant.open_corpus(str(tmp_path / "corpus"))
    assert corpus.labels == {"score": "string"}
    assert list(corpus.column("score")) == ["3.5"] * 4 + ["high"] * 3


def test_a_corpus_in_a_bucket_that_points_to_this_machine_is_told(lay):
    laid = lay(3)
    table = laid.table()
    folder = f"memory://{laid.folder.parent.name}/corpus"
    config = sonant.PrepareConfig(workers=1)
    assert sonant.prepare(table, folder, config).warnings["local-audio"] == 1
    assert [one.audio for one in sonant.open_corpus(folder)] == [str(laid.folder / f"a{n}.wav") for n in range(3)]
    packed = sonant.prepare(table, folder, replace(config, pack=True))
    assert "local-audio" not in packed.warnings
    assert [one.audio.startswith(f"{folder}/audio/00000-") for one in sonant.open_corpus(folder)] == [True] * 3


def test_every_rule_is_produced_by_some_test():
    tests = Path(__file__).resolve().parents[2]
    spoken = {
        word for path in tests.rglob("test_*.py") for word in re.findall(r'"([a-z]+(?:-[a-z]+)+)"', path.read_text())
    }
    assert set(RULES) - spoken == set()
