"""An epoch of CTC fine-tuning, against Hugging Face's `Trainer` as `run_speech_recognition_ctc.py` sets it up.

The same encoder (wav2vec 2.0 of 12 million weights, its convolutions frozen), the same learners' utterances of uneven
length, dropout as that script has it (none), masks on both sides. First equality: the loss of one batch and its
gradients, masks off. Then whole epochs in turns, each side at its better precision: reading, batches, steps and all.
The second epoch of ours finds what the convolutions heard in the store.

Figures are of wall clock and, since machines are shared, of processor time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import soundfile
import torch
from torch import Tensor, nn

import sonant
from ground import median, processor_seconds, seconds_of, speech
from sonant.base.lengths import Lengths
from sonant.batches.bucketing import BucketingConfig
from sonant.batches.collate import collate_speech
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.batches.heard import HeardExamples, collate_heard
from sonant.batches.loader import Loader
from sonant.batches.masking import MaskingConfig
from sonant.batches.source import CorpusSource
from sonant.batches.store import Store
from sonant.corpus.manifest import Corpus, open_corpus
from sonant.models.ctc import EncoderConfig, new_model
from sonant.objectives.ctc import Ctc, CtcConfig, HidingConfig
from sonant.recipes.freezing import freeze_front_end
from sonant.text.tokenizer import CharactersConfig, Tokenizer, train_tokenizer

SHAPE = {
    "conv_dim": [256] * 7,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "intermediate_size": 1536,
    "feat_extract_norm": "layer",
    "do_stable_layer_norm": True,
    "conv_bias": True,
}
MASKS = HidingConfig(frames=MaskingConfig(probability=0.05, span=10, min_spans=2))
Epoch = Callable[[], None]


def own_model(tokenizer: Tokenizer) -> nn.Module:
    torch.manual_seed(0)
    model, _ = new_model(EncoderConfig(settings=SHAPE), tokenizer.size, 0, hides_frames=True)
    freeze_front_end(model)
    return model.train()


def peer_model(own: nn.Module) -> nn.Module:
    """Theirs with the same weights, as the script loads a model: no dropout, masks, the convolutions frozen."""
    from transformers import AutoConfig, AutoModelForCTC

    settings = own.config.to_dict() | {"ctc_loss_reduction": "mean", "mask_time_prob": 0.05}
    model = AutoModelForCTC.from_config(AutoConfig.for_model(**settings), attn_implementation="sdpa")
    model.load_state_dict(own.state_dict())
    model.freeze_feature_encoder()
    return model.train()


def padded(rows: list[dict[str, np.ndarray]]) -> dict[str, Tensor]:
    """What the script's collator makes of a list of features."""
    from transformers import Wav2Vec2FeatureExtractor

    listener = Wav2Vec2FeatureExtractor(return_attention_mask=True)
    values = listener.pad([{"input_values": row["input_values"]} for row in rows], return_tensors="pt")
    longest = max(len(row["labels"]) for row in rows)
    labels = torch.full((len(rows), longest), -100)
    for target, row in zip(labels, rows, strict=True):
        target[: len(row["labels"])] = torch.tensor(row["labels"])
    return {**values, "labels": labels}


def peer_epoch(own: nn.Module, rows: list[dict[str, np.ndarray]], precision: str, folder: str) -> Epoch:
    from accelerate.state import AcceleratorState
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=8,
        num_train_epochs=1,
        learning_rate=1e-4,
        bf16=precision == "bf16",
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        remove_unused_columns=False,
        disable_tqdm=True,
    )
    model = peer_model(own)

    def epoch() -> None:
        AcceleratorState._reset_state(reset_partial_state=True)  # the one before may have had another precision
        Trainer(model=model, args=arguments, train_dataset=rows, data_collator=padded).train()

    return epoch


def own_epoch(model: nn.Module, loader: Loader, precision: str) -> Epoch:
    objective = Ctc(CtcConfig(hiding=MASKS), model.num_frames, 0)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-4, fused=True)

    def epoch() -> None:
        for batch in loader:
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                loss = objective(model, batch, 0).divided_by(objective.counts(batch))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

    return epoch


def loader_of(corpus: Corpus, tokenizer: Tokenizer, model: nn.Module, store: Store | None) -> Loader:
    """Without a store every epoch hears anew."""
    examples = SpeechExamples(ExampleConfig(), encode=tokenizer.encode)
    planning = BucketingConfig(max_seconds=48, max_padding=0.2)
    if store is None:
        return Loader(CorpusSource([corpus], examples, collate_speech, planning))

    def hear(samples: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            heard = model.hear(torch.from_numpy(samples)[None], Lengths(torch.tensor([len(samples)])))
        return heard.frames[0].numpy()

    made = HeardExamples(examples, store, hear, "bench", "bench")
    return Loader(CorpusSource([corpus], made, collate_heard, planning))


def check_equality(own: nn.Module, rows: list[dict[str, np.ndarray]], corpus: Corpus, tokenizer: Tokenizer) -> None:
    """The loss of eight utterances, padded, masks and dropout off; ends the benchmark if it differs."""
    peer = peer_model(own)
    peer.config.ctc_loss_reduction, peer.config.mask_time_prob = "sum", 0.0
    expected = peer(**padded(rows[:8])).loss
    expected.backward()
    examples = SpeechExamples(ExampleConfig(), encode=tokenizer.encode)
    batch = collate_speech([examples(utterance, 0) for utterance in corpus.take(range(8))])
    found = Ctc(CtcConfig(), own.num_frames, 0)(own, batch, 0).parts["ctc"].total
    own.zero_grad()
    found.backward()
    difference = abs(found.item() / expected.item() - 1)
    sides = [torch.cat([p.grad.flatten() for p in m.parameters() if p.grad is not None]).double() for m in (own, peer)]
    cosine = torch.nn.functional.cosine_similarity(*sides, dim=0).item()
    own.zero_grad()
    print(f"losses differ by {difference:.1e}, cosine of gradients {cosine:.6f}")
    if difference > 1e-5 or cosine < 0.999:
        sys.exit("bench: the two sides do not compute the same")


def prepared(folder: Path, count: int) -> Corpus:
    """So many learners' utterances, as they come."""
    source = speech() / "speechocean762/train"
    sonant.prepare(str(source), str(folder / "corpus"), sonant.PrepareConfig())
    corpus = open_corpus(str(folder / "corpus"))
    return corpus.where(np.random.default_rng(0).permutation(len(corpus)) < count)


def peer_rows(corpus: Corpus, tokenizer: Tokenizer) -> list[dict[str, np.ndarray]]:
    """Decoded and normalized beforehand, as the script's `map` leaves them on disk."""
    rows = []
    for utterance in corpus:
        samples, _ = soundfile.read(utterance.audio, dtype="float32")
        samples = (samples - samples.mean()) / np.sqrt(samples.var() + 1e-7)
        rows.append({"input_values": samples, "labels": np.array(tokenizer.encode(utterance.text))})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--utterances", type=int, default=96)
    parser.add_argument("--pairs", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        corpus = prepared(Path(place), arguments.utterances)
        tokenizer = train_tokenizer([str(text) for text in corpus.column("text")], CharactersConfig())
        rows, seconds = peer_rows(corpus, tokenizer), float(corpus.seconds.sum())
        own = own_model(tokenizer)
        millions = sum(parameter.numel() for parameter in own.parameters()) / 1e6
        print(f"{len(corpus)} utterances, {seconds:.0f} s, {millions:.1f} million weights")
        check_equality(own, rows, corpus, tokenizer)
        sides: dict[str, Epoch] = {}
        for precision in ("fp32", "bf16"):
            sides[f"transformers {precision}"] = peer_epoch(own, rows, precision, place)
            model, store = own_model(tokenizer), Store(f"{place}/{precision}")
            kept = loader_of(corpus, tokenizer, model, store)
            own_epoch(model, kept, precision)()  # fills the store
            sides[f"sonant {precision}"] = own_epoch(model, loader_of(corpus, tokenizer, model, None), precision)
            sides[f"sonant {precision}, heard before"] = own_epoch(model, kept, precision)
        wall: dict[str, list[float]] = {name: [] for name in sides}
        busy: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(arguments.pairs):
            for name, epoch in sides.items():
                busy[name].append(processor_seconds(lambda e=epoch, n=name: wall[n].append(seconds_of(e))))
        for name in sides:
            rates = [seconds / median(taken[name]) for taken in (wall, busy)]
            print(f"{name:28} {rates[0]:6.1f} s of speech a second, {rates[1]:6.1f} by processor")
        told(wall, busy)


def told(wall: dict[str, list[float]], busy: dict[str, list[float]]) -> None:
    """The ratios of epochs, each side at its better precision; that of the first epoch last."""

    def best(taken: dict[str, list[float]], side: str, end: str) -> float:
        return min(median(taken[f"{side} {precision}{end}"]) for precision in ("fp32", "bf16"))

    for name, taken in (("by processor", busy), ("by the clock", wall)):
        peer = best(taken, "transformers", "")
        later, first = (peer / best(taken, "sonant", end) for end in (", heard before", ""))
        print(f"{name}: later epochs {later:.2f}, first epoch {first:.2f}")
    print(f"first epoch, transformers / sonant: {first:.2f}")


if __name__ == "__main__":
    main()
