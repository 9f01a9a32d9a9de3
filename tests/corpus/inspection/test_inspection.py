"""What inspection says of a corpus is what is in it, and its page stands by itself."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser

import numpy as np
import pytest
import soundfile

import sonant
from sonant.corpus.inspection.findings import by_rule, read_findings, with_sounds
from sonant.corpus.inspection.page import corpus_page
from sonant.corpus.inspection.summary import summarize
from sonant.corpus.preparation.config import Limits
from sonant.corpus.sources.options import SourceOptions

TEXTS = ["go on", "so no", "do go on now", "", "no", "on and on", "go on", "so it is", "to be or not", "is it so"]
RATES = [8000] * 8 + [16000] * 2


@pytest.fixture
def folder(tmp_path, voiced):
    """Ten utterances, one of them without text, another silent, of three speakers, with a score and a mood each."""
    source = tmp_path / "set"
    source.mkdir()
    lines = ["audio,text,speaker,split,score,mood,age"]
    for number, (text, rate) in enumerate(zip(TEXTS, RATES, strict=True)):
        sound = voiced(1.0 + number / 10, rate, seed=number)
        soundfile.write(source / f"a{number}.wav", sound * (number != 4), rate)
        split = "test" if number % 3 == 2 else "train"
        score = "" if number == 1 else str(number % 4)
        lines.append(
            f"a{number}.wav,{text},s{number % 3},{split},{score},{'glad' if number % 2 else 'sad'},{30 + number}"
        )
    (source / "table.csv").write_text("\n".join(lines) + "\n")
    config = sonant.PrepareConfig(
        source=SourceOptions(labels=("score", "mood")),
        skip_invalid=True,
        workers=1,
        limits=Limits(surprise_share=0.3),
    )
    sonant.prepare(str(source / "table.csv"), str(tmp_path / "corpus"), config)
    return tmp_path / "corpus"


@pytest.fixture
def corpus(folder):
    return sonant.open_corpus(str(folder))


def test_the_figures_are_those_of_a_count_by_hand(corpus):
    kept = [number for number in range(10) if number not in (3, 4)]
    texts = [TEXTS[number] for number in kept]
    seconds = [1.0 + number / 10 for number in kept]
    found = summarize(corpus)
    assert found["utterances"] == found["recordings"] == 8
    assert found["documents"] == 0
    assert found["speakers"] == 3
    assert found["hours"] == pytest.approx(sum(seconds) / 3600)
    assert found["characters"] == sum(map(len, texts))
    assert found["words"] == sum(len(text.split()) for text in texts)
    assert found["alphabet"] == Counter("".join(texts))
    assert found["sample_rates"] == {"8000": 6, "16000": 2}
    assert found["columns"] == ["age"]
    assert found["seconds"]["min"] == pytest.approx(1.0)
    assert found["seconds"]["max"] == pytest.approx(1.9)
    assert found["seconds"]["mean"] == pytest.approx(np.mean(seconds))
    paces = [len(text) / one for text, one in zip(texts, seconds, strict=True)]
    assert found["characters_per_second"]["median"] == pytest.approx(np.median(paces))
    assert found["labels"]["score"] == {
        "kind": "number",
        "missing": 1,
        "values": {f"{value}": count for value, count in sorted(Counter(n % 4 for n in kept if n != 1).items())},
    }
    assert found["labels"]["mood"]["values"] == Counter("glad" if number % 2 else "sad" for number in kept)
    train, test = found["splits"]
    assert (train["split"], train["utterances"], train["speakers"]) == ("train", 5, 2)
    assert (test["split"], test["utterances"], test["speakers"]) == ("test", 3, 1)
    assert test["median seconds"] == pytest.approx(1.5)
    assert train["hours"] + test["hours"] == pytest.approx(found["hours"])


def test_figures_of_splits_sum_up_to_those_of_the_corpus(corpus):
    whole = summarize(corpus)
    parts = [summarize(corpus.split(name)) for name in corpus.splits]
    for name in ("utterances", "hours", "characters", "words"):
        assert sum(part[name] for part in parts) == pytest.approx(whole[name])


def test_faults_are_grouped_errors_first(corpus):
    groups = by_rule(read_findings(corpus.folder))
    assert {(one["rule"], one["times"]) for one in groups if one["severity"] == "error"} == {
        ("empty-text", 1),
        ("silent-audio", 1),
    }
    assert {one["rule"] for one in groups[2:]} >= {"sample-rate-surprise", "duplicated-text", "rare-character"}
    assert all(one["severity"] == "warning" for one in groups[2:])
    assert any("table.csv:6" in one["example"] for one in groups)


def sonant_inspect(*words):
    command = [sys.executable, "-m", "sonant.cli.main", "inspect", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_says_the_same_in_words_and_for_programs(folder, corpus):
    told = sonant_inspect(folder, "--json")
    found = json.loads(told.stdout)
    assert told.returncode == 0
    assert found["utterances"] == 8
    assert found["findings"] == by_rule(read_findings(str(folder)))
    shown = sonant_inspect(folder).stdout
    assert "0.00 hours, 8 utterances, 8 recordings, 3 speakers" in shown
    assert re.search(r"train +5 +0\.00\d* +2 ", shown)
    assert "Further columns, which --labels makes labels: age" in shown
    assert re.search(r"silent-audio +error +1 ", shown)
    one = json.loads(sonant_inspect(folder, "--split", "test", "--json").stdout)
    assert one["utterances"] == 3


class Reader(HTMLParser):
    """Collects what a page refers to, and sees that its elements are closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.references, self.audio, self.text = [], [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag != "meta":
            self.open.append(tag)
        self.handle_startendtag(tag, attributes)

    def handle_startendtag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "href", "srcset", "data", "action"):
                (self.audio if tag == "audio" else self.references).append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_needs_nothing_beside_itself(folder, corpus):
    done = sonant_inspect(folder, "--html", folder / "report.html")
    assert done.returncode == 0
    html = (folder / "report.html").read_text(encoding="utf-8")
    page = Reader(html)
    assert page.open == []
    assert page.references == []
    assert not re.search(r"url\(|@import|https?://|fetch\(|XMLHttpRequest|import\(", html)
    for shown in ("8", "Splits", "silent-audio", "Seconds an utterance", "mood", "score (1 missing)", "age"):
        assert shown in page.text
    assert len(html) < 4_000_000


def test_the_worst_finds_can_be_heard(folder, corpus):
    """The sound of a find is its first seconds, also where the utterance was left out."""
    findings = with_sounds(read_findings(str(folder)), corpus)
    page = Reader(corpus_page(corpus, summarize(corpus) | {"findings": by_rule(findings)}, findings))
    assert len(page.audio) == 2  # without text, and silent: findings about the whole corpus have no sound
    sounds = []
    for source in page.audio:
        kind, _, content = source.partition(";base64,")
        assert kind == "data:audio/wav"
        sounds.append(soundfile.read(io.BytesIO(base64.b64decode(content))))
    assert sorted(round(len(samples) / rate, 2) for samples, rate in sounds) == [1.3, 1.4]
    assert sorted(float(np.abs(samples).max()) > 0 for samples, _ in sounds) == [False, True]


def test_a_find_within_a_long_recording_is_heard_where_it_is(tmp_path, voiced):
    """Also one that was left out, so that no manifest knows where it was."""
    source = tmp_path / "set"
    source.mkdir()
    sound = np.concatenate([voiced(2.0, 16000, seed=1), np.zeros(32000, np.float32), voiced(2.0, 16000, seed=2)])
    soundfile.write(source / "long.wav", sound, 16000, subtype="FLOAT")
    (source / "table.csv").write_text(
        "audio,start,end,text\nlong.wav,0,2,go on\nlong.wav,3,5,so no\nlong.wav,5,6,a b c\n"
    )
    config = sonant.PrepareConfig(skip_invalid=True, workers=1, limits=Limits(max_characters_per_second=3))
    sonant.prepare(str(source), str(tmp_path / "corpus"), config)
    corpus = sonant.open_corpus(str(tmp_path / "corpus"))
    findings = with_sounds(read_findings(corpus.folder), corpus)
    (audio,) = Reader(corpus_page(corpus, summarize(corpus), findings)).audio
    heard, rate = soundfile.read(io.BytesIO(base64.b64decode(audio.partition(";base64,")[2])))
    assert rate == 16000
    np.testing.assert_allclose(heard, sound[80000:96000], atol=1e-4)


def test_names_from_the_data_cannot_break_the_page(tmp_path, voiced):
    source = tmp_path / "set"
    source.mkdir()
    evil = "<script>alert(1)</script>\"'&"
    lines = ["id\taudio\ttext\tspeaker\tmood"]
    for number in range(4):
        soundfile.write(source / f"a{number}.wav", voiced(3.0, 8000, seed=number) * (number > 0), 8000)
        cells = (f"{evil}{number}", f"a{number}.wav", evil, f"{evil}{number}", evil)
        lines.append("\t".join('"' + cell.replace('"', '""') + '"' for cell in cells))
    (source / "table.tsv").write_text("\n".join(lines) + "\n")
    config = sonant.PrepareConfig(source=SourceOptions(labels=("mood",)), skip_invalid=True, workers=1)
    sonant.prepare(str(source), str(tmp_path / "corpus"), config)
    corpus = sonant.open_corpus(str(tmp_path / "corpus"))
    findings = with_sounds(read_findings(corpus.folder), corpus)
    html = corpus_page(corpus, summarize(corpus), findings)
    assert "alert(1)</script>" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert Reader(html).open == []


def test_what_is_in_the_way_of_a_corpus_is_shown_too(tmp_path, voiced):
    source = tmp_path / "set"
    source.mkdir()
    (source / "table.csv").write_text("audio,text\na.wav,go\nb.wav,on\n")
    soundfile.write(source / "a.wav", voiced(0.5, 8000), 8000)
    with pytest.raises(sonant.base.errors.ManifestError, match="missing-audio"):
        sonant.prepare(str(source), str(tmp_path / "corpus"), sonant.PrepareConfig(workers=1))
    shown = sonant_inspect(tmp_path / "corpus", "--html", tmp_path / "faults.html")
    assert shown.returncode == 3
    assert "not yet a corpus. These faults are in the way:" in shown.stdout
    assert "table.csv:3" in shown.stdout
    assert "missing-audio" in Reader((tmp_path / "faults.html").read_text()).text
    assert json.loads(sonant_inspect(tmp_path / "corpus", "--json").stdout)["findings"][0]["rule"] == "missing-audio"


def test_a_corpus_of_texts_is_told_in_documents(tmp_path):
    (tmp_path / "texts.txt").write_text("\n\n".join("to be or not to be " * 20 + str(n) for n in range(12)))
    config = sonant.PrepareConfig(source=SourceOptions(documents="block"), workers=1)
    sonant.prepare(str(tmp_path / "texts.txt"), str(tmp_path / "corpus"), config)
    found = summarize(sonant.open_corpus(str(tmp_path / "corpus")))
    assert (found["documents"], found["utterances"], found["hours"], found["columns"]) == (12, 0, 0.0, [])
    assert sum(row["documents"] for row in found["splits"]) == 12


def test_a_long_document_is_one_in_every_split_that_has_a_part_of_it(tmp_path):
    (tmp_path / "long.txt").write_text("so it went on and on\n" * 40_000)
    sonant.prepare(str(tmp_path / "long.txt"), str(tmp_path / "corpus"), sonant.PrepareConfig(workers=1))
    corpus = sonant.open_corpus(str(tmp_path / "corpus"))
    assert len(corpus) > 5
    found = summarize(corpus)
    assert found["documents"] == 1
    assert [row["documents"] for row in found["splits"]] == [1] * len(corpus.splits)
    assert found["characters"] == 21 * 40_000


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_opens_the_page(folder, tmp_path):
    sonant_inspect(folder, "--html", tmp_path / "report.html")
    with open(tmp_path / "report.html", "a") as page:
        page.write("<script>for (const _ of [1, 2]) document.querySelector('.sortable th').click()</script>")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom"]
    command = ["chromium", *options, f"file://{tmp_path}/report.html"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "At a glance" in shown
    assert shown.count("<audio") == 2
    assert re.search(r'<th scope="col" data-order="1">split</th>.*<td>test</td>.*<td>train</td>', shown, re.DOTALL)
