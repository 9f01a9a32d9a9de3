"""Vocabularies of other toolkits are read and written; a broken one is told with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.base.errors import TextError
from sonant.text.vocabulary import Vocabulary
from sonant.text.vocabulary_files import read_vocabulary, write_json, write_lines, write_units

character = st.characters(codec="utf-8", exclude_characters="\n\r")
word = st.text(character.filter(lambda c: not c.isspace()), min_size=2, max_size=3)
symbols = st.lists(character | word | st.sampled_from(("[PAD]", "{", " ")), min_size=1, unique=True)
WRITERS = {"vocab.json": write_json, "units.txt": write_units, "symbols.txt": write_lines}


def write(folder, name, content):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", WRITERS)
@given(symbols=symbols)
def test_what_is_written_is_read_back(name, symbols, tmp_path_factory):
    location = str(tmp_path_factory.mktemp("vocabulary") / name)
    WRITERS[name](Vocabulary(symbols=tuple(symbols)), location)
    assert read_vocabulary(location).symbols == tuple(symbols)


def test_a_line_end_is_a_symbol_in_json_and_refused_in_a_file_of_lines(tmp_path):
    vocabulary = Vocabulary(symbols=("<pad>", "a", "\n"), blank="<pad>")
    write_json(vocabulary, str(tmp_path / "vocab.json"))
    assert read_vocabulary(str(tmp_path / "vocab.json")) == vocabulary
    for write_file in (write_units, write_lines):
        with pytest.raises(TextError, match="symbol 2 is the end of a line"):
            write_file(vocabulary, str(tmp_path / "units.txt"))


def test_the_vocabulary_of_a_ctc_model_of_transformers_is_read_by_ids(tmp_path):
    location = write(tmp_path, "vocab.json", {"|": 2, "b": 1, "a": 0, "[UNK]": 3, "[PAD]": 4})
    vocabulary = read_vocabulary(location)
    assert vocabulary.symbols == ("a", "b", "|", "[UNK]", "[PAD]")
    assert vocabulary.specials == {"blank": "[PAD]", "unknown": "[UNK]", "word_delimiter": "|"}


def test_symbols_added_after_the_vocabulary_count(tmp_path):
    location = write(tmp_path, "vocab.json", {"a": 0, "<unk>": 1, "<pad>": 2})
    write(tmp_path, "added_tokens.json", {"<s>": 3})
    added = {"3": {"content": "<s>"}, "4": {"content": "</s>"}}
    write(tmp_path, "tokenizer_config.json", {"added_tokens_decoder": added, "bos_token": {"content": "<s>"}})
    vocabulary = read_vocabulary(location)
    assert vocabulary.symbols == ("a", "<unk>", "<pad>", "<s>", "</s>")
    assert (vocabulary.bos, vocabulary.eos) == ("<s>", "</s>")


def test_special_symbols_of_unusual_names_are_found_where_transformers_notes_them(tmp_path):
    location = write(tmp_path, "vocab.json", {"_": 0, "a": 1, "~": 2, "?": 3})
    write(tmp_path, "special_tokens_map.json", {"pad_token": "_", "bos_token": "<never used>"})
    write(tmp_path, "tokenizer_config.json", {"word_delimiter_token": "~", "unk_token": "?", "eos_token": None})
    assert read_vocabulary(location).specials == {"blank": "_", "unknown": "?", "word_delimiter": "~"}
    assert read_vocabulary(location, blank="a", unknown=None).specials == {"blank": "a", "word_delimiter": "~"}


def test_units_of_wenet_are_read(tmp_path):
    location = write(tmp_path, "units.txt", "<blank> 0\n<unk> 1\n▁ 2\nA\t3\n\u2028 4\n<sos/eos> 5\n")
    vocabulary = read_vocabulary(location)
    assert vocabulary.symbols == ("<blank>", "<unk>", "▁", "A", "\u2028", "<sos/eos>")
    assert vocabulary.specials["word_delimiter"] == "▁"
    assert vocabulary.id_of("bos") == vocabulary.id_of("eos") == 5


def test_lines_and_lists_of_symbols_are_numbered_from_0(tmp_path):
    expected = ("<pad>", " ", "a", "1")
    assert read_vocabulary(write(tmp_path, "tokens.txt", "\ufeff<pad>\r\n \r\na\r\n1\r\n\r\n")).symbols == expected
    assert read_vocabulary(write(tmp_path, "tokens.json", list(expected))).symbols == expected


def test_a_space_among_the_symbols_needs_no_delimiter(tmp_path):
    assert read_vocabulary(write(tmp_path, "tokens.txt", "<pad>\n \n|\n")).word_delimiter is None


def test_a_vocabulary_of_several_languages_gives_the_one_asked_for(tmp_path):
    location = write(tmp_path, "vocab.json", {"eng": {"<pad>": 0, "a": 1}, "deu": {"<pad>": 0, "ä": 1}})
    assert read_vocabulary(location, language="deu").symbols == ("<pad>", "ä")
    with pytest.raises(TextError, match=r"each of 2 languages, and none for 'en'. Did you mean 'eng'\?"):
        read_vocabulary(location, language="en")


def test_of_several_languages_the_noted_one_is_usual_and_what_was_added_to_it_is_not_anothers(tmp_path):
    location = write(tmp_path, "vocab.json", {"eng": {"<pad>": 0, "a": 1, "th": 2}, "deu": {"<pad>": 0, "ä": 1}})
    write(
        tmp_path,
        "tokenizer_config.json",
        {"target_lang": "eng", "pad_token": "<pad>", "added_tokens_decoder": {"2": {"content": "th"}}},
    )
    assert read_vocabulary(location).symbols == ("<pad>", "a", "th")
    assert read_vocabulary(location, language="deu").symbols == ("<pad>", "ä")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("vocab.json", '{"a": 0,\n "b" 1}', ":2: this is not JSON"),
        ("vocab.json", '{"a": 0, "a": 1}', ": 'a' stands there twice."),
        ("vocab.json", '{"a": 0, "b": 0}', ": 'a' and 'b' both have the id 0."),
        ("vocab.json", '{"a": 0, "b": 2}', ": there are 2 symbols, but none with the id 1. Number them from 0"),
        ("vocab.json", '{"a": "0"}', ": the symbol 'a' has the id '0'. Ids are whole numbers"),
        ("vocab.json", '["a", "b", "a"]', ":3: the symbol 'a' was already given the id 0."),
        ("units.txt", "<unk> 1\na 2\n", ": there are 2 symbols, but none with the id 0. Add '<blank> 0'"),
        ("units.txt", "<unk> 0\na 1\n<unk> 2\n", ":3: the symbol '<unk>' was already given the id 0."),
        ("symbols.txt", "a\n\nb\n", ": id 1 has no symbol."),
        ("symbols.txt", "a\nb\na\n", ":3: the symbol 'a' was already given the id 0."),
    ],
)
def test_a_broken_vocabulary_is_refused_with_its_place(name, content, told, tmp_path):
    location = write(tmp_path, name, content)
    with pytest.raises(TextError) as caught:
        read_vocabulary(location)
    assert str(caught.value).startswith(location + told)


def test_a_blank_that_is_not_there_is_refused_with_the_file(tmp_path):
    location = write(tmp_path, "symbols.txt", "a\nb\n")
    with pytest.raises(TextError) as caught:
        read_vocabulary(location, blank="_")
    assert str(caught.value).startswith(f"{location}: the blank '_' is not among the 2 symbols.")


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "units.txt").write_bytes(b"\xff\xfea\x00")
    with pytest.raises(TextError, match="byte 0 is not UTF-8"):
        read_vocabulary(str(tmp_path / "units.txt"))
