"""YAML by its core rules, with the line of everything that was written."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sonant.base.document import parse, read_document, scalar, write_document
from sonant.base.errors import ConfigError

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\x85\u2028\u2029\ufeff\r\n\t :#'\"\udce9"))
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


@given(values=VALUES)
@example(values={"a": "no", "b": "1:30", "c": "0x10", "d": "1e-4", "e": "~", "f": "", "g": " x", "h": "007"})
@example(values={"true": 1, "1": "2", "null": None, "": "", "~": 0.0, "a\nb": "c\n\n", "x" * 200: "y" * 300})
@example(values=[1e300, 1e-300, -0.0, math.inf, -math.inf, 10**30, "1e5", ".inf", "=", "<<", "2026-01-01", "\x85"])
def test_what_is_written_is_read_back(values):
    text = write_document(values).encode("utf-8").decode("utf-8")
    found = parse(text, "a.yaml").values
    assert found == values
    assert repr(found) == repr(values)


def test_no_number_is_read_back_as_no_number():
    assert math.isnan(parse(write_document([math.nan]), "a.yaml").values[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("NULL", None),
        ("tRUE", "tRUE"),
        ("yes", "yes"),
        ("off", "off"),
        ("12", 12),
        ("-3", -3),
        ("0x1f", 31),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        ("1e-4", 1e-4),
        (".5", 0.5),
        ("5.", 5.0),
        ("1.2.3", "1.2.3"),
        ("-.inf", -math.inf),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("٣", "٣"),
        ("9" * 5000, math.inf),
    ],
)
def test_a_bare_word_stands_for_what_yaml_1_2_says(text, value):
    assert scalar(text) == value
    assert type(scalar(text)) is type(value)


def test_everything_written_knows_its_line():
    document = parse("a: 1\nb:\n  c: x\n  d:\n  - 5\n  - e: 007\n", "a.yaml")
    places = {".".join(path): origin.place for path, origin in document.origins.items()}
    assert places["b.c"] == "a.yaml:3"
    assert places["b.d.0"] == "a.yaml:5"
    assert places["b.d.1.e"] == "a.yaml:6"
    assert document.text(("b", "d", "1", "e")) == "007"
    assert document.place(("b", "c", "nowhere")) == "a.yaml:3"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a: 1\n b: 2\n", 2, "this is not YAML"),
        ("a: [1, 2\n", 2, "this is not YAML"),
        ("a: 1\nb: 2\na: 3\n", 3, "key 'a' was already given in line 1."),
        ("a: 1\n[b]: 2\n", 2, "a key must be a word."),
        ("a: !!python/object:os.system x\n", 1, "has no meaning here."),
        ("a: !mine x\n", 1, "the tag !mine has no meaning here."),
        ("a: &x\n  b: *x\n", 1, "an anchor that contains itself has no meaning here."),
        ("a: 1\n---\nb: 2\n", 2, "this is not YAML"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text, line, problem):
    with pytest.raises(ConfigError) as caught:
        parse(text, "a.yaml")
    assert caught.value.where == f"a.yaml:{line}"
    assert problem in caught.value.problem


def test_a_character_that_yaml_forbids_is_refused():
    with pytest.raises(ConfigError, match="this is not YAML"):
        parse("a: \x00", "a.yaml")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a: é".encode("latin-1"), "byte 3 is not UTF-8."),
        (b"- 1\n- 2\n", "the file holds no keys."),
        (b"word", "no keys"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path, content, problem):
    (tmp_path / "a.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=problem):
        read_document(str(tmp_path / "a.yaml"))


def test_an_empty_file_and_a_mark_of_its_encoding_are_no_faults(tmp_path):
    (tmp_path / "a.yaml").write_text("# nothing yet\n")
    assert read_document(str(tmp_path / "a.yaml")).values == {}
    (tmp_path / "a.yaml").write_text("a: ü\r\n", encoding="utf-8-sig")
    assert read_document(str(tmp_path / "a.yaml")).values == {"a": "ü"}


@given(text=st.text(alphabet=st.sampled_from("ab:-[]{}&*!#|>'\"%@` \n\t0"), max_size=60))
def test_any_text_gives_values_or_a_sentence(text):
    try:
        parse(text, "a.yaml")
    except ConfigError as error:
        refused = error
        assert refused.where.startswith("a.yaml")
