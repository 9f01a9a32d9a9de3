"""Training a small GPT-2, and making its tokens, against Hugging Face's Trainer and `datasets`.

The same model with the same weights, the same tokens of the Brown corpus in the same batches, two threads each.
Peer: `Trainer` with fused AdamW, gradients clipped at 1, no cache, and bf16 autocast where that is faster for it.
Sonant: its own trainer and loss, in the precision that the peer is best in. Each side runs in a process of its own, a
step at a time in turns; a step is everything between two of its batches: making one, forward, backward, clipping,
optimizer. Memory is the resident peak above what was resident when the model was loaded.
Data: `map(tokenize)` and `map(group_texts)` as in `run_clm.py`, against a token file.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np

from ground import SHARED, bytes_below, interleaved, median, spread

RATE, DECAY, BETAS = 6e-4, 0.1, (0.9, 0.95)
PAIRS, WARM_UP, THREADS = 7, 2, 2
STEPS, LAST = 300, 50  # of the small model: the mean loss of the last ones is compared
PIECES = 8192  # of the vocabulary that texts are cut into


@dataclass(frozen=True)
class Setting:
    """A GPT-2 and its batches."""

    layers: int
    heads: int
    width: int
    symbols: int
    rows: int
    tokens: int  # of a row

    def config(self, *, has_dropout: bool) -> Any:
        from transformers import GPT2Config

        off = {} if has_dropout else {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
        return GPT2Config(
            vocab_size=self.symbols,
            n_layer=self.layers,
            n_head=self.heads,
            n_embd=self.width,
            n_positions=self.tokens,
            bos_token_id=None,
            eos_token_id=None,
            use_cache=False,
            **off,
        )


TIMED = Setting(layers=6, heads=6, width=384, symbols=50257, rows=8, tokens=256)  # GPT-2's own vocabulary
SMALL = Setting(layers=2, heads=2, width=64, symbols=PIECES, rows=8, tokens=64)


class Gate:
    """Called for each batch. Under orders it waits for a word before each, and tells how long the one before took."""

    def __init__(self, *, is_ordered: bool = False) -> None:
        self.is_ordered, self.began = is_ordered, 0.0

    def __call__(self) -> None:
        if not self.is_ordered:
            return
        if self.began:
            say(seconds=time.perf_counter() - self.began, **memory())
        else:
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            say(base=memory()["resident"])
        if sys.stdin.readline() != "go\n":
            os._exit(0)
        self.began = time.perf_counter()


def say(**values: float) -> None:
    print(json.dumps(values), flush=True)


def memory() -> dict[str, float]:
    """MiB of this process: now, and at most since the peak began."""
    lines = Path("/proc/self/status").read_text().splitlines()
    status = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    return {"resident": int(status["VmRSS"][0]) / 1024, "peak": int(status["VmHWM"][0]) / 1024}


def rows_of(setting: Setting, tokens: np.ndarray) -> np.ndarray:
    """Whole rows (R, T) of the running text."""
    count = len(tokens) // setting.tokens
    return tokens[: count * setting.tokens].astype(np.int64).reshape(count, setting.tokens)


def with_peer(
    setting: Setting, precision: str, tokens: np.ndarray, steps: int, gate: Gate, **options: bool
) -> list[float]:
    """Hugging Face's Trainer; gives the loss of each step."""
    import torch
    from transformers import GPT2LMHeadModel, PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    torch.manual_seed(0)
    model = GPT2LMHeadModel(setting.config(has_dropout=options["has_dropout"]))
    rows, losses = rows_of(setting, tokens), []

    class Rows(torch.utils.data.IterableDataset):
        def __iter__(self) -> Iterator[np.ndarray]:
            while True:
                yield from rows

    class Log(TrainerCallback):
        def on_log(self, arguments: Any, state: Any, control: Any, logs: Mapping[str, float], **_: Any) -> None:
            if "loss" in logs:
                losses.append(float(logs["loss"]))

    def collated(chosen: list[np.ndarray]) -> dict[str, torch.Tensor]:
        gate()
        ids = torch.from_numpy(np.stack(chosen))
        return {"input_ids": ids, "labels": ids}

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=setting.rows,
            learning_rate=RATE,
            weight_decay=DECAY,
            adam_beta1=BETAS[0],
            adam_beta2=BETAS[1],
            lr_scheduler_type="constant",
            max_grad_norm=1.0,
            optim="adamw_torch_fused",
            bf16=precision == "bf16",
            use_cpu=True,
            logging_strategy="no" if gate.is_ordered else "steps",
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer = Trainer(model, arguments, data_collator=collated, train_dataset=Rows(), callbacks=[Log()])
        trainer.remove_callback(PrinterCallback)
        # Else it divides by all tokens, the first of each row among them, which nothing predicts.
        trainer.model_accepts_loss_kwargs = False
        trainer.train()
    return losses


def with_sonant(
    setting: Setting, precision: str, tokens: np.ndarray, steps: int, gate: Gate, **options: bool
) -> list[float]:
    """Our trainer on the same model, the same rows and the same settings."""
    import torch

    from sonant.batches.collate import collate_tokens
    from sonant.batches.loader import Loader, LoaderConfig
    from sonant.models import causal
    from sonant.objectives.next_token import NextToken
    from sonant.training.config import GuardConfig, LimitsConfig, RhythmConfig, TrainerConfig
    from sonant.training.console import Console
    from sonant.training.engine import Engine
    from sonant.training.optimizers import OptimizerConfig
    from sonant.training.parts import Parts
    from sonant.training.run_folder import RunFolder
    from sonant.training.schedules import ScheduleConfig
    from sonant.training.trainer import Trainer

    torch.manual_seed(0)
    model = causal.build(setting.config(has_dropout=options["has_dropout"]).to_dict())
    rows = rows_of(setting, tokens)

    class Rows:
        """The rows in their order, round and round."""

        def num_steps(self, epoch: int) -> int:
            return steps

        def num_overlong(self, epoch: int) -> int:
            return 0

        def largest(self) -> list[int]:
            return [0]

        def conditions(self) -> dict[str, str]:
            return {}

        def load(self, epoch: int, step: int) -> Any:
            gate()
            numbers = np.arange(step * setting.rows, (step + 1) * setting.rows) % len(rows)
            return collate_tokens([[rows[number]] for number in numbers], [str(number) for number in numbers])

    config = TrainerConfig(
        optimizer=OptimizerConfig(rate=RATE, decay=DECAY, beta1=BETAS[0], beta2=BETAS[1]),
        schedule=ScheduleConfig(kind="constant", warmup=0),
        limits=LimitsConfig(max_steps=steps),
        rhythm=RhythmConfig(log=1 if not gate.is_ordered else 1000, validate=0, save=0, save_minutes=0, report=0),
        guard=GuardConfig(scan=False),
        precision=precision,  # type: ignore[arg-type]
        threads=THREADS,
    )
    with tempfile.TemporaryDirectory() as folder:
        run, engine = RunFolder(folder), Engine(config, cpu=True)
        parts = Parts(
            model=model,
            objective=NextToken(),
            loader=Loader(Rows(), LoaderConfig(workers=0)),
            save_bundle=lambda *_: None,
        )
        Trainer(parts, config, run, engine, Console(is_silent=True)).run()
        logged = [json.loads(line) for line in Path(run.metrics).read_text().splitlines()]
    return [line["loss"] for line in logged if "loss" in line]


TRAINERS: dict[str, Callable[..., list[float]]] = {"peer": with_peer, "sonant": with_sonant}


class Side:
    """A trainer in a process of its own, a step at a time."""

    def __init__(self, name: str, precision: str, tokens: Path) -> None:
        command = [sys.executable, __file__, "--side", name, "--precision", precision, "--tokens", str(tokens)]
        environment = os.environ | {"OMP_NUM_THREADS": str(THREADS)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.base = self._heard()["base"]
        self.peak = 0.0

    def step(self) -> float:
        """Seconds of one."""
        assert self.process.stdin
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        heard = self._heard()
        self.peak = heard["peak"]
        return heard["seconds"]

    def _heard(self) -> dict[str, float]:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("{"):
                values: dict[str, float] = json.loads(line)
                return values
        raise SystemExit("bench: a side ended before its time; run it with --side to see why")

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def timed(names: list[tuple[str, str]], tokens: Path, pairs: int) -> dict[tuple[str, str], tuple[list[float], float]]:
    """Seconds a step, in turns, and MiB above what was there before, for (side, precision)."""
    sides = {name: Side(*name, tokens) for name in names}
    for _ in range(WARM_UP):
        for side in sides.values():
            side.step()
    taken: dict[tuple[str, str], list[float]] = {name: [] for name in names}
    for _ in range(pairs):
        for name, side in sides.items():
            taken[name].append(side.step())
    for side in sides.values():
        side.close()
    return {name: (taken[name], side.peak - side.base) for name, side in sides.items()}


def check_equal(tokens: np.ndarray) -> None:
    """The same weights and batch give the same loss and gradients, and the same training ends at the same loss."""
    import torch
    from transformers import GPT2LMHeadModel

    from sonant.batches.collate import collate_tokens
    from sonant.models import causal
    from sonant.objectives.next_token import NextToken

    rows = rows_of(SMALL, tokens)[: SMALL.rows]
    peer = GPT2LMHeadModel(SMALL.config(has_dropout=False))
    ours = causal.build(SMALL.config(has_dropout=False).to_dict())
    ours.load_state_dict(peer.state_dict())
    batch, objective = (
        collate_tokens([[row] for row in rows], [str(number) for number in range(len(rows))]),
        NextToken(),
    )
    for precision, tolerance in (("fp32", 1e-5), ("bf16", 1e-2)):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            ids = torch.from_numpy(rows)
            losses = [
                peer(input_ids=ids, labels=ids).loss,
                objective(ours, batch, 0).divided_by(objective.counts(batch)),
            ]
        gradients = [
            torch.cat([one.flatten() for one in torch.autograd.grad(loss, list(model.parameters()))])
            for loss, model in zip(losses, (peer, ours), strict=True)
        ]
        difference = abs(losses[0].item() / losses[1].item() - 1)
        cosine = torch.nn.functional.cosine_similarity(*gradients, dim=0).item()
        print(f"{precision}: losses differ by {difference:.1e} of {tolerance:.0e}, gradients have cosine {cosine:.5f}")
        assert difference <= tolerance
        assert cosine >= 0.999
    ends = [np.mean(side(SMALL, "fp32", tokens, STEPS, Gate(), has_dropout=True)[-LAST:]) for side in TRAINERS.values()]
    print(f"{STEPS} steps: mean loss of the last {LAST}: {ends[0]:.4f} (peer), {ends[1]:.4f} (Sonant)")
    assert abs(ends[1] / ends[0] - 1) <= 0.01


def texts() -> list[str]:
    where = SHARED / "data/text/brown.txt"
    if not where.is_file():
        sys.exit(f"bench: texts are not at hand (SONANT_SHARED={SHARED}); nothing was measured")
    return where.read_text().split("\n\n")


def prepared_by_sonant(documents: list[str], tokenizer: Path, folder: Path) -> None:
    from sonant.batches.tokens.documents import texts_of_stream
    from sonant.batches.tokens.writing import tokenized
    from sonant.text.tokenizer import load_tokenizer

    made = tokenized(texts_of_stream(documents, "brown"), load_tokenizer(str(tokenizer)), str(folder))
    assert len(made.ends) == len(documents)


def prepared_by_datasets(documents: list[str], tokenizer: Path, folder: Path) -> None:
    """As `run_clm.py` does it; one process, whose tokenizer takes all cores: two processes were slower."""
    from itertools import chain

    import datasets
    from transformers import PreTrainedTokenizerFast

    datasets.disable_progress_bars()
    cutter = PreTrainedTokenizerFast(tokenizer_file=str(tokenizer / "tokenizer.json"))
    block = TIMED.tokens

    def group_texts(examples: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        joined = {name: list(chain(*rows)) for name, rows in examples.items()}
        total = len(joined["input_ids"]) // block * block
        result = {name: [row[i : i + block] for i in range(0, total, block)] for name, row in joined.items()}
        result["labels"] = result["input_ids"].copy()
        return result

    folder.mkdir(parents=True)
    data = datasets.Dataset.from_dict({"text": documents})
    data = data.map(
        lambda examples: cutter(examples["text"]),
        batched=True,
        remove_columns=["text"],
        cache_file_name=str(folder / "tokenized.arrow"),
    )
    data = data.map(group_texts, batched=True, cache_file_name=str(folder / "grouped.arrow"))
    assert len(data)


PREPARERS = {"sonant": prepared_by_sonant, "datasets": prepared_by_datasets}


def measure_preparation(documents: list[str], tokenizer: Path, room: Path) -> tuple[float, float]:
    """How many times faster and smaller; every byte that either writes is counted."""

    def fresh(side: str) -> None:
        shutil.rmtree(room / side, ignore_errors=True)
        PREPARERS[side](documents, tokenizer, room / side)

    for side in PREPARERS:
        fresh(side)
    taken = interleaved({side: lambda side=side: fresh(side) for side in PREPARERS})  # type: ignore[misc]
    disk = {side: bytes_below(room / side) for side in PREPARERS}
    size = sum(map(len, documents)) / 1e6
    for side, values in taken.items():
        print(f"{side:<9} tokens from {size:.1f} MB: {spread(values)}, {disk[side] / 1e6:.2f} MB")
    return median(taken["datasets"]) / median(taken["sonant"]), disk["datasets"] / disk["sonant"]


def train_pieces(documents: list[str], folder: Path) -> np.ndarray:
    """A tokenizer of the texts in the folder, and their tokens."""
    from sonant.text.bulk import BulkCoder
    from sonant.text.tokenizer import SubwordsConfig, train_tokenizer

    tokenizer = train_tokenizer(documents, SubwordsConfig(size=PIECES))
    tokenizer.save(str(folder))
    return BulkCoder(tokenizer)(documents)[0]


def measure(room: Path, pairs: int) -> None:
    logging.disable(logging.WARNING)
    documents = texts()
    tokens = train_pieces(documents, room / "tokenizer")
    np.save(room / "tokens.npy", tokens)
    faster, smaller = measure_preparation(documents, room / "tokenizer", room)
    check_equal(tokens)
    peers = timed([("peer", "fp32"), ("peer", "bf16")], room / "tokens.npy", 3)
    best = min(peers, key=lambda name: median(peers[name][0]))[1]
    print(
        f"the peer is faster in {best}: "
        + ", ".join(f"{name[1]} {median(took):.2f} s" for name, (took, _) in peers.items())
    )
    found = timed([("peer", best), ("sonant", best)], room / "tokens.npy", pairs)
    num_tokens = TIMED.rows * TIMED.tokens
    for (side, _), (took, above) in found.items():
        speed = num_tokens / median(took)
        print(f"{side:<7} step {spread(took)}, {speed:,.0f} tokens/s, peak {above:,.0f} MiB above the model")
    print(f"floor: {floor(best):.3f} s a step, by matrix products alone at the rate measured here")
    (theirs, their_peak), (ours, our_peak) = (found[side, best] for side in ("peer", "sonant"))
    print(f"data preparation, datasets / sonant: time {faster:.1f}x (5x wanted), disk {smaller:.1f}x (3x wanted)")
    print(f"peak memory, sonant / peer: {our_peak / their_peak:.2f} (0.7 wanted)")
    print(f"tokens/s, sonant / peer: {median(theirs) / median(ours):.2f}x (1.5x wanted)")


def floor(precision: str) -> float:
    """Seconds that the products of a step take at the rate of a large one."""
    import torch

    torch.set_num_threads(THREADS)
    matrix = torch.randn(2048, 2048).to({"fp32": torch.float32, "bf16": torch.bfloat16}[precision])
    seconds = []
    for _ in range(20):
        began = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - began)
    rate = 2 * 2048**3 / min(seconds)
    weights = TIMED.layers * 12 * TIMED.width**2 + TIMED.symbols * TIMED.width
    attention = TIMED.layers * 2 * TIMED.tokens * TIMED.width
    return 6 * (weights + attention) * TIMED.rows * TIMED.tokens / rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--side", choices=sorted(TRAINERS), help="run one side, a step for each 'go' on standard input")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--tokens", type=Path)
    chosen = parser.parse_args()
    if chosen.side:
        import torch

        torch.set_num_threads(THREADS)
        logging.disable(logging.WARNING)
        tokens = np.load(chosen.tokens)
        TRAINERS[chosen.side](TIMED, chosen.precision, tokens, 10**6, Gate(is_ordered=True), has_dropout=True)
        return
    with tempfile.TemporaryDirectory() as room:
        measure(Path(room), chosen.pairs)


if __name__ == "__main__":
    main()
