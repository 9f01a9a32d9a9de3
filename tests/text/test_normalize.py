"""What normalising promises: named steps, in the order given, once and for all."""

from __future__ import annotations

import pickle
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base import config
from sonant.base.errors import ConfigError, TextError
from sonant.text.normalize import Normalizer, NormalizerConfig
from sonant.text.steps import STEPS

NEEDED: dict[str, dict[str, Any]] = {
    "replace": {"replacements": {"&": " and ", "  ": " ", "ﬁ": "fi"}},
    "replace_words": {"word_replacements": {"mr": "mister", "ok": "okay", "cannot": "can not"}},
    "keep": {"keep": "abcdefghijklmnopqrstuvwxyzäß'"},
    "remove": {"remove": "~^-]\\"},
}
special = st.sampled_from("aZıİßẞŉǰJ̌ςΣ ﬁ²½'’-—.,!?<>[]&$~^09\t\n\u0345\u1e9e\u200d")
awkward = st.lists(special | st.characters(codec="utf-8"), max_size=30).map("".join)


def normalizer(*steps: str, **settings: Any) -> Normalizer:
    for step in steps:
        settings = NEEDED.get(step, {}) | settings
    return Normalizer(NormalizerConfig(steps=steps, **settings))


def differ_by_case(*steps: str) -> bool:
    return sum(step in ("lowercase", "uppercase", "casefold") for step in steps) > 1


@pytest.mark.parametrize("step", STEPS)
@settings(max_examples=150, deadline=None)
@given(text=awkward)
def test_a_step_taken_twice_is_the_step_taken_once(step, text):
    normalize = normalizer(step)
    assert normalize(normalize(text)) == normalize(text)


@settings(max_examples=400, deadline=None)
@given(steps=st.lists(st.sampled_from(list(STEPS)), max_size=6, unique=True), text=awkward)
def test_a_chain_of_steps_taken_twice_is_the_chain_taken_once(steps, text):
    if not differ_by_case(*steps):
        normalize = normalizer(*steps)
        assert normalize(normalize(text)) == normalize(text)


@settings(max_examples=100, deadline=None)
@given(text=awkward)
def test_no_steps_leave_the_text_as_it_is(text):
    assert normalizer()(text) == text


def test_a_small_letter_that_has_a_composed_form_is_composed_though_its_capital_has_none():
    assert normalizer("nfc", "lowercase")("J\u030c") == "\u01f0"


@pytest.mark.parametrize(
    ("step", "text", "expected"),
    [
        ("nfc", "e\u0301", "é"),
        ("nfd", "é", "e\u0301"),
        ("nfkc", "ﬁve ² ＡＢ", "five 2 AB"),
        ("nfkd", "ﬁ é", "fi e\u0301"),
        ("lowercase", "Straße ÉCOLE", "straße école"),
        ("uppercase", "straße école", "STRASSE ÉCOLE"),
        ("casefold", "Straße ΣΑΣ", "strasse σασ"),
        ("straight_quotes", "“don’t”", '"don\'t"'),
        ("strip_accents", "naïve Ångström Καλημέρα ё", "naive Angstrom Καλημερα е"),
        ("strip_accents", "हिन्दी", "हिन्दी"),
        ("strip_punctuation", "Hello, world! (e.g. yes—no)", "Hello world e g yes no"),
        ("strip_punctuation", "'tis don't dogs' well-known -x- ¿qué?", "tis don't dogs well-known x qué"),
        ("strip_punctuation", "rock--roll हिन्दी।", "rock roll हिन्दी"),
        ("strip_symbols", "5$ a+b ☕ ok", "5 a b  ok"),
        ("remove_tags", "so <unk>[laughs] it<noise>is a < b > c [", "so  it is a < b > c ["),
        ("replace", "rock & roll", "rock and roll"),
        ("replace_words", "mr mrs mr. ok okay", "mister mrs mister. okay okay"),
        ("keep", "don't—stop naïve 12", "don't stop nave "),
        ("remove", "a~b-c]d", "abcd"),
        ("collapse_whitespace", "  a\t\n b\u00a0c ", "a b c"),
    ],
)
def test_each_step_does_what_its_name_says(step, text, expected):
    assert normalizer(step)(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 9 10 19 20 21 99", "zero nine ten nineteen twenty twenty one ninety nine"),
        ("100 101 999", "one hundred one hundred one nine hundred ninety nine"),
        ("1000 1,204 70013", "one thousand one thousand two hundred four seventy thousand thirteen"),
        ("1000000 2000000001", "one million two billion one"),
        ("999999999999", " ".join(["nine hundred ninety nine " + power for power in ("billion", "million", "thousand")])
         + " nine hundred ninety nine"),
        ("1000000000000", "one" + " zero" * 12),
        ("007 3.14 0.5", "zero zero seven three point one four zero point five"),
        ("1st 2nd 3rd 4th 5th 8th 9th 12th 20th 21st 100TH",
         "first second third fourth fifth eighth ninth twelfth twentieth twenty first one hundredth"),
        ("B2B 5% $5 1,23", "B two B five% $five one,twenty three"),
    ],
)  # fmt: skip
def test_digits_are_read_as_english_words(text, expected):
    assert normalizer("digits_to_english")(text) == expected


def test_steps_run_in_the_order_given():
    table = {"I": "ı", "İ": "i"}
    assert normalizer("replace", "lowercase", replacements=table)("Iİ") == "ıi"
    assert normalizer("strip_punctuation", "digits_to_english")("1,204.") == "one two hundred four"
    assert normalizer("digits_to_english", "strip_punctuation")("1,204.") == "one thousand two hundred four"


def test_the_longest_replacement_wins_and_all_happen_at_once():
    assert normalizer("replace", replacements={"a": "y", "ab": "x", "b": "z"})("abab a b") == "xx y z"


def test_punctuation_inside_words_stays_only_where_asked():
    assert normalizer("strip_punctuation", inside_words="")("it's well-known") == "it s well known"
    assert normalizer("strip_punctuation", inside_words="_")("snake_case it's") == "snake_case it s"


def test_the_word_of_a_script_with_vowel_signs_is_one_word():
    assert normalizer("replace_words", word_replacements={"क": "x"})("क कि") == "x कि"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"steps": ("lowercas",)}, "Did you mean 'lowercase'?"),
        ({"steps": ("nfc", "lowercase", "nfc")}, "'nfc' stands there twice"),
        ({"steps": ("lowercase", "uppercase")}, "lowercase and uppercase undo each other"),
        ({"replacements": {"&": "and"}}, "Put 'replace' among the steps"),
        ({"steps": ("replace",)}, "Give 'replacements'"),
        ({"steps": ("keep",)}, "Give 'keep'"),
        ({"remove": "x"}, "Put 'remove' among the steps"),
        ({"inside_words": "_"}, "Put 'strip_punctuation' among the steps"),
        ({"steps": ("replace",), "replacements": {"": "x"}}, "an empty text cannot be replaced"),
        ({"steps": ("replace",), "replacements": {"a": "b", "b": "c"}}, "'a' becomes 'b', which would be replaced"),
        ({"steps": ("replace_words",), "word_replacements": {"ok": "all ok"}}, "Write what it shall become in the end"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_with_what_to_do(settings, told):
    with pytest.raises(ConfigError) as caught:
        NormalizerConfig(**settings)
    assert told in str(caught.value)


def test_a_misspelt_step_in_a_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("steps:\n  - nfc\n  - lower_case\n")
    with pytest.raises(ConfigError) as caught:
        config.load(NormalizerConfig, str(path))
    assert str(caught.value) == (f"{path}:3: 'steps.1': there is no step 'lower_case'. Did you mean 'lowercase'?")


def test_steps_that_never_come_to_rest_are_refused_with_the_text():
    swaps = normalizer("replace", "lowercase", replacements={"a": "B", "b": "A"})
    assert swaps("quiet") == "quiet"
    with pytest.raises(TextError, match="'back': the steps replace, lowercase never come to rest"):
        swaps("back")


@pytest.mark.parametrize("step", STEPS)
def test_a_normalizer_survives_its_dict_and_pickling(step):
    original = normalizer(step)
    original("warmed up")
    again = Normalizer(config.from_dict(NormalizerConfig, config.to_dict(original.config), "text.json"))
    assert again == original
    assert pickle.loads(pickle.dumps(original))("It's MR. 2 & <b>é") == original("It's MR. 2 & <b>é")


def test_nothing_but_nfc_and_white_space_is_changed_unless_asked():
    text = " E\u0301cole,  12 «Don't»\n"
    assert Normalizer()(text) == unicodedata.normalize("NFC", "École, 12 «Don't»")
