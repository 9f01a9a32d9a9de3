"""Loading: the same bits whatever the workers, from any place at once, and nothing left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from sonant.base.errors import AudioError, ConfigError, StorageError
from sonant.batches.batch import SpeechBatch
from sonant.batches.bucketing import BucketingConfig, SortingConfig
from sonant.batches.collate import collate_speech
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.batches.loader import Loader, LoaderConfig
from sonant.batches.mixing import MixingConfig
from sonant.batches.source import CorpusSource
from sonant.corpus.manifest import Corpus

PLAN = BucketingConfig(max_seconds=6.0)
Load = Callable[..., Loader[SpeechBatch]]


def loader(
    *corpora: Corpus,
    workers: int = 2,
    examples: SpeechExamples | None = None,
    planning: BucketingConfig | SortingConfig = PLAN,
    patience_seconds: float = 600,
    **where: object,
) -> Loader[SpeechBatch]:
    source = CorpusSource(corpora, examples or SpeechExamples(), collate_speech, planning, **where)
    return Loader(source, LoaderConfig(workers=workers, patience_seconds=patience_seconds))


def bits(batch: SpeechBatch) -> tuple[object, ...]:
    return batch.ids, batch.passes, batch.waveforms.numpy().tobytes(), tuple(batch.lengths.values.tolist())


def some(batches: Iterator[SpeechBatch], count: int) -> list[tuple[object, ...]]:
    return [bits(next(batches)) for _ in range(count)]


def left_behind() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("sonant")]


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    handles = len(os.listdir("/proc/self/fd"))
    yield
    until = time.monotonic() + 2
    while left_behind() and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)
    assert not left_behind()
    assert len(os.listdir("/proc/self/fd")) <= handles


def test_an_epoch_holds_every_utterance_once(corpus):
    with loader(corpus) as batches:
        ids = [name for batch in batches for name in batch.ids]
    assert sorted(ids) == sorted(utterance.id for utterance in corpus)


def test_any_number_of_workers_gives_the_same_bits(corpus):
    examples = SpeechExamples(ExampleConfig(crop_seconds=0.8))
    epochs = []
    for workers in (0, 1, 3):
        with loader(corpus, workers=workers, examples=examples) as batches:
            epochs.append(some(batches.endless(), 2 * batches.source.num_steps(0) + 3))
    assert epochs[0] == epochs[1] == epochs[2]


def test_epochs_one_by_one_are_those_of_the_endless_stream(corpus):
    with loader(corpus) as batches, loader(corpus) as one_by_one:
        stream = some(batches.endless(), batches.source.num_steps(0) + batches.source.num_steps(1))
        assert [bits(batch) for _ in range(2) for batch in one_by_one] == stream
        assert (one_by_one.epoch, one_by_one.step) == (2, 0)


@pytest.mark.parametrize("num_taken", [0, 1, 4, 9])
def test_from_any_place_on_what_follows_is_what_would_have_followed(corpus, num_taken):
    with loader(corpus) as batches:
        stream = batches.endless()
        some(stream, num_taken)
        state = batches.state()
        rest = some(stream, 8)
    with loader(corpus) as resumed:
        assert resumed.restore(state) == []
        assert some(resumed.endless(), 8) == rest


def test_the_place_is_what_was_taken_and_not_what_was_made_ahead(corpus):
    with loader(corpus) as batches:
        stream = batches.endless()
        some(stream, 2)
        time.sleep(0.1)
        assert (batches.state()["epoch"], batches.state()["step"]) == (0, 2)


def test_a_place_is_restored_without_reading_what_came_before(corpus):
    read = []

    def augment(samples, sample_rate, *, epoch, id):
        read.append((epoch, id))
        return samples

    with loader(corpus, workers=0, examples=SpeechExamples(augment=augment)) as batches:
        batches.restore(batches.state() | {"epoch": 1000, "step": batches.source.num_steps(1000) - 1})
        [last] = batches
    assert read == [(1000, name) for name in last.ids]


def test_a_state_is_plain_values_and_the_same_for_the_same_place(corpus):
    import json

    with loader(corpus) as one, loader(corpus, workers=0) as other:
        some(one.endless(), 3)
        some(other.endless(), 3)
        assert one.state() == other.state() == json.loads(json.dumps(one.state()))


def test_an_epoch_taken_up_again_has_the_counts_of_one_never_left(corpus):
    with loader(corpus) as whole, loader(corpus) as left, loader(corpus) as resumed:
        for _ in whole:
            pass
        some(iter(left), 3)
        resumed.restore(left.state())
        for _ in resumed:
            pass
        assert resumed.report.tally == whole.report.tally


def test_an_epoch_whose_last_batch_was_taken_ends_once_when_taken_up_again(corpus):
    reports = []
    with loader(corpus) as batches, loader(corpus) as resumed:
        some(batches.endless(), batches.source.num_steps(0))
        assert batches.report is None
        resumed.restore(batches.state())
        first = next(resumed.endless(reports.append))
        assert [report.epoch for report in reports] == [0]
        assert set(first.passes) == {1}


def test_a_changed_condition_is_told_when_a_place_is_restored(corpus, new_corpus):
    other = new_corpus([0.5, 0.6])
    with loader(corpus) as batches, loader(other, seed=1, world=2, rank=1) as changed:
        notes = changed.restore(batches.state())
    assert [note.partition(":")[0] for note in notes] == ["utterances", "seed", "ranks"]
    assert notes[1:] == ["seed: 0 before, 1 now", "ranks: 1 before, 2 now"]


def test_the_report_of_an_epoch_counts_what_it_held(corpus):
    with loader(corpus, planning=BucketingConfig(max_seconds=1.9)) as batches:
        held = list(batches)
        report = batches.report
    assert report.tally.num_utterances == len(corpus)
    assert report.tally.num_batches == len(held)
    assert report.tally.seconds == pytest.approx(corpus.seconds.sum())
    assert report.num_overlong == (corpus.seconds > 1.9).sum() > 0
    assert report.loading_speed > 1
    assert 0 <= report.wait_seconds <= report.total_seconds


def test_the_time_waited_is_that_of_the_consumer(corpus):
    def slow(samples, sample_rate, *, epoch, id):
        time.sleep(0.004)
        return samples

    with loader(corpus, workers=0, examples=SpeechExamples(augment=slow)) as batches:
        for _ in batches:
            time.sleep(0.02)
        report = batches.report
    consumed = 0.02 * report.tally.num_batches
    assert report.wait_seconds >= 0.004 * len(corpus)
    assert report.total_seconds - report.wait_seconds >= consumed


# Ranks and mixtures


@pytest.mark.parametrize("world", [2, 3])
def test_a_rank_short_of_a_batch_takes_an_empty_one_with_every_field(corpus, world):
    short = corpus.where([True] * (world + 1) + [False] * (len(corpus) - world - 1))
    examples = SpeechExamples(encode=lambda text: list(text.encode()))
    planning = BucketingConfig(max_utterances=1)
    everyone = []
    for rank in range(world):
        with loader(short, examples=examples, planning=planning, rank=rank, world=world) as batches:
            everyone.append(list(batches))
    assert {len(mine) for mine in everyone} == {2}
    assert sorted(name for mine in everyone for batch in mine for name in batch.ids) == sorted(one.id for one in short)
    empty = everyone[-1][-1]
    assert (len(empty), empty.waveforms.shape, empty.tokens.shape) == (0, (0, 0), (0, 0))
    assert empty.labels.keys() == everyone[0][0].labels.keys()


def test_several_corpora_come_by_weight(corpus, new_corpus):
    small = new_corpus([0.3] * 5, first=1000)
    mixing = MixingConfig(weights=(1, 1), utterances_per_epoch=20)
    with loader(corpus, small, mixing=mixing) as batches:
        seen = Counter(
            (name, number) for batch in batches for name, number in zip(batch.ids, batch.passes, strict=True)
        )
    assert max(seen.values()) == 1
    assert Counter(int(name[1:]) >= 1000 for name, _ in seen) == {True: 10, False: 10}
    assert {number for name, number in seen if int(name[1:]) >= 1000} == {0, 1}


def test_an_evaluation_is_the_same_in_every_epoch(corpus):
    examples = SpeechExamples(ExampleConfig(crop_seconds=0.5))
    with loader(corpus, examples=examples, planning=SortingConfig(max_seconds=6)) as batches:
        first, second = ([bits(batch) for batch in batches] for _ in range(2))
    assert first == second


# Faults


def test_an_unreadable_recording_reaches_the_user_as_the_error_it_is(new_corpus):
    harmed = new_corpus([0.5] * 6)
    os.truncate(harmed[3].audio, 30)
    with loader(harmed, planning=BucketingConfig(max_utterances=1)) as batches:
        with pytest.raises(AudioError, match=r"manifest\.parquet:4: 'u3' cannot be read"):
            list(batches)
        assert batches.step < 6


def test_a_fault_does_not_move_the_place(new_corpus):
    harmed = new_corpus([0.5] * 4)
    content = Path(harmed[2].audio).read_bytes()
    os.truncate(harmed[2].audio, 30)
    with loader(harmed, planning=BucketingConfig(max_utterances=1)) as batches:
        taken = []
        with pytest.raises(AudioError):
            taken.extend(name for batch in batches for name in batch.ids)
        taken = batches.step
        Path(harmed[2].audio).write_bytes(content)
        assert len(list(batches)) == 4 - taken


def test_skipped_recordings_are_counted_and_an_epoch_without_any_is_refused(new_corpus):
    harmed = new_corpus([0.5] * 6)
    examples = SpeechExamples(ExampleConfig(unreadable="skip"))
    planning = BucketingConfig(max_utterances=2)
    for number in (0, 1, 2, 3, 4):
        os.truncate(harmed[number].audio, 30)
    with loader(harmed, examples=examples, planning=planning) as batches:
        held = list(batches)
        assert [name for batch in held for name in batch.ids] == ["u5"]
        assert batches.report.tally.num_skipped == 5
        assert len(held) == 3
    os.truncate(harmed[5].audio, 30)
    with loader(harmed, examples=examples, planning=planning) as batches, pytest.raises(Exception, match="none of 6"):
        list(batches)


def test_our_own_fault_keeps_its_traceback(corpus):
    def broken(samples, sample_rate, *, epoch, id):
        raise ZeroDivisionError

    with loader(corpus, examples=SpeechExamples(augment=broken)) as batches, pytest.raises(ZeroDivisionError) as caught:
        next(iter(batches))
    assert any(entry.name == "broken" for entry in caught.traceback)


def test_storage_that_does_not_answer_is_an_error_and_not_a_wait_for_ever(corpus):
    answer = threading.Event()

    def stuck(samples, sample_rate, *, epoch, id):
        answer.wait()
        return samples

    with loader(corpus, examples=SpeechExamples(augment=stuck), patience_seconds=0.2) as batches:
        with pytest.raises(StorageError, match=r"no batch came for 0.2 seconds"):
            next(iter(batches))
        answer.set()


def test_a_loader_can_be_left_in_the_middle_and_entered_again(corpus):
    with loader(corpus) as batches:
        for batch in batches:
            first = bits(batch)
            break
        second = bits(next(iter(batches)))
        batches.close()
        third = bits(next(iter(batches)))
    with loader(corpus) as again:
        assert some(iter(again), 3) == [first, second, third]


def test_a_loader_that_is_forgotten_ends_its_threads(corpus):
    batches = loader(corpus)
    next(iter(batches))
    del batches  # what is left behind is looked for after every test


@pytest.mark.parametrize("settings", [{"workers": -1}, {"prefetch": -1}, {"patience_seconds": 0.0}])
def test_settings_without_sense_are_refused_by_name(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        LoaderConfig(**settings)


INTERRUPTED = textwrap.dedent("""
    import time
    from sonant.batches.loader import Loader, LoaderConfig
    from sonant.batches.report import Tally

    class Batch:
        def tally(self):
            return Tally(num_batches=1)

    class Slow:
        def num_steps(self, epoch):
            return 100
        def load(self, epoch, step):
            time.sleep(0.3)
            return Batch()
        def conditions(self):
            return {}

    for number, batch in enumerate(Loader(Slow(), LoaderConfig(workers=4, prefetch=50))):
        print("taken", flush=True)
        SLEEP
""")


@pytest.mark.parametrize("sleep", ["", "time.sleep(60)"])
def test_an_interrupt_ends_the_program_at_once(sleep):
    program = INTERRUPTED.replace("SLEEP", sleep)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"taken\n"
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - started < 10  # of 30 and more that the work or the sleep would take
    assert errors.endswith(b"KeyboardInterrupt\n")


# Slow laws


@pytest.mark.slow
def test_resident_memory_stays_flat_over_many_epochs(corpus):
    def resident() -> int:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    with loader(corpus, planning=BucketingConfig(max_seconds=20)) as batches:
        stream = batches.endless()
        steps = batches.source.num_steps(0)
        for _ in range(20 * steps):
            next(stream)
        before = resident()
        for _ in range(200 * steps):
            next(stream)
        assert resident() - before < 8e6


RANK = textwrap.dedent("""
    import json, sys
    import torch.distributed as dist
    from sonant.batches.bucketing import BucketingConfig
    from sonant.batches.collate import collate_speech
    from sonant.batches.examples import SpeechExamples
    from sonant.batches.loader import Loader
    from sonant.batches.source import CorpusSource
    from sonant.corpus.manifest import Corpus
    import pyarrow.parquet as pq
    import torch

    folder, rank, world, port = sys.argv[1], *map(int, sys.argv[2:])
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    corpus = Corpus(folder, pq.read_table(folder + "/rows.parquet"), {})
    planning = BucketingConfig(max_seconds=3)
    source = CorpusSource([corpus], SpeechExamples(), collate_speech, planning, rank=rank, world=world)
    with Loader(source) as batches:
        for epoch in range(2):
            ids, longest = [], []
            for batch in batches:  # a collective in every step: a rank with fewer steps would hang the other
                mine = torch.tensor([float(batch.lengths.longest)])
                everyone = [torch.zeros(1) for _ in range(world)]
                dist.all_gather(everyone, mine)
                ids.extend(batch.ids)
                longest.append([float(value) for value in everyone])
            gathered = [None] * world
            dist.all_gather_object(gathered, ids)
            if rank == 0:
                print(json.dumps([gathered, longest]), flush=True)
    dist.destroy_process_group()
""")


@pytest.mark.slow
def test_two_ranks_share_an_epoch_and_keep_step(corpus):
    import json
    import socket

    import pyarrow.parquet as pq

    pq.write_table(corpus.table, os.path.join(corpus.folder, "rows.parquet"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", RANK, corpus.folder]
    ranks = [
        subprocess.Popen([*command, str(rank), "2", str(port)], stdout=subprocess.PIPE, text=True) for rank in range(2)
    ]
    said = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0]
    for line in said[0].splitlines():
        gathered, longest = json.loads(line)
        assert sorted(gathered[0] + gathered[1]) == sorted(utterance.id for utterance in corpus)
        full = torch.tensor(longest)[:-1]
        assert ((full[:, 0] - full[:, 1]).abs() / full.max(1).values).mean() < 0.25
    assert len(said[0].splitlines()) == 2
