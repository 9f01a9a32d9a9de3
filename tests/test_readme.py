"""What the first page says is there."""

from __future__ import annotations

import re

import pytest
from pages import ROOT, Page

from sonant.cli.main import VERBS
from sonant.corpus.sources.registry import SOURCES
from sonant.recipes.catalogue import TASKS

README = Page(ROOT / "README.md")
CONTRIBUTING = Page(ROOT / "CONTRIBUTING.md")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def backquoted(page: Page) -> list[str]:
    return re.findall(r"`([^`\n]+)`", page.text)


@pytest.mark.parametrize("page", [README, CONTRIBUTING], ids=str)
def test_every_make_command_is_a_target(page):
    commands = "\n".join([*(block.code for block in page.blocks), *backquoted(page)])
    named = set(re.findall(r"\bmake ([a-z]+)", commands))
    assert named
    assert named <= set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))


@pytest.mark.parametrize("page", [README, CONTRIBUTING], ids=str)
def test_every_path_that_is_named_exists(page):
    named = {path for path in backquoted(page) if re.fullmatch(r"(bench|tests|src|docs|journeys)(/[\w./]*)?", path)}
    assert named
    assert not [path for path in named if not (ROOT / path).exists()]


def test_its_tables_name_the_verbs_there_are():
    named = set(re.findall(r"^\| `sonant (\w+)` \|", README.text, re.MULTILINE))
    assert named == set(VERBS) - {"completion"}


def test_every_task_that_it_names_trains():
    sentence = README.text[README.text.index("with the tasks") : README.text.index("**What is not:**")]
    named = re.findall(r"`(\w+)`", sentence)
    assert named
    assert set(named) <= set(TASKS)


def test_it_counts_the_layouts_that_are_read():
    words = {14: "fourteen", 15: "fifteen", 16: "sixteen", 17: "seventeen", 18: "eighteen"}
    assert f"reads {words[len(SOURCES)]} layouts" in README.text


def test_every_benchmark_is_named_with_its_results():
    results = Page(ROOT / "docs" / "results.md").text
    for path in re.findall(r"bench/\w+\.py", README.text):
        assert path in results


def test_it_fits_on_a_screen_and_its_pictures_are_light():
    assert README.text.count("\n") < 80
    assert all(path.stat().st_size < 200_000 for path in (ROOT / "docs" / "images").iterdir())
