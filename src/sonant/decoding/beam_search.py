"""Prefix beam search over CTC scores, for many utterances at once: every step is a few operations on flat arrays.

Shapes: N beams of all utterances, M ways to extend one of them by a token.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sonant.decoding.beams import MIX, NONE, Beams, adopt, empty_prefixes
from sonant.decoding.frames import Frames
from sonant.decoding.guide import Guide


@dataclass(frozen=True, eq=False)
class Extensions:
    """Every beam with every likely token of its frame behind it."""

    beam: np.ndarray  # (M,)
    token: np.ndarray  # (M,)
    log_prob: np.ndarray  # (M,): of all paths
    node: np.ndarray  # (M,)
    closed: np.ndarray  # (M,)
    score: np.ndarray  # (M,)


class Search:
    """Goes through the steps of some utterances and writes down every prefix that was ever kept."""

    def __init__(self, frames: Frames, blank_id: int, width: int, window: float, guide: Guide | None) -> None:
        self.frames, self.blank_id, self.width, self.window, self.guide = frames, blank_id, width, window, guide
        self.trail_parents: list[np.ndarray] = []
        self.trail_tokens: list[np.ndarray] = []
        self.trail_length = 0

    def run(self) -> Beams:
        """The last beams of all utterances; those that end first come first."""
        beams, ended = empty_prefixes(len(self.frames.order), self.blank_id, self.guide.start if self.guide else 0), []
        for step, num_live in enumerate(self.frames.num_live.tolist()):
            if beams.utterance[-1] >= num_live:
                count = int(np.searchsorted(beams.utterance, num_live))
                ended.append(beams.rest(count))
                beams = beams.first(count)
            beams = self.step(beams, step)
        ended.append(beams)
        numbers, logs = ([getattr(some, name) for some in ended] for name in ("numbers", "logs"))
        return Beams(np.concatenate(numbers, axis=1), np.concatenate(logs, axis=1))

    def prefixes(self, beams: Beams) -> list[tuple[int, ...]]:
        """Reads what was written down, from the last tokens back to the first."""
        parents = np.concatenate([*self.trail_parents, np.array([NONE])])
        tokens = np.concatenate([*self.trail_tokens, np.array([NONE])])
        columns, trails = [], beams.trail
        while (trails != NONE).any():
            columns.append(tokens.take(trails))
            trails = parents.take(trails)
        rows = np.stack(columns[::-1], axis=1) if columns else np.zeros((len(trails), 0), np.int64)
        return [tuple(row[row != NONE].tolist()) for row in rows]

    def step(self, beams: Beams, step: int) -> Beams:
        log_probs = self.frames.log_probs[step]
        self._pass_gap(beams, step)
        total = np.logaddexp(beams.blank, beams.spoken)
        extensions, starts = self._extensions(beams, total, step)
        kept_log = log_probs.reshape(-1).take(beams.utterance * log_probs.shape[1] + beams.last)
        spoken = beams.spoken + kept_log
        self._merge(beams, total, spoken, kept_log, extensions, starts, step)
        blank = total + log_probs[:, self.blank_id].take(beams.utterance)
        stay_score = np.logaddexp(blank, spoken)
        if self.guide:
            stay_score = stay_score + beams.closed + self.guide.values.take(beams.node)
        chosen = self._best(beams.utterance, stay_score, extensions)
        return self._next(beams, blank, spoken, extensions, chosen)

    def _pass_gap(self, beams: Beams, step: int) -> None:
        """Frames passed over were blank: only such paths went on."""
        follows = self.frames.follows_gap[step].take(beams.utterance)
        if follows.any():
            beams.blank[:] = np.where(follows, np.logaddexp(beams.blank, beams.spoken), beams.blank)
            beams.spoken[follows] = -np.inf

    def _extensions(self, beams: Beams, total: np.ndarray, step: int) -> tuple[Extensions, np.ndarray]:
        """With the place (N,) where the extensions of each beam begin."""
        frames = self.frames
        counts = frames.num_likely[step].take(beams.utterance)
        ends = np.cumsum(counts)
        starts = ends - counts
        beam = np.repeat(np.arange(len(counts)), counts)
        pairs = np.arange(len(beam)) + (frames.starts[step].take(beams.utterance) - starts).take(beam)
        token, token_log = frames.tokens.take(pairs), frames.token_logs.take(pairs)
        is_repeat = token == beams.last.take(beam)
        log_prob = np.where(is_repeat, beams.blank.take(beam), total.take(beam)) + token_log
        if self.guide is None:
            nothing = np.zeros(len(beam), np.int64)
            return Extensions(beam, token, log_prob, nothing, np.zeros(len(beam)), log_prob.copy()), starts
        begins = self.guide.begins_word.take(token)
        close_words(beams, beam[begins], self.guide)
        node = self.guide.step(beams.node.take(beam), token)
        closed = beams.closed.take(beam) + np.where(begins, beams.closing.take(beam), 0.0)
        score = log_prob + closed + self.guide.values.take(node)
        return Extensions(beam, token, log_prob, node, closed, score), starts

    def _merge(
        self,
        beams: Beams,
        total: np.ndarray,
        spoken: np.ndarray,
        kept_log: np.ndarray,
        extensions: Extensions,
        starts: np.ndarray,
        step: int,
    ) -> None:
        """An extension that is a beam already flows into it, in place of standing twice."""
        children = (beams.parent != NONE).nonzero()[0]
        if not children.size:
            return
        parents, last = beams.parent.take(children), beams.last.take(children)
        is_repeat = beams.last.take(parents) == last
        inflow = np.where(is_repeat, beams.blank.take(parents), total.take(parents)) + kept_log.take(children)
        spoken[children] = np.logaddexp(spoken.take(children), inflow)
        frames, utterances = self.frames, beams.utterance.take(children)
        first, num_pairs = int(frames.starts[step, 0]), int(frames.num_likely[step].sum())
        cells = frames.cells[first : first + num_pairs]
        wanted = utterances * frames.log_probs.shape[2] + last
        found = np.searchsorted(cells, wanted)
        is_likely = cells.take(np.minimum(found, num_pairs - 1)) == wanted if num_pairs else np.zeros(len(found), bool)
        twins = starts.take(parents) + found + first - frames.starts[step].take(utterances)
        extensions.score[twins[is_likely]] = -np.inf

    def _best(self, utterance: np.ndarray, stay_score: np.ndarray, extensions: Extensions) -> np.ndarray:
        """Which go on, of all beams as they stand and then all extensions; utterance by utterance, best first."""
        floor = np.maximum.reduceat(stay_score, _firsts(utterance)) - self.window
        scores = np.concatenate([stay_score, extensions.score])
        utterances = np.concatenate([utterance, utterance.take(extensions.beam)])
        worth = (scores >= floor.take(utterances)).nonzero()[0]
        worth = worth.take(np.argsort(-scores.take(worth), kind="stable"))
        worth = worth.take(np.argsort(utterances.take(worth).astype(np.int16), kind="stable"))  # a sort by digits
        groups = utterances.take(worth)
        firsts = _firsts(groups)
        ranks = np.arange(len(worth)) - firsts.take(groups)
        near = scores.take(worth) >= scores.take(worth.take(firsts)).take(groups) - self.window
        chosen: np.ndarray = worth[(ranks < self.width) & near]
        return chosen

    def _next(
        self, beams: Beams, blank: np.ndarray, spoken: np.ndarray, extensions: Extensions, chosen: np.ndarray
    ) -> Beams:
        num_beams = len(blank)
        is_new = chosen >= num_beams
        new = is_new.nonzero()[0]
        which = chosen.take(new) - num_beams
        origins = chosen.copy()
        origins[new] = extensions.beam.take(which)
        stays = np.full(num_beams + 1, NONE)  # where each beam goes, and -1 for what was dropped before
        stays[origins[~is_new]] = (~is_new).nonzero()[0]
        following = beams.take(origins)
        following.blank[:] = blank.take(origins)
        following.spoken[:] = spoken.take(origins)
        following.parent[:] = stays.take(following.parent)
        if new.size:
            self._write(following, new, origins.take(new), stays, extensions, which)
            adopt(following, new)
        return following

    def _write(
        self,
        beams: Beams,
        new: np.ndarray,
        origins: np.ndarray,
        stays: np.ndarray,
        extensions: Extensions,
        which: np.ndarray,
    ) -> None:
        tokens = extensions.token.take(which)
        self.trail_parents.append(beams.trail.take(new))
        self.trail_tokens.append(tokens)
        beams.trail[new] = np.arange(self.trail_length, self.trail_length + len(new))
        self.trail_length += len(new)
        beams.last[new], beams.parent[new] = tokens, stays.take(origins)
        marks = beams.mark.take(new)
        beams.parent_mark[new] = marks
        marks = (marks ^ (tokens + 1)) * MIX
        beams.mark[new] = marks ^ (marks >> 29)
        beams.blank[new], beams.spoken[new] = -np.inf, extensions.log_prob.take(which)
        if self.guide:
            nodes = extensions.node.take(which)
            begins = self.guide.begins_word.take(tokens)
            states = np.where(begins, beams.next_state.take(new), beams.state.take(new))
            beams.node[new], beams.state[new], beams.closed[new] = nodes, states, extensions.closed.take(which)
            beams.closing[new] = np.nan


def close_words(beams: Beams, places: np.ndarray, guide: Guide) -> None:
    """Most beams are gone before their word ends: only those that need it are asked what that scores."""
    is_asked = np.zeros(len(beams.closing), bool)
    is_asked[places] = True
    asked = np.flatnonzero(is_asked & np.isnan(beams.closing))
    if asked.size:
        beams.closing[asked], beams.next_state[asked] = guide.close(beams.node.take(asked), beams.state.take(asked))


def _firsts(groups: np.ndarray) -> np.ndarray:
    """Where each run of equal numbers (N,) begins."""
    is_first = np.ones(len(groups), bool)
    np.not_equal(groups[1:], groups[:-1], out=is_first[1:])
    return is_first.nonzero()[0]
