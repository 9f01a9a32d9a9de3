"""A step of wav2vec 2.0 pretraining, against `Wav2Vec2ForPreTraining` with the collator of its example script.

The same weights, speech (8 × 5 s), hidden frames and negatives; whole steps: batch, forward, backward, clipping, AdamW.
First equality, dropout and Gumbel noise off: losses and gradients. Then timing at the recipe's dropout, in turns, at
each precision; each side's memory in a process of its own. The floor is what the arithmetic alone takes at the matrix
rate measured in the same minute: no program of these layers can be faster.

`--parity` trains instead: 300 steps of both sides from the same weights over the same stretches, hidden frames and
negatives, whose mean losses of the last 50 steps must be within 1 %.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import soundfile
import torch
import torch.nn.functional as F
from torch import Tensor

from ground import interleaved, matrix_rate, median, speech, spread
from sonant.batches.examples import SpeechExample
from sonant.batches.pretraining import Drawing, PretrainingBatch
from sonant.checkpoints.wav2vec2_weights import from_transformers, pretraining_config
from sonant.models.wav2vec2_pretraining import Wav2Vec2Pretraining
from sonant.objectives.contrastive import Contrastive

UTTERANCES, SECONDS, RATE = 8, 5.0, 16000
PARITY_STEPS, PARITY_BATCHES, LAST, WARMUP, LEARNING_RATE = 300, 16, 50, 30, 1e-4
PRECISIONS = ("fp32", "bf16")
STILL = {"hidden_dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
Step = Callable[[], object]


def peer_model(**settings: object) -> torch.nn.Module:
    """12.7 million parameters, as deep as a machine without a GPU likes."""
    from transformers import Wav2Vec2Config, Wav2Vec2ForPreTraining

    torch.manual_seed(0)
    shape = {
        "conv_dim": [256] * 7,
        "hidden_size": 384,
        "num_hidden_layers": 6,
        "num_attention_heads": 6,
        "intermediate_size": 1536,
        "feat_extract_norm": "layer",
        "do_stable_layer_norm": True,
        "conv_bias": True,
        "layerdrop": 0.0,
        "mask_time_prob": 0.65,
    }
    return Wav2Vec2ForPreTraining(Wav2Vec2Config(**{**shape, **settings})).train()


def own_model(peer: torch.nn.Module) -> Wav2Vec2Pretraining:
    """Ours with the weights of theirs; speech is normalized beforehand on both sides."""
    model = Wav2Vec2Pretraining(pretraining_config(peer.config.to_dict(), "config.json", normalize=False))
    model.load_state_dict(from_transformers(peer.state_dict(), peer.config.num_codevector_groups))
    return model.train()


def examples(num_batches: int = 1) -> list[SpeechExample]:
    """Learners' English, joined to utterances of one length and normalized."""
    source = speech() / "speechocean762"
    lines = (source / "train/wav.scp").read_text().splitlines()
    read = (soundfile.read(source / line.split()[1], dtype="float32")[0] for line in lines)
    needed, found = round(num_batches * UTTERANCES * SECONDS * RATE), [np.zeros(0, np.float32)]
    while sum(map(len, found)) < needed:
        found.append(next(read))
    rows = np.concatenate(found)[:needed].reshape(num_batches * UTTERANCES, -1)
    rows = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-7)
    return [
        SpeechExample(id=f"u{number}", pass_number=0, waveform=row, sample_rate=RATE) for number, row in enumerate(rows)
    ]


def peer_batch(model: torch.nn.Module, speech: list[SpeechExample]) -> dict[str, Tensor]:
    """As the collator of the example script makes it, padding being none."""
    from transformers.models.wav2vec2.modeling_wav2vec2 import _compute_mask_indices, _sample_negative_indices

    values = torch.from_numpy(np.stack([one.waveform for one in speech]))
    attention = torch.ones_like(values, dtype=torch.long)
    num_frames = int(model._get_feat_extract_output_lengths(values.shape[1]))
    frames = model._get_feature_vector_attention_mask(num_frames, attention)
    hidden = _compute_mask_indices((len(values), num_frames), 0.65, 10, attention_mask=frames)
    negatives = _sample_negative_indices((len(values), num_frames), 100, mask_time_indices=hidden)
    return {
        "input_values": values,
        "attention_mask": attention,
        "mask_time_indices": torch.from_numpy(hidden),
        "sampled_negative_indices": torch.from_numpy(negatives),
    }


def same_batch(batch: PretrainingBatch) -> dict[str, Tensor]:
    """Our hidden frames and negatives as theirs are counted."""
    negatives = torch.zeros(*batch.hidden.shape, batch.negatives.shape[1], dtype=torch.int64)
    negatives[batch.hidden] = batch.places[batch.negatives]
    return {
        "input_values": batch.speech.waveforms,
        "attention_mask": batch.speech.lengths.mask().long(),
        "mask_time_indices": batch.hidden.clone(),
        "sampled_negative_indices": negatives,
    }


def peer_step(precision: str, speech: list[SpeechExample], *, is_compiled: bool = False) -> Step:
    model = peer_model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    forward = torch.compile(model) if is_compiled else model

    def step() -> None:
        batch = peer_batch(model, speech)
        count = batch["mask_time_indices"].sum()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = forward(**batch).loss
        (loss / count).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def own_step(precision: str, speech: list[SpeechExample]) -> Step:
    model = own_model(peer_model())
    drawing, objective = Drawing(model.encoder.num_frames), Contrastive()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)

    def step() -> None:
        batch = drawing(speech)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = objective(model, batch, 0)
            total = loss.divided_by(objective.counts(batch))
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def likeliest(logits: Tensor, tau: float, *, hard: bool) -> Tensor:
    """Their choice of codes without its noise."""
    soft = (logits / tau).softmax(dim=-1)
    return F.one_hot(soft.argmax(dim=-1), soft.shape[-1]) - soft.detach() + soft


def still_models() -> tuple[torch.nn.Module, Wav2Vec2Pretraining]:
    """Both sides with the same weights, without dropout or noise."""
    peer = peer_model(**STILL)
    own = own_model(peer)
    own.quantizer.config = dataclasses.replace(own.quantizer.config, noise=False)
    return peer, own


def check_equality(precision: str, speech: list[SpeechExample]) -> None:
    """Dropout and noise off: how far losses and gradients are from each other; ends the benchmark if too far.

    In bf16 each side's gradients are compared with those of fp32: rounding alone takes either about 0.002 from them.
    """
    peer, own = still_models()
    batch = Drawing(own.encoder.num_frames)(speech)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        theirs, wanted = peer_gradients(peer, batch)
        ours, found = own_gradients(own, batch)
    difference = abs(ours / theirs - 1)
    cosine = F.cosine_similarity(found, wanted, dim=0).item()
    print(f"{precision}: losses differ by {difference:.1e}, cosine of gradients {cosine:.6f}")
    least = 0.999
    if precision == "bf16":
        _, exact = own_gradients(own, batch)
        cosine, least = (F.cosine_similarity(side, exact, dim=0).item() for side in (found, wanted))
        print(f"bf16: cosine with the gradients of fp32: sonant {cosine:.6f}, transformers {least:.6f}")
        least -= 0.001
    if difference > {"fp32": 1e-5, "bf16": 1e-2}[precision] or cosine < least:
        sys.exit("bench: the two sides do not compute the same")


def own_gradients(model: Wav2Vec2Pretraining, batch: PretrainingBatch) -> tuple[float, Tensor]:
    """The loss, and all gradients side by side."""
    model.zero_grad()
    loss = sum(part.weight * part.total for part in Contrastive()(model, batch, 0).parts.values())
    loss.backward()
    return loss.item(), torch.cat([parameter.grad.flatten().double() for parameter in model.parameters()])


def peer_gradients(model: torch.nn.Module, batch: PretrainingBatch) -> tuple[float, Tensor]:
    """The same of theirs, in our order."""
    loss = peer_loss(model, batch)
    loss.backward()
    gradients = from_transformers({name: p.grad for name, p in model.named_parameters()}, 2)
    names = [name for name, _ in own_model(model).named_parameters()]
    return loss.item(), torch.cat([gradients[name].flatten().double() for name in names])


def peer_loss(model: torch.nn.Module, batch: PretrainingBatch) -> Tensor:
    """Summed, as they sum it, without the noise that cannot be switched off there."""
    drawn, F.gumbel_softmax = F.gumbel_softmax, likeliest
    try:
        loss: Tensor = model(**same_batch(batch)).loss
    finally:
        F.gumbel_softmax = drawn
    return loss


def parity(precision: str, num_steps: int) -> float:
    """Trains both sides alike; gives the ratio of their mean losses over the last steps."""
    peer, own = still_models()
    objective = Contrastive()

    def own_loss(batch: PretrainingBatch) -> Tensor:
        return objective(own, batch, 0).divided_by(objective.counts(batch))

    sides: dict[str, tuple[torch.nn.Module, Callable[[PretrainingBatch], Tensor]]] = {
        "transformers": (peer, lambda batch: peer_loss(peer, batch) / batch.hidden.sum()),
        "sonant": (own, own_loss),
    }
    optimizers = {name: torch.optim.AdamW(model.parameters(), fused=True) for name, (model, _) in sides.items()}
    losses: dict[str, list[float]] = {name: [] for name in sides}
    for step, batch in enumerate(parity_batches(own, num_steps)):
        for name, (model, loss_of) in sides.items():
            for group in optimizers[name].param_groups:
                group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / WARMUP)
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                loss = loss_of(batch)
            loss.backward()
            if torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).isfinite():
                optimizers[name].step()
            else:
                print(f"{precision}: step {step + 1}: gradients of {name} are not finite; skipped")
            optimizers[name].zero_grad()
            losses[name].append(loss.item())
        if step == 0 or (step + 1) % 25 == 0:
            print(f"{precision}: step {step + 1}", *(f"{name} {found[-1]:.4f}" for name, found in losses.items()))
    theirs, ours = (float(np.mean(losses[name][-LAST:])) for name in ("transformers", "sonant"))
    count = min(LAST, num_steps)
    print(f"{precision}: mean loss of the last {count} steps: transformers {theirs:.4f}, sonant {ours:.4f}")
    if abs(ours / theirs - 1) > 0.01:
        sys.exit("bench: the two sides do not learn the same")
    return theirs / ours


def parity_batches(model: Wav2Vec2Pretraining, num_steps: int) -> Iterator[PretrainingBatch]:
    """A few batches again and again, hidden in another way each time."""
    drawing, found = Drawing(model.encoder.num_frames), examples(PARITY_BATCHES)
    for step in range(num_steps):
        number, first = step // PARITY_BATCHES, step % PARITY_BATCHES * UTTERANCES
        yield drawing([dataclasses.replace(one, pass_number=number) for one in found[first : first + UTTERANCES]])


def arithmetic() -> float:
    """Multiplications and additions of a step that no order of them avoids, in GFLOP: matrix products alone."""
    config = own_model(peer_model()).config.encoder
    convolutions, transformer = config.convolutions, config.transformer
    frames, inputs, forward, first = round(SECONDS * RATE), 1, 0.0, 0.0
    for width, kernel, stride in zip(convolutions.widths, convolutions.kernels, convolutions.strides, strict=True):
        frames = (frames - kernel) // stride + 1
        product = 2.0 * frames * kernel * inputs * width
        first = first or product
        forward, inputs = forward + product, width
    width, hidden = transformer.width, transformer.hidden_width
    a_layer = 2 * frames * (4 * width**2 + 2 * width * hidden) + 4 * frames**2 * width
    positions = 2 * frames * config.position_kernel * width * width // config.position_groups
    forward += transformer.num_layers * a_layer + 2 * frames * inputs * width + positions
    return UTTERANCES * (3 * forward - first) / 1e9  # the waveform needs no gradient


def peak_of(side: str, precision: str) -> float:
    """The largest resident size, in MB, of a fresh process that takes two steps."""
    command = [sys.executable, __file__, "--steps-of", f"{side}:{precision}"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--precision", choices=PRECISIONS, action="append")
    parser.add_argument("--compiled", action="store_true", help="their side compiled as well; needs a C++ compiler")
    parser.add_argument("--parity", type=int, metavar="STEPS", nargs="?", const=PARITY_STEPS, help="train both sides")
    parser.add_argument("--steps-of", metavar="SIDE:PRECISION", help="two steps of one side, for its memory")
    arguments = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if arguments.parity:
        for precision in arguments.precision or ["fp32"]:
            print(f"{precision}: ratio of mean losses {parity(precision, arguments.parity):.4f}")
        return
    speech = examples()
    if arguments.steps_of:
        side, precision = arguments.steps_of.split(":")
        step = (own_step if side == "sonant" else peer_step)(precision, speech)
        step(), step()
        print(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])
        return
    ratios = {}
    best: dict[str, list[float]] = {"transformers": [], "sonant": []}
    for precision in arguments.precision or PRECISIONS:
        check_equality(precision, speech)
        sides = {"transformers": peer_step(precision, speech), "sonant": own_step(precision, speech)}
        if arguments.compiled:
            sides["transformers, compiled"] = peer_step(precision, speech, is_compiled=True)
        rates = [matrix_rate(precision)]
        for work in sides.values():
            work()
        taken = interleaved(sides, arguments.pairs)
        rates.append(matrix_rate(precision))
        for name, seconds in taken.items():
            print(f"{precision}: {name:24} {spread(seconds)}")
        theirs = min(median(seconds) for name, seconds in taken.items() if name != "sonant")
        ours = median(taken["sonant"])
        best["transformers"].append(theirs)
        best["sonant"].append(ours)
        floor = arithmetic() / max(rates)
        print(f"{precision}: floor {floor:.3f} s ({arithmetic():.0f} GFLOP at {max(rates):.0f} GFLOP/s),", end=" ")
        print(f"of which sonant reaches {floor / ours:.0%}, transformers {floor / theirs:.0%}")
        memory = [peak_of(side, precision) for side in ("sonant", "transformers")]
        print(f"{precision}: peak memory {memory[0]:.0f} MB against {memory[1]:.0f} MB: {memory[0] / memory[1]:.2f}")
        ratios[precision] = theirs / ours
        print(f"{precision}: ratio {ratios[precision]:.2f}")
    print(f"at each side's best precision: {min(best['transformers']) / min(best['sonant']):.2f}")


if __name__ == "__main__":
    main()
