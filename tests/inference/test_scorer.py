"""Texts are scored as the model would by hand, and written as its probabilities say."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from sonant.base.errors import SonantError
from sonant.checkpoints.bundle import BundleError, Description, write_bundle
from sonant.checkpoints.causal_bundle import causal_config, causal_files
from sonant.inference.generation import GenerationConfig, generate
from sonant.inference.scorer import Scorer
from sonant.models.causal import CausalConfig, new_model
from sonant.text.normalize import NormalizerConfig
from sonant.text.tokenizer import CharactersConfig, Tokenizer, train_tokenizer
from sonant.text.vocabulary import VocabularyConfig

SETTINGS = {"n_embd": 32, "n_layer": 2, "n_head": 2, "initializer_range": 0.3}
TEXTS = ["abc", "", "a", "cabbage and a bed", "abc" * 30]


def characters(**specials: str) -> Tokenizer:
    vocabulary = VocabularyConfig(alphabet=" abcdeghn", word_delimiter="", **specials)
    return train_tokenizer([], CharactersConfig(vocabulary=vocabulary, normalizer=NormalizerConfig(steps=())))


def scorer(positions: int = 128, **specials: str) -> Scorer:
    torch.manual_seed(0)
    tokenizer = characters(**specials or {"eos": "</s>"})
    return Scorer(new_model(CausalConfig(settings=SETTINGS), tokenizer.size, positions, {}).eval(), tokenizer)


def by_hand(one: Scorer, ids: list[int], num_before: int) -> float:
    if len(ids) == num_before:
        return 0.0
    with torch.no_grad():
        log_probs = one.model(input_ids=torch.tensor([ids[:-1]])).logits[0].log_softmax(1)
    return sum(log_probs[place - 1, ids[place]].item() for place in range(num_before, len(ids)))


@pytest.mark.parametrize("with_end", [True, False])
@pytest.mark.parametrize("context", ["", "bad "])
def test_a_score_is_the_sum_of_log_probabilities(with_end, context):
    one = scorer()
    eos, encode = one.tokenizer.eos_id, one.tokenizer.encode
    for text, found in zip(TEXTS, one.score(TEXTS, context=context, with_end=with_end), strict=True):
        ids = [eos, *encode(context), *encode(text), *([eos] if with_end else [])]
        assert found.log_prob == pytest.approx(by_hand(one, ids, 1 + len(context)), abs=1e-3)
        assert found.num_tokens == len(text) + with_end


def test_company_changes_no_score():
    one = scorer()
    together = one.score(TEXTS)
    alone = [one.score([text])[0] for text in TEXTS]
    assert [found.log_prob for found in together] == pytest.approx([found.log_prob for found in alone], abs=1e-4)


def test_probabilities_of_all_continuations_sum_to_one():
    one = scorer()
    letters = one.score(list(" abcdeghn"), context="bad", with_end=False)
    end = one.score([""], context="bad")[0]
    rest = one.tokenizer.encode("bad")
    with torch.no_grad():
        whole = one.model(input_ids=torch.tensor([[one.tokenizer.eos_id, *rest]])).logits[0, -1].softmax(0)
    special = whole[[one.tokenizer.blank_id, one.tokenizer.unknown_id]].sum().item()
    total = sum(torch.tensor(found.log_prob).exp().item() for found in [*letters, end])
    assert total + special == pytest.approx(1, abs=1e-4)


def test_a_text_longer_than_the_model_sees_is_scored_whole():
    one = scorer(positions=16)
    found = one.score(["abc" * 30])[0]
    assert found.num_tokens == 91
    eos, ids = one.tokenizer.eos_id, one.tokenizer.encode("abc" * 30)
    ids = [eos, *ids, eos]
    # The first window sees all it can, each behind it half of that before the first token it scores.
    by_windows = [by_hand(one, ids[:17], 1)]
    by_windows += [by_hand(one, ids[first - 8 : first + 9], 8) for first in range(17, 92, 9)]
    assert found.log_prob == pytest.approx(sum(by_windows), abs=1e-3)


def test_without_a_symbol_to_begin_behind_the_first_letter_is_given():
    one = scorer(blank="<pad>", eos="")
    assert one.score(["abc"])[0].num_tokens == 2


def test_the_same_seed_writes_the_same_text_and_another_one_another():
    one = scorer()
    texts = [one.generate("ab", GenerationConfig(max_tokens=40, seed=seed))[0] for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]
    first, second = one.generate("ab", GenerationConfig(max_tokens=40), count=2)
    assert first != second


def test_letters_are_drawn_as_often_as_their_probability_says():
    one = scorer()
    config = GenerationConfig(max_tokens=1, temperature=1.0, top_k=0)
    found = Counter(one.generate("ba", config, count=600))
    for letter in "abc ":
        expected = torch.tensor(one.score([letter], context="ba", with_end=False)[0].log_prob).exp().item()
        assert found[letter] / 600 == pytest.approx(expected, abs=0.06)


def test_no_temperature_takes_the_likeliest_and_so_does_a_choice_of_one():
    one = scorer()
    greedy = one.generate("ab", GenerationConfig(max_tokens=20, temperature=0))
    assert greedy == one.generate("ab", GenerationConfig(max_tokens=20, top_k=1, seed=5))
    assert greedy == one.generate("ab", GenerationConfig(max_tokens=20, top_p=0.0001, seed=6))


def test_what_is_remembered_writes_as_what_is_read_anew():
    one = scorer()
    seen = [one.tokenizer.eos_id, *one.tokenizer.encode("bad")]
    with torch.no_grad():
        for _ in range(20):
            seen.append(int(one.model(input_ids=torch.tensor([seen])).logits[0, -1].argmax()))
    expected = one.tokenizer.decode(seen[4:])
    found = generate(one.model, one.tokenizer, "bad", GenerationConfig(max_tokens=20, temperature=0))
    assert expected.startswith(found)
    assert len(found) == 20 or seen[4 + len(found)] == one.tokenizer.eos_id


def test_a_text_may_be_longer_than_the_model_sees():
    one = scorer(positions=16, blank="<pad>", eos="")
    assert len(one.generate("abc" * 10, GenerationConfig(max_tokens=100))[0]) >= 90


def test_writing_leaves_a_model_in_training_as_it_was():
    one = scorer()
    before = torch.random.get_rng_state()
    generate(one.model.train(), one.tokenizer, "a", GenerationConfig(max_tokens=5))
    assert one.model.training
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_bundle_scores_as_the_model_that_it_was_made_of(tmp_path):
    one = scorer()
    description = Description(task="language", architecture="causal", config=causal_config(one.model))
    write_bundle(str(tmp_path / "b"), description, one.model.state_dict(), causal_files(one.model, one.tokenizer, 128))
    assert Scorer.open(str(tmp_path / "b")).score(TEXTS) == one.score(TEXTS)


def test_a_bundle_of_another_task_is_refused(tmp_path):
    write_bundle(str(tmp_path / "b"), Description(task="ctc", architecture="causal", config={}), {}, {})
    with pytest.raises(BundleError, match="'language' is required"):
        Scorer.open(str(tmp_path / "b"))
    with pytest.raises(SonantError, match="this is not a bundle"):
        Scorer.open(str(tmp_path / "nothing"))
