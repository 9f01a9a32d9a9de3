"""What the columns of a dataset are: where the recordings are, which hold token ids, and which are light to read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sonant.base.errors import ConfigError, SourceError
from sonant.base.names import suggestion
from sonant.corpus.sources.arrow.part import features_of
from sonant.corpus.sources.options import SourceOptions
from sonant.corpus.sources.tables.columns import KNOWN, find_column, folded

SAMPLES, SAMPLES_RATE = "input_values", 16000  # Hz, of what feature extractors of the wav2vec2 family write
TOKENS = ("labels", "labels.input_ids", "label_ids")
LENGTHS = ("length", "input_length")  # a count of samples beside them
_AUDIO_NAMES = frozenset(folded(name) for name in KNOWN["audio"])


@dataclass(frozen=True)
class Columns:
    """The columns of every part, which are the same."""

    audio: str
    is_samples: bool  # numbers, not a file
    sample_rate: int | None  # of numbers
    tokens: str | None  # "labels", or "labels.input_ids" inside a struct
    are_tokens_inside: bool  # that struct
    lengths: str | None  # the number of samples, as the dataset tells it
    classes: dict[str, list[str]]  # names behind the numbers of a ClassLabel
    light: tuple[str, ...]  # what is read beside the recordings


def holds_recordings(schema: pa.Schema) -> bool:
    """Whether a file is a dataset of recordings, and not a table that names them."""
    return bool(_holders(schema, features_of(schema)))


def columns_of(where: str, schema: pa.Schema, options: SourceOptions) -> Columns:
    """Decides for every column; what the user named must be there."""
    features = features_of(schema)
    audio = _audio_column(where, schema, features, options)
    kind = schema.field(audio).type
    is_samples = _is_list(kind) or _is_array(kind)
    _refuse_odd(where, audio, kind)
    if options.sample_rate and not _is_list(kind):
        raise ConfigError("--sample-rate", f"the recordings in '{audio}' tell their own.", "Leave it out.")
    tokens = _tokens_column(where, schema, features, options)
    if options.vocabulary and tokens is None:
        raise ConfigError("--vocabulary", f"no column of {where} holds token ids.", "Leave it out.")
    named = {*options.labels, *options.columns.values()}
    used = {audio, *([tokens.partition(".")[0], tokens] if tokens else [])}
    lengths = next((name for name in LENGTHS if name in schema.names and name not in named), None)
    return Columns(
        audio=audio,
        is_samples=is_samples,
        sample_rate=_sample_rate(audio, kind, features, options),
        tokens=tokens,
        are_tokens_inside=tokens is not None and tokens not in schema.names,
        lengths=lengths if _is_list(kind) and lengths and pa.types.is_integer(schema.field(lengths).type) else None,
        classes={name: found for name in schema.names if (found := _class_names(features.get(name)))},
        light=tuple(field.name for field in schema if field.name not in used and _is_light(field, named)),
    )


def _audio_column(where: str, schema: pa.Schema, features: dict[str, Any], options: SourceOptions) -> str:
    if told := options.columns.get("audio"):
        return find_column(where, schema.names, told, f"--columns audio={told}")
    holders = _holders(schema, features)
    if not holders:
        holders = [one.name for one in schema if folded(one.name) in _AUDIO_NAMES and pa.types.is_string(one.type)][:1]
    preferred = [name for name in holders if name in ("audio", SAMPLES)]
    if len(holders) == 1 or preferred:
        return (preferred or holders)[0]
    if holders:
        problem = f"the columns {', '.join(holders)} all hold recordings."
        raise SourceError(where, problem, f"Say which to read: --columns audio={holders[0]}")
    problem = f"no column holds recordings; the columns are {', '.join(schema.names)}."
    if "input_features" in schema.names:
        problem = "its 'input_features' are features that another model was fed with, from which no sound comes back."
        raise SourceError(where, problem, "Give the dataset with its recordings.")
    raise SourceError(where, problem, "Say which one does: --columns audio=COLUMN")


def _holders(schema: pa.Schema, features: dict[str, Any]) -> list[str]:
    """The columns that hold recordings by what they are, not only by how they are called."""
    found = []
    for field in schema:
        feature = features.get(field.name)
        noted = feature.get("_type") if isinstance(feature, dict) else None
        is_file = pa.types.is_struct(field.type) and {"bytes", "path"} <= set(_names(field.type))
        is_named = folded(field.name) in _AUDIO_NAMES and (_is_bytes(field.type) or _is_list(field.type))
        is_sound = noted == "Audio" or is_file or is_named or _is_array(field.type) or field.name == SAMPLES
        if is_sound and noted not in ("Image", "Video"):
            found.append(field.name)
    return found


def _refuse_odd(where: str, name: str, kind: pa.DataType) -> None:
    """Numbers that are no samples, told for the whole column rather than for each row."""
    if name == SAMPLES and not _is_list(kind):
        raise SourceError(where, f"'{name}' holds {kind}; lists of floats are required.", "Make the column again.")
    if _is_array(kind):
        kind = kind.field("array").type
    if not _is_list(kind):
        return
    item = kind
    while _is_list(item):
        item = item.value_type
    is_full_scale = pa.types.is_signed_integer(item) and item.bit_width <= 32
    if not (pa.types.is_floating(item) or is_full_scale):
        problem = f"'{name}' holds lists of {item}, which tells no full scale; floats from -1 to 1 are required."
        raise SourceError(where, problem, "Cast the column: dataset.cast_column(…), or name another one.")


def _tokens_column(where: str, schema: pa.Schema, features: dict[str, Any], options: SourceOptions) -> str | None:
    if told := options.columns.get("tokens"):
        head, _, inner = told.partition(".")
        if told in schema.names or (head in schema.names and inner):
            return told
        problem = f"--columns tokens={told} means a column '{told}', but the columns are {', '.join(schema.names)}."
        raise SourceError(where, problem, suggestion(told, schema.names))
    for name in TOKENS:
        head, _, inner = name.partition(".")
        whole = name if name in schema.names else head
        if whole not in schema.names or whole in options.labels or _class_names(features.get(whole)):
            continue
        kind = schema.field(whole).type
        if whole != name or not inner:
            if bool(inner) != pa.types.is_struct(kind) or (inner and inner not in _names(kind)):
                continue
            kind = kind.field(inner).type if inner else kind
        if _is_list(kind) and pa.types.is_integer(kind.value_type):
            return name
    return None


def _sample_rate(name: str, kind: pa.DataType, features: dict[str, Any], options: SourceOptions) -> int | None:
    if not (_is_list(kind) or _is_array(kind)):
        return None
    feature = features.get(name)
    noted = feature.get("sampling_rate") if isinstance(feature, dict) else None
    return options.sample_rate or noted or (SAMPLES_RATE if name == SAMPLES else None)


def _class_names(feature: Any) -> list[str]:
    """The names of a ClassLabel, or of a list of them."""
    if isinstance(feature, dict) and feature.get("_type") in ("Sequence", "List", "LargeList"):
        feature = feature.get("feature")
    elif isinstance(feature, list) and len(feature) == 1:
        (feature,) = feature
    is_class = isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    return list(feature.get("names") or ()) if is_class else []


def _is_light(field: pa.Field, named: Collection[str]) -> bool:
    """Not worth a glance are bytes, and lists of numbers that nobody named."""
    kind = field.type
    if _is_bytes(kind) or (pa.types.is_struct(kind) and any(_is_bytes(one.type) for one in kind)):
        return False
    return not _is_list(kind) or pa.types.is_string(kind.value_type) or field.name in named


def _is_array(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and "array" in _names(kind) and _is_list(kind.field("array").type)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _names(kind: pa.StructType) -> list[str]:
    return [kind.field(number).name for number in range(kind.num_fields)]
