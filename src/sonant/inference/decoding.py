"""How a recogniser's bundle decodes: its own choice, or another, with the n-grams and the language model it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sonant.base import storage
from sonant.base.errors import TextError
from sonant.checkpoints.bundle import Bundle, BundleError
from sonant.corpus.sources.lines import decode_text
from sonant.decoding.decoder import Decoder, DecodingConfig, GreedyConfig, SearchConfig, decoding_of
from sonant.decoding.ngram.binary import read_ngrams
from sonant.decoding.ngram.model import BEGIN, END, UNKNOWN, NgramModel
from sonant.decoding.rescoring import Judge
from sonant.decoding.spelling import NO_LETTER, Spelling
from sonant.decoding.tuning import Tuner
from sonant.text.coding import Tokenizer

Say = Callable[[str], None]
_NO_LETTER = "\ufffd"  # what is written for a part of one
_LEAST_WRITABLE = 0.5  # of the words of an n-gram model; below it, something is said


def silent(sentence: str) -> None:
    """Says nothing."""


def saved_decoding(bundle: Bundle) -> DecodingConfig:
    """What a bundle was told to decode with; its companions must lie in it."""
    config = decoding_of(bundle.description.decoding, bundle.path("bundle.json"))
    if isinstance(config, SearchConfig):
        for name in filter(None, (config.ngram, config.rescorer, config.lexicon)):
            if not storage.exists(bundle.path(name)):
                problem = f"its decoding needs {name}, which is missing."
                raise BundleError(bundle.folder, problem, "Copy the whole bundle again, or decode with --greedy.")
    return config


def open_decoder(
    bundle: Bundle, spelling: Spelling, config: DecodingConfig, device: str = "cpu", say: Say = silent
) -> Decoder:
    """A decoder with everything that its config names."""
    return open_tuner(bundle, spelling, config, device, say).decoder(config)


def open_tuner(
    bundle: Bundle, spelling: Spelling, config: DecodingConfig, device: str = "cpu", say: Say = silent
) -> Tuner:
    """What a config names, for decoders with any weights; places in a bundle are relative to it."""
    if isinstance(config, GreedyConfig):
        return Tuner(spelling)
    ngram = read_ngrams(bundle.path(config.ngram)) if config.ngram else None
    if ngram:
        check_words(ngram, spelling, config.ngram, say)
    judge = open_judge(bundle.path(config.rescorer), spelling, device, say) if config.rescorer else None
    lexicon = read_lexicon(bundle.path(config.lexicon), spelling) if config.lexicon else None
    return Tuner(spelling, ngram, judge, lexicon)


def read_lexicon(place: str, spelling: Spelling) -> list[str]:
    """The words of a file, one a line; what stands behind a word, as in dictionaries of sounds, is left out."""
    words: dict[str, int] = {}
    for number, line in decode_text(place).numbered():
        for word in spelling.tokenizer.normalizer(" ".join(line.split()[:1])).split():
            words.setdefault(word, number)
    if not words:
        raise TextError(place, "no word stands in it.", "Write a word a line.")
    for (word, number), letters in zip(words.items(), spelling.spell(list(words)), strict=True):
        if NO_LETTER in letters:
            problem = f"'{word}' cannot be written with the symbols of the recogniser."
            raise TextError(f"{place}:{number}", problem, "Take it out, or spell it with the letters that there are.")
    return list(words)


def check_words(ngram: NgramModel, spelling: Spelling, place: str, say: Say = silent) -> None:
    """Refuses n-grams of other units or symbols than the recogniser's words, and tells of words it cannot write."""
    words = [word for word in ngram.words if word not in (BEGIN, END, UNKNOWN)]
    if not words:
        raise TextError(place, "these n-grams know no word.", "Estimate them from more texts: sonant ngram.")
    can_write = [NO_LETTER not in row for row in spelling.spell(words)]
    action = "Estimate it from texts as the recogniser writes them: sonant ngram TEXTS --bundle BUNDLE --out FILE."
    if not any(can_write):
        shown = ", ".join(f"'{word}'" for word in words[:3])
        problem = f"none of its {len(words):,} words can be written with the symbols of the recogniser: {shown}."
        raise TextError(place, problem, action)
    if spelling.has_words and max(map(len, words)) == 1:
        raise TextError(place, "these are n-grams of characters, those of words are required.", action)
    share = sum(can_write) / len(words)
    if share < _LEAST_WRITABLE:
        lost = next(word for word, known in zip(words, can_write, strict=True) if not known)
        say(f"{place}: {1 - share:.0%} of its words cannot be written by the recogniser, such as '{lost}'. {action}")


def open_judge(folder: str, spelling: Spelling, device: str = "cpu", say: Say = silent) -> Judge:
    """A language model that reads a recogniser's answers, in the case that it knows."""
    from sonant.inference.scorer import Scorer  # most recognisers answer without a language model

    scorer = Scorer.open(folder, device)
    change, lacking = _fitting_case(spelling, scorer.tokenizer)
    if len(lacking) > len(_letters(spelling)) / 2:
        problem = f"this language model cannot write most of the recogniser's letters, such as '{lacking[0]}'."
        raise TextError(folder, problem, "Train it on texts of the same language: sonant train language.")
    if lacking:
        told = ", ".join(f"'{letter}'" for letter in lacking)
        say(f"{folder}: the language model cannot write {told}; it reads texts without them")
    lost = str.maketrans("", "", "".join(lacking))

    def judge(texts: Sequence[str]) -> list[float]:
        return [found.log_prob for found in scorer.score([change(text.translate(lost)) for text in texts])]

    return judge


def _fitting_case(spelling: Spelling, tokenizer: Tokenizer) -> tuple[Callable[[str], str], list[str]]:
    """How a recogniser's texts are best spelt for a language model, and the letters that it lacks even so."""
    letters = _letters(spelling)
    is_shouted = not any(letter.islower() for letter in letters)  # few texts of the world are written so
    ways: list[Callable[[str], str]] = [str.lower, str, str.upper] if is_shouted else [str, str.lower, str.upper]
    lacking = [[letter for letter in letters if tokenizer.unknown_in(way(letter))] for way in ways]
    best = min(range(len(ways)), key=lambda place: (len(lacking[place]), place))
    return ways[best], lacking[best]


def _letters(spelling: Spelling) -> list[str]:
    """Every letter that the recogniser can write."""
    tokenizer = spelling.tokenizer
    written = (tokenizer.decode([id]) for id in range(tokenizer.size) if id != tokenizer.unknown_id)
    return sorted({letter for text in written for letter in text if letter != _NO_LETTER and not letter.isspace()})
