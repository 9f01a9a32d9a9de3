"""How a user tells Sonant to read their layout, where recognising it by itself is not enough."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Documents = Literal["auto", "file", "block", "line"]
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "#N/A", "?")


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Every field has a use in at least one source; a field that a source cannot use is refused by it."""

    format: str = ""  # the name of a source, e.g. "kaldi"; empty: recognised from what lies there
    table: str = ""  # the table to read, relative to the source; empty: the only one there
    audio: str = ""  # folder that relative audio paths start from; empty: beside the table
    columns: dict[str, str] = field(default_factory=dict)  # manifest column -> column of the source
    labels: tuple[str, ...] = ()  # columns that become labels; the others are kept as further columns
    label_separator: str = ""  # between several labels in one cell: "|"; empty: a cell is one label
    annotations: tuple[str, ...] = ()  # tables joined by id or another column: "scores.csv", "speakers.json@speaker"
    pattern: str = ""  # how a file's path is read: "{speaker}/{digit}_{speaker}_{take}"
    tiers: tuple[str, ...] = ()  # of TextGrid and ELAN files, "*" for anything; empty: the first that has text
    encoding: str = ""  # of text files; empty: by byte-order mark, then UTF-8, then cp1252
    delimiter: str = ""  # of tables; empty: recognised
    missing: tuple[str, ...] = MISSING  # cell values that mean "no value"
    documents: Documents = "auto"  # what a text file holds: one text, or a document in each block or line
    vocabulary: str = ""  # file with the text of token ids: JSON {symbol: id}, JSON list, or one symbol a line
    split: str = ""  # split that every utterance of this source belongs to; empty: as the source says
    sample_rate: int | None = None  # of bare floats in dataset columns; empty: 16000 for `input_values`
    trust_remote_code: bool = False  # dataset hubs may carry code; it runs only when this is set
