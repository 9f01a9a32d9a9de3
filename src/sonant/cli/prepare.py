"""`sonant prepare`: somebody's recordings become a checked, split corpus."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from sonant.cli.main import VERBS
from sonant.cli.parser import Parser, add_config_options, given, pairs, words

if TYPE_CHECKING:
    from sonant.corpus.preparation.run import PrepareResult

# What `--from` accepts; `sonant.corpus.sources.registry` knows who reads each (a test keeps the two equal).
FORMATS = (
    *("table", "folder", "librispeech", "common_voice", "kaldi", "wenet", "nemo", "lhotse", "huggingface"),
    *("textgrid", "elan", "subtitles", "archive", "text", "demo"),
)
_EPILOG = """\
examples:
  sonant prepare recordings/ my-corpus                       a folder with a table, recognised by itself
  sonant prepare table.csv my-corpus --columns text=sentence,speaker=who --labels fluency,accuracy
  sonant prepare --from kaldi data/train data/dev my-corpus --skip-invalid
  sonant prepare s3://bucket/shards/data.list my-corpus
  sonant prepare --from demo my-corpus --hours 0.5           no recordings at hand: speak some

Faults stop the preparation and name file and line; --skip-invalid keeps the good and lists the rest in rejected.csv.
Run the same command again at any time: what has been decoded before is not decoded again.
"""
# option -> key of the configuration
_KEYS = {
    "--from": "source.format",
    "--table": "source.table",
    "--audio": "source.audio",
    "--pattern": "source.pattern",
    "--encoding": "source.encoding",
    "--delimiter": "source.delimiter",
    "--vocabulary": "source.vocabulary",
    "--documents": "source.documents",
    "--split": "source.split",
    "--sample-rate": "source.sample_rate",
    "--columns": "source.columns",
    "--labels": "source.labels",
    "--annotations": "source.annotations",
    "--tiers": "source.tiers",
    "--missing": "source.missing",
    "--trust-remote-code": "source.trust_remote_code",
    "--split-by": "splits.by",
    "--column": "splits.column",
    "--split-file": "splits.file",
    "--proportions": "splits.proportions",
    "--counts": "splits.counts",
    "--stratify": "splits.stratify",
    "--folds": "splits.folds",
    "--inner-folds": "splits.inner_folds",
    "--seeds": "splits.seeds",
    "--alphabet": "limits.alphabet",
    "--severity": "severities",
    "--skip-invalid": "skip_invalid",
    "--share-speakers": "share_speakers",
    "--pack": "pack",
    "--engine": "engine",
    "--workers": "workers",
    "--hours": "demo.hours",
}


def parser() -> Parser:
    made = Parser("prepare", VERBS["prepare"], _EPILOG)
    made.add_argument("places", metavar="SOURCE", nargs="*", help="folders, files or URIs to read (none for the demo)")
    made.add_argument("corpus", metavar="CORPUS", help="the folder to write, local or remote")
    _add_source_options(made.add_argument_group("what is read"))
    _add_split_options(made.add_argument_group("splits"))
    _add_check_options(made.add_argument_group("checks and work"))
    add_config_options(made)
    return made


def _add_source_options(group: Any) -> None:
    group.add_argument(
        "--from", choices=FORMATS, metavar="FORMAT", help=f"the layout, if not recognised: {', '.join(FORMATS)}"
    )
    group.add_argument("--table", metavar="FILE", help="the table to read, where there are several")
    group.add_argument("--audio", metavar="FOLDER", help="where relative paths of recordings start")
    group.add_argument("--columns", metavar="OURS=THEIRS", action="append", help="text=sentence,speaker=client_id")
    group.add_argument("--labels", metavar="A,B", type=words, help="columns that are labels to learn")
    group.add_argument(
        "--annotations",
        metavar="FILE[@COLUMN]",
        action="append",
        help="a further table joined by id, or by that column: speakers.json@speaker",
    )
    group.add_argument("--pattern", metavar="TEXT", help="what a path says: {speaker}/{digit}_{speaker}_{take}")
    group.add_argument("--tiers", metavar="A,B", type=words, help="tiers of TextGrid and ELAN files")
    group.add_argument("--vocabulary", metavar="FILE", help="the symbols behind token ids")
    group.add_argument(
        "--documents",
        choices=("auto", "file", "block", "line"),
        metavar="HOW",
        help="what a text file holds: one text (file), or a document in each block between blank lines, or each line",
    )
    group.add_argument("--encoding", metavar="NAME", help="of text files, if not recognised")
    group.add_argument("--delimiter", metavar="SIGN", help="of tables, if not recognised")
    group.add_argument("--missing", metavar="A,B", type=words, help="cells that mean: no value")
    group.add_argument("--sample-rate", metavar="HZ", type=int, help="of bare floats that do not tell it themselves")
    group.add_argument("--hours", metavar="N", type=float, help="of the demo corpus")
    group.add_argument("--trust-remote-code", action="store_true", help="run code that a dataset hub sends along")


def _add_split_options(group: Any) -> None:
    group.add_argument("--split", metavar="NAME", help="every utterance of these sources belongs to this split")
    group.add_argument(
        "--split-by",
        choices=("auto", "speaker", "hash", "column", "file", "none"),
        metavar="HOW",
        help="auto (as the source says, else by speaker), speaker, hash, column, file, none",
    )
    group.add_argument("--column", metavar="NAME", help="the column that holds the splits")
    group.add_argument(
        "--split-file", metavar="FILE", help="saved splits (.parquet, .csv, .json), or the manifest of another corpus"
    )
    group.add_argument("--proportions", metavar="NAME=SHARE", action="append", help="train=0.8,dev=0.1,test=0.1")
    group.add_argument(
        "--counts", metavar="NAME=N", action="append", help="exact numbers of utterances: dev=200,test=200"
    )
    group.add_argument("--stratify", metavar="A,B", type=words, help="labels to spread evenly over the splits")
    group.add_argument("--seeds", metavar="N,N", type=words, help="several splits at once, one for each seed")
    group.add_argument("--folds", metavar="N", type=int, help="cross-validation")
    group.add_argument("--inner-folds", metavar="N", type=int, help="cross-validation within each fold")


def _add_check_options(group: Any) -> None:
    group.add_argument(
        "--skip-invalid", action="store_true", help="keep the good utterances, list the others in rejected.csv"
    )
    group.add_argument(
        "--severity", metavar="RULE=HOW", action="append", help="what a rule means here: error, warning or off"
    )
    group.add_argument("--alphabet", metavar="CHARACTERS", help="characters that texts may have")
    group.add_argument(
        "--share-speakers", action="store_true", help="a speaker's name means the same person in all sources"
    )
    group.add_argument("--pack", action="store_true", help="store the decoded utterances in the corpus itself")
    group.add_argument(
        "--engine", choices=("local", "ray"), metavar="ENGINE", help="local (all cores, the default) or ray (a cluster)"
    )
    group.add_argument("--workers", metavar="N", type=int, help="processes that decode; as many as cores by default")
    group.add_argument("--json", action="store_true", help="print what was done as plain values for programs")


def run(arguments: argparse.Namespace) -> int:
    from sonant.base.config import load
    from sonant.corpus.preparation.config import PrepareConfig
    from sonant.corpus.preparation.run import prepare

    for name in ("columns", "proportions", "counts", "severity"):
        if (found := getattr(arguments, name)) is not None:
            setattr(arguments, name, pairs(f"--{name}", found))
    if not arguments.split_by:
        arguments.split_by = "column" if arguments.column else "file" if arguments.split_file else None
    config = load(PrepareConfig, arguments.config, [*given(arguments, _KEYS), *arguments.sets])
    result = prepare(arguments.places, arguments.corpus, config)
    print(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) if arguments.json else in_words(result))
    return 0


def in_words(result: PrepareResult) -> str:
    """What was done, and the next command."""
    splits = ", ".join(f"{name} {count:,}" for name, count in result.splits.items()) or "no splits"
    known = "" if result.num_decoded or not result.hours else " (no recording had changed)"
    held = f"{result.hours:.2f} hours, {result.num_utterances:,} utterances"
    lines = [
        f"{result.folder}: {held if result.hours else f'{result.num_utterances:,} pieces of text'} ({splits}), "
        f"in {result.seconds:.1f} s{known}"
    ]
    for title, counts in (("left out, see rejected.csv", result.rejected), ("warnings", result.warnings)):
        if counts:
            lines.append(f"  {title}: " + ", ".join(f"{rule} {count:,}" for rule, count in counts.items()))
    return "\n".join([*lines, f"Next: sonant inspect {result.folder}"])
