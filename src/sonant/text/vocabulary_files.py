"""Vocabularies on disk, as the toolkits of the field write them.

vocab.json       {"<pad>": 0, "a": 1, …}       transformers; also {language: {…}}, or a list of symbols
units.txt        <blank> 0                     wenet, icefall, Kaldi: symbol and id, one pair a line
symbols.txt      <pad>                         one symbol a line; the line number is the id
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import count

from sonant.base import storage
from sonant.base.errors import TextError
from sonant.base.names import suggestion
from sonant.text.json_files import parse_json, read_text
from sonant.text.special_names import added_symbols, noted_specials, settings_in, usual_specials
from sonant.text.vocabulary import Vocabulary

_PAIR = re.compile(r"(.+)[ \t]([0-9]+)", re.DOTALL)


def read_vocabulary(location: str, *, language: str = "", **specials: str | None) -> Vocabulary:
    """Any of the three kinds; `blank="_"` and its like name what has an unusual name.

    What lies beside a `vocab.json` (tokenizer_config.json, added_tokens.json) is heeded as transformers does.
    `language` chooses from a vocabulary of several; by default the one that transformers notes as `target_lang`.
    """
    text = read_text(location)
    if location.casefold().endswith(".json"):
        folder = storage.parent(location)
        settings = settings_in(folder)
        symbols, is_of_several = _from_json(location, text, language or settings.get("target_lang") or "")
        if not is_of_several:  # those that were added may be of another language
            symbols |= added_symbols(folder, settings)
        specials = noted_specials(settings, symbols) | specials
    else:
        symbols = _from_lines(location, text)
    ordered = _in_order(location, symbols)
    try:
        return Vocabulary(symbols=ordered, **usual_specials(symbols) | specials)
    except TextError as error:
        raise TextError(location, error.problem, error.action) from error


def write_json(vocabulary: Vocabulary, location: str) -> None:
    """`vocab.json`, as transformers reads it."""
    storage.write_text(location, json.dumps(vocabulary.ids, ensure_ascii=False, indent=1) + "\n")


def write_units(vocabulary: Vocabulary, location: str) -> None:
    """Symbol and id, one pair a line, as wenet reads it."""
    _write_lines(location, vocabulary, (f"{symbol} {id}" for symbol, id in vocabulary.ids.items()))


def write_lines(vocabulary: Vocabulary, location: str) -> None:
    """One symbol a line."""
    _write_lines(location, vocabulary, vocabulary.symbols)


def _write_lines(location: str, vocabulary: Vocabulary, lines: Iterable[str]) -> None:
    for id, symbol in enumerate(vocabulary.symbols):
        if "\n" in symbol or "\r" in symbol:
            problem = f"symbol {id} is the end of a line, which a file of lines cannot hold."
            raise TextError(location, problem, "Write vocab.json instead.")
    storage.write_text(location, "".join(f"{line}\n" for line in lines))


def _from_lines(location: str, text: str) -> dict[str, int]:
    """Only line feeds end a line: other separators of Unicode may be symbols."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    pairs = [pair for pair in map(_PAIR.fullmatch, lines) if pair]
    if len(pairs) == len(lines):
        return _unique(location, ((pair[1].strip(" \t") or pair[1], int(pair[2])) for pair in pairs))
    return _unique(location, zip(lines, count()))


def _unique(location: str, pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    symbols: dict[str, int] = {}
    for number, (symbol, id) in enumerate(pairs, start=1):
        if symbol in symbols:
            problem = f"the symbol '{symbol}' was already given the id {symbols[symbol]}."
            raise TextError(f"{location}:{number}", problem, "Remove one of the two.")
        symbols[symbol] = id
    return symbols


def _from_json(location: str, text: str, language: str) -> tuple[dict[str, int], bool]:
    """The symbols, and whether they are those of one language of several."""
    values = parse_json(location, text)
    if isinstance(values, list):
        return _unique(location, zip(map(str, values), count())), False
    is_of_several = bool(values) and all(isinstance(value, dict) for value in values.values())
    if is_of_several:
        if language not in values:
            problem = f"there is a vocabulary for each of {len(values)} languages, and none for '{language}'."
            raise TextError(location, problem, suggestion(language, values))
        values = values[language]
    for symbol, id in values.items():
        if type(id) is not int:
            raise TextError(location, f"the symbol '{symbol}' has the id {id!r}.", "Ids are whole numbers from 0 on.")
    return dict(values), is_of_several


def _in_order(location: str, symbols: dict[str, int]) -> tuple[str, ...]:
    """The symbols by id, if every id from 0 on has exactly one."""
    by_id = {id: symbol for symbol, id in symbols.items()}
    if len(by_id) < len(symbols):
        symbol, id = next((symbol, id) for symbol, id in symbols.items() if by_id[id] != symbol)
        problem = f"'{symbol}' and '{by_id[id]}' both have the id {id}."
        raise TextError(location, problem, "Give each an id of its own.")
    for id in range(len(by_id)):
        if id not in by_id:
            problem = f"there are {len(by_id)} symbols, but none with the id {id}."
            hint = "Add '<blank> 0', if the blank is only implied." if id == 0 else "Number them from 0 without a hole."
            raise TextError(location, problem, hint)
    return tuple(by_id[id] for id in range(len(by_id)))
