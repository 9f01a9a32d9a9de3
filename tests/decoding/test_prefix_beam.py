"""A beam that is wide enough sums every path; a narrow one is honest, and what guides it weighs what it says."""

from __future__ import annotations

from itertools import groupby, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.errors import SonantError, TextError
from sonant.base.lengths import Lengths
from sonant.decoding.frames import FrameConfig
from sonant.decoding.guide import GuideConfig, build_guide
from sonant.decoding.ngram.estimation import estimate_ngrams
from sonant.decoding.ngram.model import build_model
from sonant.decoding.prefix_beam import BeamConfig, search_prefixes
from sonant.decoding.scores import check_scores
from sonant.decoding.spelling import Spelling
from sonant.text.tokenizer import SubwordsConfig, train_tokenizer

EVERYTHING = BeamConfig(width=10_000, window=1e6, frames=FrameConfig(skip_blank_above=1, token_window=1e6))
BLANK, SPACE, A, B, C = range(5)


def scores_of(seed, num_frames, num_tokens, sharpness=2.0):
    scores = np.random.default_rng(seed).normal(0, sharpness, (len(num_frames), max([1, *num_frames]), num_tokens))
    return scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True)


def spoken(*tokens, sure=0.98, num_tokens=5):
    """(1, T, V) log-probabilities of a recogniser that says one token a frame."""
    probs = np.full((1, len(tokens), num_tokens), (1 - sure) / (num_tokens - 1))
    probs[0, np.arange(len(tokens)), tokens] = sure
    return np.log(probs)


def summed_over_paths(log_probs):
    """The logarithm of every text's probability, from all V^T paths."""
    sums = {}
    for path in product(range(log_probs.shape[1]), repeat=len(log_probs)):
        ids = tuple(token for token, _ in groupby(path) if token != BLANK)
        score = sum(log_probs[frame, token] for frame, token in enumerate(path))
        sums[ids] = np.logaddexp(sums.get(ids, -np.inf), score)
    return sums


def best(log_probs, spelling, guide=None, config=None):
    lengths = Lengths(np.full(len(log_probs), log_probs.shape[1]))
    prefixes = search_prefixes(log_probs, lengths, spelling, config or BeamConfig(), guide)[0]
    return spelling.tokenizer.decode(prefixes[0].ids)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), num_frames=st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_the_widest_beam_sums_every_path_of_every_text(spelling, seed, num_frames):
    log_probs = scores_of(seed, num_frames, 5)
    found = search_prefixes(log_probs, Lengths(np.array(num_frames)), spelling, EVERYTHING)
    for row, prefixes in enumerate(found):
        truth = summed_over_paths(log_probs[row, : num_frames[row]])
        assert {prefix.ids for prefix in prefixes} == truth.keys()
        for prefix in prefixes:
            assert prefix.log_prob == pytest.approx(truth[prefix.ids], abs=1e-9)
        assert [prefix.score for prefix in prefixes] == sorted((prefix.score for prefix in prefixes), reverse=True)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 4))
def test_a_narrow_beam_never_finds_more_than_there_is_and_nothing_twice(spelling, seed, width):
    log_probs = scores_of(seed, [5], 5, sharpness=1.0)
    truth = summed_over_paths(log_probs[0])
    config = BeamConfig(width=width, window=1e6, frames=EVERYTHING.frames)
    prefixes = search_prefixes(log_probs, Lengths(np.array([5])), spelling, config)[0]
    assert len({prefix.ids for prefix in prefixes}) == len(prefixes) <= width
    assert all(prefix.log_prob <= truth[prefix.ids] + 1e-9 for prefix in prefixes)


def test_a_prefix_that_was_dropped_and_comes_back_is_not_written_twice(spelling):
    log_probs = scores_of(0, [14] * 200, 5, sharpness=3.0)  # it happens once in these 200
    config = BeamConfig(width=5, window=1e6, frames=EVERYTHING.frames)
    for prefixes in search_prefixes(log_probs, Lengths(np.full(200, 14)), spelling, config):
        assert len({prefix.ids for prefix in prefixes}) == 5


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), num_frames=st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_a_batch_equals_each_utterance_alone(spelling, seed, num_frames):
    log_probs = scores_of(seed, num_frames, 5)
    guide = build_guide(spelling, ngram=build_model(estimate_ngrams([["ab", "c"], ["c", "ba"]])))
    together = search_prefixes(log_probs, Lengths(np.array(num_frames)), spelling, guide=guide)
    for row, frames in enumerate(num_frames):
        alone = search_prefixes(log_probs[row : row + 1, :frames], Lengths(np.array([frames])), spelling, guide=guide)
        assert [prefix.ids for prefix in alone[0]] == [prefix.ids for prefix in together[row]]
        assert [prefix.score for prefix in alone[0]] == pytest.approx([prefix.score for prefix in together[row]])


@pytest.mark.parametrize("bound", ["_UTTERANCES_AT_ONCE", "_CELLS"])
def test_more_utterances_than_are_searched_at_once_keep_their_order(spelling, monkeypatch, bound):
    num_frames = [3, 9, 1, 7, 5]
    log_probs = scores_of(3, num_frames, 5)
    together = search_prefixes(log_probs, Lengths(np.array(num_frames)), spelling)
    monkeypatch.setattr(f"sonant.decoding.prefix_beam.{bound}", 2)
    assert search_prefixes(log_probs, Lengths(np.array(num_frames)), spelling) == together


# What guides the search.


def words_in(ids):
    words = "".join(" abc"[token - 1] for token in ids).split(" ")
    return [word for word in words if word]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_guided_score_is_the_sum_of_what_recogniser_and_ngrams_say(spelling, seed):
    model = build_model(estimate_ngrams([["ab", "c"], ["c", "ba"], ["ab", "a"]]))
    config = GuideConfig(ngram_weight=0.7, word_bonus=0.9, unknown_penalty=2.5)
    log_probs = scores_of(seed, [4], 5)
    guide = build_guide(spelling, config, ngram=model)
    truth = summed_over_paths(log_probs[0])
    found = search_prefixes(log_probs, Lengths(np.array([4])), spelling, EVERYTHING, guide)[0]
    assert {prefix.ids for prefix in found} == truth.keys()
    for prefix in found:
        words = words_in(prefix.ids)
        unknown = sum(word not in ("ab", "ba", "a", "c") for word in words)
        guidance = 0.7 * model.score_sentences([words])[0] + 0.9 * len(words) - 2.5 * unknown
        assert prefix.guidance == pytest.approx(guidance, abs=1e-5)
        assert prefix.log_prob == pytest.approx(truth[prefix.ids], abs=1e-9)


def test_ngrams_decide_where_the_recogniser_cannot(spelling):
    log_probs = spoken(A, SPACE, BLANK)
    log_probs[0, 2] = np.log([0.1, 0.02, 0.02, 0.42, 0.44])
    for follower in ("b", "c"):
        model = build_model(estimate_ngrams([["a", follower], [follower], ["a", follower, "a", follower]]))
        assert best(log_probs, spelling, build_guide(spelling, ngram=model)) == f"a {follower}"


def test_a_hot_word_is_heard_where_it_is_likely_and_not_where_it_is_not(spelling):
    log_probs = spoken(A, B, SPACE, A, C)
    log_probs[0, 1] = np.log([0.02, 0.02, 0.02, 0.60, 0.34])
    assert best(log_probs, spelling) == "ab ac"
    hot = build_guide(spelling, hot_words={"ac": 4.0})
    assert best(log_probs, spelling, hot) == "ac ac"
    assert best(spoken(A, B, SPACE, B, B, sure=0.999), spelling, hot) == "ab b"


def test_a_hot_word_is_favoured_from_its_first_letter_on(spelling):
    log_probs = spoken(B, BLANK, A, B)
    log_probs[0, 0] = np.log([0.02, 0.02, 0.02, 0.54, 0.40])
    guide = build_guide(spelling, hot_words={"cab": 6.0})
    assert best(log_probs, spelling, guide, BeamConfig(width=1)) == "cab"


def test_a_hot_word_that_the_ngrams_do_not_know_is_heard_too(spelling):
    model = build_model(estimate_ngrams([["ab"], ["ab"], ["b"]]))
    log_probs = spoken(A, C)
    log_probs[0, 1] = np.log([0.02, 0.02, 0.02, 0.54, 0.40])
    assert best(log_probs, spelling, build_guide(spelling, ngram=model)) == "ab"
    assert best(log_probs, spelling, build_guide(spelling, ngram=model, hot_words={"ac": 12.0})) == "ac"


def test_all_words_of_a_hot_phrase_are_hot(spelling):
    hot, phrase = (build_guide(spelling, hot_words=words) for words in ({"a": 2.0, "bc": 2.0}, {"a bc": 2.0}))
    log_probs = scores_of(1, [6], 5)
    assert best(log_probs, spelling, hot) == best(log_probs, spelling, phrase)
    np.testing.assert_array_equal(hot.values, phrase.values)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.integers(1, 10))
def test_every_word_of_an_answer_is_in_the_lexicon(spelling, seed, width):
    guide = build_guide(spelling, lexicon=["ab", "cc", "b"], hot_words={"ca": 1.0})
    log_probs = scores_of(seed, [7, 5], 5)
    for prefixes in search_prefixes(log_probs, Lengths(np.array([7, 5])), spelling, BeamConfig(width=width), guide):
        assert prefixes
        assert all(set(words_in(prefix.ids)) <= {"ab", "cc", "b", "ca"} for prefix in prefixes)


def test_with_a_lexicon_the_likeliest_of_its_words_is_found(spelling):
    log_probs = spoken(A, B, B, sure=0.8)
    assert best(log_probs, spelling, build_guide(spelling, lexicon=["ac", "ba"])) == "ac"


def test_where_every_token_is_a_word_ngrams_are_those_of_tokens(spelled_by):
    spelling = spelled_by("ab", delimiter=None)
    model = build_model(estimate_ngrams([list("abab"), list("ab")]))
    log_probs = spoken(1, 2, num_tokens=3)
    log_probs[0, 1] = np.log([0.02, 0.5, 0.48])
    assert best(log_probs, spelling, build_guide(spelling, ngram=model)) == "ab"


def test_a_word_that_no_symbol_writes_is_refused_by_name(spelling):
    with pytest.raises(TextError, match="'xyz' cannot be written"):
        build_guide(spelling, hot_words={"xyz": 3.0})
    with pytest.raises(TextError, match="'dog' cannot be written"):
        build_guide(spelling, lexicon=["a", "dog"])


# What is not looked at.


def test_frames_that_are_surely_blank_are_passed_over_without_a_trace(spelling):
    num_frames = np.array([14, 9])
    log_probs = scores_of(5, num_frames, 5)
    log_probs[0, [0, 3, 4, 8, 13]] = np.log([1 - 4e-9, 1e-9, 1e-9, 1e-9, 1e-9])
    log_probs[1, [2, 5, 6]] = log_probs[0, 0]
    passed, whole = (
        search_prefixes(
            log_probs, Lengths(num_frames), spelling, BeamConfig(frames=FrameConfig(skip_blank_above=above))
        )
        for above in (0.999, 1.0)
    )
    for some, others in zip(passed, whole, strict=True):
        assert [prefix.ids for prefix in some] == [prefix.ids for prefix in others]
        assert [prefix.log_prob for prefix in some] == pytest.approx([prefix.log_prob for prefix in others], abs=1e-6)


def test_frames_passed_over_count_in_the_probability(spelling):
    log_probs = spoken(BLANK, BLANK, A, BLANK, sure=0.9995)
    log_probs[0, 2] = np.log([0.02, 0.02, 0.92, 0.02, 0.02])
    prefix = search_prefixes(log_probs, Lengths(np.array([4])), spelling)[0][0]
    assert prefix.log_prob == pytest.approx(np.log(0.92) + 3 * np.log(0.9995), abs=1e-9)


def test_a_letter_repeated_across_frames_passed_over_is_two_letters(spelling):
    assert best(spoken(A, A, BLANK, A, A, sure=0.9999), spelling) == "aa"
    assert best(spoken(A, A, A, A, sure=0.9999), spelling) == "a"


def test_silence_is_no_text_and_no_frames_are_none_either(spelling):
    log_probs = np.concatenate([spoken(*[BLANK] * 6, sure=0.99999)] * 2)
    for prefixes in search_prefixes(log_probs, Lengths(np.array([6, 0])), spelling):
        assert prefixes[0].ids == ()
    assert search_prefixes(np.zeros((0, 0, 5)), Lengths(np.zeros(0, np.int64)), spelling) == []


def test_the_best_token_of_a_frame_is_always_looked_at(spelling):
    config = BeamConfig(frames=FrameConfig(token_window=0, max_tokens=1))
    assert best(spoken(A, B, C, sure=0.5), spelling, config=config) == "abc"


def test_begin_and_end_of_a_text_are_never_written(spelled_by):
    spelling = spelled_by("a", specials=("<s>", "</s>"))
    log_probs = scores_of(2, [6], 5)
    found = search_prefixes(log_probs, Lengths(np.array([6])), spelling, EVERYTHING)[0]
    assert not {3, 4} & {token for prefix in found for token in prefix.ids}


def test_scores_that_are_impossible_do_not_end_the_search(spelling):
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.eye(5)[[A, BLANK, B, SPACE, C]])[None]
    assert best(log_probs, spelling) == "ab c"


def test_scores_that_are_no_log_probabilities_are_refused_by_frame():
    log_probs = np.log(np.full((2, 3, 4), 0.25))
    check_scores(log_probs, Lengths(np.array([3, 1])))
    log_probs[1, 1:] = np.nan  # behind the end
    check_scores(log_probs, Lengths(np.array([3, 1])))
    log_probs[0, 2, 1] = np.nan
    with pytest.raises(SonantError, match="row 0: the probabilities of frame 2 sum to nan"):
        check_scores(log_probs, Lengths(np.array([3, 1])))
    with pytest.raises(SonantError, match="frame 0 sum to 4"):
        check_scores(np.zeros((1, 2, 4)), Lengths(np.array([2])))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_words_of_subwords_are_guided_as_whole_words(kind):
    texts = ["the cat sat", "a cat and the other cat", "that other mat"]
    spelling = Spelling(train_tokenizer(texts * 4, SubwordsConfig(kind=kind, size=290)))
    tokenizer = spelling.tokenizer
    model = build_model(estimate_ngrams(text.split() for text in texts))
    guide = build_guide(spelling, GuideConfig(ngram_weight=0.7, word_bonus=0.9, unknown_penalty=2.5), ngram=model)
    used = sorted({spelling.blank_id, *(id for text in texts for id in tokenizer.encode(text))})
    log_probs = np.full((1, 6, tokenizer.size), -40.0)
    log_probs[:, :, used] = scores_of(4, [6], len(used))
    found = search_prefixes(log_probs, Lengths(np.array([6])), spelling, BeamConfig(width=200, window=40.0), guide)[0]
    assert len(found) > 100
    for prefix in found:
        words = tokenizer.decode(prefix.ids).split()
        unknown = sum(word not in model.ids for word in words)
        guidance = 0.7 * model.score_sentences([words])[0] + 0.9 * len(words) - 2.5 * unknown
        assert prefix.guidance == pytest.approx(guidance, abs=1e-5), words
