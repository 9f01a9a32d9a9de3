"""What pretraining is worth on speech kept back: fixed masks, and a probe by option; measured alike while it learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sonant.base import config as configs
from sonant.batches.bucketing import SortingConfig
from sonant.batches.loader import Loader
from sonant.batches.pretraining import PretrainingBatch
from sonant.checkpoints.bundle import Bundle
from sonant.corpus.manifest import Corpus
from sonant.evaluation.pretraining import Measured, all_figures, measured, together
from sonant.evaluation.table import Evaluation, Facts, fingerprint_of
from sonant.metrics.intervals import BootstrapConfig, Interval
from sonant.recipes.pretrain_learning import Learning, drawing_of, objective_of
from sonant.recipes.probing import PROBE, ProbeConfig, probe_figures
from sonant.recipes.speech import CorporaConfig, fingerprints, measured_corpora, speech_source, told


@dataclass(frozen=True, kw_only=True)
class MeasuringConfig:
    """All that figures depend on but weights: what a bundle keeps for those who measure it again."""

    corpora: CorporaConfig
    learning: Learning
    crop_seconds: float
    batch_seconds: float
    probe: ProbeConfig = field(default_factory=ProbeConfig)


def evaluate(
    bundle: Bundle, data: Sequence[str], split: str | None, device: str, say: Callable[[str], None]
) -> Evaluation:
    """A row for each utterance; without data, of what the training validated with, and its probe as well."""
    measuring = configs.from_dict(MeasuringConfig, bundle.description.evaluation, bundle.folder)
    corpora, split = measured_corpora(measuring.corpora, data, split)
    model: Any = bundle.model().to(device)
    with fixed_batches(measuring, corpora, model) as batches:
        found = together([measured(model, objective_of(measuring.learning, 0), batches, device)])
    probe = {} if data or not measuring.probe.corpus else probe_figures(model.encoder, measuring.probe, device)
    say(f"{told(corpora)} of '{split}'")
    return table_of(found, corpora, split, fingerprint_of(bundle.path("model.safetensors")), probe)


def figures(evaluation: Evaluation) -> dict[str, float]:
    """Those of the training, by the same names."""
    of_batches, probe = _beside_rows(evaluation)
    return all_figures(evaluation.rows, of_batches) | probe


def intervals(evaluation: Evaluation, config: BootstrapConfig) -> dict[str, Interval]:
    """By speaker; what depends on batches, as the use of codes does, has none."""
    found = {measure: evaluation.interval(measure, config) for measure in evaluation.measures}
    _, probe = _beside_rows(evaluation)
    if len(probe) > 1:
        found["probe"] = Interval(*(probe[name] for name in PROBE))
    return found


def fixed_batches(
    measuring: MeasuringConfig, corpora: Sequence[Corpus], model: Any, *, rank: int = 0, world: int = 1
) -> Loader[PretrainingBatch]:
    """The same crops and hidden frames each time; whatever the seed of the run, so that runs compare."""
    drawing = drawing_of(measuring.learning, model.encoder.num_frames, 0)
    planning = SortingConfig(max_seconds=measuring.batch_seconds)
    return Loader(speech_source(corpora, drawing, planning, measuring.crop_seconds, rank=rank, world=world))


def table_of(
    found: Measured, corpora: Sequence[Corpus], split: str, bundle: str, probe: Mapping[str, float]
) -> Evaluation:
    """The rows of utterances, and beside them the figures that no utterance has for itself."""
    settings = {"of_batches": found.of_batches, "probe": dict(probe)}
    facts = Facts(task="pretrain", bundle=bundle, data=fingerprints(corpora), split=split, settings=settings)
    return Evaluation(facts, found.rows)


def _beside_rows(evaluation: Evaluation) -> tuple[dict[str, float], dict[str, float]]:
    """The figures of batches, and those of the probe."""
    settings: Mapping[str, Any] = evaluation.facts.settings
    return settings["of_batches"], settings["probe"]
