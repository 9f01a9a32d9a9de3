"""The voices of the demo corpus: the synthesizer's variants, each also hoarse by degrees or whispering.

A variant is a small text file; what a later line says overrides an earlier one. Degrees of hoarseness are the
variant's own lines with breath, flutter and weaker voicing behind them, so any voice can be hoarse, not only one.
"""

from __future__ import annotations

import os

from sonant.base.randomness import stable_hash

# Without the robots (they cannot be hoarse), and those that rush or are ill by themselves.
VARIANTS = (
    *("Alex Alicia Andrea Andy Annie Denis Diogo Gene Gene2 Henrique Hugo Jacky Marco Mario Michael Mike".split()),
    *("Nguyen RicishayMax RicishayMax2 RicishayMax3 Storm anika antonio aunty belinda".split()),
    *("boris ed f1 f2 f3 f4 f5 grandma grandpa gustave ian iven iven2".split()),
    *("iven3 iven4 john kaukovalta linda m1 m2 m3 m4 m5 m6 m7 m8 marcelo max michel miguel norbert".split()),
    *("pablo paul pedro quincy rob robert sandro shelby steph steph2 steph3 travis victor zac".split()),
)
ACCENTS = ("en-us", "en", "en-gb-x-rp", "en-gb-scotland")
ORDINARY, WHISPER = "ordinary", "whisper"
_QUALITIES = {
    ORDINARY: (),
    "hoarse1": ("flutter 12", "voicing 75", "breath 0 14 14 12 8 6 4 2"),
    "hoarse2": ("flutter 18", "voicing 55", "breath 15 28 26 22 14 10 6 4", "roughness 5"),
    "hoarse3": ("flutter 25", "voicing 38", "breath 35 46 42 32 20 14 8 6", "roughness 7"),
    WHISPER: (
        *("formant 0 100 0 100", "voicing 10", "roughness 0", "echo 0 0"),
        *("breath 75 75 50 40 15 10", "breathw 150 150 200 200 400 400"),
    ),
}


def quality_of(hoarse: int, *, is_whispered: bool) -> str:
    """The name of a voice quality, and of the folder of its voices."""
    return WHISPER if is_whispered else f"hoarse{hoarse}" if hoarse else ORDINARY


def assign_voices(shares: dict[str, float], seed: int) -> dict[str, tuple[str, ...]]:
    """Every variant to one split, by shares; the same for ever."""
    ordered = sorted(VARIANTS, key=lambda variant: stable_hash(seed, "voice", variant))
    assigned, start, total = {}, 0.0, sum(shares.values())
    for split, share in shares.items():
        first, start = start, start + share / total * len(ordered)
        assigned[split] = tuple(ordered[round(first) : round(start)])
    return assigned


def sex_of(variant: str, data: str) -> str | None:
    """As the variant's own file states it."""
    with open(os.path.join(data, "voices", "!v", variant), encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("gender"):
                return line.split()[1].lower()
    return None


def lay_out_voices(data: str, folder: str) -> None:
    """Below `folder`, for each quality, a copy of the synthesizer's data by links with its variants in that quality.

    A folder each, because the synthesizer reads 349 voices at the most.
    """
    for quality, further in _QUALITIES.items():
        variants = os.path.join(folder, quality, "voices", "!v")
        os.makedirs(variants, exist_ok=True)
        for name in os.listdir(data):
            if name != "voices":
                os.symlink(os.path.join(data, name), os.path.join(folder, quality, name))
        for variant in VARIANTS:
            with open(os.path.join(data, "voices", "!v", variant), "rb") as file:
                lines = file.read()
            with open(os.path.join(variants, variant), "wb") as file:
                file.write(lines + b"\n" + "\n".join(further).encode() + b"\n")
