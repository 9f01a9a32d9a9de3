"""The line of an epoch says what happened in it."""

from __future__ import annotations

from dataclasses import replace

from sonant.batches.report import EpochReport, Tally

TALLY = Tally(num_batches=40, num_utterances=1200, seconds=3600.0, padded_seconds=3680.0)
REPORT = EpochReport(epoch=3, tally=TALLY, wait_seconds=0.5, total_seconds=50.0, read_seconds=3600.0, busy_seconds=9.0)


def test_an_epoch_is_told_in_one_line():
    assert str(REPORT) == (
        "epoch 3: 1,200 utterances, 1.00 h, in 40 batches; padding 2.2 %; waited 0.5 s for data (1.0 %); "
        "one worker loads 400× real time"
    )


def test_what_was_left_out_is_never_kept_silent():
    line = str(replace(REPORT, tally=replace(TALLY, num_skipped=2), num_overlong=1))
    assert line.endswith("; 2 unreadable, skipped; 1 longer than a batch may be, each alone in one")


def test_text_is_told_in_tokens():
    report = EpochReport(epoch=0, tally=Tally(num_batches=2, num_utterances=9, tokens=900, padded_tokens=1000))
    assert (
        str(report) == "epoch 0: 9 utterances, 900 tokens, in 2 batches; padding 10.0 %; waited 0.0 s for data (0.0 %)"
    )


def test_ranks_add_up():
    both = REPORT + replace(REPORT, wait_seconds=1.5, num_overlong=1)
    assert both.tally.num_utterances == 2400
    assert both.tally.padding_share == TALLY.padding_share
    assert both.wait_share == 0.02
    assert both.num_overlong == 1
