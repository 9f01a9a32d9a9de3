import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from sonant.base.errors import ConfigError
from sonant.corpus.demo.grammar import NUM_SENTENCES
from sonant.corpus.demo.plan import DemoConfig, Symptoms, performances
from sonant.corpus.demo.source import DemoSource
from sonant.corpus.demo.speech import WRITTEN_RATE, speak
from sonant.corpus.demo.studio import record_demo
from sonant.corpus.demo.synthesizer import espeak
from sonant.corpus.demo.voices import lay_out_voices
from sonant.corpus.sources.options import SourceOptions

pytest.importorskip("espeakng_loader", reason="the synthesizer's wheel (extra `demo`) is not installed")


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


@pytest.fixture(scope="session")
def voices(tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("voices"))
    lay_out_voices(espeak()[1], folder)
    return folder


@pytest.fixture(scope="module")
def performance():
    plain = (one for one in performances(DemoConfig(symptom_share=0)))
    return next(one for one in plain if one.request.text.count(" ") > 5)


def spoken(performance, voices, **degrees):
    return speak(replace(performance, symptoms=Symptoms(**degrees)), voices, seed=0)


@pytest.mark.slow
def test_the_same_seed_speaks_the_same_bytes_with_any_number_of_workers_and_after_an_interruption(tmp_path):
    config = DemoConfig(hours=0.02)
    record_demo(str(tmp_path / "at once"), config, workers=3)
    record_demo(str(tmp_path / "in parts"), replace(config, hours=0.006), workers=1)
    record_demo(str(tmp_path / "in parts"), config, workers=2)
    assert contents(tmp_path / "at once") == contents(tmp_path / "in parts")


@pytest.mark.slow
def test_a_studio_that_was_killed_goes_on_and_ends_with_the_same_bytes(tmp_path):
    code = "import sys; from sonant.corpus.demo.studio import *; record_demo(sys.argv[1], DemoConfig(hours=0.05), 1)"
    killed = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "killed")], start_new_session=True)
    while not (tmp_path / "killed" / "demo-000003.flac").exists():
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    for folder in ("killed", "whole"):
        record_demo(str(tmp_path / folder), DemoConfig(hours=0.05))
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


@pytest.mark.slow
def test_fewer_hours_are_a_beginning_of_more(tmp_path):
    record_demo(str(tmp_path / "a"), DemoConfig(hours=0.02))
    more = contents(tmp_path / "a")
    record_demo(str(tmp_path / "a"), DemoConfig(hours=0.008))
    fewer = contents(tmp_path / "a")
    recordings = [name for name in fewer if name.endswith(".flac")]
    assert 0 < len(recordings) < len(more) - 1
    assert all(fewer[name] == more[name] for name in recordings)


def test_another_seed_speaks_other_words():
    texts = [[one.request.text for one in islice(performances(DemoConfig(seed=seed)), 20)] for seed in (0, 1)]
    assert texts[0] != texts[1]


def test_voices_and_sentences_of_one_split_are_in_no_other():
    assert NUM_SENTENCES >= 10_000
    heard = list(islice(performances(DemoConfig()), 3000))
    for thing in ("variant", "text"):
        of = {
            split: {one.variant if thing == "variant" else one.request.text for one in heard if one.split == split}
            for split in ("train", "dev", "test")
        }
        assert len(of["train"] | of["dev"] | of["test"]) == sum(map(len, of.values()))
        assert min(map(len, of.values())) >= 7


def test_no_sentence_comes_twice():
    texts = [one.request.text for one in islice(performances(DemoConfig()), 2000)]
    assert len(set(texts)) == 2000


@pytest.mark.parametrize("symptom", ["halting", "hoarse", "whispered", "distorted"])
def test_a_symptom_made_while_recording_can_be_heard(symptom, performance, voices):
    plain, _ = spoken(performance, voices)
    changed, _ = spoken(performance, voices, **{symptom: 1})
    assert plain.shape != changed.shape or np.abs(plain - changed).max() > 0.05


@pytest.mark.parametrize(("symptom", "asked"), [("slow", "words_per_minute"), ("flat", "pitch_range")])
def test_a_symptom_of_speaking_is_asked_of_the_synthesizer_by_degree(symptom, asked):
    degrees = {}
    for one in islice(performances(DemoConfig(symptom_share=1)), 400):
        degrees.setdefault(getattr(one.symptoms, symptom), []).append(getattr(one.request, asked))
    assert all(max(degrees[degree]) < min(degrees[degree - 1]) for degree in (1, 2, 3))


def test_the_hoarser_the_less_of_the_voice_is_periodic(voices):
    plain = list(islice(performances(DemoConfig(symptom_share=0)), 8))

    def periodicity(samples: np.ndarray) -> float:
        frames = np.lib.stride_tricks.sliding_window_view(samples, 640)[::160] * np.hanning(640)
        energy = (frames**2).sum(axis=1)
        power = np.abs(np.fft.rfft(frames[energy > 0.1 * energy.max()], 2048)) ** 2
        correlation = np.fft.irfft(power)
        return float(np.mean(correlation[:, 40:260].max(axis=1) / correlation[:, 0]))

    by_degree = [np.mean([periodicity(spoken(one, voices, hoarse=degree)[0]) for one in plain]) for degree in range(4)]
    assert by_degree == sorted(by_degree, reverse=True)


@pytest.mark.parametrize("halting", [0, 3])
def test_the_truth_about_words_spells_the_text_and_keeps_to_the_recording(halting, performance, voices):
    samples, words = spoken(performance, voices, halting=halting)
    assert " ".join(word for word, _, _ in words) == performance.request.text
    times = [time for _, start, end in words for time in (start, end)]
    assert times == sorted(times)
    assert times[0] >= 0
    assert times[-1] <= len(samples) / WRITTEN_RATE


def test_halting_speech_is_silent_between_its_words(performance, voices):
    samples, words = spoken(performance, voices, halting=3)
    for (_, _, end), (_, start, _) in pairwise(words):
        gap = samples[round((end + 0.02) * WRITTEN_RATE) : round((start - 0.02) * WRITTEN_RATE)]
        assert len(gap) > 0.4 * WRITTEN_RATE
        assert np.abs(gap).max() < 1e-3


def test_the_recordings_are_a_source_with_all_that_is_known_about_them(tmp_path):
    folder = record_demo(str(tmp_path), DemoConfig(hours=0.01))
    assert DemoSource.recognises(folder, os.listdir(folder))
    rows = list(DemoSource(folder, SourceOptions()).rows())
    assert sum(json.loads(row.extra["words"])[-1][2] for row in rows) > 0.8 * 36
    assert {*rows[0].labels} == {"slow", "flat", "halting", "hoarse", "whispered", "distorted", "severity"}
    assert rows[0].place.endswith("spoken.jsonl:2")


@pytest.mark.parametrize("wrong", [{"hours": 0}, {"symptom_share": 2}, {"shares": {}}, {"shares": {"a": -1}}])
def test_a_demo_that_cannot_be_is_refused(wrong):
    with pytest.raises(ConfigError):
        DemoConfig(**wrong)
