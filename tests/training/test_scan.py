"""The largest batches are tried before anything else, where running out of memory can be survived and told."""

from __future__ import annotations

import sys
import time

import pytest
import small_training
from small_training import SequenceSource, build, configured

from sonant.training.config import GuardConfig
from sonant.training.console import Console
from sonant.training.memory import allowed_bytes, peak_bytes, resident_bytes
from sonant.training.scan import OutOfMemoryError, scan_in_child
from sonant.training.start import train

QUIET = Console(is_silent=True)


def command(place, *words):
    return [sys.executable, small_training.__file__, str(place), *words, "--scan"]


def test_the_largest_batch_of_every_size_is_among_those_that_are_tried():
    source = SequenceSource(configured("num_utterances=200"))
    planned, steps = source.plan(0), source.largest()
    padded = [source.sizes[planned[step]].max() * len(planned[step]) for step in range(len(planned))]
    longest = [source.sizes[planned[step]].max() for step in range(len(planned))]
    assert max(padded) in [padded[step] for step in steps]
    assert max(longest) in [longest[step] for step in steps]
    assert len(steps) < len(planned)


@pytest.mark.slow
def test_a_run_with_a_scan_equals_one_without(tmp_path):
    places = []
    for is_scanned in ("true", "false"):
        words = [f"trainer.guard.scan={is_scanned}", "dropout=0.2", "trainer.limits.max_steps=6"]
        config = configured(*words)
        place = tmp_path / is_scanned
        train(str(place), config, build(config), is_silent=True, scan_command=command(tmp_path / "nowhere", *words))
        places.append(place)
    one, other = (place / "states/step-000006" for place in places)
    for name in ("weights", "optimizer", "rank-0"):
        assert (one / f"{name}.safetensors").read_bytes() == (other / f"{name}.safetensors").read_bytes()
    assert not (tmp_path / "nowhere/states").exists()


@pytest.mark.slow
def test_a_batch_that_is_too_large_is_named_and_ends_nothing_else(tmp_path):
    words = ["width=64", "ballast=400000", "batch_size=8"]
    began = time.monotonic()
    with pytest.raises(OutOfMemoryError, match=r"a batch of 8 .*does not fit.*GB are allowed.*--find-batch"):
        scan_in_child(command(tmp_path, *words), GuardConfig(max_memory_gb=1.5), QUIET)
    assert time.monotonic() - began < 60
    assert resident_bytes(0) == 0  # we are still here to ask


@pytest.mark.slow
def test_a_scan_that_fits_tells_its_peak(tmp_path, capsys):
    peak = scan_in_child(command(tmp_path), GuardConfig(max_memory_gb=8.0), Console())
    assert 1e8 < peak < 4e9
    assert "the largest batches fit" in capsys.readouterr().err


@pytest.mark.slow
def test_a_limit_on_the_address_space_is_told_as_memory(tmp_path):
    limited = ["prlimit", "--as=6000000000", *command(tmp_path, "width=64", "ballast=900000", "batch_size=8")]
    with pytest.raises(OutOfMemoryError, match="a batch of 8"):
        scan_in_child(limited, GuardConfig(), QUIET)


@pytest.mark.slow
def test_a_scan_that_fails_for_another_reason_leaves_that_to_the_training(tmp_path, capsys):
    assert scan_in_child(command(tmp_path, "widht=3"), GuardConfig(), Console()) == 0
    assert "widht" in capsys.readouterr().err


def test_what_is_allowed_lies_between_what_we_have_and_what_the_machine_has():
    import os

    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert resident_bytes(os.getpid()) <= peak_bytes() * 1.01
    assert resident_bytes(os.getpid()) < allowed_bytes() <= machine * 1.01
