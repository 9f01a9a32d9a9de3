"""Scores in, answers out, as one config says: the same when a recogniser is measured and when it is served.

decoder = Decoder(spelling, SearchConfig(beam=BeamConfig(width=20)), guide, judge)
decoder(log_probs, lengths)[0][0].text        # the best answer of the first utterance
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np

from sonant.base import config as configs
from sonant.base.bounds import Within, check_fields
from sonant.base.errors import ConfigError, UsageError
from sonant.base.lengths import Lengths
from sonant.decoding.decoders import decode_by_search, decode_greedily
from sonant.decoding.guide import Guide, GuideConfig, build_guide
from sonant.decoding.hypotheses import Hypothesis
from sonant.decoding.ngram.model import NgramModel
from sonant.decoding.prefix_beam import BeamConfig
from sonant.decoding.rescoring import Judge, RescoringConfig, rescore
from sonant.decoding.spelling import Spelling


@dataclass(frozen=True, kw_only=True)
class GreedyConfig:
    """The best symbol of each frame."""

    kind: Literal["greedy"] = "greedy"


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """The likeliest texts, with what is known of words."""

    kind: Literal["search"] = "search"
    beam: BeamConfig = field(default_factory=BeamConfig)
    ngram: str = ""  # an n-gram model of words: a file
    lexicon: str = ""  # the only words that may be written: a file
    hot_words: dict[str, float] = field(default_factory=dict)  # and the nats that each is worth
    guide: GuideConfig = field(default_factory=GuideConfig)
    rescorer: str = ""  # a bundle of a causal language model
    num_rescored: Annotated[int, Within(2, 1000)] = 20  # answers that it chooses among
    rescoring: RescoringConfig = field(default_factory=RescoringConfig)

    def __post_init__(self) -> None:
        check_fields(self)
        if not (self.ngram or self.hot_words or self.lexicon) and self.guide != GuideConfig():
            action = "Give ngram, lexicon or hot_words, or leave it."
            raise ConfigError("guide", "it weighs words, and none are known.", action)
        if not self.rescorer and self.rescoring != RescoringConfig():
            raise ConfigError("rescoring", "there is nothing that rescores.", "Give rescorer, or leave it out.")


DecodingConfig = GreedyConfig | SearchConfig


@dataclass(frozen=True)
class Decoder:
    """Everything between the scores of a recogniser and its answers."""

    spelling: Spelling
    config: DecodingConfig = field(default_factory=GreedyConfig)
    guide: Guide | None = None
    judge: Judge | None = None

    def __call__(self, log_probs: np.ndarray, lengths: Lengths, num_best: int = 1) -> list[list[Hypothesis]]:
        """From log-probabilities (B, T, V): up to `num_best` answers for each utterance, best first, at least one."""
        if isinstance(self.config, GreedyConfig):
            self.require_answers(num_best)
            return [[one] for one in decode_greedily(log_probs, lengths, self.spelling)]
        wanted = max(num_best, self.config.num_rescored if self.judge else 1)
        answers = decode_by_search(log_probs, lengths, self.spelling, self.config.beam, self.guide, wanted)
        if self.judge:
            answers = rescore(answers, self.judge, self.config.rescoring)
        return [some[:num_best] for some in answers]

    def require_answers(self, num_best: int) -> None:
        """Refuses to be asked for more answers than there can be."""
        if num_best > 1 and isinstance(self.config, GreedyConfig):
            raise UsageError("num_best", "one answer is all that a greedy search has.", "Search with a beam.")


def guide_of(
    config: SearchConfig, spelling: Spelling, ngram: NgramModel | None, lexicon: Sequence[str] | None = None
) -> Guide | None:
    """What the search is told of words; None: nothing."""
    if ngram is None and not config.hot_words and lexicon is None:
        return None
    weights = config.guide
    if ngram is None and weights == GuideConfig():
        weights = GuideConfig(word_bonus=0.0)  # it makes up for what n-grams take from each word
    return build_guide(spelling, weights, ngram=ngram, hot_words=config.hot_words, lexicon=lexicon)


@dataclass(frozen=True, kw_only=True)
class _Kept:
    decoding: GreedyConfig | SearchConfig = field(default_factory=GreedyConfig)


def decoding_of(values: Mapping[str, Any], where: str) -> DecodingConfig:
    """What a bundle says of its decoding."""
    return configs.from_dict(_Kept, {"decoding": dict(values)} if values else {}, where).decoding


def decoding_values(config: DecodingConfig) -> dict[str, Any]:
    """The same as plain values."""
    return configs.to_dict(config)


def weights_of(config: DecodingConfig) -> dict[str, float]:
    """The numbers that decodings of one bundle differ in."""
    if isinstance(config, GreedyConfig):
        return {}
    weights, beam = config.guide, config.beam
    found: dict[str, float] = {"prefixes": beam.width, "window": beam.window, "token window": beam.frames.token_window}
    if config.ngram:
        found |= {"n-grams": weights.ngram_weight, "word": weights.word_bonus, "unknown": -weights.unknown_penalty}
    if config.rescorer:
        found |= {"language model": config.rescoring.weight, "its word": config.rescoring.word_bonus}
    return found


def in_words(config: DecodingConfig) -> str:
    """A decoding in a line."""
    if isinstance(config, GreedyConfig):
        return "the best symbol of each frame"
    beam = config.beam
    pruned = f"within {beam.window:g} nats, tokens within {beam.frames.token_window:g}"
    parts = [f"a search with {beam.width:,} prefixes ({pruned})"]
    if config.ngram:
        weights = config.guide
        told = f"{weights.word_bonus:+g} a word, {-weights.unknown_penalty:+g} an unknown one"
        parts.append(f"n-grams at {weights.ngram_weight:g} ({told})")
    if config.lexicon:
        parts.append("only words of a lexicon")
    if config.hot_words:
        parts.append(f"{len(config.hot_words):,} hot words")
    if config.rescorer:
        told = f"{config.rescoring.weight:g} ({config.rescoring.word_bonus:+g} a word)"
        parts.append(f"{config.num_rescored:,} answers read again by a language model at {told}")
    return ", ".join(parts)
