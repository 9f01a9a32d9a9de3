"""The line that an epoch leaves behind: how much was seen, padded, waited for and left out."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What batches held, as sums: it can be added up over batches and ranks, and travels in a run's state."""

    num_batches: int = 0  # empty ones too: one a step
    num_utterances: int = 0
    num_skipped: int = 0  # could not be read
    seconds: float = 0.0
    padded_seconds: float = 0.0  # padding included
    tokens: int = 0
    padded_tokens: int = 0

    def __add__(self, other: Tally) -> Tally:
        names = self.__dataclass_fields__
        return Tally(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def padding_share(self) -> float:
        """Share of all batches together that is not real."""
        real, padded = (self.seconds, self.padded_seconds) if self.padded_seconds else (self.tokens, self.padded_tokens)
        return 1 - real / padded if padded else 0.0


@dataclass(frozen=True, kw_only=True)
class EpochReport:
    """An epoch as its consumer saw it. The tally counts all of it; what is timed, only since the last start."""

    epoch: int
    tally: Tally = field(default_factory=Tally)
    num_overlong: int = 0  # longer than a batch may be: each alone in one
    wait_seconds: float = 0.0  # the consumer stood waiting for a batch
    total_seconds: float = 0.0  # by the clock, waiting included
    read_seconds: float = 0.0  # of speech read since the last start
    busy_seconds: float = 0.0  # of workers' time that reading took

    def __add__(self, other: EpochReport) -> EpochReport:
        """The same epoch over two ranks: sums, so that shares become means."""
        assert self.epoch == other.epoch
        return EpochReport(
            epoch=self.epoch,
            tally=self.tally + other.tally,
            num_overlong=max(self.num_overlong, other.num_overlong),  # every rank knows of all
            wait_seconds=self.wait_seconds + other.wait_seconds,
            total_seconds=self.total_seconds + other.total_seconds,
            read_seconds=self.read_seconds + other.read_seconds,
            busy_seconds=self.busy_seconds + other.busy_seconds,
        )

    @property
    def wait_share(self) -> float:
        return self.wait_seconds / self.total_seconds if self.total_seconds else 0.0

    @property
    def loading_speed(self) -> float:
        """Seconds of speech that one worker makes ready in a second."""
        return self.read_seconds / self.busy_seconds if self.busy_seconds else 0.0

    def __str__(self) -> str:
        tally = self.tally
        amount = f"{tally.seconds / 3600:.2f} h" if tally.padded_seconds else f"{tally.tokens:,} tokens"
        parts = [
            f"epoch {self.epoch}: {tally.num_utterances:,} utterances, {amount}, in {tally.num_batches:,} batches",
            f"padding {100 * tally.padding_share:.1f} %",
            f"waited {self.wait_seconds:.1f} s for data ({100 * self.wait_share:.1f} %)",
        ]
        if self.loading_speed:
            parts.append(f"one worker loads {self.loading_speed:,.0f}× real time")
        if tally.num_skipped:
            parts.append(f"{tally.num_skipped:,} unreadable, skipped")
        if self.num_overlong:
            parts.append(f"{self.num_overlong:,} longer than a batch may be, each alone in one")
        return "; ".join(parts)
