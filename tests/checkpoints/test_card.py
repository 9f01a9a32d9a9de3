"""A card's head is metadata that hubs read, its figures are those of the bundle."""

from __future__ import annotations

import yaml

from sonant.checkpoints.bundle import Description
from sonant.checkpoints.card import Card, card_text

DESCRIPTION = Description(
    task="language",
    architecture="causal",
    config={},
    metrics={"loss": 1.5, "perplexity": 4.48},
    step=1200,
    data={"hours": 3},
)
CARD = Card(
    title="A small model",
    summary="It writes.",
    usage={"On the command line": "sonant generate bundle", "In Python": 'import sonant\nsonant.load("bundle")'},
    pipeline="text-generation",
    library="transformers",
    languages=["en"],
    datasets=["plays"],
    settings={"model": {"architecture": "gpt2"}},
    limits="It makes things up.",
)


def test_the_head_is_metadata_that_hubs_read():
    head = yaml.safe_load(card_text(CARD, DESCRIPTION).split("---")[1])
    assert head["pipeline_tag"] == "text-generation"
    assert head["language"] == ["en"]
    assert head["datasets"] == ["plays"]
    assert {"sonant", "language"} <= set(head["tags"])
    metrics = {metric["type"]: metric["value"] for metric in head["model-index"][0]["results"][0]["metrics"]}
    assert metrics == DESCRIPTION.metrics


def test_the_card_says_what_the_bundle_is_worth_and_how_to_use_it():
    text = card_text(CARD, DESCRIPTION)
    for wanted in (
        "# A small model",
        "| loss | 1.5 |",
        "step 1,200",
        "sonant generate bundle",
        "gpt2",
        "makes things up",
    ):
        assert wanted in text
    assert text.index("```bash\nsonant generate") < text.index("```python\nimport sonant")


def test_what_a_card_does_not_know_it_leaves_out():
    text = card_text(Card(title="t", summary="s", usage={}), Description(task="ctc", architecture="causal", config={}))
    head = yaml.safe_load(text.split("---")[1])
    assert set(head) == {"library_name", "tags"}
    assert "Figures" not in text
