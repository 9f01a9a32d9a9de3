"""Further places that the figures of a run are written to, where somebody asks for them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sonant.base.errors import DependencyError


class Tracker(Protocol):
    def write(self, step: int, figures: Mapping[str, float]) -> None: ...
    def close(self) -> None: ...


class _TensorBoard:
    def __init__(self, folder: str, name: str, project: str, config: Mapping[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(os.path.join(folder, "tensorboard"))
        self.writer.add_text("config", str(dict(config)))

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        for key, value in figures.items():
            self.writer.add_scalar(key, value, step)

    def close(self) -> None:
        self.writer.close()


class _Trackio:
    def __init__(self, folder: str, name: str, project: str, config: Mapping[str, Any]) -> None:
        import trackio

        self.module = trackio
        trackio.init(project=project, name=name, config=dict(config))

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        self.module.log(dict(figures), step=step)

    def close(self) -> None:
        self.module.finish()


class _WeightsAndBiases:
    """Offline unless the environment says otherwise: a training needs no network."""

    def __init__(self, folder: str, name: str, project: str, config: Mapping[str, Any]) -> None:
        import wandb

        os.environ.setdefault("WANDB_MODE", "offline")
        self.run: Any = wandb.init(project=project, name=name, dir=folder, config=dict(config), resume="allow")

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        self.run.log(dict(figures), step=step)

    def close(self) -> None:
        self.run.finish()


_TRACKERS: dict[str, Any] = {"tensorboard": _TensorBoard, "trackio": _Trackio, "wandb": _WeightsAndBiases}


def open_trackers(names: Sequence[str], folder: str, project: str, config: Mapping[str, Any]) -> list[Tracker]:
    """The trackers asked for; a package that is not installed is named."""
    opened: list[Tracker] = []
    for name in names:
        try:
            opened.append(_TRACKERS[name](folder, os.path.basename(folder), project, config))
        except ImportError as error:
            raise DependencyError.for_extra(name, "trackers", f"the tracker '{name}'") from error
    return opened
