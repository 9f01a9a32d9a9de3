import hashlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonant.audio.augment.arrangement import QuietEnds, Repeat, Reverse, TimeMask, TimeShift, TrimSilence
from sonant.audio.augment.augmenter import Augmentation, Augmenter, FeatureAugmentation
from sonant.audio.augment.codec import Codec
from sonant.audio.augment.distortion import Aliasing, BandStop, BitCrush, Clipping, TanhDistortion
from sonant.audio.augment.level import Gain, GainTransition, PeakNormalization, Polarity
from sonant.audio.augment.noise import GaussianNoise, Noise, NoiseFloor
from sonant.audio.augment.reverberation import ImpulseResponse, Room
from sonant.audio.augment.spectrogram import SpecAugment, SpecSub, SpecTrim
from sonant.audio.augment.speed import Pitch, Speed, Tempo
from sonant.base.config import from_dict, to_dict
from sonant.base.errors import ConfigError

RATE = 16000
EVERY = [
    Speed(factors=(0.9, 1.1)),
    Tempo(),
    Pitch(),
    Gain(),
    GainTransition(),
    PeakNormalization(),
    Polarity(probability=1.0),
    Noise(corpus="noises"),
    GaussianNoise(),
    NoiseFloor(),
    ImpulseResponse(corpus="rooms"),
    Room(),
    Clipping(),
    TanhDistortion(),
    BitCrush(),
    Aliasing(),
    BandStop(),
    TimeShift(),
    TimeMask(),
    Reverse(probability=1.0),
    Repeat(),
    TrimSilence(),
    QuietEnds(),
    Codec(formats=("mp3",)),
    Codec(formats=("opus",)),
    SpecAugment(),
    SpecSub(),
    SpecTrim(),
]
ON_WAVEFORM = [one for one in EVERY if not isinstance(one, FeatureAugmentation)]
ON_FEATURES = [one for one in EVERY if isinstance(one, FeatureAugmentation)]
WITHOUT_DRAWS = (PeakNormalization, Polarity, Reverse, TrimSilence)


class Heard:
    """A corpus of four sounds: noises, or impulse responses with a decay."""

    def __init__(self, corpus):
        self.decay = 200 if corpus == "rooms" else 1e9

    def __len__(self):
        return 4

    def read(self, index, sample_rate):
        time = np.arange(4000)
        sound = np.random.default_rng(index).standard_normal(4000) * np.exp(-time / self.decay)
        return sound.astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class Training:
    augmentations: tuple[Augmentation, ...] = ()


def named(one):
    return one.kind


def augmented(augmentations, samples, *, epoch=0, id="a", seed=7):
    return Augmenter(augmentations, seed, Heard).waveform(samples, RATE, epoch=epoch, id=id)


@pytest.fixture(scope="module")
def speech(voiced):
    quiet = np.zeros(RATE // 4, np.float32)
    return np.concatenate([quiet, voiced(1.5), quiet])


@pytest.fixture(scope="module")
def frames():
    return np.random.default_rng(3).standard_normal((300, 80)).astype(np.float32)


def test_the_laws_below_are_asked_of_every_augmentation_there_is():
    assert {type(one) for one in EVERY} == set(get_args(Augmentation))
    assert len({one.kind for one in EVERY}) == len({type(one) for one in EVERY})


@pytest.mark.parametrize("one", ON_WAVEFORM, ids=named)
def test_anything_switched_on_changes_the_sound(one, speech):
    changed = augmented([one], speech)
    assert changed.shape != speech.shape or np.abs(changed - speech).max() > 1e-4


@pytest.mark.parametrize("one", ON_FEATURES, ids=named)
def test_anything_switched_on_changes_the_features(one, frames):
    changed = Augmenter([one], 7).features(frames, epoch=0, id="a")
    assert changed.shape != frames.shape or np.abs(changed - frames).max() > 1e-4


@pytest.mark.parametrize("one", ON_WAVEFORM, ids=named)
def test_sounds_of_any_kind_stay_finite_float32_and_their_originals_untouched(one, speech):
    for samples in (speech, speech * 8, speech[:1000], speech[5000:5002], np.ones(1), np.zeros(1), np.zeros(RATE)):
        original = samples.astype(np.float32)
        given_in = original.copy()
        changed = augmented([one], given_in)
        assert changed.dtype == np.float32
        assert changed.ndim == 1
        assert changed.size
        assert np.isfinite(changed).all()
        assert np.array_equal(given_in, original)


@pytest.mark.parametrize("one", EVERY, ids=named)
def test_nothing_comes_of_nothing(one):
    augmenter = Augmenter([one], 7, Heard)
    assert augmenter.waveform(np.zeros(0, np.float32), RATE, epoch=0, id="a").shape == (0,)
    assert augmenter.features(np.zeros((0, 80), np.float32), epoch=0, id="a").shape == (0, 80)


@pytest.mark.parametrize("one", ON_WAVEFORM, ids=named)
def test_silence_stays_silence_but_for_the_noise_that_was_asked_for(one):
    changed = augmented([one], np.zeros(RATE, np.float32))
    assert isinstance(one, NoiseFloor | QuietEnds) == bool(changed.any())


@pytest.mark.parametrize("num_frames", [1, 2, 3, 10])
@pytest.mark.parametrize("one", ON_FEATURES, ids=named)
def test_the_shortest_features_go_through(one, num_frames, frames):
    for epoch in range(30):
        original = frames[:num_frames].copy()
        changed = Augmenter([one], 7).features(original, epoch=epoch, id="a")
        assert changed.dtype == np.float32
        assert 1 <= len(changed) <= num_frames
        assert np.isfinite(changed).all()
        assert np.array_equal(original, frames[:num_frames])


@pytest.mark.parametrize("one", ON_WAVEFORM, ids=named)
def test_the_same_seed_epoch_and_utterance_give_the_same_bits_and_others_another_draw(one, speech):
    first = augmented([one], speech)
    others = [augmented([one], speech, **other) for other in ({"epoch": 1}, {"id": "b"}, {"seed": 8})]
    assert np.array_equal(augmented([one], speech), first)
    if not isinstance(one, WITHOUT_DRAWS):
        assert not all(np.array_equal(first, other) for other in others)


def test_seed_epoch_and_utterance_each_make_another_draw():
    ones, others = np.ones(1, np.float32), [{}, {"epoch": 1}, {"id": "b"}, {"seed": 8}]
    assert len({float(augmented([Gain()], ones, **other)[0]) for other in others}) == 4


def test_the_same_augmentation_twice_in_the_list_is_drawn_twice():
    ones = np.ones(1, np.float32)
    once, twice = augmented([Gain()], ones)[0], augmented([Gain(), Gain()], ones)[0]
    assert twice != pytest.approx(once**2, rel=1e-3)


def digests(ids):
    """What a loader's worker would make of these utterances, in this order."""
    samples = np.sin(np.arange(8000) / 9).astype(np.float32) * np.linspace(0, 0.5, 8000, dtype=np.float32)
    augmenter = Augmenter(ON_WAVEFORM, 7, Heard)
    return {id: hashlib.sha256(augmenter.waveform(samples, RATE, epoch=2, id=id).tobytes()).hexdigest() for id in ids}


def test_any_order_and_any_worker_give_the_same_bits():
    ids = ["a", "b", "ü"]
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as workers:
        forwards, backwards = workers.map(digests, [ids, ids[::-1]])
    assert forwards == backwards == digests(ids[1:] + ids[:1])
    assert len(set(forwards.values())) == 3


def test_the_list_is_applied_in_its_order(speech):
    gain, crush = Gain(decibels=(-30.0, -30.0)), BitCrush(bits=(5, 5))
    soft_then_coarse, coarse_then_soft = augmented([gain, crush], speech), augmented([crush, gain], speech)
    assert len(np.unique(soft_then_coarse)) < len(np.unique(coarse_then_soft))


def test_changing_one_augmentation_does_not_shift_the_draws_of_another(speech):
    after_tempo = np.ptp(augmented([Tempo(), Gain()], speech)) / np.ptp(augmented([Tempo()], speech))
    after_echo = np.ptp(augmented([Room(), Gain()], speech)) / np.ptp(augmented([Room()], speech))
    assert after_tempo == pytest.approx(after_echo, rel=1e-4)


def test_a_probability_is_the_share_of_utterances_and_is_drawn_anew_in_each_epoch():
    augmenter, samples = Augmenter([Polarity(probability=0.3)], 7), np.ones(1, np.float32)
    turned = np.array(
        [[augmenter.waveform(samples, RATE, epoch=e, id=str(i))[0] < 0 for i in range(500)] for e in range(2)]
    )
    assert turned.mean() == pytest.approx(0.3, abs=0.04)
    assert 0.05 < (turned[0] & turned[1]).mean() < 0.13


def test_sound_and_features_take_only_what_is_theirs(speech, frames):
    augmenter = Augmenter([Gain(), SpecTrim()], 7)
    assert augmenter.waveform(speech, RATE, epoch=0, id="a").size == speech.size
    assert len(augmenter.features(frames, epoch=0, id="a")) < len(frames)
    assert augmenter.changes_waveform
    assert augmenter.changes_features
    assert not Augmenter([Gain()], 7).changes_features
    assert not Augmenter([SpecSub()], 7).changes_waveform
    assert not Augmenter([], 7).changes_waveform


LENGTHENING = st.lists(
    st.sampled_from(
        [
            Speed(factors=(0.7, 1.3)),
            Tempo(),
            Repeat(),
            Repeat(keep_length=True),
            QuietEnds(),
            Pitch(),
            TrimSilence(),
            Room(),
        ]
    ),
    max_size=3,
)


@settings(max_examples=40, deadline=None)
@given(augmentations=LENGTHENING, num_samples=st.integers(1, 4000), id=st.text(max_size=3))
def test_no_utterance_becomes_longer_than_was_promised(augmentations, num_samples, id):
    augmenter = Augmenter(augmentations, 1)
    samples = np.sin(np.arange(num_samples)).astype(np.float32)
    found = augmenter.waveform(samples, 1000, epoch=0, id=id).size
    assert found <= np.ceil(augmenter.seconds_after(num_samples / 1000) * 1000)
    assert found <= np.ceil(num_samples * augmenter.longest_factor)
    assert found >= max(1, np.floor(num_samples * augmenter.shortest_factor) - len(augmentations))


def test_the_bounds_of_lengths_are_those_of_the_list():
    augmenter = Augmenter([Speed(), Repeat(times=(1, 2), seconds=(0.5, 1.0)), SpecTrim(width=50)], 1)
    assert augmenter.seconds_after(9.0) == pytest.approx(10.0 + 2.0)
    assert augmenter.longest_factor == pytest.approx(3 / 0.9)
    assert augmenter.shortest_factor == pytest.approx(1 / 1.1)
    assert augmenter.most_frames_trimmed == 50
    assert Augmenter([Gain()], 1).longest_factor == Augmenter([], 1).shortest_factor == 1.0


def test_an_augmentation_that_may_be_left_out_binds_neither_bound():
    only_faster, only_slower = Speed(factors=(1.1, 1.2), probability=0.5), Tempo(factors=(0.5, 0.8), probability=0.5)
    assert Augmenter([only_faster], 1).seconds_after(3.0) == 3.0
    assert Augmenter([only_slower], 1).shortest_factor == 1.0


def test_the_config_holds_them_as_a_list_and_saves_every_value():
    values = {"augmentations": [{"kind": "speed", "factors": [0.9, 1, 1.1]}, {"kind": "noise", "corpus": "musan"}]}
    config = from_dict(Training, values, "training.yaml")
    assert config.augmentations == (Speed(), Noise(corpus="musan"))
    everything = Training(augmentations=tuple(EVERY))
    assert from_dict(Training, to_dict(everything), "training.yaml") == everything


@pytest.mark.parametrize("one", EVERY, ids=named)
def test_a_bare_kind_is_enough_to_switch_an_augmentation_on(one):
    required = {"corpus": "noises"} if hasattr(one, "corpus") else {}
    (read,) = from_dict(Training, {"augmentations": [{"kind": one.kind, **required}]}, "x").augmentations
    assert type(read) is type(one)
    assert read.probability > 0


@pytest.mark.parametrize(
    ("values", "where", "problem"),
    [
        ({"kind": "gain", "decibels": [12, -12]}, "decibels", "begins with 12 and ends with -12"),
        ({"kind": "gain", "decibels": [0, 0]}, "decibels", "never changes anything"),
        ({"kind": "gain", "probability": 30}, "probability", "30 is not between 0 and 1"),
        ({"kind": "speed", "factors": [1.0]}, "factors", "never changes anything"),
        ({"kind": "speed", "factors": [0.0]}, "factors", "0 is not between 0.25 and 4"),
        ({"kind": "bit_crush", "bits": [1, 8]}, "bits", "1 is not between 2 and 16"),
        ({"kind": "codec", "formats": []}, "formats", "the list is empty"),
        ({"kind": "spec_augment", "time_masks": 0, "frequency_masks": 0}, "time_masks", "never changes anything"),
        ({"kind": "spec_augment", "time_width": 0}, "time_width", "never changes anything"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_by_its_name(values, where, problem):
    with pytest.raises(ConfigError, match=problem) as caught:
        from_dict(Training, {"augmentations": [{"kind": "reverse"}, values]}, "training.yaml")
    assert f"'augmentations.1.{where}'" in caught.value.problem


def test_an_unknown_kind_is_answered_with_the_one_that_was_meant():
    with pytest.raises(ConfigError, match="Did you mean 'time_mask'"):
        from_dict(Training, {"augmentations": [{"kind": "time_masks"}]}, "training.yaml")


def test_a_corpus_that_nothing_can_open_or_that_is_empty_is_refused_before_training():
    with pytest.raises(ConfigError, match="augmentation 2 \\(noise\\): it needs the corpus 'musan'"):
        Augmenter([Gain(), Noise(corpus="musan")], 7)
    with pytest.raises(ConfigError, match="the corpus 'musan' is empty"):
        Augmenter([Noise(corpus="musan")], 7, lambda corpus: [])


def test_a_corpus_is_opened_once_however_many_use_it():
    opened = []
    Augmenter([Noise(corpus="a"), Noise(corpus="a"), Noise(corpus="b")], 7, lambda c: opened.append(c) or Heard(c))
    assert opened == ["a", "b"]


@pytest.mark.parametrize("one", EVERY, ids=named)
def test_every_number_that_can_be_set_has_bounds(one):
    for name in one.__dataclass_fields__:
        value = getattr(one, name)
        numbers = value if isinstance(value, tuple) else (value,)
        if any(type(number) not in (int, float) for number in numbers):
            continue
        beyond = (1e9,) * len(numbers) if isinstance(value, tuple) else 1e9
        with pytest.raises(ConfigError, match=f"^{name}: 1e[+]09 is not between"):
            replace(one, **{name: beyond})
