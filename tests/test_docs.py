"""What the documentation shows is done here, page by page, as a reader would: in a folder with recordings of theirs."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, Page, pages

from sonant.cli.main import VERBS, verb_module

PAGES = pages("docs", "journeys")
ALL_PAGES = [*PAGES, Page(ROOT / "README.md"), Page(ROOT / "CONTRIBUTING.md")]
RUN = {"sh", "bash", "python"}  # what is executed
SHOWN = {"", "text", "json", "yaml", "csv"}  # what is only looked at: answers, files

every_page = pytest.mark.parametrize("page", ALL_PAGES, ids=str)


@pytest.fixture(scope="session")
def commands() -> dict[str, str]:
    """The environment of a shell in which `sonant` is this one."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="session")
def ground(tmp_path_factory, commands) -> Path:
    """What every page may lean on: `recordings` with a table, and `my-corpus`, prepared from the demo."""
    folder = tmp_path_factory.mktemp("ground")
    subprocess.run(
        "sonant prepare --from demo my-corpus --hours 0.05", shell=True, check=True, cwd=folder, env=commands
    )
    import sonant

    (folder / "recordings").mkdir()
    with open(folder / "recordings" / "recordings.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["path", "sentence", "who", "severity"])
        for utterance in list(sonant.open_corpus(str(folder / "my-corpus")))[:40]:
            assert utterance.audio
            name = Path(utterance.audio).name
            (folder / "recordings" / name).write_bytes(Path(utterance.audio).read_bytes())
            table.writerow([name, utterance.text, utterance.speaker, int(utterance.labels["severity"])])
    return folder


@pytest.fixture
def reader(ground, tmp_path, monkeypatch) -> Path:
    """A folder of one's own to try a page in."""
    subprocess.run(["cp", "-r", f"{ground}/.", tmp_path], check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(900)  # a page may train and train again
@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_code_block_of_a_page_runs_in_its_order(page, reader, commands, s3_bucket):
    environment = commands | {name: value for name, value in os.environ.items() if name.startswith(("AWS", "SONANT"))}
    names: dict[str, object] = {"__name__": "page"}
    for block in page.blocks:
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.code, page.path, "exec"), names)
        elif block.language in RUN:
            script = ["bash", "-euo", "pipefail", "-c", block.code]
            done = subprocess.run(script, cwd=reader, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{page}:{block.line}\n{block.code}\n{done.stdout}\n{done.stderr}"


@every_page
def test_every_block_says_what_it_is(page):
    for block in page.blocks:
        assert block.language in RUN | SHOWN, f"{page}:{block.line}"


@every_page
def test_every_link_leads_somewhere(page):
    for link in page.links:
        place, _, anchor = link.partition("#")
        target = (page.path.parent / place).resolve() if place else page.path
        assert target.exists(), f"{page}: {link}"
        if anchor:
            assert anchor in Page(target).anchors, f"{page}: {link}"


@every_page
def test_every_verb_and_option_that_is_named_exists(page):
    for verb, options in page.commands():
        assert verb in VERBS, f"{page}: sonant {verb}"
        known = verb_module(verb).parser().option_names()
        for option in options:
            assert option in known, f"{page}: sonant {verb} {option}"
    of_any_verb = {option for verb in VERBS for option in verb_module(verb).parser().option_names()}
    assert page.lone_options() <= of_any_verb, page


def test_no_page_is_an_orphan():
    linked = {(page.path.parent / link.partition("#")[0]).resolve() for page in ALL_PAGES for link in page.links}
    assert not [str(page) for page in PAGES if page.path not in linked]
