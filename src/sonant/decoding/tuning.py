"""A decoding is chosen on utterances whose texts are known: the weights of words, how much is pruned, the rescoring.

tuned = tune(scores, references, Tuner(spelling, ngram=ngram, judge=judge), SearchConfig(ngram="words.ngram"))
tuned.config, tuned.trials        # the choice, and everything that was tried

Everything is counted in errors, nothing in seconds, so that the same scores give the same choice. What is chosen never
makes more errors than any other trial; of equals it is the one that was tried first, and the simplest are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from sonant.base.lengths import Lengths
from sonant.decoding.decoder import Decoder, DecodingConfig, GreedyConfig, SearchConfig, guide_of
from sonant.decoding.decoders import best_prefixes
from sonant.decoding.guide import GuideConfig
from sonant.decoding.ngram.model import NgramModel
from sonant.decoding.prefix_beam import BeamConfig
from sonant.decoding.rescoring import Judge, RescoringConfig, tune_rescoring
from sonant.decoding.spelling import Spelling
from sonant.metrics.edits import character_edits, word_edits

_FIRST = list(product((0.3, 0.6, 1.0), (0.0, 1.5, 3.0)))  # of n-grams, and for each word
_STEPS = (
    {"ngram_weight": 0.2, "word_bonus": 1.0, "unknown_penalty": 3.0},
    {"ngram_weight": 0.1, "word_bonus": 0.5, "unknown_penalty": 1.5},
)
_MOST_MOVES = 4  # of each size
_PRUNINGS = ((4.0, 6.0), (5.0, 6.0), (4.0, 9.0), (5.0, 9.0), (6.0, 9.0))  # of tokens and prefixes, cheap ones first


@dataclass(frozen=True, eq=False)
class Heard:
    """Scores of utterances side by side, and what was said."""

    log_probs: np.ndarray  # (B, T, V)
    lengths: Lengths
    references: Sequence[str]


@dataclass(frozen=True)
class Trial:
    stage: str
    config: DecodingConfig
    word_errors: int
    character_errors: int

    @property
    def rank(self) -> tuple[int, int]:
        return self.word_errors, self.character_errors


@dataclass(frozen=True)
class Tuned:
    """The choice and what it was made from."""

    config: DecodingConfig
    trials: tuple[Trial, ...]
    num_words: int

    @property
    def best(self) -> Trial:
        return next(trial for trial in self.trials if trial.config == self.config)

    def rate(self, trial: Trial) -> float:
        return trial.word_errors / max(self.num_words, 1)


@dataclass(frozen=True)
class Tuner:
    """What configs name, opened once: places in them are not looked at."""

    spelling: Spelling
    ngram: NgramModel | None = None
    judge: Judge | None = None
    lexicon: Sequence[str] | None = None

    def decoder(self, config: DecodingConfig) -> Decoder:
        if isinstance(config, GreedyConfig):
            return Decoder(self.spelling)
        ngram, lexicon = self.ngram if config.ngram else None, self.lexicon if config.lexicon else None
        guide = guide_of(config, self.spelling, ngram, lexicon)
        return Decoder(self.spelling, config, guide, self.judge if config.rescorer else None)

    def texts(self, config: DecodingConfig, heard: Heard) -> list[str]:
        """The answers of a decoder without rescoring; their times are not looked for."""
        decoder = self.decoder(config)
        if isinstance(config, GreedyConfig):
            return [some[0].text for some in decoder(heard.log_probs, heard.lengths)]
        assert not config.rescorer
        found = best_prefixes(heard.log_probs, heard.lengths, self.spelling, config.beam, decoder.guide)
        return [self.spelling.tokenizer.decode(some[0].ids).strip() for some in found]


def tune(heard: Sequence[Heard], tuner: Tuner, config: SearchConfig) -> Tuned:
    """The search that `config` describes with better weights, or a simpler decoding that is as good.

    Hot words and a lexicon are not judged: they stay, whatever is said in these utterances.
    """
    tuning = _Tuning(heard, tuner)
    alone = replace(config, rescorer="", rescoring=RescoringConfig())
    unguided = replace(alone, ngram="", guide=GuideConfig())
    if unguided == SearchConfig(beam=config.beam):
        tuning.try_all("greedy", [GreedyConfig()])
    tuning.try_all("search alone", [unguided])
    if alone != unguided:
        tuning.try_all("as given", [alone])
    if config.ngram:
        _choose_weights(tuning, alone)
    best = tuning.best_search
    _choose_pruning(tuning, best)
    if config.rescorer:
        _choose_rescoring(tuning, config)
    words = sum(len(reference.split()) for part in heard for reference in part.references)
    return Tuned(tuning.best.config, tuple(tuning.trials), words)


class _Tuning:
    """Trials so far; nothing is tried twice."""

    def __init__(self, heard: Sequence[Heard], tuner: Tuner) -> None:
        self.heard, self.tuner, self.trials = heard, tuner, list[Trial]()

    @property
    def best(self) -> Trial:
        return min(self.trials, key=lambda trial: trial.rank)

    @property
    def best_search(self) -> Trial:
        found = [trial for trial in self.trials if isinstance(trial.config, SearchConfig)]
        return min(found, key=lambda trial: trial.rank)

    def try_all(self, stage: str, configs: Iterable[DecodingConfig]) -> list[Trial]:
        return [self.try_one(stage, config) for config in configs]

    def try_one(self, stage: str, config: DecodingConfig) -> Trial:
        for trial in self.trials:
            if trial.config == config:
                return trial
        texts = [self.tuner.texts(config, part) for part in self.heard]
        return self.note(stage, config, texts)

    def note(self, stage: str, config: DecodingConfig, texts: Sequence[Sequence[str]]) -> Trial:
        pairs = [
            pair
            for part, some in zip(self.heard, texts, strict=True)
            for pair in zip(part.references, some, strict=True)
        ]
        words = sum(word_edits(*pair).errors for pair in pairs)
        self.trials.append(Trial(stage, config, words, sum(character_edits(*pair).errors for pair in pairs)))
        return self.trials[-1]


def _choose_weights(tuning: _Tuning, config: SearchConfig) -> None:
    """A coarse grid, and from its best on small steps as long as they help."""

    def weighed(guide: GuideConfig) -> SearchConfig:
        return replace(config, guide=guide)

    coarse = [replace(config.guide, ngram_weight=weight, word_bonus=bonus) for weight, bonus in _FIRST]
    found = tuning.try_all("weights", map(weighed, [config.guide, *coarse]))
    best = min(found, key=lambda trial: trial.rank)
    for steps in _STEPS:
        for _ in range(_MOST_MOVES):
            assert isinstance(best.config, SearchConfig)
            around = tuning.try_all("weights", map(weighed, _neighbours(best.config.guide, steps)))
            better = min(around, key=lambda trial: trial.rank)
            if better.rank >= best.rank:
                break
            best = better


def _neighbours(guide: GuideConfig, steps: dict[str, float]) -> Iterator[GuideConfig]:
    for name, step in steps.items():
        for moved in (getattr(guide, name) - step, getattr(guide, name) + step):
            if name == "word_bonus" or moved >= 0:
                yield replace(guide, **{name: round(moved, 6)})


def _choose_pruning(tuning: _Tuning, best: Trial) -> None:
    """The cheapest that makes no more errors comes to stand before the best."""
    config = best.config
    assert isinstance(config, SearchConfig)
    given = config.beam
    for tokens, window in _PRUNINGS:
        if tokens >= given.frames.token_window and window >= given.window:
            continue  # not cheaper than what is there
        frames = replace(given.frames, token_window=tokens)
        beam = BeamConfig(width=given.width, window=window, frames=frames)
        trial = tuning.try_one("pruning", replace(config, beam=beam))
        if trial.rank <= best.rank:
            tuning.trials.remove(trial)
            tuning.trials.insert(tuning.trials.index(best), trial)
            return


def _choose_rescoring(tuning: _Tuning, config: SearchConfig) -> None:
    """The answers of the best search so far are read again; each text once."""
    best = tuning.best_search.config
    assert isinstance(best, SearchConfig)
    assert tuning.tuner.judge
    read: dict[str, float] = {}

    def judge(texts: Sequence[str]) -> list[float]:
        new = [text for text in dict.fromkeys(texts) if text not in read]
        assert tuning.tuner.judge
        read.update(zip(new, map(float, tuning.tuner.judge(new)), strict=True))
        return [read[text] for text in texts]

    search = replace(best, rescorer=config.rescorer, num_rescored=config.num_rescored)
    guide = tuning.tuner.decoder(best).guide
    decoder = Decoder(tuning.tuner.spelling, best, guide)
    answers = [decoder(part.log_probs, part.lengths, search.num_rescored) for part in tuning.heard]
    flat = [some for part in answers for some in part]
    references = [reference for part in tuning.heard for reference in part.references]
    chosen = tune_rescoring(flat, judge, references)
    for rescoring in dict.fromkeys([RescoringConfig(), config.rescoring, chosen]):
        rescored = replace(search, rescoring=rescoring)
        final = Decoder(tuning.tuner.spelling, rescored, guide, judge)
        texts = [[some[0].text for some in final(part.log_probs, part.lengths)] for part in tuning.heard]
        tuning.note("rescoring", rescored, texts)
