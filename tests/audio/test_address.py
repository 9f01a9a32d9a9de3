import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sonant.audio.address import Address

NAMES = st.text(st.sampled_from("ab/.#%235 ü"), min_size=1)


@given(location=NAMES, member=st.one_of(st.none(), NAMES))
@example(location="%2523", member=None)
@example(location="%25#%23#23", member="a")
def test_an_address_is_read_back_as_it_was_written(location, member):
    assert Address.parse(str(Address(location, member))) == Address(location, member)


@pytest.mark.parametrize(
    ("text", "location", "member"),
    [
        ("talks/a.flac", "talks/a.flac", None),
        ("shard.tar#sub/a.flac", "shard.tar", "sub/a.flac"),
        ("shard.tar#take #2.flac", "shard.tar", "take #2.flac"),
        ("take %232.flac", "take #2.flac", None),
        ("half %25.flac", "half %25.flac", None),
        ("a%2523.wav", "a%23.wav", None),
        ("gs://bucket/a.tar#b", "gs://bucket/a.tar", "b"),
    ],
)
def test_addresses_as_they_are_written_in_manifests(text, location, member):
    assert Address.parse(text) == Address(location, member)


def test_an_address_moves_with_its_corpus():
    assert str(Address("a.tar", "b").below("corpora/x")) == "corpora/x/a.tar#b"
    assert str(Address("/else/a#1.wav").below("corpora/x")) == "/else/a%231.wav"
    assert str(Address("s3://bucket/a.wav").below("corpora/x")) == "s3://bucket/a.wav"
