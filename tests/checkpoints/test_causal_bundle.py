"""A bundle of a language model is a folder of transformers too, with the same answers."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from sonant.checkpoints.bundle import Description, open_bundle, write_bundle
from sonant.checkpoints.causal_bundle import causal_config, causal_files
from sonant.models.causal import CausalConfig, load_model, new_model
from sonant.text.normalize import NormalizerConfig
from sonant.text.tokenizer import CharactersConfig, SubwordsConfig, Tokenizer, load_tokenizer, train_tokenizer
from sonant.text.vocabulary import VocabularyConfig

TEXT = "It is | the east, and  Juliet\nis the sun! cafe\u0301 \t<eos>"
GPT2 = CausalConfig(settings={"n_embd": 32, "n_layer": 2, "n_head": 2})
LLAMA = CausalConfig(
    architecture="llama",
    settings={"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2},
)
TOKENIZERS = {
    "characters": CharactersConfig(
        vocabulary=VocabularyConfig(word_delimiter=""), normalizer=NormalizerConfig(steps=("nfc",))
    ),
    "characters with a delimiter": CharactersConfig(
        vocabulary=VocabularyConfig(eos="</s>"), normalizer=NormalizerConfig(steps=("nfc",))
    ),
    "pairs": SubwordsConfig(size=300),
    "unigram": SubwordsConfig(kind="unigram", size=60),
}


def bundle(folder: str, config: CausalConfig, tokenizer: Tokenizer) -> torch.nn.Module:
    torch.manual_seed(0)
    specials = {"eos": tokenizer.eos_id} if tokenizer.eos_id is not None else {}
    model = new_model(config, tokenizer.size, 64, specials)
    description = Description(task="language", architecture="causal", config=causal_config(model))
    write_bundle(folder, description, model.state_dict(), causal_files(model, tokenizer, 64))
    return model.eval()


@pytest.mark.parametrize("kind", sorted(TOKENIZERS))
def test_transformers_reads_the_same_tokens_from_a_bundle_and_writes_the_same_text(tmp_path, kind):
    tokenizer = train_tokenizer([TEXT * 3, "other words"], TOKENIZERS[kind])
    bundle(str(tmp_path / "bundle"), GPT2, tokenizer)
    theirs = AutoTokenizer.from_pretrained(tmp_path / "bundle")
    assert theirs(TEXT, add_special_tokens=False).input_ids == tokenizer.encode(TEXT)
    assert (
        theirs.decode(tokenizer.encode(TEXT), skip_special_tokens=True).strip()
        == tokenizer.decode([id for id in tokenizer.encode(TEXT) if id != tokenizer.unknown_id]).strip()
    )
    assert theirs.eos_token_id == tokenizer.eos_id
    assert theirs.model_max_length == 64
    assert load_tokenizer(str(tmp_path / "bundle")).encode(TEXT) == tokenizer.encode(TEXT)


@pytest.mark.parametrize("config", [GPT2, LLAMA], ids=["gpt2", "llama"])
def test_transformers_gives_the_same_answers_from_a_bundle(tmp_path, config):
    tokenizer = train_tokenizer([TEXT], TOKENIZERS["characters"])
    model = bundle(str(tmp_path / "bundle"), config, tokenizer)
    ids = torch.tensor([tokenizer.encode(TEXT)])
    with torch.no_grad():
        expected = model(input_ids=ids).logits
        theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "bundle")
        torch.testing.assert_close(theirs(input_ids=ids).logits, expected)
        torch.testing.assert_close(open_bundle(str(tmp_path / "bundle")).model()(input_ids=ids).logits, expected)
        torch.testing.assert_close(
            load_model(CausalConfig(folder=str(tmp_path / "bundle"))).eval()(input_ids=ids).logits, expected
        )


def test_the_same_model_gives_the_same_bytes(tmp_path):
    tokenizer = train_tokenizer([TEXT], TOKENIZERS["pairs"])
    for name in ("one", "two"):
        bundle(str(tmp_path / name), GPT2, tokenizer)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "two").iterdir())
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_what_a_folder_says_of_its_tokenizer_is_kept(tmp_path):
    tokenizer = train_tokenizer([TEXT], TOKENIZERS["pairs"])
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 7}')
    model = new_model(GPT2, tokenizer.size, 64, {})
    assert causal_files(model, tokenizer, 64, str(tmp_path))["tokenizer_config.json"] == b'{"model_max_length": 7}'
