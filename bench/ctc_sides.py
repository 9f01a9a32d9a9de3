"""The two trainers that `ctc.py` compares: what they learn from, and an epoch of each."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import soundfile
import torch
from torch import Tensor, nn

from sonant.batches.bucketing import BucketingConfig
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.batches.loader import Loader
from sonant.batches.masking import MaskingConfig
from sonant.batches.source import CorpusSource
from sonant.corpus.manifest import Corpus, open_corpus
from sonant.models.ctc import EncoderConfig, new_model
from sonant.objectives.ctc import Ctc, CtcConfig
from sonant.objectives.hiding import HidingConfig
from sonant.recipes.ctc import Config
from sonant.recipes.freezing import freeze_front_end
from sonant.recipes.hearing import heard_once
from sonant.recipes.recognition import loading
from sonant.text.tokenizer import CharactersConfig, Tokenizer, train_tokenizer
from sonant.training.config import GuardConfig, LimitsConfig, RhythmConfig, TrainerConfig
from sonant.training.console import Console
from sonant.training.engine import Engine
from sonant.training.optimizers import OptimizerConfig
from sonant.training.parts import Parts
from sonant.training.run_folder import RunFolder
from sonant.training.schedules import ScheduleConfig
from sonant.training.trainer import Trainer

WIDTH, HIDDEN, LAYERS = 384, 1536, 6
SHAPE = {
    "conv_dim": [256] * 7,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 6,
    "intermediate_size": HIDDEN,
    "feat_extract_norm": "layer",
    "do_stable_layer_norm": True,
    "conv_bias": True,
}
MASKS = HidingConfig(frames=MaskingConfig(probability=0.05, span=10, min_spans=2))
RATE, BATCH = 1e-4, 8
SECONDS = 48.0  # of our batches: as many steps as with eight utterances in each
FIRST, LATER = "first epoch", "later epochs"
Clocks = tuple[float, float]  # seconds of the wall clock and of all processors
Epochs = dict[str, Clocks]  # the first, and later ones


@dataclass(frozen=True)
class Ground:
    """What both sides learn from."""

    corpus: Corpus
    tokenizer: Tokenizer

    @staticmethod
    def of(folder: str, count: int) -> Ground:
        """So many learners' utterances, as they come."""
        corpus = open_corpus(folder)
        corpus = corpus.where(np.random.default_rng(0).permutation(len(corpus)) < count)
        return Ground(corpus, train_tokenizer([str(text) for text in corpus.column("text")], CharactersConfig()))

    @property
    def examples(self) -> SpeechExamples:
        return SpeechExamples(ExampleConfig(), encode=self.tokenizer.encode)

    def rows(self) -> list[dict[str, np.ndarray]]:
        """Decoded and normalized, as the script's `map` leaves them on disk."""
        rows = []
        for utterance in self.corpus:
            samples, _ = soundfile.read(utterance.audio, dtype="float32")
            samples = (samples - samples.mean()) / np.sqrt(samples.var() + 1e-7)
            rows.append({"input_values": samples, "labels": np.array(self.tokenizer.encode(utterance.text))})
        return rows


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


def listener() -> Any:
    from transformers import Wav2Vec2FeatureExtractor

    return Wav2Vec2FeatureExtractor(return_attention_mask=True)


def padded(rows: list[dict[str, np.ndarray]]) -> dict[str, Tensor]:
    """What the script's collator makes of a list of features."""
    values = listener().pad([{"input_values": row["input_values"]} for row in rows], return_tensors="pt")
    longest = max(len(row["labels"]) for row in rows)
    labels = torch.full((len(rows), longest), -100)
    for target, row in zip(labels, rows, strict=True):
        target[: len(row["labels"])] = torch.tensor(row["labels"])
    return {**values, "labels": labels}


def clocks() -> Clocks:
    times = os.times()
    return time.perf_counter(), times.user + times.system + times.children_user + times.children_system


def between(begun: Clocks, ended: Clocks) -> Clocks:
    return ended[0] - begun[0], ended[1] - begun[1]


def with_peer(ground: Ground, precision: str, *, is_grouped: bool) -> Callable[[], Epochs]:
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    model, rows, seen = peer_model(own_model(ground.tokenizer)), ground.rows(), list[Clocks]()

    class Clock(TrainerCallback):
        def on_epoch_begin(self, *_: Any, **__: Any) -> None:
            seen.append(clocks())

        def on_epoch_end(self, *_: Any, **__: Any) -> None:
            seen.append(clocks())

    def epoch() -> Epochs:
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder,
                per_device_train_batch_size=BATCH,
                num_train_epochs=1,
                learning_rate=RATE,
                bf16=precision == "bf16",
                use_cpu=True,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                remove_unused_columns=False,
                disable_tqdm=True,
                dataloader_pin_memory=False,
                train_sampling_strategy="group_by_length" if is_grouped else "random",
            )
            names = listener() if is_grouped else None  # says what is to be measured
            trainer = Trainer(model, arguments, padded, rows, processing_class=names, callbacks=[Clock()])
            trainer.remove_callback(PrinterCallback)
            seen.clear()
            trainer.train()
        return dict.fromkeys((FIRST, LATER), between(*seen))

    return epoch


class Timed(Trainer):
    """Ours, with the clocks before the first step and behind each."""

    def _step(self, batches: Any) -> None:
        self.seen: list[Clocks] = getattr(self, "seen", None) or [clocks()]
        super()._step(batches)
        self.seen.append(clocks())


def with_sonant(ground: Ground, precision: str) -> Callable[[], Epochs]:
    def epochs() -> Epochs:
        """Two, from an empty store."""
        with tempfile.TemporaryDirectory() as folder:
            config = Config(
                objective=CtcConfig(hiding=MASKS),
                batches=BucketingConfig(max_seconds=SECONDS),
                keep_heard=f"{folder}/heard",
                trainer=TrainerConfig(
                    optimizer=OptimizerConfig(rate=RATE),
                    schedule=ScheduleConfig(kind="constant", warmup=0),
                    rhythm=RhythmConfig(validate=0, save=0, save_minutes=0, report=0),
                    guard=GuardConfig(scan=False),
                    precision=precision,  # type: ignore[arg-type]
                ),
            )
            engine, console = Engine(config.trainer, cpu=True), Console(is_silent=True)
            model = own_model(ground.tokenizer)
            known = heard_once(config, model, ground.examples, [ground.corpus], console.say)
            source = CorpusSource([ground.corpus], *known, config.batches)
            first, both = source.num_steps(0), source.num_steps(0) + source.num_steps(1)
            settings = replace(config.trainer, limits=LimitsConfig(max_steps=both))
            parts = Parts(
                model=model,
                objective=Ctc(config.objective, model.num_frames, 0),
                loader=Loader(source, loading(engine, hears=True)),
                save_bundle=lambda *_: None,
            )
            trainer = Timed(parts, settings, RunFolder(folder), engine, console)
            trainer.run()
            engine.close()
            begun, middle, ended = (trainer.seen[step] for step in (0, first, both))
            return {FIRST: between(begun, middle), LATER: between(middle, ended)}

    return epochs
