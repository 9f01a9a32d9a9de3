import numpy as np
import pytest

from sonant.audio.augment.codec import Codec, encoded
from sonant.audio.augment.level import power

CASES = [("mp3", 8.0), ("mp3", 16.0), ("mp3", 24.0), ("mp3", 64.0), ("opus", 8.0), ("opus", 48.0)]


def delay(heard, samples):
    """By how many samples the one is later than the other."""
    size = 1 << (2 * samples.size).bit_length()
    likeness = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(samples, size)), size)
    lag = int(likeness.argmax())
    return lag if lag < size // 2 else lag - size


@pytest.mark.parametrize("sample_rate", [8000, 11025, 14000, 16000, 44100, 96000])
@pytest.mark.parametrize(("format", "kilobits"), CASES)
def test_what_was_encoded_is_as_long_as_before_and_at_its_place(format, kilobits, sample_rate, voiced):
    speech = voiced(0.5, sample_rate)
    heard = encoded(speech, sample_rate, format, kilobits)
    assert heard.size == speech.size
    assert abs(delay(heard, speech)) / sample_rate <= 0.001
    assert power(heard) == pytest.approx(power(speech), rel=0.5)
    assert not np.array_equal(heard, speech)


@pytest.mark.parametrize("format", ["mp3", "opus"])
def test_fewer_bits_lose_more(format, voiced):
    speech = voiced(1.0)
    errors = [power(encoded(speech, 16000, format, kilobits) - speech) for kilobits in (8.0, 32.0, 128.0)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 2 * errors[-1]


@pytest.mark.parametrize("format", ["mp3", "opus"])
def test_sound_above_full_scale_is_not_clipped_by_the_encoder(format, voiced):
    speech = 10 * voiced(0.5)
    heard = encoded(speech, 16000, format, 16.0)
    assert power(heard - speech) < 0.05 * power(speech)
    assert np.abs(heard).max() > 3


@pytest.mark.parametrize("format", ["mp3", "opus"])
@pytest.mark.parametrize(
    ("num_samples", "sample_rate"), [(1, 16000), (2, 16000), (1000, 16000), (1, 192000), (1, 7000)]
)
def test_the_shortest_sounds_go_through(format, num_samples, sample_rate, voiced):
    heard = encoded(voiced(0.1)[:num_samples], sample_rate, format, 16.0)
    assert heard.shape == (num_samples,)
    assert heard.dtype == np.float32
    assert np.isfinite(heard).all()


def test_both_formats_get_their_turn(voiced):
    speech = voiced(0.2)
    codec = Codec(kilobits=(32.0, 32.0))
    heard = [codec.apply(speech, 16000, np.random.default_rng(seed)).tobytes() for seed in range(12)]
    assert set(heard) == {encoded(speech, 16000, format, 32.0).tobytes() for format in ("mp3", "opus")}
