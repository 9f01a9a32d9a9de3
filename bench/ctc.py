"""An epoch of CTC fine-tuning, against Hugging Face's `Trainer` as `run_speech_recognition_ctc.py` sets it up.

The same encoder (wav2vec 2.0 of 13 million weights, its convolutions frozen), the same learners' utterances of uneven
length, no dropout (as that script has it), masks on both sides. First equality, masks off: the loss of a batch and its
gradients. Then epochs in turns, each side in a process of its own and at its better precision: reading, batches, steps.
Ours is the product's trainer: the first epoch finds an empty store and fills it with what the convolutions hear, the
second finds it there. Theirs has its features in memory, decoded and normalized before the clock starts; padding eight
of them takes milliseconds of a step of seconds, so workers of its loader would only be in the way. Its batches are
random, as by default; grouped by length, which is an option there, is told beside it.

The floor is what the arithmetic alone takes at the matrix rate measured in the same minute, without padding: no program
of these layers can be faster. Figures are of the wall clock and, since machines are shared, of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import sonant
from ctc_sides import (
    BATCH,
    FIRST,
    HIDDEN,
    LATER,
    LAYERS,
    WIDTH,
    Epochs,
    Ground,
    own_model,
    padded,
    peer_model,
    with_peer,
    with_sonant,
)
from ground import matrix_rate, median, speech
from sonant.batches.collate import collate_speech
from sonant.corpus.manifest import Corpus
from sonant.objectives.ctc import Ctc, CtcConfig
from sonant.text.tokenizer import CharactersConfig, train_tokenizer

OURS, PEER, GROUPED = "sonant", "transformers", "transformers, grouped by length"
PRECISIONS = ("fp32", "bf16")


def check_equality(ground: Ground) -> None:
    """Eight utterances, padded, masks off; ends the benchmark if losses or gradients differ.

    In bf16 each side's gradients are compared with those of fp32: rounding alone takes either away from them.
    """
    own = own_model(ground.tokenizer)
    peer = peer_model(own)
    peer.config.ctc_loss_reduction, peer.config.mask_time_prob = "sum", 0.0
    batch = collate_speech([ground.examples(utterance, 0) for utterance in ground.corpus.take(range(BATCH))])
    rows = padded(ground.rows()[:BATCH])

    def found(model: nn.Module, precision: str) -> tuple[float, Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            is_own = model is own
            loss = (
                Ctc(CtcConfig(), own.num_frames, 0)(own, batch, 0).parts["ctc"].total if is_own else peer(**rows).loss
            )
        learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        gradients = torch.autograd.grad(loss, learning, allow_unused=True)
        return loss.item(), torch.cat([part.flatten().double() for part in gradients if part is not None])

    (ours, gradient), (theirs, wanted) = found(own, "fp32"), found(peer, "fp32")
    difference, cosine = abs(ours / theirs - 1), F.cosine_similarity(gradient, wanted, dim=0).item()
    print(f"fp32: losses differ by {difference:.1e}, cosine of gradients {cosine:.6f}")
    (ours, found_one), (theirs, other) = found(own, "bf16"), found(peer, "bf16")
    rounded, near, least = abs(ours / theirs - 1), *(F.cosine_similarity(g, wanted, dim=0) for g in (found_one, other))
    print(f"bf16: losses differ by {rounded:.1e}, cosine with fp32: sonant {near:.5f}, transformers {least:.5f}")
    if difference > 1e-5 or cosine < 0.999 or rounded > 1e-2 or near < least - 0.001:
        sys.exit("bench: the two sides do not compute the same")


def arithmetic(corpus: Corpus) -> dict[str, float]:
    """Multiplications and additions of an epoch that no order of them avoids, in GFLOP."""
    model = own_model(train_tokenizer(["a"], CharactersConfig()))
    convolutions, config = model.convolutions.config, model.config
    seen_by_positions = config.num_conv_pos_embeddings * WIDTH // config.num_conv_pos_embedding_groups
    hearing = learning = 0.0
    for num_samples in (corpus.seconds * 16000).astype(int).tolist():
        frames, inputs = num_samples, 1
        for outputs, kernel, stride in zip(
            convolutions.widths, convolutions.kernels, convolutions.strides, strict=True
        ):
            frames = (frames - kernel) // stride + 1
            hearing += 2.0 * frames * kernel * inputs * outputs
            inputs = outputs
        a_layer = 2 * frames * (4 * WIDTH**2 + 2 * WIDTH * HIDDEN) + 4 * frames**2 * WIDTH
        # Twice for what is projected: the convolutions want no gradient.
        learning += 3 * (LAYERS * a_layer + 2 * frames * WIDTH * seen_by_positions) + 2 * 2 * frames * inputs * WIDTH
    return {FIRST: (hearing + learning) / 1e9, LATER: learning / 1e9}


class Side:
    """A trainer in a process of its own, told when to begin."""

    def __init__(self, name: str, precision: str, arguments: argparse.Namespace) -> None:
        self.name, self.precision = name, precision
        command = [sys.executable, __file__, "--side", name, "--precision", precision, "--corpus", arguments.corpus]
        self.process = subprocess.Popen(
            [*command, "--utterances", str(arguments.utterances)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(arguments.threads)},
        )

    def epochs(self) -> Epochs:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith(f'{{"{FIRST}"'):
                return {name: (wall, busy) for name, (wall, busy) in json.loads(line).items()}
        sys.exit("bench: a side ended before its time; its last words are above")

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def run_side(name: str, precision: str, ground: Ground) -> None:
    work = with_sonant(ground, precision) if name == OURS else with_peer(ground, precision, is_grouped=name == GROUPED)
    for _ in sys.stdin:
        print(json.dumps(work()), flush=True)


def faster(name: str, arguments: argparse.Namespace, seconds: float) -> Side:
    """The side at its better precision, warmed up."""
    sides = [Side(name, precision, arguments) for precision in PRECISIONS]
    taken = {side: side.epochs()[FIRST] for side in sides}
    for side, (wall, busy) in taken.items():
        told = f"{seconds / wall:.1f} s of speech a second, {seconds / busy:.1f} by processor"
        print(f"{name}, {side.precision}, once: {told}")
    best = min(sides, key=lambda side: taken[side][1])
    for side in sides:
        if side is not best:
            side.close()
    return best


def compare(arguments: argparse.Namespace, corpus: Corpus) -> None:
    seconds = float(corpus.seconds.sum())
    sides = [faster(name, arguments, seconds) for name in (PEER, OURS)]
    sides.append(Side(GROUPED, sides[0].precision, arguments))
    sides[-1].epochs()
    rates, taken = [matrix_rate(sides[1].precision)], {side.name: list[Epochs]() for side in sides}
    for _ in range(arguments.pairs):
        for side in sides:
            taken[side.name].append(side.epochs())
    rates.append(matrix_rate(sides[1].precision))
    for side in sides:
        side.close()
    middle = {
        (name, epoch): tuple(median([one[epoch][clock] for one in found]) for clock in (0, 1))
        for name, found in taken.items()
        for epoch in (FIRST, LATER)
    }
    for side in sides:
        for epoch in (FIRST, LATER) if side.name == OURS else (FIRST,):
            wall, busy = middle[side.name, epoch]
            told = f"{side.name}, {side.precision}{', ' + epoch if side.name == OURS else ''}"
            print(f"{told:38} {seconds / wall:6.1f} s of speech a second, {seconds / busy:6.1f} by processor")
    for epoch, work in arithmetic(corpus).items():
        floor = work / max(rates)
        reached = f"sonant reaches {floor / middle[OURS, epoch][0]:.0%}"
        print(f"{epoch}: floor {floor:.2f} s ({work:.0f} GFLOP at {max(rates):.0f} GFLOP/s), of which {reached}")
    for name in (GROUPED, PEER):
        for clock, kind in ((1, "by processor"), (0, "by the clock")):
            later, first = (middle[name, epoch][clock] / middle[OURS, epoch][clock] for epoch in (LATER, FIRST))
            print(f"against {name}, {kind}: {LATER} {later:.2f}, {FIRST} {first:.2f}")
    print(f"first epoch, transformers / sonant: {first:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--utterances", type=int, default=192, help="by chance; so many pad as the whole corpus does: 43 %%"
    )
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each side")
    parser.add_argument(
        "--side", choices=(OURS, PEER, GROUPED), help="this one alone: an epoch for each line it is told"
    )
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of that side")
    parser.add_argument("--corpus", default="", help="of that side")
    arguments = parser.parse_args()
    if arguments.side:
        run_side(arguments.side, arguments.precision, Ground.of(arguments.corpus, arguments.utterances))
        return
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as arguments.corpus:
        sonant.prepare(str(speech() / "speechocean762/train"), arguments.corpus, sonant.PrepareConfig())
        ground = Ground.of(arguments.corpus, arguments.utterances)
        print(
            f"{len(ground.corpus)} utterances, {ground.corpus.seconds.sum():.0f} s, {arguments.threads} threads a side"
        )
        check_equality(ground)
        compare(arguments, ground.corpus)


if __name__ == "__main__":
    main()
