"""Argument parsing that answers a typing mistake with the word that was meant."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from sonant.base.errors import UsageError
from sonant.base.names import nearest, suggestion
from sonant.base.overrides import Given


class Parser(argparse.ArgumentParser):
    """Refuses abbreviations (they break when an option is added) and names the nearest right word."""

    def __init__(self, verb: str, description: str, epilog: str = "") -> None:
        super().__init__(
            prog=f"sonant {verb}",
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """What the words mean; an option that does not exist is refused with the nearest that does."""
        found, unknown = self.parse_known_intermixed_args(words)  # options may stand between SOURCE and CORPUS
        for word in unknown:
            self._refuse(word)
        return found

    def error(self, message: str) -> NoReturn:
        raise UsageError(self.prog, f"{message[:1].lower()}{message[1:]}.", f"See {self.prog} --help.")

    def option_names(self) -> list[str]:
        """Every option in its long form."""
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]

    def _refuse(self, word: str) -> NoReturn:
        option = word.partition("=")[0]
        if not option.startswith("-"):
            raise UsageError(self.prog, f"'{word}' is one argument too many.", f"See {self.prog} --help.")
        near = nearest(option, self.option_names())
        raise UsageError(
            self.prog,
            f"the option '{option}' does not exist.",
            f"Did you mean '{near}'?" if near else f"See {self.prog} --help.",
        )

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            name = "/".join(action.option_strings) or str(action.metavar or action.dest)
            raise UsageError(f"{self.prog} {name}", f"'{value}' is not known.", suggestion(str(value), action.choices))


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """What every verb with a configuration takes."""
    group = parser.add_argument_group("configuration")
    group.add_argument("--config", metavar="FILE", help="YAML file with differences from the defaults")
    group.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="sets",
        help="one value, wins over the file; may be repeated: --set limits.max_seconds=60",
    )


def given(arguments: argparse.Namespace, keys: Mapping[str, str]) -> list[Given]:
    """The options that were used, as values of a configuration; `keys` maps each option to its key."""
    found = []
    for option, key in keys.items():
        value = getattr(arguments, option.lstrip("-").replace("-", "_"))
        if value is not None and value is not False and value != []:
            found.append(Given(key, value, option))
    return found


def pairs(option: str, given_words: Sequence[str]) -> dict[str, str]:
    """`a=b` words, each possibly several with commas between, as a dict."""
    found: dict[str, str] = {}
    for word in (part for words_ in given_words for part in words_.split(",")):
        name, has_value, value = word.partition("=")
        if not (name.strip() and has_value and value.strip()):
            raise UsageError(option, f"'{word}' is not of the form name=value.", f"Write {option} name=value.")
        found[name.strip()] = value.strip()
    return found


def words(text: str) -> list[str]:
    """A list written with commas."""
    return [word.strip() for word in text.split(",") if word.strip()]
