"""What a search is told of words must be of the recogniser's words."""

from __future__ import annotations

import pytest
import torch

from sonant.base.errors import SonantError, TextError
from sonant.checkpoints.bundle import Description, open_bundle, write_bundle
from sonant.checkpoints.causal_bundle import causal_config, causal_files
from sonant.decoding.decoder import SearchConfig
from sonant.decoding.ngram.estimation import NgramConfig, estimate_ngrams
from sonant.decoding.ngram.model import build_model
from sonant.decoding.spelling import Spelling
from sonant.inference.decoding import check_words, open_judge, saved_decoding
from sonant.inference.scorer import Scorer
from sonant.models.causal import CausalConfig, new_model
from sonant.text.normalize import NormalizerConfig
from sonant.text.tokenizer import CharactersConfig, train_tokenizer
from sonant.text.vocabulary import VocabularyConfig


def spelled(alphabet: str) -> Spelling:
    """A recogniser that writes these letters."""
    vocabulary = VocabularyConfig(alphabet=alphabet, unknown="")
    config = CharactersConfig(vocabulary=vocabulary, normalizer=NormalizerConfig(steps=()))
    return Spelling(train_tokenizer([], config))


def ngrams_of(*sentences: str):
    return build_model(estimate_ngrams([sentence.split() for sentence in sentences], NgramConfig(order=1)))


@pytest.fixture(scope="module")
def judge_folder(tmp_path_factory) -> str:
    """A language model of a few small letters."""
    vocabulary = VocabularyConfig(alphabet=" abcdefgh", word_delimiter="", eos="</s>")
    tokenizer = train_tokenizer([], CharactersConfig(vocabulary=vocabulary, normalizer=NormalizerConfig(steps=())))
    torch.manual_seed(0)
    model = new_model(CausalConfig(settings={"n_embd": 16, "n_layer": 1, "n_head": 2}), tokenizer.size, 64, {})
    folder = str(tmp_path_factory.mktemp("lm") / "bundle")
    description = Description(task="language", architecture="causal", config=causal_config(model))
    write_bundle(folder, description, model.state_dict(), causal_files(model, tokenizer, 64, ""))
    return folder


def test_n_grams_of_other_letters_are_refused_with_what_makes_right_ones():
    with pytest.raises(TextError, match=r"words.ngram: none of its 2 words .* sonant ngram TEXTS --bundle"):
        check_words(ngrams_of("он она"), spelled(" abc"), "words.ngram")


def test_n_grams_of_characters_are_refused_for_words():
    with pytest.raises(TextError, match="n-grams of characters"):
        check_words(ngrams_of("a b c"), spelled(" abc"), "words.ngram")


def test_words_that_cannot_be_written_are_told_where_they_are_many():
    said: list[str] = []
    check_words(ngrams_of("ab cab xy zz yx"), spelled(" abc"), "words.ngram", said.append)
    assert "60% of its words cannot be written" in said[0]
    check_words(ngrams_of("ab cab xy"), spelled(" abc"), "words.ngram", said.append)
    assert len(said) == 1


def test_a_language_model_of_small_letters_reads_what_is_shouted(judge_folder):
    scores = [one.log_prob for one in Scorer.open(judge_folder).score(["a bad cab", "abc"])]
    assert open_judge(judge_folder, spelled(" ABCD"))(["A BAD CAB", "ABC"]) == pytest.approx(scores)
    assert open_judge(judge_folder, spelled(" abcd"))(["a bad cab", "abc"]) == pytest.approx(scores)


def test_letters_that_a_language_model_lacks_are_told_and_left_out(judge_folder):
    said: list[str] = []
    judge = open_judge(judge_folder, spelled(" abcdefgh'"), say=said.append)
    assert judge(["bad'a"]) == pytest.approx(judge(["bada"]))
    assert "cannot write '''" in said[0]


def test_a_language_model_of_other_letters_is_refused(judge_folder):
    with pytest.raises(TextError, match="most of the recogniser's letters"):
        open_judge(judge_folder, spelled(" абвгде"))


def test_a_bundle_of_another_task_does_not_rescore(tmp_path):
    write_bundle(str(tmp_path / "b"), Description(task="ctc", architecture="conformer", config={}), {}, {})
    with pytest.raises(SonantError, match="'language' is required"):
        open_judge(str(tmp_path / "b"), spelled(" abc"))


def test_a_companion_that_was_left_behind_is_told_with_a_way_on(tmp_path):
    decoding = {"kind": "search", "ngram": "decoding/words.ngram"}
    described = Description(task="ctc", architecture="conformer", config={}, decoding=decoding)
    write_bundle(str(tmp_path / "b"), described, {}, {})
    with pytest.raises(SonantError, match=r"decoding/words.ngram, which is missing.*--greedy"):
        saved_decoding(open_bundle(str(tmp_path / "b")))
    (tmp_path / "b" / "decoding").mkdir()
    (tmp_path / "b" / "decoding" / "words.ngram").touch()
    assert saved_decoding(open_bundle(str(tmp_path / "b"))) == SearchConfig(ngram="decoding/words.ngram")
