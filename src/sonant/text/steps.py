"""The steps that a text may be taken through, by name.

Each name stands for a function from a config to a function from text to text; all of them survive pickling,
so that a normaliser travels to workers.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Protocol

from sonant.text.english_numbers import NUMBER, spoken

Step = Callable[[str], str]


class Settings(Protocol):
    """What the steps read of a normaliser's config."""

    @property
    def replacements(self) -> Mapping[str, str]: ...
    @property
    def word_replacements(self) -> Mapping[str, str]: ...
    @property
    def keep(self) -> str: ...
    @property
    def remove(self) -> str: ...
    @property
    def inside_words(self) -> str: ...


STEPS: dict[str, Callable[[Settings], Step]] = {
    "nfc": lambda settings: partial(unicodedata.normalize, "NFC"),
    "nfd": lambda settings: partial(unicodedata.normalize, "NFD"),
    "nfkc": lambda settings: partial(unicodedata.normalize, "NFKC"),
    "nfkd": lambda settings: partial(unicodedata.normalize, "NFKD"),
    "lowercase": lambda settings: str.lower,  # Turkish I becomes i: replace I by ı and İ by i before
    "uppercase": lambda settings: str.upper,  # ß becomes SS, Turkish i becomes I
    "casefold": lambda settings: str.casefold,  # as lowercase, and ß becomes ss, ς becomes σ
    "straight_quotes": lambda settings: _straighten,
    "strip_accents": lambda settings: _strip_accents,
    "strip_punctuation": lambda settings: partial(_strip, "P", settings.inside_words),
    "strip_symbols": lambda settings: partial(_strip, "S", ""),
    "digits_to_english": lambda settings: _digits_to_english,
    "remove_tags": lambda settings: _remove_tags,
    "replace": lambda settings: replacing(settings.replacements),
    "replace_words": lambda settings: replacing_words(settings.word_replacements),
    "keep": lambda settings: partial(_keep, re.compile(rf"[^{re.escape(settings.keep)}\s]+")),
    "remove": lambda settings: partial(re.compile(f"[{re.escape(settings.remove)}]").sub, ""),
    "collapse_whitespace": lambda settings: _collapse_whitespace,
}

_QUOTES = str.maketrans(dict.fromkeys("\u2018\u2019\u201b\u02bc", "'") | dict.fromkeys("\u201c\u201d\u201f", '"'))
_ACCENT = re.compile("[\u0300-\u036f]")  # those of Latin, Greek and Cyrillic; Indic vowels are letters of their own
_TAG = re.compile(r"<[^\s<>][^<>]*>|\[[^\[\]]*\]")


def replacing(table: Mapping[str, str]) -> Step:
    """Replaces every key wherever it stands, the longest first, all at once."""
    return partial(_replace, re.compile(_any_of(table)), dict(table))


def replacing_words(table: Mapping[str, str]) -> Step:
    """Replaces a key where no letter, digit or mark touches it."""
    word = rf"[\w{_marks()}]"
    return partial(_replace, re.compile(f"(?<!{word})(?:{_any_of(table)})(?!{word})"), dict(table))


def _any_of(table: Mapping[str, str]) -> str:
    return "|".join(map(re.escape, sorted(table, key=len, reverse=True)))


@cache
def _marks() -> str:
    """Vowel signs and accents that stand on a letter: part of the word, though `\\w` leaves them out."""
    return "".join(chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M")


def _replace(pattern: re.Pattern[str], table: Mapping[str, str], text: str) -> str:
    return pattern.sub(lambda found: table[found[0]], text)


def _straighten(text: str) -> str:
    return text.translate(_QUOTES)


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


def _strip_accents(text: str) -> str:
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", text)))


def _strip(kind: str, inside_words: str, text: str) -> str:
    """Drops the characters of one Unicode class; a space stands where they were all that parted two words."""
    stripped = "".join(character for character in sorted(set(text)) if unicodedata.category(character)[0] == kind)
    if not stripped:
        return text

    def gap(found: re.Match[str]) -> str:
        if not _parts_words(found):
            return ""
        return found[0] if found[0] in tuple(inside_words) else " "

    return re.sub(f"[{re.escape(stripped)}]+", gap, text)


def _keep(others: re.Pattern[str], text: str) -> str:
    def gap(found: re.Match[str]) -> str:
        return " " if _parts_words(found) and not any(map(_is_of_word, found[0])) else ""

    return others.sub(gap, text)


def _remove_tags(text: str) -> str:
    return _TAG.sub(lambda found: " " if _parts_words(found) else "", text)


def _digits_to_english(text: str) -> str:
    def words(found: re.Match[str]) -> str:
        before, after = _neighbours(found)
        return " " * _is_of_word(before) + spoken(found) + " " * _is_of_word(after)

    return NUMBER.sub(words, text)


def _parts_words(found: re.Match[str]) -> bool:
    before, after = _neighbours(found)
    return _is_of_word(before) and _is_of_word(after)


def _neighbours(found: re.Match[str]) -> tuple[str, str]:
    """The characters on both sides; empty at the ends of the text."""
    start, end = found.span()
    return found.string[start - 1 : start] if start else "", found.string[end : end + 1]


def _is_of_word(character: str) -> bool:
    """Letters, digits and marks."""
    return bool(character) and unicodedata.category(character)[0] in "LNM"
