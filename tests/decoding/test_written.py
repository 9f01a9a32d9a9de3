"""What people wrote and what a model writes: every id belongs to a word, and the words are the text."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.decoding.spelling import Spelling
from sonant.decoding.written import read_written
from sonant.text.normalize import NormalizerConfig
from sonant.text.tokenizer import CharactersConfig, SubwordsConfig, train_tokenizer
from sonant.text.vocabulary import VocabularyConfig

LETTERS = "abcdefghijklmnopqrstuvwxyz'-"
END = ("lowercase", "strip_punctuation", "collapse_whitespace")
STEPS = {
    "spoken": NormalizerConfig(steps=("nfc", *END)),
    "numbers": NormalizerConfig(steps=("digits_to_english", *END)),
    "tags": NormalizerConfig(steps=("remove_tags", *END)),
    "words": NormalizerConfig(
        steps=("lowercase", "replace_words", *END[1:]),
        word_replacements={"ice cream": "icecream", "mr": "mister", "wanna": "want to", "old sea": "see"},
    ),
}
WORDS = "Ice cream Mr Wanna old SEA o'clock, (well) — ... a [laughs loud] a--b".split()
NUMBERS = ["1,204", "3rd", "5.5", "2"]
TEXTS = [
    "the old man and the sea",
    "she sells ice cream",
    "for mister wells",
    "want to laugh out loud, o'clock",
    LETTERS,
]


@cache
def spelled(steps: str, kind: str = "characters", alphabet: str = LETTERS) -> Spelling:
    if kind == "characters":
        vocabulary = VocabularyConfig(alphabet=alphabet)
        return Spelling(train_tokenizer([], CharactersConfig(vocabulary=vocabulary, normalizer=STEPS[steps])))
    config = SubwordsConfig(kind=kind, size=300 if kind == "bpe" else 60, normalizer=STEPS[steps])
    return Spelling(train_tokenizer(TEXTS * 9, config))


@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("kind", ["characters", "bpe", "unigram"])
@pytest.mark.parametrize("steps", list(STEPS))
@given(data=st.data())
def test_the_words_are_the_text_and_their_ids_are_all_that_it_says(steps, kind, data):
    spelling = spelled(steps, kind)
    words = data.draw(st.lists(st.sampled_from(WORDS + NUMBERS * (steps == "numbers"))))
    gaps = data.draw(st.lists(st.sampled_from([" ", "\n", "  \n "]), min_size=len(words), max_size=len(words)))
    text = "".join(word + gap for word, gap in zip(words, gaps, strict=True))
    written = read_written(text, spelling)
    normalised = spelling.tokenizer.normalizer(" ".join(words))
    assert (written.skipped, written.unknown) == ((), Counter())
    assert spelling.tokenizer.decode(written.ids).strip() == normalised
    if written.words:
        assert " ".join(word.text for word in written.words) == " ".join(words)
    said = [spelling.tokenizer.decode(written.ids[word.first : word.behind]).strip() for word in written.words]
    assert " ".join(said) == normalised
    assert all(said)
    behind = [0, *(word.behind for word in written.words)]
    assert all(word.first >= before for word, before in zip(written.words, behind, strict=False))
    assert [word.line for word in written.words] == sorted(word.line for word in written.words)


def shown(text: str, spelling: Spelling) -> list[tuple[str, str]]:
    """Each word as written, and as the model writes it."""
    written = read_written(text, spelling)
    decode = spelling.tokenizer.decode
    return [(word.text, decode(written.ids[word.first : word.behind])) for word in written.words]


def test_a_word_keeps_its_case_and_signs():
    assert shown("Yes, it's LATE!", spelled("spoken")) == [("Yes,", "yes"), ("it's", "it's"), ("LATE!", "late")]


def test_a_word_that_is_spoken_as_several_is_one():
    assert shown("By 1,204 men", spelled("numbers"))[1] == ("1,204", "one thousand two hundred four")


def test_words_that_only_change_together_stay_together():
    found = shown("Some Ice cream, Mr X", spelled("words"))
    assert found == [("Some", "some"), ("Ice cream,", "icecream"), ("Mr", "mister"), ("X", "x")]


def test_what_is_not_spoken_goes_with_the_word_before_it():
    assert shown("— Well [laughs out loud] now", spelled("tags")) == [
        ("— Well [laughs out loud]", "well"),
        ("now", "now"),
    ]


def test_letters_without_a_symbol_are_told_and_words_of_nothing_else_are_skipped():
    written = read_written("The naïve 42 men, ЖЖ", spelled("spoken"))
    assert [word.text for word in written.words] == ["The", "naïve", "men,"]
    assert written.skipped == ("42", "ЖЖ")
    assert written.unknown == Counter({"ï": 1, "4": 1, "2": 1, "ж": 2})
    assert spelled("spoken").tokenizer.decode(written.ids) == "the nave men"


def test_where_no_spaces_are_written_characters_are_words():
    vocabulary = VocabularyConfig(alphabet="你好吗我", word_delimiter="")
    config = CharactersConfig(vocabulary=vocabulary, normalizer=STEPS["spoken"])
    found = shown("你好, 吗?\n我", Spelling(train_tokenizer([], config)))
    assert found == [("你", "你"), ("好,", "好"), ("吗?", "吗"), ("我", "我")]


def test_every_word_knows_its_line():
    written = read_written("one two\n\n- three\nfour", spelled("spoken"))
    assert [word.line for word in written.words] == [0, 0, 2, 3]


@pytest.mark.parametrize("text", ["", " \n", "— ...", "42"])
def test_what_says_nothing_has_no_words(text):
    written = read_written(text, spelled("spoken"))
    assert (written.ids, written.words) == ((), ())
