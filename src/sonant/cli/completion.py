"""Completion scripts for bash, zsh and fish, made from the parsers themselves, so that they cannot fall behind."""

from __future__ import annotations

import argparse

from sonant.cli.main import VERBS, verb_module
from sonant.cli.parser import Parser

SHELLS = ("bash", "zsh", "fish")
_EPILOG = """\
To have it in every shell:
  bash  sonant completion bash >> ~/.bashrc
  zsh   sonant completion zsh >> ~/.zshrc      (after compinit)
  fish  sonant completion fish > ~/.config/fish/completions/sonant.fish
"""


def parser() -> Parser:
    made = Parser("completion", VERBS["completion"], _EPILOG)
    made.add_argument("shell", choices=SHELLS, metavar="SHELL", help=" | ".join(SHELLS))
    return made


def run(arguments: argparse.Namespace) -> int:
    print(fish_script() if arguments.shell == "fish" else bash_script(is_zsh=arguments.shell == "zsh"))
    return 0


def _actions() -> dict[str, list[argparse.Action]]:
    return {verb: verb_module(verb).parser()._actions for verb in VERBS}


def bash_script(*, is_zsh: bool = False) -> str:
    """One function; zsh runs it through its bash emulation."""
    cases, choices = [], []
    for verb, actions in _actions().items():
        names = [name for action in actions for name in action.option_strings if name.startswith("--")]
        positional = [str(choice) for action in actions if not action.option_strings for choice in action.choices or ()]
        cases.append(f'    {verb}) words="{" ".join(names + positional)}" ;;')
        choices += [
            f'    "{verb} {name}") words="{" ".join(map(str, action.choices))}" ;;'
            for action in actions
            if action.choices
            for name in action.option_strings
        ]
    start = "autoload -U +X bashcompinit && bashcompinit\n" if is_zsh else ""
    return start + _BASH.format(verbs=" ".join(VERBS), cases="\n".join(cases), choices="\n".join(choices))


_BASH = """\
_sonant() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" verb="${{COMP_WORDS[1]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=( $(compgen -W "{verbs} --help --version" -- "$word") )
    return
  fi
  case "$verb" in
{cases}
  esac
  case "$verb $before" in
{choices}
  esac
  COMPREPLY=( $(compgen -W "$words" -- "$word") $(compgen -f -- "$word") )
}}
complete -o filenames -F _sonant sonant"""


def fish_script() -> str:
    lines = [f"complete -c sonant -n __fish_use_subcommand -f -a {verb} -d {_quoted(VERBS[verb])}" for verb in VERBS]
    for verb, actions in _actions().items():
        on = f"complete -c sonant -n '__fish_seen_subcommand_from {verb}'"
        for action in actions:
            choices = f" -f -a {_quoted(' '.join(map(str, action.choices)))}" if action.choices else ""
            for name in action.option_strings:
                if name.startswith("--"):
                    takes = " -r" if action.nargs != 0 else ""
                    lines.append(f"{on} -l {name[2:]}{takes}{choices} -d {_quoted(_first_sentence(action.help))}")
            if not action.option_strings and choices:
                lines.append(f"{on}{choices}")
    return "\n".join(lines)


def _first_sentence(text: str | None) -> str:
    return (text or "").split(";")[0].split(": ")[0]


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
