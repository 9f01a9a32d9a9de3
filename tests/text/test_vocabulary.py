"""A vocabulary is the same for any order of the texts, and says what it cannot write."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.base.errors import ConfigError, TextError
from sonant.text.vocabulary import Vocabulary, VocabularyConfig, build_vocabulary

texts = st.lists(st.text("ab|é <>s\n", max_size=8), max_size=8)


def test_special_symbols_come_first_and_characters_follow_in_order():
    vocabulary = build_vocabulary(["the cat", "a dog's"])
    assert vocabulary.symbols == ("<pad>", "<unk>", "|", "'", *"acdeghost")
    assert [vocabulary.id_of(name) for name in ("blank", "unknown", "word_delimiter", "bos")] == [0, 1, 2, None]


def test_blank_bos_and_eos_have_the_ids_that_attention_recipes_expect():
    vocabulary = build_vocabulary(["ab"], VocabularyConfig(bos="<s>", eos="</s>", word_delimiter=""))
    assert vocabulary.symbols == ("<pad>", "<unk>", "<s>", "</s>", "a", "b")


@given(texts=texts, data=st.data())
def test_the_order_and_division_of_the_texts_do_not_matter(texts, data):
    shuffled = data.draw(st.permutations(texts))
    if set("".join(texts)) - set(" |"):
        assert build_vocabulary(iter(shuffled)) == build_vocabulary(texts) == build_vocabulary(["".join(texts)])


@given(texts=texts)
def test_the_characters_unknown_to_a_vocabulary_are_counted_each(texts):
    vocabulary = build_vocabulary(["ab s"])
    counts = Counter("".join(texts))
    assert vocabulary.unknown_characters(texts) == Counter({c: counts[c] for c in "|é<>\n" if counts[c]})


def test_characters_seen_less_often_than_asked_are_left_out():
    assert build_vocabulary(["aab", "bc"], VocabularyConfig(min_count=2)).symbols[3:] == ("a", "b")


def test_a_declared_alphabet_stands_whatever_the_texts_say():
    vocabulary = build_vocabulary(["xyz"], VocabularyConfig(alphabet="cab "))
    assert vocabulary.symbols == ("<pad>", "<unk>", "|", "a", "b", "c")
    assert vocabulary.unknown_characters(["x a"]) == {"x": 1}


def test_a_text_cannot_write_a_special_symbol():
    vocabulary = build_vocabulary(["a|b _"], VocabularyConfig(blank="_"))
    assert vocabulary.characters == {" ": 2, "a": 3, "b": 4}
    assert vocabulary.unknown_characters(["_|a"]) == {"_": 1, "|": 1}


def test_without_a_word_delimiter_the_space_is_a_symbol_of_its_own():
    assert build_vocabulary(["a b"], VocabularyConfig(word_delimiter="")).symbols[2:] == (" ", "a", "b")


@pytest.mark.parametrize(
    ("characters", "case"), [("abcé'", "lower"), ("ABCÉ'", "upper"), ("aB", "mixed"), ("अ日1'", "none")]
)
def test_a_vocabulary_knows_the_case_of_its_letters(characters, case):
    assert build_vocabulary([characters]).case == case


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"symbols": ("a", "b", "a")}, "the symbol 'a' has the ids 0 and 2"),
        ({"symbols": ("a", "")}, "id 1 has no symbol"),
        ({"symbols": ("a",), "blank": "_"}, "the blank '_' is not among the 1 symbols"),
        ({"symbols": ("a",), "word_delimiter": "|"}, "the word delimiter '|' is not among"),
    ],
)
def test_a_vocabulary_that_contradicts_itself_is_refused(settings, told):
    with pytest.raises(TextError) as caught:
        Vocabulary(**settings)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"min_count": 0}, "1 is the least"),
        ({"min_count": 2, "alphabet": "abc"}, "it has no effect on a given alphabet"),
        ({"blank": "|"}, "'|' is already the blank"),
        ({"bos": "<unk>"}, "'<unk>' is already the unknown"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(settings, told):
    with pytest.raises(ConfigError) as caught:
        VocabularyConfig(**settings)
    assert told in str(caught.value)


def test_begin_and_end_of_a_text_may_share_a_symbol():
    vocabulary = build_vocabulary(["a"], VocabularyConfig(bos="<sos/eos>", eos="<sos/eos>"))
    assert vocabulary.id_of("bos") == vocabulary.id_of("eos") == 2


def test_texts_without_a_character_make_no_vocabulary():
    with pytest.raises(TextError, match="nothing to learn to write"):
        build_vocabulary(["", "  "])
    with pytest.raises(TextError, match="no character is seen 3 times or more"):
        build_vocabulary(["ab"], VocabularyConfig(min_count=3))
