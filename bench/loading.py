"""Padding and waiting of the loader, against batches drawn at random and against transformers' `group_by_length`.

The same real speech, prepared once, Opus decoded in each epoch by two workers on every side, taken in turns. Peers: a
torch DataLoader (processes, batches of 8, padded to the longest) with its random sampler or with transformers'
LengthGroupedSampler. Sonant: its loader as it is by default (batches of up to 120 s), and with at most 8 utterances a
batch, which is as much speech as the peers' batches hold. A training step is 200 ms in which this process does nothing,
as when an accelerator works. The wait for the first batch is told apart: it comes once in a training, not once in an
epoch. Memory is that of a fresh process, after each of three epochs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import soundfile
import torch
from torch.utils.data import DataLoader, Dataset
from transformers.trainer_pt_utils import LengthGroupedSampler

import sonant
from ground import median, speech
from sonant.batches.bucketing import BucketingConfig
from sonant.batches.collate import collate_speech
from sonant.batches.examples import SpeechExamples
from sonant.batches.loader import Loader, LoaderConfig
from sonant.batches.source import CorpusSource

STEP_SECONDS = 0.2
STEPS, ROUNDS, EPOCHS, MEMORY_EPOCHS = 30, 3, 5, 3
WORKERS, BATCH_SIZE = 2, 8
SIDES = ("random", "group_by_length", "sonant, 8 a batch", "sonant")
PLACES = {"learners' English": "speechocean762/train", "news in Iban": "iban/train", "digits": "audiomnist"}
BOTH = ("learners' English", "news in Iban")  # what the wait is measured on


class Recordings(Dataset):
    """Utterances as a plain torch dataset reads them: every recording is one utterance here."""

    def __init__(self, corpora: list[sonant.Corpus]) -> None:
        self.paths = [utterance.audio for corpus in corpora for utterance in corpus]
        self.lengths = [round(seconds * 16000) for corpus in corpora for seconds in corpus.seconds]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(soundfile.read(self.paths[index], dtype="float32")[0])


def padded(examples: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([len(example) for example in examples])
    return torch.nn.utils.rnn.pad_sequence(examples, batch_first=True), lengths


def peer(corpora: list[sonant.Corpus], side: str) -> DataLoader:
    recordings = Recordings(corpora)
    grouped = LengthGroupedSampler(BATCH_SIZE, lengths=recordings.lengths) if side == "group_by_length" else None
    return DataLoader(
        recordings,
        batch_size=BATCH_SIZE,
        sampler=grouped,
        shuffle=grouped is None,
        num_workers=WORKERS,
        collate_fn=padded,
    )


def source_of(corpora: list[sonant.Corpus], side: str = "sonant") -> CorpusSource:
    config = BucketingConfig() if side == "sonant" else BucketingConfig(max_utterances=BATCH_SIZE)
    return CorpusSource(corpora, SpeechExamples(), collate_speech, config)


@dataclass(frozen=True)
class Seen:
    """What one side did in one round."""

    padding: float  # share
    first_seconds: float  # waited for the first batch
    waited: float  # share of the time after it


def planned_padding(corpora: list[sonant.Corpus], side: str) -> float:
    """Share of padding over several epochs, by the batches that each side makes up."""
    if side.startswith("sonant"):
        source = source_of(corpora, side)
        shares = []
        for epoch in range(EPOCHS):
            selection, plan = source.epoch(epoch)
            shares.append(plan.padding_share(source.sizes[source.firsts[selection.corpora] + selection.rows]))
        return float(np.mean(shares))
    loader = peer(corpora, side)
    lengths, real, whole = np.array(loader.dataset.lengths), 0, 0
    for _ in range(EPOCHS):
        for batch in loader.batch_sampler:
            real, whole = real + lengths[batch].sum(), whole + lengths[batch].max() * len(batch)
    return float(1 - real / whole)


def trained(batches: Iterator, amount: Callable[[object], tuple[float, float]]) -> Seen:
    """So many steps of a training that does nothing but take its time."""
    waited, real, whole = [], 0.0, 0.0
    for _ in range(STEPS):
        asked = time.perf_counter()
        batch = next(batches)
        waited.append(time.perf_counter() - asked)
        held = amount(batch)
        real, whole = real + held[0], whole + held[1]
        del batch
        time.sleep(STEP_SECONDS)
    after = sum(waited[1:])
    return Seen(1 - real / whole, waited[0], after / (after + STEP_SECONDS * (STEPS - 1)))


def training(corpora: list[sonant.Corpus], side: str) -> Seen:
    if not side.startswith("sonant"):
        return trained(iter(peer(corpora, side)), lambda batch: (float(batch[1].sum()), float(batch[0].numel())))
    with Loader(source_of(corpora, side), LoaderConfig(workers=WORKERS)) as loader:
        return trained(loader.endless(), lambda batch: (float(batch.lengths.total), float(batch.waveforms.numel())))


def show_memory(folder: str) -> None:
    """Resident megabytes after each epoch of a fresh process."""
    with Loader(source_of([sonant.open_corpus(folder)]), LoaderConfig(workers=WORKERS)) as loader:
        for _ in range(MEMORY_EPOCHS):
            for _batch in loader:
                pass
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            print(pages * os.sysconf("SC_PAGE_SIZE") // 2**20)


def measure(room: Path) -> float:
    corpora = {}
    for name, place in PLACES.items():
        # Two learners left nothing behind but noise: such utterances are left out, as a user would.
        sonant.prepare(str(speech() / place), str(room / name), sonant.PrepareConfig(skip_invalid=True))
        corpora[name] = sonant.open_corpus(str(room / name))
    both = [corpora[name] for name in BOTH]
    padding = {name: {side: planned_padding([corpus], side) for side in SIDES} for name, corpus in corpora.items()}
    padding["learners and news"] = {side: planned_padding(both, side) for side in SIDES}
    print(f"padding, {EPOCHS} epochs    " + "".join(f"{side:>20}" for side in SIDES))
    for name, shares in padding.items():
        print(f"{name:<20}" + "".join(f"{100 * shares[side]:>18.2f} %" for side in SIDES))

    seen: dict[str, list[Seen]] = {side: [] for side in SIDES}
    for _ in range(ROUNDS):
        for side in SIDES:
            seen[side].append(training(both, side))
    print(f"\n{ROUNDS} rounds of {STEPS} steps of {1000 * STEP_SECONDS:.0f} ms on learners and news; median (range)")
    print("                   waited for data            first batch    padding seen")
    for side, rounds in seen.items():
        shares = [100 * one.waited for one in rounds]
        wait = f"{median(shares):.2f} % ({min(shares):.2f} to {max(shares):.2f})"
        first, padded_share = median([one.first_seconds for one in rounds]), median([one.padding for one in rounds])
        print(f"{side:<17}  {wait:<25}  {first:6.2f} s       {100 * padded_share:6.2f} %")

    shown = subprocess.run(
        [sys.executable, __file__, "--memory-of", both[0].folder], capture_output=True, text=True, check=True
    )
    print(f"\nresident after each epoch of {both[0].hours:.1f} hours: {', '.join(shown.stdout.split())} MB")
    shares = padding["learners and news"]
    print(f"padding of Sonant {100 * shares['sonant']:.2f} % (3 % wanted), ", end="")
    print(f"wait {100 * median([one.waited for one in seen['sonant']]):.2f} % (2 % wanted)")
    print(f"padding, random / sonant: {shares['random'] / shares['sonant']:.1f}x")
    return shares["group_by_length"] / shares["sonant"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory-of", metavar="CORPUS", help="only load epochs of it, and tell the memory after each")
    chosen = parser.parse_args()
    if chosen.memory_of:
        show_memory(chosen.memory_of)
        return
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as room:
        ratio = measure(Path(room))
    print(f"padding, group_by_length / sonant: {ratio:.1f}x")


if __name__ == "__main__":
    main()
