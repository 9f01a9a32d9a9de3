"""Every tokenizer, whatever its symbols, keeps the same promises."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base import config as configs
from sonant.base.errors import ConfigError, SonantError, TextError
from sonant.text.normalize import NormalizerConfig
from sonant.text.subwords import wrap
from sonant.text.tokenizer import CharactersConfig, SubwordsConfig, load_tokenizer, train_tokenizer
from sonant.text.vocabulary import VocabularyConfig

TEXTS = [
    "hello there, said the miller to the baker's daughter",
    "the other brother gathers feathers in another weather",
    "a < b means that b > a, and so on; don't ask  twice",
    "who reads <s> aloud? nobody reads </s> or <pad> aloud",
    "seven singers sing seven songs in seven singing schools",
] * 3
ASIS = NormalizerConfig(steps=())
CONFIGS = {
    "characters": CharactersConfig(normalizer=ASIS, vocabulary=VocabularyConfig(bos="<s>", eos="</s>")),
    "bpe": SubwordsConfig(kind="bpe", size=300, normalizer=ASIS),
    "unigram": SubwordsConfig(kind="unigram", size=90, normalizer=ASIS),
}
ALPHABET = sorted(set("".join(TEXTS)))
seen = st.text(st.sampled_from(ALPHABET), max_size=20) | st.lists(
    st.sampled_from(["<s>", "</s>", "<pad>", "<unk>", " ", "the", "s>", "<"]), max_size=6
).map("".join)
anything = st.lists(st.sampled_from("|▁Ġ⁇ \n<s>") | st.characters(codec="utf-8"), max_size=20).map("".join)
trained = {kind: train_tokenizer(TEXTS, config) for kind, config in CONFIGS.items()}
every_kind = pytest.mark.parametrize("kind", CONFIGS)


@every_kind
@settings(deadline=None)
@given(text=seen)
def test_decoding_what_was_encoded_gives_the_text_back(kind, text):
    assert trained[kind].decode(trained[kind].encode(text)) == text


@settings(deadline=None, max_examples=300)
@given(text=anything)
def test_byte_level_pairs_write_every_text(text):
    tokenizer = trained["bpe"]
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert not tokenizer.unknown_in(text)


@pytest.mark.parametrize("kind", ["characters", "unigram"])
@settings(deadline=None, max_examples=200)
@given(text=anything)
def test_what_cannot_be_written_is_counted_and_marked_where_it_stood(kind, text):
    tokenizer = trained[kind]
    unknown = Counter(character for character in text if character not in ALPHABET)
    assert tokenizer.unknown_in(text) == unknown
    assert (tokenizer.unknown_id in tokenizer.encode(text)) == bool(unknown)
    kept = "".join(character for character in text if character in ALPHABET)
    assert tokenizer.decode(tokenizer.encode(text)).replace("⁇", "") == kept


@every_kind
@settings(deadline=None)
@given(text=seen | anything)
def test_a_text_that_spells_a_special_symbol_is_not_that_symbol(kind, text):
    tokenizer = trained[kind]
    special = {tokenizer.blank_id, tokenizer.bos_id, tokenizer.eos_id}
    assert special.isdisjoint(tokenizer.encode(text + "<s></s> <pad>"))


@every_kind
@settings(deadline=None)
@given(texts=st.lists(seen | anything, max_size=5))
def test_many_texts_are_encoded_as_each_alone(kind, texts):
    assert trained[kind].encode_all(texts) == [trained[kind].encode(text) for text in texts]


@every_kind
def test_the_special_symbols_have_the_same_ids_in_every_kind(kind):
    tokenizer = trained[kind]
    assert tokenizer.symbols[:4] == ("<pad>", "<unk>", "<s>", "</s>")
    assert (tokenizer.blank_id, tokenizer.unknown_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2, 3)
    assert tokenizer.pad_id == tokenizer.blank_id
    assert tokenizer.size == len(tokenizer.symbols) == len(set(tokenizer.symbols))


@every_kind
def test_special_symbols_and_the_padding_of_labels_write_nothing(kind):
    tokenizer = trained[kind]
    ids = tokenizer.encode("the miller")
    assert tokenizer.decode([2, 0, *ids, -100, -1, 0, 3]) == "the miller"
    assert tokenizer.decode([]) == tokenizer.decode([-100]) == ""


@every_kind
def test_decoding_collapses_nothing(kind):
    tokenizer = trained[kind]
    ids = [tokenizer.vocabulary.ids[symbol] for symbol in "hello"]
    assert tokenizer.decode(ids) == "hello"


@every_kind
def test_an_unknown_symbol_is_one_character_that_is_wrong(kind):
    tokenizer = trained[kind]
    ids = [tokenizer.vocabulary.ids[symbol] for symbol in "he"]
    assert tokenizer.decode([ids[0], 1, ids[1], 1, 1]) == "h⁇e⁇⁇"


@every_kind
def test_an_id_beyond_the_vocabulary_is_refused(kind):
    size = trained[kind].size
    with pytest.raises(TextError, match=f"the id {size} was found, but the vocabulary has {size} symbols"):
        trained[kind].decode([0, size])


@every_kind
def test_what_is_saved_is_loaded_equal(kind, tmp_path):
    trained[kind].save(str(tmp_path))
    loaded = load_tokenizer(str(tmp_path))
    assert loaded == trained[kind]
    assert [loaded.encode(text) for text in TEXTS] == [trained[kind].encode(text) for text in TEXTS]


@every_kind
def test_a_tokenizer_travels_to_workers(kind):
    again = pickle.loads(pickle.dumps(trained[kind]))
    assert again == trained[kind]
    assert again.encode("<s> the") == trained[kind].encode("<s> the")


@every_kind
def test_training_reads_the_normalised_texts(kind):
    steps = NormalizerConfig(steps=("lowercase",))
    subwords = SubwordsConfig(kind="unigram" if kind == "unigram" else "bpe", size=300, normalizer=steps)
    config = CharactersConfig(normalizer=steps) if kind == "characters" else subwords
    assert train_tokenizer(["HERE", "THERE"] * 3, config) == train_tokenizer(["here", "there"] * 3, config)


@every_kind
def test_training_does_not_depend_on_the_order_of_the_texts(kind):
    assert train_tokenizer(iter(TEXTS[::-1]), CONFIGS[kind]) == trained[kind]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_training_in_another_process_gives_the_same_tokenizer(kind, tmp_path):
    source = (
        "import sys; from sonant.text.tokenizer import *\n"
        "train_tokenizer(sys.argv[3:], SubwordsConfig(kind=sys.argv[1], size=300)).save(sys.argv[2])"
    )
    saved = []
    for name in "abc":
        subprocess.run([sys.executable, "-c", source, kind, str(tmp_path / name), *TEXTS], check=True)
        saved.append((tmp_path / name / "tokenizer.json").read_bytes())
    assert saved[0] == saved[1] == saved[2]


@every_kind
def test_the_normaliser_belongs_to_the_tokenizer_and_is_saved_with_it(kind, tmp_path):
    steps = NormalizerConfig(steps=("replace", "lowercase", "collapse_whitespace"), replacements={"&": " and "})
    settings = {"vocabulary": VocabularyConfig()} if kind == "characters" else {"kind": kind, "size": 300}
    config = (CharactersConfig if kind == "characters" else SubwordsConfig)(normalizer=steps, **settings)
    train_tokenizer(["Rock & Roll", "and rock and roll on"], config).save(str(tmp_path))
    tokenizer = load_tokenizer(str(tmp_path))
    assert tokenizer.decode(tokenizer.encode(" ROCK&ROLL ")) == "rock and roll"


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_config_of_a_tokenizer_is_told_by_its_kind(config):
    from dataclasses import make_dataclass

    from sonant.text.tokenizer import TokenizerConfig

    holder = make_dataclass("Holder", [("tokenizer", TokenizerConfig)], frozen=True, kw_only=True)
    written = {"tokenizer": configs.to_dict(config)}
    assert configs.from_dict(holder, written, "run.yaml").tokenizer == config


def test_the_first_word_has_the_same_unigram_pieces_as_any_other():
    tokenizer = trained["unigram"]
    assert tokenizer.encode("the the") == tokenizer.encode("the") * 2


def test_without_a_symbol_for_the_unknown_a_strange_character_is_refused():
    tokenizer = train_tokenizer(["abc"], CharactersConfig(vocabulary=VocabularyConfig(unknown="")))
    assert tokenizer.encode("cab") == [4, 2, 3]
    with pytest.raises(TextError, match="the vocabulary has neither 'x', 'é' nor a symbol for the unknown"):
        tokenizer.encode("aéx")


def test_half_a_surrogate_pair_is_no_text():
    with pytest.raises(TextError, match="character 2 is half of a surrogate pair"):
        trained["bpe"].encode("a\ud800")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"size": 259}, "the bytes and the special symbols alone are 260. Give 260 or more."),
        ({"blank": "pad"}, "'pad' could be a piece of a text. Write it in angle brackets, as <blank>."),
        ({"blank": "<|>"}, "'<|>' could be a piece of a text."),
        ({"blank": "<s>"}, "'<s>' is already the blank."),
        ({"kind": "unigram", "unknown": ""}, "unigram pieces cannot write every text."),
    ],
)
def test_a_config_that_cannot_work_is_refused_before_training(settings, told):
    with pytest.raises(ConfigError) as caught:
        SubwordsConfig(**settings)
    assert told in str(caught.value)


def test_too_few_symbols_for_the_characters_are_refused_with_a_number_that_suffices():
    with pytest.raises(ConfigError, match="10 symbols cannot hold the 24 characters") as caught:
        train_tokenizer(["abcdefghijklmnopqrstuvw yz"[:24]], SubwordsConfig(kind="unigram", size=10, normalizer=ASIS))
    least = int(caught.value.action.split()[1])
    train_tokenizer(["abcdefghijklmnopqrstuvw yz"[:24]], SubwordsConfig(kind="unigram", size=least, normalizer=ASIS))


@every_kind
def test_empty_texts_are_refused(kind):
    with pytest.raises(TextError):
        train_tokenizer(["", ""], CONFIGS[kind])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_fault_of_the_texts_reaches_the_caller(kind):
    def texts():
        yield "fine"
        raise SonantError("texts.txt:2", "it ends in the middle.", "Copy it again.")

    with pytest.raises(SonantError, match="it ends in the middle"):
        train_tokenizer(texts(), CONFIGS[kind])


def test_the_vocabulary_of_transformers_is_loaded_in_its_own_case(tmp_path):
    symbols = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ETAONIHSRDLU'"]
    (tmp_path / "vocab.json").write_text(json.dumps({symbol: id for id, symbol in enumerate(symbols)}))
    tokenizer = load_tokenizer(str(tmp_path))
    assert tokenizer.decode(tokenizer.encode("Hello  Ann's thread|")) == "HELLO ANN'S THREAD⁇"
    assert 3 not in tokenizer.encode("hello there")


def test_a_definition_that_lets_texts_spell_special_symbols_is_held_back(tmp_path):
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    engine = Tokenizer(models.WordLevel({"[UNK]": 0, "[CLS]": 1, "hello": 2, "<s>": 3}, unk_token="[UNK]"))
    engine.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    engine.add_special_tokens([AddedToken(name, special=True) for name in ("[UNK]", "[CLS]", "<s>")])
    (tmp_path / "tokenizer.json").write_text(engine.to_str())
    tokenizer = load_tokenizer(str(tmp_path))
    assert tokenizer.vocabulary.specials == {"unknown": "[UNK]", "bos": "<s>"}
    assert tokenizer.encode("[CLS] hello <s>") == [0, 2, 0]
    assert tokenizer.unknown_in("[CLS] hello") == Counter("[CLS]")
    assert tokenizer.decode([1, 2, 0, 3]) == "hello ⁇"


def test_an_end_of_text_that_is_also_called_unknown_is_only_the_end():
    end = "<|endoftext|>"
    bpe = train_tokenizer(TEXTS, SubwordsConfig(size=280, blank="", unknown="", bos=end, eos=end))
    tokenizer = wrap(bpe.definition, {"unknown": end, "bos": end, "eos": end}, bpe.normalizer)
    assert (tokenizer.unknown_id, tokenizer.eos_id, tokenizer.blank_id) == (None, 0, None)
    assert tokenizer.decode([0, *tokenizer.encode("the end" + end)]) == "the end" + end


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "there is no tokenizer: neither text.json nor tokenizer.json nor vocab.json."),
        ({"vocab.json": "{}", "merges.txt": ""}, "Load it with transformers and save it again"),
        ({"tokenizer.json": "{}"}, "this describes no tokenizer"),
        ({"text.json": '{"format": 99}'}, "format 99 was found, 1 is read."),
        ({"text.json": '{"format": 1, "kind": "syllables", "normalizer": {}}'}, "the kind 'syllables' is not known."),
        ({"text.json": '{"format": 1, "normalizer": {"steps": ["lower"]}}'}, "Did you mean 'lowercase'?"),
        (
            {"text.json": '{"format": 1, "kind": "subwords", "normalizer": {}}', "tokenizer.json": "{}"},
            "no tokenizer: ",
        ),
        ({"text.json": '{"format": 1,'}, "text.json:1: this is not JSON"),
    ],
)
def test_a_folder_without_a_whole_tokenizer_is_refused_with_its_place(files, told, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(SonantError) as caught:
        load_tokenizer(str(tmp_path))
    assert str(caught.value).startswith(str(tmp_path))
    assert told in str(caught.value)


def test_reading_texts_imports_no_torch_and_characters_no_tokenizers():
    source = (
        "import sys; from sonant.text.tokenizer import *\n"
        "train_tokenizer(['abc'], CharactersConfig()).encode('a')\n"
        "assert 'tokenizers' not in sys.modules, 'tokenizers'\n"
        "train_tokenizer(['abc'], SubwordsConfig(size=300)).encode('a')\n"
        "assert 'torch' not in sys.modules, 'torch'"
    )
    subprocess.run([sys.executable, "-c", source], check=True)


def test_the_tokenizer_of_a_real_model_writes_every_text(shared):
    tokenizer = load_tokenizer(str(shared / "data" / "moonshine_tiny"))
    assert (tokenizer.unknown_id, tokenizer.bos_id, tokenizer.eos_id) == (0, 1, 2)
    for text in ("Hello, wörld  日本", "</s> is <s> spelt", ""):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert {1, 2}.isdisjoint(tokenizer.encode(text))
