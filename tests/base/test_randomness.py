from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sonant.base.names import nearest, suggestion
from sonant.base.randomness import generator_for, stable_hash, uniform_for

IDS = st.text(max_size=20)


def test_a_hash_is_the_same_for_ever_and_in_every_process():
    assert stable_hash("a", 1) == 0xC13CD84A6BC18181
    code = "from sonant.base.randomness import stable_hash; print(stable_hash('ü', 2, 'b'))"
    found = [
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True)
        for seed in ("1", "2")
    ]
    assert {int(one.stdout) for one in found} == {stable_hash("ü", 2, "b")}


@given(seed=st.integers(0, 2**63), epoch=st.integers(0, 1000), id=IDS)
def test_draws_belong_to_seed_epoch_id_and_purpose(seed, epoch, id):
    def draw(*place: object) -> list[float]:
        return generator_for(*place).random(4).tolist()

    here = draw(seed, epoch, id, "gain")
    assert here == draw(seed, epoch, id, "gain")
    others = (
        draw(seed + 1, epoch, id, "gain"),
        draw(seed, epoch + 1, id, "gain"),
        draw(seed, epoch, id + "x", "gain"),
        draw(seed, epoch, id, "noise"),
    )
    assert here not in others


def test_parts_do_not_run_into_each_other():
    assert stable_hash("ab", "c") != stable_hash("a", "bc")
    assert stable_hash(1, 23) != stable_hash(12, 3)


def test_the_number_of_an_id_is_uniform_and_below_one(monkeypatch):
    numbers = np.array([uniform_for(0, f"utterance {number}") for number in range(4000)])
    counts, _ = np.histogram(numbers, bins=10, range=(0, 1))
    assert abs(counts - 400).max() < 100
    monkeypatch.setattr("sonant.base.randomness.stable_hash", lambda *parts: 2**64 - 1)
    assert uniform_for(0, "the last of all") < 1


def test_a_name_of_non_utf8_bytes_has_a_hash():
    assert stable_hash("caf\udce9") != stable_hash("cafe")


def test_the_nearest_name_is_the_one_that_was_meant():
    known = ["sample_rate", "seconds", "speaker"]
    assert nearest("sampel_rate", known) == "sample_rate"
    assert nearest("SPEAKER", known) == "speaker"
    assert nearest("xyzzy", known) is None
    assert suggestion("secnds", known) == "Did you mean 'seconds'?"
    assert suggestion("xyzzy", known) == "Choose one of: sample_rate, seconds, speaker."
    assert suggestion("xyzzy", []) == "None exists."
