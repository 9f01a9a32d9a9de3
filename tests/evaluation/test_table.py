"""One table for all tasks: what is written is read, figures follow from its rows, runs on other data are refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import SonantError
from sonant.checkpoints.metrics_log import MetricsLog
from sonant.evaluation.compare import comparison_page, differing_settings, measured, read_run, standings
from sonant.evaluation.table import Evaluation, Facts, Row, fingerprint_of, read_evaluation, write_evaluation


def made(errors, words, groups=None, **facts):
    rows = [
        Row(
            id=f"u{n}",
            group=groups[n] if groups else None,
            totals={"wer": e},
            counts={"wer": w},
            hypothesis=f"text {n}",
        )
        for n, (e, w) in enumerate(zip(errors, words, strict=True))
    ]
    return Evaluation(Facts(task="ctc", **facts), tuple(rows))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 20)), min_size=1, max_size=30))
@settings(max_examples=25, deadline=None)
def test_what_is_written_is_read(tmp_path_factory, pairs):
    place = str(tmp_path_factory.mktemp("t") / "utterances.parquet")
    table = made([e for e, _ in pairs], [w for _, w in pairs], bundle="b", data="d", settings={"beam": 10})
    write_evaluation(place, table)
    assert read_evaluation(place) == table


def test_labels_and_scores_survive_too(tmp_path):
    place = str(tmp_path / "t.parquet")
    row = Row(
        id="a", totals={"hit": 1.0}, counts={"hit": 1.0}, targets={"mild": 1.0}, scores={"mild": 0.7}, seconds=2.5
    )
    write_evaluation(place, Evaluation(Facts(task="classify"), (row,)))
    assert read_evaluation(place).rows == (row,)


def test_a_figure_is_the_sum_of_totals_over_the_sum_of_counts():
    table = made([1, 0, 5], [10, 20, 10])
    assert table.figure("wer") == 6 / 40
    found = table.interval("wer")
    assert found.low < found.value == 6 / 40 < found.high


def test_the_table_of_something_else_is_refused(tmp_path):
    place = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"id": ["a"]}), place)
    with pytest.raises(SonantError, match="a table of something else"):
        read_evaluation(place)
    (tmp_path / "t.parquet").write_bytes(b"nothing")
    with pytest.raises(SonantError, match="no table of an evaluation"):
        read_evaluation(place)


def test_a_fingerprint_follows_the_content(tmp_path):
    (tmp_path / "a").write_bytes(b"one")
    before = fingerprint_of(str(tmp_path / "a"), str(tmp_path / "missing"))
    (tmp_path / "a").write_bytes(b"two")
    assert fingerprint_of(str(tmp_path / "a")) != before


def run_of(tmp_path, name, table, rate=1, loss=2.0):
    place = tmp_path / name
    place.mkdir()
    log = MetricsLog(str(place / "metrics.jsonl"))
    for step in (1, 2, 3):
        log.write("train", step, {"loss": loss / step}, {"seconds": step})
    log.write("validation", 3, {"loss": loss}, {})
    (place / "config.yaml").write_text(f"task: ctc\ntrainer:\n  rate: {rate}\n")
    (place / "all_results.json").write_text('{"train_steps": 3, "eval_loss": 2.0}')
    if table:
        write_evaluation(str(place / "utterances.parquet"), table)
    return str(place)


def test_a_better_run_is_told_with_how_sure_that_is(tmp_path):
    words = np.full(80, 10)
    generator = np.random.default_rng(0)
    errors = generator.integers(1, 4, 80)
    groups = [f"s{n % 20}" for n in range(80)]
    runs = [
        run_of(tmp_path, "one", made(errors, words, groups)),
        run_of(tmp_path, "two", made(errors - 1, words, groups), 2),
    ]
    found = standings([read_run(run) for run in runs])
    better = found[1].against_first["wer"]
    assert better.difference.value == pytest.approx(-0.1)
    assert better.difference.high < 0
    assert better.chance < 0.01
    columns, rows = measured(found)
    assert rows[1][0] == "two"
    assert "less one" in columns[3]
    page = comparison_page(found)
    assert "trainer.rate" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert differing_settings([standing.contestant for standing in found]) == [["trainer.rate", "1", "2"]]


def test_runs_that_were_tested_on_other_utterances_are_refused(tmp_path):
    runs = [run_of(tmp_path, "one", made([1, 2], [5, 5])), run_of(tmp_path, "two", made([1, 2, 3], [5, 5, 5]))]
    with pytest.raises(SonantError, match="other utterances"):
        standings([read_run(run) for run in runs])


def test_runs_without_tables_are_compared_by_their_curves(tmp_path):
    found = standings([read_run(run_of(tmp_path, name, None)) for name in ("one", "two")])
    assert measured(found)[1][0][:3] == ["one", "loss", "2"]
    assert "Validation" in comparison_page(found)


def test_a_folder_that_is_no_run_is_told(tmp_path):
    with pytest.raises(SonantError, match="no run"):
        read_run(str(tmp_path))
