"""`sonant generate`: a language model's bundle writes on from a prompt."""

from __future__ import annotations

import argparse
import json

from sonant.cli.main import VERBS
from sonant.cli.parser import Parser

_EPILOG = """\
examples:
  sonant generate runs/plays/bundle --prompt "ROMEO:" --count 3
  sonant generate runs/plays/bundle --temperature 0        always the likeliest token
"""


def parser() -> Parser:
    made = Parser("generate", VERBS["generate"], _EPILOG)
    made.add_argument("bundle", metavar="BUNDLE", help="the folder 'bundle' of a language model's run")
    made.add_argument("--prompt", metavar="TEXT", default="", help="what the text begins with")
    made.add_argument("--count", metavar="N", type=int, default=1, help="texts (1)")
    made.add_argument("--max-tokens", metavar="N", type=int, help="of each (200)")
    made.add_argument("--temperature", metavar="X", type=float, help="0 always takes the likeliest token (0.8)")
    made.add_argument("--top-k", metavar="N", type=int, help="draw from so many of the likeliest; 0: all (200)")
    made.add_argument("--top-p", metavar="P", type=float, help="draw from the likeliest of this probability (1)")
    made.add_argument("--seed", metavar="N", type=int, help="another one, other texts (0)")
    made.add_argument("--device", metavar="NAME", default="cpu", help="cpu (the default) or cuda")
    made.add_argument("--json", action="store_true", help="print a list of texts for programs")
    return made


def run(arguments: argparse.Namespace) -> int:
    from sonant.inference.generation import GenerationConfig
    from sonant.inference.scorer import Scorer

    names = ("max_tokens", "temperature", "top_k", "top_p", "seed")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    config = GenerationConfig(**given)
    scorer = Scorer.open(arguments.bundle, arguments.device)
    texts = scorer.generate(arguments.prompt, config, count=arguments.count)
    if arguments.json:
        print(json.dumps(texts, ensure_ascii=False, indent=2))
    else:
        print(f"\n{'─' * 40}\n".join(arguments.prompt + text for text in texts))
    return 0
