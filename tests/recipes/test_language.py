"""A language model from its texts to its bundle, in every way that it can be asked for."""

from __future__ import annotations

import json
import random

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

import sonant
from sonant.base.errors import SonantError
from sonant.checkpoints.bundle import open_bundle
from sonant.corpus.sources.options import SourceOptions
from sonant.evaluation.table import read_evaluation

TINY = {"n_embd": 16, "n_layer": 2, "n_head": 2}
QUICK = [
    "trainer.limits.max_steps=6",
    "trainer.rhythm.validate=3",
    "trainer.rhythm.log=2",
    "trainer.guard.scan=false",
    "trainer.threads=1",
    "validation.generation.max_tokens=8",
    "block_size=32",
    "batches.max_tokens=256",
    "texts.documents=line",
    "texts.share.share=0.2",
    f"model.settings={json.dumps(TINY)}",
    "tokenizer.train={kind: bpe, size: 300}",
]


def sentences(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    words = [["the", "a", "one"], ["old", "small", "red"], ["bird", "boat", "door"], ["sings", "sinks", "opens"]]
    return [" ".join(rng.choice(choice) for choice in words) + "." for _ in range(count)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    place = tmp_path_factory.mktemp("texts") / "sentences.txt"
    place.write_text("\n".join(f"{line} number {n}" for n, line in enumerate(sentences(200))))
    return str(place)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("SONANT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def trained(texts, tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / "run"
    return place, sonant.train("language", texts, run=str(place), settings=QUICK, is_silent=True)


def test_the_bundle_opens_with_transformers_and_says_the_same(trained):
    place, _ = trained
    model = AutoModelForCausalLM.from_pretrained(place / "bundle").eval()
    ours = open_bundle(str(place / "bundle")).model()
    ids = torch.arange(20)[None]
    with torch.no_grad():
        torch.testing.assert_close(model(input_ids=ids).logits, ours(input_ids=ids).logits, rtol=1e-5, atol=1e-5)
    tokenizer = AutoTokenizer.from_pretrained(place / "bundle")
    text = "the old bird sings."
    assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text
    assert tokenizer(text)["input_ids"] == sonant.load(str(place / "bundle")).tokenizer.encode(text)


def test_evaluation_gives_the_figures_of_the_bundle_to_the_last_digit(trained):
    place, result = trained
    stored = open_bundle(str(place / "bundle")).description.metrics
    found = sonant.evaluate(str(place / "bundle"))
    assert {name: f"{value:.6g}" for name, value in found.figures.items()} == {
        name: f"{value:.6g}" for name, value in stored.items()
    }
    assert dict(result.metrics) == stored
    interval = found.intervals["perplexity"]
    assert interval.low < stored["perplexity"] < interval.high


def test_the_table_of_the_run_holds_what_the_figures_are_made_of(trained):
    place, result = trained
    table = read_evaluation(str(place / "utterances.parquet"))
    assert table.figure("loss") == pytest.approx(result.metrics["loss"], abs=1e-12)
    assert table.rows == sonant.evaluate(str(place / "bundle")).evaluation.rows


def test_a_run_leaves_all_that_is_promised(trained):
    place, _ = trained
    names = {path.name for path in place.iterdir()}
    assert {"bundle", "states", "config.yaml", "metrics.jsonl", "report.html", "samples.json"} <= names
    assert {"train_results.json", "eval_results.json", "all_results.json"} <= names
    assert "Samples" in (place / "report.html").read_text()
    assert "model-index" in (place / "bundle/README.md").read_text()


def test_the_saved_settings_run_the_run_again(trained, tmp_path):
    place, _ = trained
    sonant.train(str(place / "config.yaml"), run=str(tmp_path / "again"), is_silent=True)
    for path in (place / "bundle").iterdir():
        assert path.read_bytes() == (tmp_path / "again/bundle" / path.name).read_bytes(), path.name


def test_texts_are_scored_and_written(trained):
    place, _ = trained
    model = sonant.load(str(place / "bundle"))
    one, other = model.score(["the old bird sings.", "x"])
    assert one.log_prob < 0
    assert one.num_tokens > other.num_tokens
    assert model.generate("the", count=2) == model.generate("the", count=2)


@pytest.mark.parametrize("packing", ["stream", "packed", "single"])
def test_every_packing_scores_the_same_tokens(texts, tmp_path, packing):
    masks = [] if packing == "stream" else ["documents={mask_documents: true, reset_positions: true}"]
    settings = [*QUICK, f"packing={packing}", *masks, "trainer.limits.max_steps=2"]
    result = sonant.train("language", texts, run=str(tmp_path / "run"), settings=settings, is_silent=True)
    found = sonant.evaluate(str(tmp_path / "run/bundle"))
    assert f"{found.figures['loss']:.9g}" == f"{result.metrics['loss']:.9g}"
    # Nothing is predicted for the first token: of the text, or of each document.
    spans = len(found.evaluation.rows)
    assert result.metrics["tokens"] + (1 if packing == "stream" else spans) == sum_of_tokens(tmp_path)


def sum_of_tokens(tmp_path) -> int:
    told = open_bundle(str(tmp_path / "run/bundle")).description.data["validation"]
    return int(told.split()[0].replace(",", ""))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, trained):
    """A model somebody else has trained, with its tokenizer."""
    place = tmp_path_factory.mktemp("models") / "gpt2"
    tokenizer = AutoTokenizer.from_pretrained(trained[0] / "bundle")
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=len(tokenizer), n_positions=64, bos_token_id=0, eos_token_id=0, **TINY)
    GPT2LMHeadModel(config).save_pretrained(place)
    tokenizer.save_pretrained(place)
    return str(place)


FROM_FOLDER = [setting for setting in QUICK if not setting.startswith(("model.", "tokenizer."))]


def test_a_folder_is_tuned_and_opens_with_transformers_again(texts, folder, tmp_path):
    settings = [*FROM_FOLDER, f"model.folder={folder}"]
    sonant.train("language", texts, run=str(tmp_path / "run"), settings=settings, is_silent=True)
    before = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    after = AutoModelForCausalLM.from_pretrained(tmp_path / "run/bundle").state_dict()
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_adapters_change_what_the_model_says_and_are_merged_in_the_bundle(texts, folder, tmp_path):
    settings = [*FROM_FOLDER, f"model.folder={folder}", "model.lora={rank: 2}", "trainer.optimizer.rate=0.01"]
    result = sonant.train("language", texts, run=str(tmp_path / "run"), settings=settings, is_silent=True)
    found = sonant.evaluate(str(tmp_path / "run/bundle"))
    assert found.figures["loss"] == pytest.approx(result.metrics["loss"], rel=1e-6)
    before = AutoModelForCausalLM.from_pretrained(folder).state_dict()
    after = AutoModelForCausalLM.from_pretrained(tmp_path / "run/bundle").state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(name.endswith("weight") and "wte" not in name and "ln" not in name for name in changed)


def test_llama_learns_as_well(texts, tmp_path):
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    settings = [*QUICK, "model.architecture=llama", f"model.settings={json.dumps(shape)}"]
    result = sonant.train("language", texts, run=str(tmp_path / "run"), settings=settings, is_silent=True)
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "run/bundle").config.model_type == "llama"
    assert result.metrics["loss"] < 6


@pytest.mark.parametrize(
    "setting", ["trainer.gradient_checkpointing=true", "trainer.precision=bf16", "trainer.ema=0.5"]
)
def test_what_saves_memory_or_time_changes_little(texts, trained, tmp_path, setting):
    result = sonant.train("language", texts, run=str(tmp_path / "run"), settings=[*QUICK, setting], is_silent=True)
    assert result.metrics["loss"] == pytest.approx(trained[1].metrics["loss"], rel=0.02)


def test_a_prepared_corpus_keeps_its_splits(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "texts.csv").write_text(
        "text,split\n" + "\n".join(f"{line},{'dev' if n % 5 == 0 else 'train'}" for n, line in enumerate(sentences(60)))
    )
    config = sonant.PrepareConfig(source=SourceOptions(format="text"))
    sonant.prepare(str(source / "texts.csv"), str(tmp_path / "corpus"), config)
    sonant.train("language", str(tmp_path / "corpus"), run=str(tmp_path / "run"), settings=QUICK, is_silent=True)
    told = open_bundle(str(tmp_path / "run/bundle")).description.data
    assert "of 48 documents" in told["training"]
    assert "of 12 documents" in told["validation"]


def test_a_stream_is_read_up_to_its_budget(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    rows = [json.dumps({"text": f"{line} {n}"}) for n, line in enumerate(sentences(500))]
    (data / "train.jsonl").write_text("\n".join(rows) + "\n")
    hub = [f"texts.hub={{id: {data}}}", "texts.documents=auto", "texts.tokenizing.max_tokens=3000"]
    sonant.train("language", run=str(tmp_path / "run"), settings=[*QUICK, *hub], is_silent=True)
    told = open_bundle(str(tmp_path / "run/bundle")).description.data
    tokens = sum(int(value.split()[0].replace(",", "")) for value in told.values())
    assert 3000 <= tokens < 3030


def test_a_tiny_model_learns_eight_texts_by_heart(tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(f"{n} {line}" for n, line in enumerate(sentences(8, seed=3))))
    settings = [*QUICK, "texts.share={share: 0.1, by: last}", f"texts.validation=[{tmp_path / 'texts.txt'}]"]
    settings += [
        "trainer.limits.max_steps=150",
        "trainer.optimizer.rate=0.02",
        "trainer.rhythm.validate=0",
        "packing=single",
    ]
    settings += [
        'model.settings={"n_embd": 32, "n_layer": 2, "n_head": 2, "resid_pdrop": 0, "attn_pdrop": 0, "embd_pdrop": 0}'
    ]
    settings += ["documents={mask_documents: true, reset_positions: true}"]
    texts = str(tmp_path / "texts.txt")
    result = sonant.train("language", texts, run=str(tmp_path / "run"), settings=settings, is_silent=True)
    assert result.metrics["accuracy"] > 0.99


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (["block_size=1"], "block_size"),
        (["model.architecture=gpt22"], "gpt2"),
        (["model.settings={n_layers: 3}"], "n_layer"),
        (["texts.share.share=0.00001"], "0.0001"),
        (["trainer.precison=bf16"], "precision"),
        (["texts.validation=[nowhere.txt]"], "nowhere.txt"),
        (["model.lora={rank: 4}"], "lora"),
        (["packing=streams"], "stream"),
        (["batches={kind: random, max_tokens: 3}"], "max_tokens"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_was_meant(texts, tmp_path, settings, told):
    with pytest.raises(SonantError) as error:
        sonant.train("language", texts, run=str(tmp_path / "run"), settings=[*QUICK, *settings], is_silent=True)
    assert told in str(error.value)


def test_nothing_to_learn_from_is_told(tmp_path):
    with pytest.raises(SonantError, match="nothing is given to learn from"):
        sonant.train("language", run=str(tmp_path / "run"), is_silent=True)
    with pytest.raises(SonantError, match=r"language.*Or name a YAML file"):
        sonant.train("langauge", run=str(tmp_path / "run"), is_silent=True)


@pytest.mark.slow
def test_several_seeds_give_mean_and_interval(texts, tmp_path):
    from sonant.recipes.train import train_seeds

    made = train_seeds("language", texts, run=str(tmp_path / "runs"), count=3, settings=QUICK, is_silent=True)
    figures = json.loads((tmp_path / "runs/seeds.json").read_text())["figures"]["loss"]
    losses = [result.metrics["loss"] for result in made.runs]
    assert len(set(losses)) == 3
    assert figures["mean"] == pytest.approx(sum(losses) / 3)
    assert figures["low"] < figures["mean"] < figures["high"]
