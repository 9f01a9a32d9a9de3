"""Words are spelled as the tokenizer spells them, whatever its symbols are."""

from __future__ import annotations

import numpy as np
import pytest

from sonant.base.errors import TextError
from sonant.decoding.spelling import Spelling
from sonant.decoding.word_trie import OFF, ROOT, build_trie
from sonant.text.characters import CharacterTokenizer
from sonant.text.normalize import Normalizer, NormalizerConfig
from sonant.text.tokenizer import SubwordsConfig, train_tokenizer
from sonant.text.vocabulary import Vocabulary

TEXTS = ["the cat sat on the mat", "a cat and the other cat", "that other mat"] * 4


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def subwords(request):
    return Spelling(train_tokenizer(TEXTS, SubwordsConfig(kind=request.param, size=300)))


def words_of(text):
    return text.split()


def test_a_character_spells_itself_and_the_delimiter_begins_a_word(spelling):
    assert spelling.blank_id == 0
    assert spelling.begins_word.tolist() == [False, True, False, False, False]
    assert [spelling.divides(id) for id in range(5)] == [False, True, False, False, False]
    rows = spelling.spell(["ab", "cab", "x", "a b"])
    assert (rows[:2] != spelling.num_letters).sum(axis=1).tolist() == [2, 3]
    assert (rows[2:] == -1).any(axis=1).all()


@pytest.mark.parametrize("text", TEXTS[:3])
def test_the_letters_of_the_ids_of_a_text_are_those_of_its_words(subwords, spelling, text):
    trie = build_trie(subwords.spell(words_of(text)), subwords.num_letters)
    ids = np.array(subwords.tokenizer.encode(text))
    starts = subwords.word_starts(ids.tolist())
    assert len(starts) == len(words_of(text))
    for start, end, word in zip(starts, [*starts[1:], len(ids)], words_of(text), strict=True):
        node = np.array([ROOT])
        for id in ids[start:end]:
            node = trie.walk(node, subwords.letters[[id]])
        assert words_of(text)[trie.words[node[0]]] == word


def test_bos_and_eos_are_silent_and_the_blank_is_not(spelled_by):
    spelling = spelled_by("ab", specials=("<s>", "</s>"))
    assert spelling.is_silent.tolist() == [False, False, False, False, True, True]


def test_without_signs_between_words_every_token_is_one(spelled_by):
    spelling = spelled_by("ab", delimiter=None)
    assert not spelling.has_words
    assert spelling.word_starts([1, 2, 2]) == [0, 1, 2]


def test_a_vocabulary_without_a_blank_is_refused():
    tokenizer = CharacterTokenizer(Vocabulary(symbols=("a", "b")), Normalizer(NormalizerConfig(steps=())))
    with pytest.raises(TextError, match="no blank"):
        _ = Spelling(tokenizer).blank_id


def test_a_tree_tells_words_prefixes_and_everything_else_apart(spelling):
    words = ["ab", "abc", "b"]
    trie = build_trie(spelling.spell([*words, "ax", "b"]), spelling.num_letters)

    def end(letters):
        node = np.array([ROOT])
        for id in spelling.tokenizer.encode(letters):
            node = trie.walk(node, spelling.letters[[id]])
        return int(node[0])

    assert [trie.words[end(word)] for word in words] == [0, 1, 2]
    assert trie.words[end("a")] == -1 != OFF
    assert end("a") not in (ROOT, OFF)
    assert end("ac") == end("acb") == OFF
    assert trie.step(np.array([ROOT]), np.array([-1]))[0] == OFF  # "ax" cannot be written, so nothing writes it


def test_a_tree_too_wide_for_a_table_gives_the_same_nodes(spelling, monkeypatch):
    rows = spelling.spell(["ab", "abc", "b", "cab"])
    dense = build_trie(rows, spelling.num_letters)
    monkeypatch.setattr("sonant.decoding.word_trie._DENSE_CELLS", 0)
    hashed = build_trie(rows, spelling.num_letters)
    nodes, letters = np.meshgrid(np.arange(len(dense.words)), np.arange(-1, spelling.num_letters + 1))
    np.testing.assert_array_equal(dense.step(nodes, letters), hashed.step(nodes, letters))


def test_the_highest_value_below_a_node_is_known_to_it(spelling):
    trie = build_trie(spelling.spell(["ab", "abc", "b"]), spelling.num_letters)
    values = np.where(trie.words >= 0, np.array([1.0, 5.0, 3.0])[trie.words], -np.inf)
    highest = trie.highest_below(values)
    assert highest[ROOT] == 5.0
    assert highest[trie.words == 2] == 3.0
    assert highest[trie.words == 0] == 5.0


def test_signs_in_a_text_are_no_word_of_their_own_where_words_have_a_mark():
    symbols = ("▁we", "▁go", ".", "ing", "####")  # a heading of Markdown is no sign that words go on
    marked = Spelling(CharacterTokenizer(Vocabulary(symbols=symbols), Normalizer(NormalizerConfig(steps=()))))
    assert marked.word_starts([0, 1, 3, 2]) == [0, 1]
