from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.base.errors import ConfigError
from sonant.corpus.sources.pattern import path_pattern

names = st.text("abc01", min_size=1, max_size=4)


@given(speaker=names, digit=names, take=names, above=st.sampled_from(["", "x/", "x/y/"]))
def test_what_was_written_into_a_path_is_read_from_it(speaker, digit, take, above):
    found = path_pattern("{speaker}/{digit}_{speaker}_{take}").read(f"{above}{speaker}/{digit}_{speaker}_{take}")
    assert found == {"speaker": speaker, "digit": digit, "take": take}


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("{speaker}_{take}.wav", "s1_3", {"speaker": "s1", "take": "3"}),
        ("{speaker}\\{take}", "s1/3", {"speaker": "s1", "take": "3"}),
        ("./{split}/*/{id}", "train/any/a", {"split": "train", "id": "a"}),
        ("{speaker}-*", "s1-x-y", {"speaker": "s1"}),
        ("{a}.{b}", "x.y", {"a": "x", "b": "y"}),
        ("{speaker}/{digit}_{speaker}_{take}", "a_b/7_a_b_1", {"speaker": "a_b", "digit": "7", "take": "1"}),
    ],
)
def test_patterns_mean_what_they_look_like(pattern, path, found):
    assert path_pattern(pattern).read(path) == found


def test_a_path_of_another_form_is_told_from_one_that_contradicts_itself():
    pattern = path_pattern("{speaker}/{digit}_{speaker}")
    assert pattern.read("s1/7") == "the path does not match the pattern {speaker}/{digit}_{speaker}"
    assert pattern.read("s1/7_s2") == "{speaker} is 's1' in one place and 's2' in another"


@pytest.mark.parametrize("pattern", ["recordings/x", "{", "a}", "{}", "{two words}", "{a}{b}", "{a}*{b}", "*", ""])
def test_an_impossible_pattern_is_answered_with_a_possible_one(pattern):
    with pytest.raises(ConfigError) as caught:
        path_pattern(pattern)
    assert caught.value.where == "--pattern"
    assert "{speaker}/{digit}_{speaker}_{take}" in caught.value.action
