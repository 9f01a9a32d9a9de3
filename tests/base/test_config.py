"""A configuration: defaults, a file of differences, options on top; whatever is not understood is refused by place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.base.config import differences, from_dict, load, save, to_dict
from sonant.base.errors import AbsentError, ConfigError
from sonant.base.overrides import Given


@dataclass(frozen=True, kw_only=True)
class Sgd:
    kind: Literal["sgd"] = "sgd"
    momentum: float = 0.9


@dataclass(frozen=True, kw_only=True)
class Adam:
    kind: Literal["adam"] = "adam"
    betas: tuple[float, float] = (0.9, 0.98)
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if self.learning_rate <= 0:
            raise ConfigError("learning_rate", "it is not above 0.", "Choose a positive number.")


@dataclass(frozen=True, kw_only=True)
class Data:
    sample_rate: int = 16000
    speaker: str = "all"
    columns: dict[str, str] = field(default_factory=dict)
    limit_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Run:
    corpus: str
    steps: int = 1000
    deterministic: bool = False
    precision: Literal["fp32", "bf16"] = "fp32"
    data: Data = Data(sample_rate=8000)
    optimizer: Adam | Sgd = Adam(learning_rate=0.01)
    stages: list[Adam | Sgd] = field(default_factory=list)
    seeds: tuple[int, ...] = (1, 2)
    threads: int | Literal["all"] = "all"


@pytest.fixture
def loading(tmp_path):
    """A config from the text of a file and options."""

    def read(text: str = "corpus: x", *overrides: str | Given, of: type = Run):
        (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
        return load(of, str(tmp_path / "run.yaml"), overrides)

    return read


def refusal(loading, text: str = "corpus: x", *overrides: str | Given) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        loading(text, *overrides)
    return caught.value


SGD = st.builds(Sgd, momentum=st.floats(0, 1))
ADAM = st.builds(Adam, learning_rate=st.floats(1e-9, 1), betas=st.tuples(st.floats(0, 1), st.floats(0, 1)))
RUNS = st.builds(
    Run,
    corpus=st.text(),
    steps=st.integers(),
    deterministic=st.booleans(),
    precision=st.sampled_from(["fp32", "bf16"]),
    data=st.builds(
        Data,
        sample_rate=st.integers(),
        speaker=st.text(),
        columns=st.dictionaries(st.text(), st.text(), max_size=3),
        limit_seconds=st.none() | st.floats(allow_nan=False),
    ),
    optimizer=SGD | ADAM,
    stages=st.lists(SGD | ADAM, max_size=3),
    seeds=st.lists(st.integers(), max_size=3).map(tuple),
    threads=st.integers() | st.just("all"),
)


@settings(max_examples=60, deadline=None)
@given(config=RUNS)
def test_a_saved_config_loads_to_itself(config, tmp_path_factory):
    path = str(tmp_path_factory.getbasetemp() / "saved.yaml")
    save(config, path)
    assert load(Run, path) == config
    assert from_dict(Run, to_dict(config), "here") == config


@settings(max_examples=60, deadline=None)
@given(config=RUNS)
def test_the_differences_from_the_defaults_load_to_the_same_config(config):
    assert from_dict(Run, differences(config), "here") == config


def test_differences_hold_nothing_that_is_a_default():
    config = Run(corpus="x", data=Data(sample_rate=8000, speaker="me"), optimizer=Sgd(), stages=[Adam()])
    assert differences(config) == {
        "corpus": "x",
        "data": {"speaker": "me"},
        "optimizer": {"kind": "sgd"},
        "stages": [{"kind": "adam"}],
    }


def test_a_saved_config_means_the_same_when_defaults_have_changed(tmp_path):
    save(Data(), str(tmp_path / "data.yaml"))
    text = (tmp_path / "data.yaml").read_text()
    assert all(f"{name}:" in text for name in ("sample_rate", "speaker", "columns", "limit_seconds"))


def test_options_win_over_the_file_and_the_file_over_defaults(loading):
    config = loading("corpus: x\nsteps: 5\ndata: {speaker: me}\n", "steps=7", "data.sample_rate=44100")
    assert config == Run(corpus="x", steps=7, data=Data(sample_rate=44100, speaker="me"))


def test_the_last_of_two_equal_options_stands(loading):
    assert loading("corpus: x", "steps=1", "steps=2").steps == 2


def test_a_nested_file_holds_differences_from_what_stands_there(loading):
    assert loading("corpus: x\noptimizer: {betas: [0.5, 0.5]}").optimizer == Adam(learning_rate=0.01, betas=(0.5, 0.5))
    assert loading("corpus: x\noptimizer: {kind: adam}").optimizer == Adam(learning_rate=0.01)
    assert loading("corpus: x\noptimizer: {kind: sgd}").optimizer == Sgd()


def test_another_kind_has_other_keys_whatever_the_order_of_options(loading):
    for options in (("optimizer.kind=sgd", "optimizer.momentum=0.5"), ("optimizer.momentum=0.5", "optimizer.kind=sgd")):
        assert loading("corpus: x", *options).optimizer == Sgd(momentum=0.5)


def test_lists_are_set_whole_or_by_item_and_grow_at_their_end(loading):
    assert loading("corpus: x", "seeds=[5, 6, 7]").seeds == (5, 6, 7)
    assert loading("corpus: x", "seeds.1=9", "seeds.2=10").seeds == (1, 9, 10)
    assert loading("corpus: x", "stages.0.kind=sgd", "stages.0.momentum=0.1").stages == [Sgd(momentum=0.1)]
    found = refusal(loading, "corpus: x", "seeds.4=9")
    assert (found.where, found.action) == ("--set seeds.4", "Use a number from 0 to 2; 2 appends.")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("steps: 1e5", Run(corpus="x", steps=100_000)),
        ("steps: 0x10", Run(corpus="x", steps=16)),
        ("data: {speaker: 007}", Run(corpus="x", data=Data(sample_rate=8000, speaker="007"))),
        ("data: {speaker: no}", Run(corpus="x", data=Data(sample_rate=8000, speaker="no"))),
        ("data: {speaker: 1:30}", Run(corpus="x", data=Data(sample_rate=8000, speaker="1:30"))),
        ("data: {limit_seconds: 3}", Run(corpus="x", data=Data(sample_rate=8000, limit_seconds=3.0))),
        ("data: {limit_seconds: null}", Run(corpus="x")),
        ("optimizer: {learning_rate: 1e-4}", Run(corpus="x", optimizer=Adam(learning_rate=1e-4))),
        ("threads: 3", Run(corpus="x", threads=3)),
        ("deterministic: True", Run(corpus="x", deterministic=True)),
        ("", Run(corpus="x")),
    ],
)
def test_values_are_what_their_key_asks_for(loading, text, value):
    assert loading(f"corpus: x\n{text}\n") == value


@pytest.mark.parametrize(
    ("option", "name", "value"),
    [
        ("data.speaker=007", "speaker", "007"),
        ("data.speaker=true", "speaker", "true"),
        ("data.speaker={speaker}/{take}", "speaker", "{speaker}/{take}"),
        ("data.speaker={speaker}", "speaker", "{speaker}"),
        ("data.speaker=", "speaker", ""),
        ("data.speaker=a=b", "speaker", "a=b"),
        ('data.speaker="true"', "speaker", "true"),
        ("data.columns={text: words}", "columns", {"text": "words"}),
        ("data.columns.text=words", "columns", {"text": "words"}),
        ("data.limit_seconds=null", "limit_seconds", None),
        (" data.sample_rate = 5 ", "sample_rate", 5),
    ],
)
def test_an_option_is_read_as_its_key_asks_for(loading, option, name, value):
    assert getattr(loading("corpus: x", option).data, name) == value


def test_options_of_their_own_name_themselves_in_errors(loading):
    assert loading("corpus: x", Given("data.speaker", "007", "--speaker")).data.speaker == "007"
    assert loading("corpus: x", Given("seeds", ["3", "4"], "--seeds")).seeds == (3, 4)
    found = refusal(loading, "corpus: x", Given("seeds", ["3", "four"], "--seeds"))
    assert (found.where, found.problem) == ("--seeds", "'seeds.1' is 'four', but a whole number is required.")


@pytest.mark.parametrize(
    ("text", "line", "problem", "action"),
    [
        ("step: 5", 2, "key 'step' does not exist.", "Did you mean 'steps'?"),
        ("data:\n  sampel_rate: 5", 3, "key 'sampel_rate' does not exist in 'data'.", "Did you mean 'sample_rate'?"),
        ("steps: many", 2, "'steps' is 'many', but a whole number is required.", "leave the key out for 1000."),
        ("steps: 1.5", 2, "'steps' is 1.5, but a whole number is required.", "Write a whole number"),
        ("steps: true", 2, "'steps' is true, but a whole number is required.", "Write a whole number"),
        ("steps:", 2, "'steps' is empty, but a whole number is required.", "Write a whole number"),
        ("deterministic: yes", 2, "'deterministic' is 'yes', but true or false is required.", "Write true or false"),
        ("precision: bf61", 2, "'precision' is 'bf61', but one of fp32, bf16 is required.", "Did you mean 'bf16'?"),
        ("seeds: 3", 2, "'seeds' is 3, but a list is required.", "Write [3]."),
        ("data: 3", 2, "'data' is 3, but a group of keys is required.", "Write a group of keys."),
        ("optimizer: {betas: [1]}", 2, "'optimizer.betas' is a list of 1, but a list of 2 is required.", "Write a"),
        ("optimizer: {kind: adm}", 2, "'optimizer.kind' is 'adm'", "Did you mean 'adam'?"),
        ("optimizer: {momentum: 1}", 2, "key 'momentum' does not exist in 'optimizer'.", "Choose one of: betas"),
        ("stages:\n- {momentum: 1}", 3, "'stages.0' needs a 'kind'.", "Choose one of: adam, sgd."),
        ("optimizer:\n\n  learning_rate: -1", 4, "'optimizer.learning_rate': it is not above 0.", "Choose a positive"),
        ("threads: some", 2, "a whole number or 'all' is required", "Write a whole number or 'all'"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(loading, tmp_path, text, line, problem, action):
    found = refusal(loading, f"corpus: x\n{text}\n")
    assert found.where == f"{tmp_path}/run.yaml:{line}"
    assert problem in found.problem
    assert action in found.action


@pytest.mark.parametrize(
    ("option", "where", "problem", "action"),
    [
        ("step=5", "--set step", "key 'step' does not exist.", "Did you mean 'steps'?"),
        ("data.sampel_rate=5", "--set data.sampel_rate", "does not exist in 'data'.", "Did you mean 'sample_rate'?"),
        ("steps=many", "--set steps", "'steps' is 'many', but a whole number is required.", "Write a whole number"),
        ("steps.more=5", "--set steps.more", "'steps' is a value and has no key 'more'.", "Set 'steps' itself."),
        ("optimizer.learning_rate=-1", "--set optimizer.learning_rate", "it is not above 0.", "Choose a positive"),
        ("steps", "--set steps", "not of the form key=value.", "Write --set key=value."),
        ("=5", "--set =5", "not of the form key=value.", "Write --set key=value."),
        ("data..speaker=5", "--set data..speaker=5", "not of the form key=value.", "Write --set key=value."),
    ],
)
def test_an_option_that_is_not_understood_is_refused_by_name(loading, option, where, problem, action):
    found = refusal(loading, "corpus: x", option)
    assert found.where == where
    assert problem in found.problem
    assert action in found.action


def test_a_key_without_a_default_is_required_and_may_come_from_an_option(loading):
    assert "key 'corpus' is required." in refusal(loading, "steps: 5").problem
    assert loading("steps: 5", "corpus=x") == Run(corpus="x", steps=5)
    with pytest.raises(ConfigError, match="key 'corpus' is required"):
        load(Run)


def test_a_fault_in_one_file_is_told_of_the_option_that_replaced_it(loading):
    assert refusal(loading, "corpus: x\nsteps: 5", "steps=x").where == "--set steps"
    assert loading("corpus: x\nsteps: 5", "steps=6").steps == 6


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(AbsentError, match=r"absent\.yaml"):
        load(Run, str(tmp_path / "absent.yaml"))


@pytest.mark.parametrize("key", ["corpus", "steps", "data", "optimizer", "seeds", "threads", "stages", "precision"])
@settings(max_examples=40, deadline=None)
@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_value_of_any_key_gives_a_config_or_a_sentence(key, value):
    try:
        assert isinstance(from_dict(Run, {"corpus": "x", key: value}, "here"), Run)
    except ConfigError as error:
        refused = error
        assert refused.action.endswith((".", "?"))


@settings(max_examples=60, deadline=None)
@given(option=st.text(alphabet=st.sampled_from("adtseconkrpulimz.=0129[]{}'\": ,-\n"), max_size=30))
def test_any_option_gives_a_config_or_a_sentence(option):
    for text in (option, f"data.{option}", f"optimizer={option}", f"stages={option}", f"seeds.{option}"):
        try:
            assert isinstance(load(Run, overrides=["corpus=x", text]), Run)
        except ConfigError as error:
            refused = error
            assert refused.where
