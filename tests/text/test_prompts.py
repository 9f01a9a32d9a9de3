"""What stands around a text: right for models of one language and of many."""

from __future__ import annotations

import pytest

from sonant.base.errors import ConfigError
from sonant.text.characters import CharacterTokenizer
from sonant.text.normalize import Normalizer
from sonant.text.prompts import Prompt, PromptConfig, prompt_for
from sonant.text.tokenizer import CharactersConfig, train_tokenizer
from sonant.text.vocabulary import Vocabulary

WHISPER = ("a", "b", "<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>")
WHISPER += ("<|notimestamps|>", "<|0.00|>", "<|0.02|>")


def tokenizer_of(*symbols: str) -> CharacterTokenizer:
    return CharacterTokenizer(Vocabulary(symbols=symbols), Normalizer())


def test_whisper_is_told_language_and_task_and_writes_no_times():
    tokenizer = tokenizer_of(*WHISPER)
    found = prompt_for(tokenizer, PromptConfig(), 3, 2, {"suppress_tokens": [1, -1, 99], "begin_suppress_tokens": [0]})
    assert [WHISPER[id] for id in found.ids] == [WHISPER[3], "<|en|>", "<|transcribe|>", "<|notimestamps|>"]
    assert found.never == (1, 9, 10)
    assert found.never_first == (0,)
    other = prompt_for(tokenizer, PromptConfig(language="de", task="translate"), 3, 2, {})
    assert [WHISPER[id] for id in other.ids][1:3] == ["<|de|>", "<|translate|>"]


def test_a_whisper_of_english_alone_is_told_neither():
    tokenizer = tokenizer_of(*(symbol for symbol in WHISPER if symbol not in ("<|en|>", "<|de|>")))
    assert prompt_for(tokenizer, PromptConfig(), 3, 2, {}).ids == (3, 6)


def test_others_begin_behind_one_symbol():
    tokenizer = train_tokenizer(["abc"], CharactersConfig())
    assert prompt_for(tokenizer, PromptConfig(), 1, 2, {}) == Prompt(ids=(1,), end=2)


@pytest.mark.parametrize(
    ("symbols", "config", "told"),
    [
        (WHISPER, PromptConfig(language="German"), "Languages go by their codes"),
        (("a", "<s>", "</s>"), PromptConfig(language="en"), "single language"),
        (("a", "<s>", "</s>"), PromptConfig(task="translate"), "single language"),
    ],
)
def test_a_language_that_is_not_known_is_told(symbols, config, told):
    with pytest.raises(ConfigError, match=told):
        prompt_for(tokenizer_of(*symbols), config, 1, 2, {})


def test_a_prompt_is_kept_as_plain_values():
    prompt = Prompt(ids=(1, 2), end=3, never=(4,), never_first=(5, 6))
    assert Prompt.of(prompt.as_dict()) == prompt
