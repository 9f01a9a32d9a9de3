"""`sonant VERB …`: finds the verb, runs it, and turns what went wrong into a sentence and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

import sonant
from sonant.base.errors import SonantError, UsageError
from sonant.base.names import suggestion

# Each verb is a module with `parser()` and `run(arguments) -> exit code`; only the one that is called is imported.
VERBS = {
    "prepare": "Turn somebody's recordings into a checked, split corpus.",
    "inspect": "Show what a corpus holds and what is wrong with it.",
    "train": "Train a model from a corpus, or go on with a training.",
    "evaluate": "Measure a trained model, with intervals.",
    "transcribe": "Write down what recordings say.",
    "align": "Find when each word of a known text is said.",
    "generate": "Let a language model write.",
    "ngram": "Estimate an n-gram model of words from texts.",
    "compare": "Put runs side by side, with paired intervals.",
    "completion": "Print what a shell needs to complete these commands.",
}
_EXIT_CODES = """\
Exit codes: 0 done · 1 a defect of Sonant · 2 the command makes no sense · 3 faults in your data
            4 storage (full, unwritable, unreachable) · 5 an optional package is missing · 130 interrupted
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """What the console script runs; the exit code is for the shell."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words)
    except SonantError as error:
        _say(f"{'error: ' if sys.stderr.isatty() else 'sonant: '}{error}")
        return error.exit_code
    except KeyboardInterrupt:
        _say("\nsonant: interrupted. Run the same command again to go on.")
        return 130
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def help_text() -> str:
    """The top level, as plain text: it must be there at once."""
    width = max(map(len, VERBS))
    verbs = "\n".join(f"  {name:<{width}}  {purpose}" for name, purpose in VERBS.items())
    return (
        f"Sonant {sonant.__version__}: trains speech models from your own recordings.\n\n"
        f"Usage: sonant VERB …\n\n{verbs}\n\n"
        f"`sonant VERB --help` explains a verb. A first corpus, without any recording at hand:\n"
        f"  sonant prepare --from demo my-corpus --hours 0.5 && sonant inspect my-corpus\n\n{_EXIT_CODES}"
    )


def verb_module(name: str) -> ModuleType:
    """The module behind a verb."""
    if name not in VERBS:
        raise UsageError(name, "there is no such verb.", suggestion(name, VERBS))
    return importlib.import_module(f"sonant.cli.{name}")


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(help_text(), end="")
        return 0 if words else UsageError.exit_code
    if words[0] in ("-V", "--version"):
        print(f"sonant {sonant.__version__}")
        return 0
    module = verb_module(words[0])
    code: int = module.run(module.parser().read(words[1:]))
    sys.stdout.flush()  # a closed pipe is noticed here, not at exit
    return code


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
