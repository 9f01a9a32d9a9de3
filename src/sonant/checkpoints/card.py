"""The model card of a bundle: what it is, what it learnt from, what it is worth, and how to use it.

Its head is the metadata that model hubs read; the rest is for people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

import sonant
from sonant.checkpoints.bundle import Description


@dataclass(frozen=True, kw_only=True)
class Card:
    """What a recipe says of its models."""

    title: str
    summary: str  # a sentence or two
    usage: Mapping[str, str]  # a heading -> code that works in an empty session
    pipeline: str = ""  # what model hubs call the task: automatic-speech-recognition, text-generation
    library: str = "sonant"
    tags: Sequence[str] = ()
    languages: Sequence[str] = ()
    datasets: Sequence[str] = ()
    base: str = ""  # the model that it was fine-tuned from
    settings: Mapping[str, Any] = field(default_factory=dict)  # that somebody else would need
    limits: str = ""


def card_text(card: Card, description: Description) -> str:
    """The README.md of a bundle."""
    return f"---\n{_head(card, description)}---\n\n# {card.title}\n\n{card.summary}\n\n" + "\n".join(
        [
            *_figures(description),
            *_data(description),
            *_usage(card),
            *_settings(card),
            *_limits(card),
            _foot(description),
        ]
    )


def with_section(text: str, heading: str, body: str) -> str:
    """A card in which a section stands before its last line, instead of an older one of this heading; "": nowhere."""
    older = re.compile(rf"^## {re.escape(heading)}\n.*?(?=^## |^Made with Sonant |\Z)", re.MULTILINE | re.DOTALL)
    text = older.sub("", text)
    if not body:
        return text
    head, made, foot = text.rpartition("Made with Sonant ")
    return f"{head}## {heading}\n\n{body}\n\n{made}{foot}" if made else f"{text}\n## {heading}\n\n{body}\n"


def _head(card: Card, description: Description) -> str:
    values: dict[str, Any] = {
        "library_name": card.library,
        "pipeline_tag": card.pipeline,
        "tags": list(dict.fromkeys(["sonant", description.task, *card.tags])),
        "language": list(card.languages),
        "datasets": list(card.datasets),
        "base_model": card.base,
    }
    values = {name: value for name, value in values.items() if value}
    results = [{"type": name, "name": name, "value": value} for name, value in description.metrics.items()]
    if results:
        task = {"type": card.pipeline or description.task}
        dataset = {"name": "validation", "type": "validation"}
        entry = {"task": task, "dataset": dataset, "metrics": results}
        values["model-index"] = [{"name": card.title, "results": [entry]}]
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    return text


def _figures(description: Description) -> list[str]:
    if not description.metrics:
        return []
    rows = [f"| {name} | {value:.6g} |" for name, value in description.metrics.items()]
    told = f"Of the validation at step {description.step:,}, which made these weights the best of their run.\n"
    return ["## Figures\n", told, "| figure | value |", "|---|---|", *rows, ""]


def _data(description: Description) -> list[str]:
    if not description.data:
        return []
    rows = [f"| {name} | {value} |" for name, value in description.data.items()]
    return ["## Data\n", "| | |", "|---|---|", *rows, ""]


def _usage(card: Card) -> list[str]:
    parts = ["## Use\n"]
    for heading, code in card.usage.items():
        language = "bash" if code.startswith("sonant ") else "python"
        parts += [f"{heading}:\n", f"```{language}\n{code}\n```", ""]
    return parts


def _settings(card: Card) -> list[str]:
    if not card.settings:
        return []
    text = yaml.safe_dump(dict(card.settings), sort_keys=False, allow_unicode=True)
    return ["## Training\n", "What differs from the defaults of the recipe:\n", f"```yaml\n{text}```", ""]


def _limits(card: Card) -> list[str]:
    return ["## Limits\n", card.limits, ""] if card.limits else []


def _foot(description: Description) -> str:
    made = f"Made with Sonant {sonant.__version__} ({description.architecture})."
    return f"{made} The folder describes itself: bundle.json.\n"
