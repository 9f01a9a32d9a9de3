"""The page of a run shows what its log holds, needs nothing beside itself, and is there while the run goes on."""

from __future__ import annotations

import re

import pytest
from small_training import run_small


def test_the_page_shows_curves_health_trouble_epochs_and_settings(tmp_path):
    run_small(tmp_path / "run", "bad=[u007]", "trainer.limits.max_steps=60")
    page = (tmp_path / "run/report.html").read_text()
    for wanted in (
        "validation loss",
        "gradient norm",
        "spread",
        "Epochs",
        "Most often in steps that were skipped: u007",
    ):
        assert wanted in page, wanted
    assert "all 60 steps are done" in page
    assert "batch_size" in page
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)


def test_the_page_is_there_while_the_run_goes_on(tmp_path):
    words = ["trainer.limits.max_minutes=0.003", "trainer.limits.max_steps=5000", "seconds_per_step=0.02"]
    run_small(tmp_path / "run", *words, "trainer.rhythm.report=2", "trainer.rhythm.log=1")
    page = (tmp_path / "run/report.html").read_text()
    assert re.search(r"step [\d,]+ of 5,000", page)
    assert "Nothing went wrong." in page


@pytest.mark.parametrize("name", ["<b>", "a & b"])
def test_names_are_shown_as_they_are(tmp_path, name):
    run_small(tmp_path / name, "trainer.limits.max_steps=4")
    assert f"Run {name}" not in (tmp_path / name / "report.html").read_text()
    assert (
        "&lt;b&gt;" in (tmp_path / name / "report.html").read_text()
        or "a &amp; b" in (tmp_path / name / "report.html").read_text()
    )
