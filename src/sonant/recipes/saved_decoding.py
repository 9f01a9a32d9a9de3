"""A recogniser's bundle is told how to decode: the settings that were measured, with n-grams and language model.

What is needed is copied into its folder `decoding`, under names made of the content; then the description is exchanged
in one go; then what nobody names any more is removed. Whoever opens the bundle meanwhile has the one or the other.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from sonant.base import config as configs
from sonant.base import storage
from sonant.checkpoints.bundle import CARD, DESCRIPTION, WEIGHTS, Bundle, describe_anew, open_bundle
from sonant.checkpoints.card import with_section
from sonant.decoding.decoder import DecodingConfig, SearchConfig, decoding_of, in_words
from sonant.decoding.ngram.binary import read_ngrams, write_binary
from sonant.evaluation.table import Evaluation, fingerprint_of

FOLDER = "decoding"  # of companions, in a bundle


def save_decoding(bundle: Bundle, evaluation: Evaluation) -> Bundle:
    """The decoding of an evaluation becomes that of its bundle."""
    facts = evaluation.facts
    values: Any = facts.settings["decoding"]
    config = _copied(bundle, decoding_of(values, bundle.path(DESCRIPTION)))
    measured = {"data": facts.data, "split": facts.split, "utterances": len(evaluation.rows)}
    measured |= {"tuned_on": facts.settings.get("tuned_on", ""), "figures": evaluation.figures()}
    described = bundle.description
    told = describe_anew(
        bundle,
        replace(
            described,
            decoding=configs.to_dict(config),
            evaluation=described.evaluation | {"decoding": measured},
        ),
    )
    _tell_card(told, config, measured)
    _tidy(told, config)
    return told


def _copied(bundle: Bundle, config: DecodingConfig) -> DecodingConfig:
    """The same config, naming copies in the bundle."""
    if not isinstance(config, SearchConfig):
        return config
    ngram, rescorer = config.ngram, config.rescorer
    if ngram and not _is_within(bundle, ngram):
        ngram = f"{FOLDER}/{fingerprint_of(bundle.path(config.ngram))}.ngram"
        if not storage.exists(bundle.path(ngram)):
            write_binary(read_ngrams(config.ngram), bundle.path(ngram))
    if rescorer and not _is_within(bundle, rescorer):
        source = open_bundle(rescorer)
        rescorer = f"{FOLDER}/{fingerprint_of(source.path(WEIGHTS), source.path(DESCRIPTION))}"
        _copy_bundle(source, bundle.path(rescorer))
    lexicon = config.lexicon
    if lexicon and not _is_within(bundle, lexicon):
        lexicon = f"{FOLDER}/{fingerprint_of(lexicon)}.txt"
        content = storage.read_bytes(config.lexicon)
        storage.write_whole(bundle.path(lexicon), lambda file: file.write(content))
    return replace(config, ngram=ngram, rescorer=rescorer, lexicon=lexicon)


def _is_within(bundle: Bundle, place: str) -> bool:
    return bundle.path(place) != place


def _copy_bundle(source: Bundle, folder: str) -> None:
    """Its description last: without it, it is no bundle."""
    if storage.exists(storage.join(folder, DESCRIPTION)):
        return
    start = len(source.folder.rstrip("/")) + 1
    names = [place[start:] for place in storage.list_files(source.folder)]
    for name in sorted(names, key=lambda name: name == DESCRIPTION):
        with storage.open_binary(source.path(name)) as file:
            storage.write_whole(storage.join(folder, name), partial(shutil.copyfileobj, file))


def _tell_card(bundle: Bundle, config: DecodingConfig, measured: dict[str, Any]) -> None:
    place = bundle.path(CARD)
    if storage.exists(place):
        figures = ", ".join(f"{name} {value:.6g}" for name, value in measured["figures"].items())
        chosen = f" Its weights were chosen on '{measured['tuned_on']}'." if measured["tuned_on"] else ""
        body = f"It decodes by {in_words(config)}.{chosen} On {measured['utterances']:,} utterances of "
        body += f"'{measured['split']}': {figures}. The figures above are those of the best symbol of each frame."
        text = storage.read_bytes(place).decode("utf-8")
        storage.write_text(place, with_section(text, "Decoding", body if isinstance(config, SearchConfig) else ""))


def _tidy(bundle: Bundle, config: DecodingConfig) -> None:
    """Removes what another decoding needed, and what a save that was killed left."""
    folder = bundle.path(FOLDER)
    storage.remove_unfinished(bundle.folder)
    if not storage.is_folder(folder):
        return
    named = {config.ngram, config.rescorer, config.lexicon} - {""} if isinstance(config, SearchConfig) else set[str]()
    kept = tuple(bundle.path(name) for name in named)
    for place in list(storage.list_files(folder)):
        if not place.startswith(kept):
            storage.remove(place)
    if not storage.is_remote(folder):
        for where, _, _ in os.walk(folder):
            storage.remove_unfinished(where)
        _remove_empty(folder)


def _remove_empty(folder: str) -> None:
    inner: Iterable[str] = (where for where, _, _ in os.walk(folder, topdown=False))
    for where in inner:
        if not os.listdir(where):
            os.rmdir(where)
