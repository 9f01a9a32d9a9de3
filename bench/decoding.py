"""Beam search with an n-gram model: seconds of Sonant, pyctcdecode and flashlight-text on the same CTC scores.

The scores are simulated: sentences of the Brown corpus, written letter by letter as a recogniser at 20 ms a frame
would, with confusions, faint letters and blanks between them; the n-grams are estimated from its other sentences.
`--scores BUNDLE CORPUS` takes those of a real recogniser of English letters instead, on the splits dev (to tune) and
test; the n-grams are then of Brown and of what is said in the split train.
Every side has a beam of 10, one thread and the same ARPA file. Weights, pruning, and whether frames that are surely
blank are dropped (the same for all) are chosen for each side on utterances of their own: the fastest setting within
2 % of its best word error rate, for Sonant only if no peer makes fewer errors. Times are of the processor, of the test
utterances, in turns; Sonant decodes them as one batch. flashlight-text writes only words that it knows; the others
spell.

The peers need an environment of their own (pyctcdecode asks for numpy 1): SONANT_DECODING_PEERS, made if absent.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

PEERS = Path(os.environ.get("SONANT_DECODING_PEERS", Path(tempfile.gettempdir()) / "sonant-decoding-peers"))
PACKAGES = ["pyctcdecode==0.5.0", "flashlight-text==0.0.7", "kenlm==0.3.0"]
BEAM, ROUNDS = 10, 5
UTTERANCES = {"tune": 128, "test": 256}
LETTERS = "abcdefghijklmnopqrstuvwxyz'"
BLANK, SPACE = 0, 1  # then the letters
SURE = 0.999  # frames whose blank is likelier are those that all sides may drop
# Of the n-grams, for each word, and against one that they do not know.
WEIGHTS = list(product((0.4, 0.6), (1.5, 3.0, 4.5), (5.0, 10.0)))
PRUNINGS: dict[str, list[dict[str, Any]]] = {
    "sonant": [{"token_window": token, "window": window} for token, window in product((4, 5, 6), (6, 9))],
    "pyctcdecode": [{"token_min_logp": token, "beam_prune_logp": beam} for token, beam in product((-3, -5), (-5, -10))],
    "flashlight-text": [
        {"beam_size_token": token, "beam_threshold": beam, "log_add": log_add}
        for token, beam, log_add in product((6, 29), (10, 25), (True, False))
    ],
}
Decode = Callable[[list[np.ndarray], tuple[float, float, float], bool, dict[str, Any]], list[str]]


def sentences_of_brown() -> list[str]:
    from ground import speech

    text = (speech() / "text" / "brown.txt").read_text(encoding="utf-8").lower()
    found = [written(line) for line in re.split(r"(?<=[.?!])\s+|\n", text)]
    return [sentence for sentence in found if sentence]


def simulated(text: str, rng: np.random.Generator) -> np.ndarray:
    """(T, V) log-probabilities of a recogniser that is often unsure and sometimes wrong."""
    size, rows = 2 + len(LETTERS), []
    for letter in text:
        token = SPACE if letter == " " else 2 + LETTERS.index(letter)
        for _ in range(1 + int(rng.random() < 0.3)):
            row = rng.normal(0, 1.2, size)
            row[rng.integers(1, size)] += rng.normal(4, 2)
            row[token] += rng.normal(10, 2.6)
            row[BLANK] += rng.normal(3, 2)
            rows.append(row)
        for _ in range(int(rng.integers(1, 5))):
            row = rng.normal(0, 1.2, size)
            row[BLANK] += rng.normal(12, 2)
            rows.append(row)
    scores = np.array(rows)
    return (scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)).astype(np.float32)


def without_sure_blanks(scores: np.ndarray) -> np.ndarray:
    """For decoders that cannot pass frames over: one blank stays where the letters around it are the same."""
    kept = np.exp(scores[:, BLANK]) <= SURE
    best = scores[:, 1:].argmax(axis=1)
    for a, b in pairwise(np.flatnonzero(kept)):
        if b - a > 1 and best[a] == best[b]:
            kept[a + 1] = True
    return scores[kept]


def sonant(folder: Path) -> Decode:
    from sonant.base.lengths import Lengths
    from sonant.decoding.frames import FrameConfig
    from sonant.decoding.guide import GuideConfig, build_guide
    from sonant.decoding.ngram.binary import read_ngrams
    from sonant.decoding.prefix_beam import BeamConfig, search_prefixes
    from sonant.decoding.spelling import Spelling
    from sonant.text.characters import CharacterTokenizer
    from sonant.text.normalize import Normalizer, NormalizerConfig
    from sonant.text.vocabulary import Vocabulary

    vocabulary = Vocabulary(symbols=("<pad>", "|", *LETTERS), blank="<pad>", word_delimiter="|")
    tokenizer = CharacterTokenizer(vocabulary, Normalizer(NormalizerConfig()))
    spelling, ngram, guides = Spelling(tokenizer), read_ngrams(str(folder / "words.arpa")), {}

    def decode(scores, weights, drops_blanks, pruning):
        if tuple(weights) not in guides:
            names = ("ngram_weight", "word_bonus", "unknown_penalty")
            guide = GuideConfig(**dict(zip(names, weights, strict=True)))
            guides[tuple(weights)] = build_guide(spelling, guide, ngram=ngram)
        frames = FrameConfig(skip_blank_above=SURE if drops_blanks else 1.0, token_window=pruning["token_window"])
        config = BeamConfig(width=BEAM, window=pruning["window"], frames=frames)
        lengths = np.array([len(rows) for rows in scores])
        padded = np.zeros((len(scores), lengths.max(), scores[0].shape[1]), np.float32)
        for place, rows in enumerate(scores):
            padded[place, : len(rows)] = rows
        found = search_prefixes(padded, Lengths(lengths), spelling, config, guides[tuple(weights)])
        return [tokenizer.decode(prefixes[0].ids) for prefixes in found]

    return decode


def pyctcdecode(folder: Path) -> Decode:
    import logging

    logging.disable(logging.WARNING)
    from pyctcdecode import build_ctcdecoder

    words = (folder / "words.txt").read_text().split()
    decoder = build_ctcdecoder(["", " ", *LETTERS], str(folder / "words.arpa"), words)

    def decode(scores, weights, drops_blanks, pruning):
        decoder.reset_params(alpha=weights[0], beta=weights[1], unk_score_offset=-weights[2])
        chosen = map(without_sure_blanks, scores) if drops_blanks else scores
        return [decoder.decode(rows, beam_width=BEAM, **pruning) for rows in chosen]

    return decode


def flashlight_text(folder: Path) -> Decode:
    from flashlight.lib.text.decoder import (
        CriterionType,
        KenLM,
        LexiconDecoder,
        LexiconDecoderOptions,
        SmearingMode,
        Trie,
    )
    from flashlight.lib.text.dictionary import Dictionary

    words = [*(folder / "words.txt").read_text().split(), "<unk>"]
    dictionary = Dictionary(words)
    model = KenLM(str(folder / "words.arpa"), dictionary)
    trie, start = Trie(2 + len(LETTERS), SPACE), model.start(False)
    for word in words[:-1]:
        _, score = model.score(start, dictionary.get_index(word))
        trie.insert([2 + LETTERS.index(letter) for letter in word] + [SPACE], dictionary.get_index(word), score)
    trie.smear(SmearingMode.MAX)

    def decode(scores, weights, drops_blanks, pruning):
        options = LexiconDecoderOptions(
            beam_size=BEAM,
            lm_weight=weights[0],
            word_score=weights[1],
            unk_score=-float("inf"),
            sil_score=0.0,
            criterion_type=CriterionType.CTC,
            **pruning,
        )
        decoder = LexiconDecoder(options, trie, model, SPACE, BLANK, dictionary.get_index("<unk>"), [], False)
        texts = []
        for rows in map(without_sure_blanks, scores) if drops_blanks else scores:
            rows = np.ascontiguousarray(rows)  # noqa: PLW2901
            best = decoder.decode(rows.ctypes.data, *rows.shape)
            texts.append(" ".join(words[word] for word in best[0].words if word >= 0) if best else "")
        return texts

    return decode


SIDES = {"sonant": sonant, "pyctcdecode": pyctcdecode, "flashlight-text": flashlight_text}


def answer(side: str, folder: Path) -> None:
    """The child's part: a line of settings comes in, a line of processor seconds and texts goes out."""
    decode = SIDES[side](folder)
    archive = np.load(folder / "scores.npz")
    scores = {part: [archive[f"{part}{place}"] for place in range(_count(archive, part))] for part in UTTERANCES}
    print("ready", flush=True)
    for line in sys.stdin:
        part, *settings = json.loads(line)
        decode(scores[part][:2], *settings)  # what is made once for a setting is not timed
        started = time.process_time()
        texts = decode(scores[part], *settings)
        print(json.dumps([time.process_time() - started, texts]), flush=True)


def _count(archive: Any, part: str) -> int:
    return sum(name.startswith(part) for name in archive.files)


class Child:
    """A side in a process of its own."""

    def __init__(self, side: str, folder: Path) -> None:
        python = sys.executable if side == "sonant" else str(PEERS / "bin" / "python")
        command = [python, __file__, "--answer", side, str(folder)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        assert self.process.stdout.readline() == "ready\n", f"{side} did not start: {' '.join(command)}"

    def __call__(self, part: str, settings: list[Any]) -> tuple[float, list[str]]:
        self.process.stdin.write(json.dumps([part, *settings]) + "\n")
        self.process.stdin.flush()
        seconds, texts = json.loads(self.process.stdout.readline())
        return seconds, texts


def error_rate(references: list[str], texts: list[str]) -> float:
    from sonant.metrics.edits import total, word_edits

    return total(map(word_edits, references, texts)).rate


def difference(references: list[str], ours: list[str], theirs: list[str]) -> str:
    """In points, with its interval and the chance of none."""
    from sonant.metrics.comparison import UtteranceTable, compare
    from sonant.metrics.edits import word_edits

    tables = []
    for texts in (ours, theirs):
        edits = list(map(word_edits, references, texts))
        errors, counts = [some.errors for some in edits], [some.num_reference for some in edits]
        tables.append(UtteranceTable(ids=[str(place) for place in range(len(texts))], errors=errors, counts=counts))
    found = compare(*tables)
    low, high = found.difference.low, found.difference.high
    return f"{100 * found.difference.value:+.2f} points ({100 * low:+.2f} to {100 * high:+.2f}), p {found.chance:.2f}"


def tuned(side: str, child: Child, references: list[str], wanted: float = float("inf")) -> tuple[float, list[Any]]:
    """Weights at the widest pruning first, then pruning at those weights; a rate above the wanted one is not taken."""
    knows_unknown = side != "flashlight-text"
    choices = WEIGHTS if knows_unknown else [weights for weights in WEIGHTS if weights[2] == WEIGHTS[0][2]]
    rates = {
        weights: error_rate(references, child("tune", [weights, True, PRUNINGS[side][-1]])[1]) for weights in choices
    }
    weights = min(rates, key=lambda some: rates[some])
    tried = []
    for pruning, drops_blanks in product(PRUNINGS[side], (True, False)):
        seconds, texts = child("tune", [weights, drops_blanks, pruning])
        tried.append((error_rate(references, texts), seconds, [weights, drops_blanks, pruning]))
    best = min(rate for rate, _, _ in tried)
    enough = [some for some in tried if some[0] <= max(best, min(1.02 * best, wanted))]
    rate, _, settings = min(enough, key=lambda some: some[1])
    return rate, settings


def make_peers() -> None:
    if (PEERS / "ready").exists():
        return
    print(f"making the peers' environment in {PEERS} (kenlm is compiled: a minute or two)")
    venv.create(PEERS, with_pip=True)
    subprocess.run([str(PEERS / "bin" / "python"), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    (PEERS / "ready").touch()


def write_scores(folder: Path, recogniser: list[str] | None) -> dict[str, list[str]]:
    """The n-grams, their words, and the scores of the utterances to tune on and to test on."""
    texts, said = heard(*recogniser) if recogniser else imagined()
    write_words(folder, texts)
    np.savez(
        folder / "scores.npz",
        **{f"{part}{place}": scores for part in said for place, (_, scores) in enumerate(said[part])},
    )
    return {part: [reference for reference, _ in said[part]] for part in said}


def write_words(folder: Path, sentences: list[str]) -> None:
    from sonant.decoding.ngram.arpa import write_arpa
    from sonant.decoding.ngram.estimation import NgramConfig, estimate_ngrams

    tables = estimate_ngrams((line.split() for line in sentences), NgramConfig(order=3))
    write_arpa(tables, str(folder / "words.arpa"))
    (folder / "words.txt").write_text("\n".join(word for word in tables.words if "<" not in word))


def imagined() -> tuple[list[str], dict[str, list[tuple[str, np.ndarray]]]]:
    """Texts for n-grams, and other sentences with the scores of a recogniser that is not there."""
    sentences = sentences_of_brown()
    held = [sentence for sentence in sentences[-4000:] if 30 < len(sentence) < 180]
    references = {"tune": held[0::2][: UTTERANCES["tune"]], "test": held[1::2][: UTTERANCES["test"]]}
    rng = np.random.default_rng(1)
    return sentences[:-4000], {part: [(text, simulated(text, rng)) for text in references[part]] for part in references}


def heard(bundle: str, place: str) -> tuple[list[str], dict[str, list[tuple[str, np.ndarray]]]]:
    """The same of a real recogniser and what it hears."""
    import sonant
    from sonant.inference.transcriber import Request, Transcriber

    corpus, transcriber = sonant.open_corpus(place), Transcriber.open(bundle)
    tokenizer = transcriber.spelling.tokenizer
    symbols = [symbol.lower() for symbol in tokenizer.symbols]
    lacking = [letter for letter in LETTERS if letter not in symbols]
    assert "e" in symbols, f"{bundle} does not write English letters: {symbols[:40]}"
    print(f"{bundle} on {place}" + (f"; it never writes {' '.join(lacking)}" if lacking else ""))
    space = symbols.index((tokenizer.vocabulary.word_delimiter or " ").lower())
    columns = [tokenizer.blank_id, space, *(symbols.index(letter) for letter in LETTERS if letter in symbols)]
    kept = [BLANK, SPACE, *(2 + LETTERS.index(letter) for letter in LETTERS if letter in symbols)]
    said: dict[str, list[tuple[str, np.ndarray]]] = {}
    for part, split in (("tune", "dev"), ("test", "test")):
        utterances = list(corpus.split(split))[: UTTERANCES[part]]
        requests = [Request(one.audio, one.start, one.seconds, one.channel, one.sample_rate) for one in utterances]
        said[part] = []
        for one, found in zip(utterances, transcriber.score_all(requests), strict=True):
            scores = np.full((len(found.log_probs), 2 + len(LETTERS)), -60.0)
            scores[:, kept] = found.log_probs[:, columns]
            scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
            said[part].append((written(one.text), scores.astype(np.float32)))
    return [*sentences_of_brown(), *map(written, corpus.split("train").column("text"))], said


def written(text: str) -> str:
    return " ".join(re.sub(rf"[^{LETTERS} ]", " ", text.lower()).split())


def greedy(folder: Path) -> list[str]:
    archive, texts = np.load(folder / "scores.npz"), []
    for place in range(_count(archive, "test")):
        best = archive[f"test{place}"].argmax(axis=1)
        kept = best[np.diff(best, prepend=BLANK) != 0]
        texts.append("".join(" " if token == SPACE else LETTERS[token - 2] for token in kept if token != BLANK))
    return texts


def measure(folder: Path, recogniser: list[str] | None) -> None:
    from ground import median, spread

    references = write_scores(folder, recogniser)
    print(f"without a language model: {error_rate(references['test'], greedy(folder)):.2%} word errors (best tokens)")
    children = {side: Child(side, folder) for side in SIDES}
    found = {side: tuned(side, children[side], references["tune"]) for side in SIDES if side != "sonant"}
    wanted = min(rate for rate, _ in found.values())
    found["sonant"] = tuned("sonant", children["sonant"], references["tune"], wanted)
    settings = {side: found[side][1] for side in SIDES}
    taken: dict[str, list[float]] = {side: [] for side in SIDES}
    texts: dict[str, list[str]] = {}
    for _ in range(ROUNDS):
        for side, child in children.items():
            seconds, texts[side] = child("test", settings[side])
            taken[side].append(seconds)
    for side, child in children.items():
        child.process.stdin.close()
        child.process.wait()
        rate = error_rate(references["test"], texts[side])
        print(f"{side:<16} {spread(taken[side]):<29} {rate:7.2%} word errors   {settings[side]}")
    for peer in ("flashlight-text", "pyctcdecode"):
        print(f"word errors, sonant - {peer}: {difference(references['test'], texts['sonant'], texts[peer])}")
    ours = median(taken["sonant"])
    print(f"flashlight-text / sonant: {median(taken['flashlight-text']) / ours:.2f}x (1x wanted)")
    print(f"pyctcdecode / sonant: {median(taken['pyctcdecode']) / ours:.2f}x (3x wanted)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answer", nargs=2, metavar=("SIDE", "FOLDER"), help="decode for the process that started it")
    parser.add_argument("--scores", nargs=2, metavar=("BUNDLE", "CORPUS"), help="of a real recogniser")
    chosen = parser.parse_args()
    if chosen.answer:
        answer(chosen.answer[0], Path(chosen.answer[1]))
        return
    make_peers()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), chosen.scores)


if __name__ == "__main__":
    main()
