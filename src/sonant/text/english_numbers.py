"""Digits as English words: 1,204 is "one thousand two hundred four", 3.5 "three point five", 21st "twenty first"."""

from __future__ import annotations

import re

_UP_TO_NINETEEN = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_BY_TEN = "zero ten twenty thirty forty fifty sixty seventy eighty ninety"
_ONES, _TENS = _UP_TO_NINETEEN.split(), _BY_TEN.split()
_POWERS = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (100, "hundred"))
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_LONGEST = 12  # digits; longer numbers, and those that begin with 0, are read out digit by digit

NUMBER = re.compile(
    r"(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)"
    r"(?:\.(?P<fraction>[0-9]+)|(?P<ordinal>st|nd|rd|th)(?![a-z]))?",
    re.IGNORECASE,
)


def spoken(number: re.Match[str]) -> str:
    """The words for a match of `NUMBER`, in lower case and without hyphens."""
    digits = number["whole"].replace(",", "")
    words = cardinal(digits)
    if number["fraction"]:
        return f"{words} point {_one_by_one(number['fraction'])}"
    return _ordinal(words) if number["ordinal"] else words


def cardinal(digits: str) -> str:
    if len(digits) > _LONGEST or (digits[0] == "0" and len(digits) > 1):
        return _one_by_one(digits)
    return _below_a_trillion(int(digits))


def _below_a_trillion(number: int) -> str:
    if number < 20:
        return _ONES[number]
    for power, name in _POWERS:
        if number >= power:
            return _joined(f"{_below_a_trillion(number // power)} {name}", number % power)
    return _joined(_TENS[number // 10], number % 10)


def _joined(words: str, rest: int) -> str:
    return f"{words} {_below_a_trillion(rest)}" if rest else words


def _ordinal(words: str) -> str:
    before, _, last = words.rpartition(" ")
    ending = last[:-1] + "ieth" if last.endswith("y") else _ORDINALS.get(last, last + "th")
    return f"{before} {ending}".strip()


def _one_by_one(digits: str) -> str:
    return " ".join(_ONES[int(digit)] for digit in digits)
