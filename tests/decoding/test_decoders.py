"""Answers carry their text, words and tokens, with the frames that say them and how sure they are."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import SonantError
from sonant.base.lengths import Lengths
from sonant.decoding.alignment import align
from sonant.decoding.decoders import decode_by_search, decode_greedily
from sonant.decoding.guide import build_guide
from sonant.decoding.spelling import Spelling
from sonant.text.tokenizer import SubwordsConfig, train_tokenizer

BLANK, SPACE, A, B, C = range(5)


def random_scores(seed, num_rows, num_frames, num_tokens=5):
    scores = np.random.default_rng(seed).normal(0, 2, (num_rows, num_frames, num_tokens))
    return scores - np.logaddexp.reduce(scores, axis=2, keepdims=True)


def certain(*tokens, num_tokens=5, sure=0.97):
    probs = np.full((1, len(tokens), num_tokens), (1 - sure) / (num_tokens - 1))
    probs[0, np.arange(len(tokens)), tokens] = sure
    return np.log(probs), Lengths(np.array([len(tokens)]))


def best_by_search(*given):
    return [answers[0] for answers in decode_by_search(*given)]


@given(seed=st.integers(0, 10**6), num_frames=st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_the_greedy_answer_is_the_best_token_of_each_frame_collapsed(spelling, seed, num_frames):
    log_probs = random_scores(seed, len(num_frames), 9)
    for row, answer in enumerate(decode_greedily(log_probs, Lengths(np.array(num_frames)), spelling)):
        path = log_probs[row, : num_frames[row]].argmax(axis=1)
        assert answer.ids == tuple(token for token, _ in groupby(path) if token != BLANK)
        assert answer.log_prob == pytest.approx(log_probs[row, : num_frames[row]].max(axis=1).sum())


@settings(deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_greedy_times_are_those_of_the_alignment_of_its_text(spelling, seed):
    log_probs = random_scores(seed, 1, 9)
    answer = decode_greedily(log_probs, Lengths(np.array([9])), spelling)[0]
    path = align(log_probs, Lengths(np.array([9])), [answer.ids], BLANK)[0]
    assert answer.log_prob == pytest.approx(path.log_prob)
    assert [token.start for token in answer.tokens] == path.starts.tolist()
    assert [token.end for token in answer.tokens] == path.ends.tolist()
    assert [token.confidence for token in answer.tokens] == pytest.approx(np.exp(path.peaks).tolist())


@pytest.mark.parametrize("decode", [decode_greedily, best_by_search])
def test_words_have_the_frames_of_their_letters_and_spaces_belong_to_none(spelling, decode):
    log_probs, lengths = certain(BLANK, A, A, BLANK, B, SPACE, SPACE, BLANK, C, BLANK)
    answer = decode(log_probs, lengths, spelling)[0]
    assert answer.text == "ab c"
    assert [(word.text, word.start, word.end) for word in answer.words] == [("ab", 1, 5), ("c", 8, 9)]
    assert [(token.text, token.start, token.end) for token in answer.tokens] == [
        ("a", 1, 3),
        ("b", 4, 5),
        ("|", 5, 7),
        ("c", 8, 9),
    ]


def test_confidence_is_the_probability_of_what_was_said(spelling):
    log_probs, lengths = certain(A, B, BLANK, sure=0.9)
    log_probs[0, 1] = np.log([0.05, 0.05, 0.05, 0.8, 0.05])
    answer = decode_by_search(log_probs, lengths, spelling)[0][0]
    assert [token.confidence for token in answer.tokens] == pytest.approx([0.9, 0.8])
    assert answer.words[0].confidence == answer.confidence == pytest.approx(np.sqrt(0.9 * 0.8))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), num_best=st.integers(1, 6))
def test_the_best_texts_are_different_and_in_order(spelling, seed, num_best):
    log_probs = random_scores(seed, 2, 8)
    for answers in decode_by_search(log_probs, Lengths(np.array([8, 5])), spelling, num_best=num_best):
        texts = [" ".join(answer.text.split()) for answer in answers]
        assert 1 <= len(set(texts)) == len(texts) <= num_best
        assert [answer.score for answer in answers] == sorted((answer.score for answer in answers), reverse=True)
        for answer in answers:
            assert " ".join(word.text for word in answer.words) == " ".join(answer.text.split())
            assert all(0 < word.confidence <= 1 and word.start < word.end <= 8 for word in answer.words)


def test_without_a_guide_the_score_is_the_log_probability(spelling):
    log_probs, lengths = certain(A, SPACE, B)
    plain, guided = (
        decode_by_search(log_probs, lengths, spelling, guide=guide)[0][0]
        for guide in (None, build_guide(spelling, hot_words={"a": 3.0}))
    )
    assert (plain.guidance, plain.score) == (0.0, plain.log_prob)
    assert guided.score == pytest.approx(guided.log_prob + guided.guidance) != plain.score


def test_nothing_said_is_an_answer_too(spelling):
    log_probs = np.concatenate([certain(BLANK, BLANK, BLANK, sure=0.9)[0]] * 2)
    for decode in (decode_greedily, best_by_search):
        silence, nothing = decode(log_probs, Lengths(np.array([3, 0])), spelling)
        assert (silence.text, silence.words) == ("", ()) == (nothing.text, nothing.words)
        assert silence.confidence == pytest.approx(0.9**3)


@pytest.mark.parametrize("decode", [decode_greedily, decode_by_search])
def test_scores_that_are_no_log_probabilities_are_refused(spelling, decode):
    with pytest.raises(SonantError, match="log_softmax"):
        decode(np.zeros((1, 2, 5)), Lengths(np.array([2])), spelling)


def test_words_of_subwords_are_put_together():
    texts = ["the cat sat on the mat", "a cat and another cat", "that other mat"]
    spelling = Spelling(train_tokenizer(texts, SubwordsConfig(kind="unigram", size=40)))
    ids = spelling.tokenizer.encode(texts[1])
    path = [id for each in ids for id in (each, spelling.blank_id)]
    log_probs, lengths = certain(*path, num_tokens=spelling.tokenizer.size)
    for decode in (decode_greedily, best_by_search):
        answer = decode(log_probs, lengths, spelling)[0]
        assert answer.text == texts[1]
        assert [word.text for word in answer.words] == texts[1].split()


def test_begin_and_end_of_a_text_are_not_written_even_where_they_are_likeliest(spelled_by):
    spelling = spelled_by("a", specials=("<s>", "</s>"))
    log_probs, lengths = certain(3, 2, 4)
    assert decode_greedily(log_probs, lengths, spelling)[0].text == "a"
