"""How a recogniser is to decode while it is measured: what is asked for, or what is best on a split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sonant.base import config as configs
from sonant.base.errors import ConfigError
from sonant.base.randomness import uniform_for
from sonant.checkpoints.bundle import Bundle
from sonant.corpus.manifest import Corpus
from sonant.decoding.decoder import Decoder, DecodingConfig, SearchConfig, in_words, weights_of
from sonant.decoding.spelling import Spelling
from sonant.decoding.tuning import Heard, Tuned, tune
from sonant.evaluation.recognition import Scored
from sonant.inference.decoding import open_tuner
from sonant.recipes.decoding import Asked, asked_decoding

_MOST_SCORES = 1 << 28  # of the utterances that decoding is chosen on: 1 GB


@dataclass(frozen=True)
class Chosen:
    """A decoding that is ready, and how it was found."""

    config: DecodingConfig
    decoder: Decoder
    tuned: Tuned | None = None

    def facts(self, asked: Asked) -> dict[str, object]:
        """What a table says of its decoding."""
        found: dict[str, object] = {"decoding": configs.to_dict(self.config), "decoded": in_words(self.config)}
        if self.tuned:
            tried = [
                {"stage": trial.stage, "weights": weights_of(trial.config), "wer": self.tuned.rate(trial)}
                for trial in self.tuned.trials
            ]
            found |= {"tuned_on": asked.tune, "tried": tried}
        return found


def choose(
    bundle: Bundle,
    spelling: Spelling,
    asked: Asked,
    scores_of: Callable[[str], Sequence[Scored]],
    device: str,
    say: Callable[[str], None],
) -> Chosen:
    """`scores_of` hears a split; it is called only to tune."""
    config = asked_decoding(bundle, asked.settings, is_greedy=asked.is_greedy)
    if not asked.tune:
        tuner = open_tuner(bundle, spelling, config, device, say)
        return _ready(Chosen(config, tuner.decoder(config)), asked)
    if not isinstance(config, SearchConfig):
        config = SearchConfig()
    tuner = open_tuner(bundle, spelling, config, device, say)
    heard = [Heard(one.log_probs, one.lengths, one.references(spelling)) for one in scores_of(asked.tune)]
    found = tune(heard, tuner, config)
    if not found.num_words:
        raise ConfigError("--tune", f"nothing is said in '{asked.tune}'.", "Name a split with texts.")
    say(f"chosen on '{asked.tune}' among {len(found.trials)} decodings: {in_words(found.config)}")
    return _ready(Chosen(found.config, tuner.decoder(found.config), found), asked)


def _ready(chosen: Chosen, asked: Asked) -> Chosen:
    chosen.decoder.require_answers(asked.num_best)
    return chosen


def a_share(corpora: Sequence[Corpus], cells_per_second: float, say: Callable[[str], None]) -> list[Corpus]:
    """As many utterances, the same ones every time, as have scores that fit into memory; one at least."""
    seconds = sum(float(corpus.seconds.sum()) for corpus in corpora)
    fitting = _MOST_SCORES / max(seconds * cells_per_second, 1e-9)
    if fitting >= 1:
        return list(corpora)
    say(f"decoding is chosen on {fitting:.0%} of the utterances, drawn by their ids: the scores of all take too much")
    draws = [_draws(corpus) for corpus in corpora]
    share = max(fitting, min(float(drawn.min()) for drawn in draws if len(drawn)))
    kept = [corpus.where(drawn <= share) for corpus, drawn in zip(corpora, draws, strict=True)]
    return [corpus for corpus in kept if len(corpus)]


def _draws(corpus: Corpus) -> np.ndarray:
    ids: Any = corpus.column("id")
    return np.array([uniform_for(0, str(id), "tuning") for id in ids], np.float64)
