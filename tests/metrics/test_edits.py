"""Errors are counted over the fewest edits, and alignments give both sides back."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.metrics.edits import Edits, align, character_edits, count_edits, total, word_edits

sequences = st.lists(st.sampled_from("abc"), max_size=8)


def fewest_edits(reference, hypothesis):
    """By the definition, and nothing else."""

    @cache
    def cost(i, j):
        if not i or not j:
            return i + j
        is_same = reference[i - 1] == hypothesis[j - 1]
        return min(cost(i - 1, j) + 1, cost(i, j - 1) + 1, cost(i - 1, j - 1) + (not is_same))

    return cost(len(reference), len(hypothesis))


@given(reference=sequences, hypothesis=sequences)
def test_no_other_way_from_reference_to_hypothesis_takes_fewer_edits(reference, hypothesis):
    edits = count_edits(reference, hypothesis)
    assert edits.errors == fewest_edits(reference, hypothesis)
    assert edits.num_reference == len(reference)
    assert edits.matches + edits.substitutions + edits.insertions == len(hypothesis)


@given(reference=sequences, hypothesis=sequences)
def test_an_alignment_gives_both_sides_back_and_agrees_with_the_counts(reference, hypothesis):
    pairs = align(reference, hypothesis)
    assert [pair.reference for pair in pairs if pair.kind != "insertion"] == reference
    assert [pair.hypothesis for pair in pairs if pair.kind != "deletion"] == hypothesis
    assert all((pair.reference == pair.hypothesis) == (pair.kind == "match") for pair in pairs)
    kinds = [pair.kind for pair in pairs]
    edits = count_edits(reference, hypothesis)
    counted = {"match": edits.matches, "substitution": edits.substitutions}
    counted |= {"deletion": edits.deletions, "insertion": edits.insertions}
    assert {kind: kinds.count(kind) for kind in counted} == counted


def test_substitutions_deletions_and_insertions_are_told_apart():
    edits = word_edits("the cat sat on a mat", "the dog sat a mat now")
    assert edits == Edits(matches=4, substitutions=1, deletions=1, insertions=1)
    assert edits.rate == pytest.approx(3 / 6)


def test_the_rate_of_a_corpus_weighs_each_utterance_by_its_words():
    assert total([word_edits("a", "b"), word_edits("a b c", "a b c")]).rate == 0.25


def test_characters_count_one_space_between_words_and_none_around_them():
    assert character_edits("a  cat ", " a cat").errors == 0
    assert character_edits("a cat", "acat") == Edits(matches=4, deletions=1)


def test_a_reference_without_words_has_no_error_or_infinitely_many():
    assert word_edits(" ", "").rate == 0.0
    assert word_edits("", "um").rate == float("inf")


def test_words_are_equal_only_if_they_are_spelled_alike():
    assert word_edits("café", "cafe").substitutions == 1
