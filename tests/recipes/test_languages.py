"""A recogniser of several languages, as MMS is one: an adapter, a head and symbols for each, one encoder for all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from noises import corpus_of_noises
from safetensors.torch import save_file
from transformers import (
    AutoConfig,
    AutoFeatureExtractor,
    AutoModel,
    AutoModelForCTC,
    AutoTokenizer,
    Wav2Vec2Config,
    Wav2Vec2CTCTokenizer,
    Wav2Vec2FeatureExtractor,
    Wav2Vec2ForCTC,
    Wav2Vec2Model,
)

import sonant
from sonant.base.errors import SonantError
from sonant.base.lengths import Lengths
from sonant.checkpoints.bundle import open_bundle
from sonant.checkpoints.tensors import read_tensors
from sonant.text.tokenizer import load_tokenizer

TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
TINY |= {"conv_dim": (8,) * 7, "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}
STABLE = TINY | {"do_stable_layer_norm": True, "feat_extract_norm": "layer", "conv_bias": True}
SPECIALS = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "|": 4}
LETTERS = {"eng": "abc", "spa": "abcdñ", "azj-script_cyrillic": "абв"}
QUICK = [
    "trainer.limits.max_steps=4",
    "trainer.rhythm.validate=2",
    "trainer.guard.scan=false",
    "trainer.threads=1",
    "trainer.optimizer.rate=0.01",
    "trainer.schedule.warmup=0",
    "batches.max_seconds=6",
    "keep_heard=off",
]


def symbols_of(language: str) -> dict[str, int]:
    return SPECIALS | {letter: number for number, letter in enumerate(LETTERS[language], len(SPECIALS))}


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A folder of three languages, saved by transformers."""
    place = tmp_path_factory.mktemp("models") / "several"
    torch.manual_seed(0)
    config = Wav2Vec2Config(**STABLE, adapter_attn_dim=4, vocab_size=len(symbols_of("eng")), pad_token_id=0)
    model = Wav2Vec2ForCTC(config)
    model.save_pretrained(place)
    for language in LETTERS:
        weights = {name: torch.randn_like(weight) * 0.3 for name, weight in model._get_adapters().items()}
        weights["lm_head.weight"] = torch.randn(len(symbols_of(language)), 16)
        weights["lm_head.bias"] = torch.randn(len(symbols_of(language)))
        save_file(weights, place / f"adapter.{language}.safetensors", {"format": "pt"})
    nested = place / "nested.json"
    nested.write_text(json.dumps({language: symbols_of(language) for language in LETTERS}))
    Wav2Vec2CTCTokenizer(str(nested), target_lang="eng").save_pretrained(place)
    nested.unlink()
    Wav2Vec2FeatureExtractor(return_attention_mask=True).save_pretrained(place)
    return str(place)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return corpus_of_noises(tmp_path_factory, 10, lambda rng: "".join(rng.choice(list("abñd"), 6)))


def trained(corpus: str, run: Path, folder: str, adapter: str, *settings: str) -> str:
    model = f"model={{kind: encoder, folder: {folder}, adapter: {adapter}}}"
    sonant.train("ctc", corpus, run=str(run), settings=[*QUICK, model, *settings], is_silent=True)
    return f"{run}/bundle"


def scores_of(bundle: str, sound: np.ndarray) -> torch.Tensor:
    with torch.no_grad():
        return open_bundle(bundle).model()(torch.from_numpy(sound)[None], Lengths(torch.tensor([len(sound)]))).logits


def their_scores(folder: str, sound: np.ndarray, **how) -> torch.Tensor:
    listener = AutoFeatureExtractor.from_pretrained(folder)
    model = AutoModelForCTC.from_pretrained(folder, **how).eval()
    with torch.no_grad():
        return model(**listener(sound, sampling_rate=16000, return_tensors="pt")).logits


SOUND = (0.1 * np.random.default_rng(1).standard_normal(16000)).astype(np.float32)


@pytest.mark.parametrize("language", sorted(LETTERS))
def test_each_language_of_a_folder_is_gone_on_from_as_transformers_opens_it(language, several, corpus, tmp_path):
    settings = ["trainer.optimizer.rate=0", "trainer.limits.max_steps=1"]
    bundle = trained(corpus, tmp_path / "run", several, f"{{language: {language}}}", *settings)
    expected = their_scores(several, SOUND, target_lang=language, ignore_mismatched_sizes=True)
    torch.testing.assert_close(scores_of(bundle, SOUND), expected, rtol=1e-5, atol=1e-5)
    assert load_tokenizer(bundle).vocabulary.ids == symbols_of(language)


def test_only_the_adapter_and_the_head_learn(several, corpus, tmp_path):
    bundle = trained(corpus, tmp_path / "run", several, "{language: spa}")
    before, after = (read_tensors(f"{place}/model.safetensors") for place in (several, bundle))
    own = read_tensors(f"{several}/adapter.spa.safetensors")
    learnt = read_tensors(f"{bundle}/adapter.spa.safetensors")
    assert learnt.keys() == own.keys()
    assert all(torch.equal(learnt[name], after[name]) for name in learnt)
    assert all(not torch.equal(own[name], learnt[name]) for name in own)
    assert all(
        torch.equal(before[name], after[name]) for name in before.keys() - own.keys() - {"wav2vec2.masked_spec_embed"}
    )
    assert sum("adapter_layer" in name for name in own) == 2 * 6  # norm and two matrices, in both layers


@pytest.mark.parametrize("adapter", ["{language: spa}", "{language: quy, new: true}"])
def test_what_was_learnt_opens_with_transformers_by_its_language_and_says_the_same(adapter, several, corpus, tmp_path):
    bundle = trained(corpus, tmp_path / "run", several, adapter)
    language = adapter[len("{language: ") :][:3]
    ours = scores_of(bundle, SOUND)
    for how in ({}, {"target_lang": language, "ignore_mismatched_sizes": True}):
        torch.testing.assert_close(their_scores(bundle, SOUND, **how), ours, rtol=1e-5, atol=1e-5)
    writer, tokenizer = AutoTokenizer.from_pretrained(bundle, target_lang=language), load_tokenizer(bundle)
    ids = tokenizer.encode("abñd")
    assert writer("abñd").input_ids == ids
    assert writer.decode(ids) == "abñd"
    assert AutoTokenizer.from_pretrained(bundle).target_lang == language


def test_an_adapter_alone_beside_the_folder_it_came_from_is_the_whole_model(several, corpus, tmp_path):
    bundle = Path(trained(corpus, tmp_path / "run", several, "{language: quy, new: true}"))
    both = tmp_path / "both"
    both.mkdir()
    for file in (*Path(several).iterdir(), bundle / "adapter.quy.safetensors"):
        (both / file.name).write_bytes(file.read_bytes())
    found = their_scores(str(both), SOUND, target_lang="quy", ignore_mismatched_sizes=True)
    torch.testing.assert_close(found, scores_of(str(bundle), SOUND), rtol=1e-5, atol=1e-5)


def test_a_new_language_brings_its_own_symbols(several, corpus, tmp_path):
    bundle = trained(corpus, tmp_path / "run", several, "{language: quy, new: true}")
    assert set(load_tokenizer(bundle).vocabulary.characters) == set("abñd ")
    assert json.loads(Path(bundle, "vocab.json").read_text()).keys() == {"quy"}


def test_an_encoder_without_adapters_gets_its_first(corpus, tmp_path):
    torch.manual_seed(0)
    Wav2Vec2Model(Wav2Vec2Config(**STABLE)).save_pretrained(tmp_path / "encoder")
    bundle = trained(corpus, tmp_path / "run", f"{tmp_path}/encoder", "{language: quy, new: true, width: 6}")
    weights = read_tensors(f"{bundle}/adapter.quy.safetensors")
    assert weights["wav2vec2.encoder.layers.1.adapter_layer.linear_1.weight"].shape == (6, 16)
    torch.testing.assert_close(their_scores(bundle, SOUND, target_lang="quy"), scores_of(bundle, SOUND))


def test_a_bundle_of_a_language_is_measured_again_and_gone_on_from(several, corpus, tmp_path):
    bundle = trained(corpus, tmp_path / "run", several, "{language: spa}")
    assert sonant.evaluate(bundle).figures == pytest.approx(open_bundle(bundle).description.metrics, rel=1e-6)
    further = trained_from(corpus, tmp_path / "further", bundle)
    before, after = (read_tensors(f"{place}/model.safetensors") for place in (bundle, further))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == read_tensors(f"{further}/adapter.spa.safetensors").keys()


def trained_from(corpus: str, run: Path, bundle: str) -> str:
    sonant.train("ctc", corpus, run=str(run), settings=[*QUICK, f"start={bundle}"], is_silent=True)
    return f"{run}/bundle"


@pytest.mark.parametrize(
    ("adapter", "told"),
    [
        ("{language: spx}", r"no adapter for 'spx'.*Did you mean 'spa'.*new=true"),
        ("{language: ../spa}", "part of a file's name"),
        ("{language: spa, width: 5}", "4 wide"),
        ("{langage: spa}", "language"),
    ],
)
def test_a_mistake_is_told_by_its_key(adapter, told, several, corpus, tmp_path):
    with pytest.raises(SonantError, match=told):
        trained(corpus, tmp_path / "run", several, adapter)


@pytest.mark.parametrize(("family", "settings"), [("wav2vec2", TINY), ("hubert", STABLE)])
def test_other_networks_have_no_such_adapters(family, settings, corpus, tmp_path):
    AutoModel.from_config(AutoConfig.for_model(family, **settings)).save_pretrained(tmp_path / "encoder")
    with pytest.raises(SonantError, match="do_stable_layer_norm"):
        trained(corpus, tmp_path / "run", f"{tmp_path}/encoder", "{language: quy, new: true}")


def test_an_adapter_of_another_encoder_is_refused(several, corpus, tmp_path):
    for file in Path(several).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = read_tensors(f"{several}/adapter.spa.safetensors")
    weights.popitem()
    save_file(weights, tmp_path / "adapter.spa.safetensors")
    with pytest.raises(SonantError, match="no adapter of this encoder"):
        trained(corpus, tmp_path / "run", str(tmp_path), "{language: spa}")
