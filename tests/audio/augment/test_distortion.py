import numpy as np
import pytest

from sonant.audio.augment.distortion import Aliasing, BandStop, BitCrush, Clipping, TanhDistortion, stop_band
from sonant.audio.augment.level import power
from sonant.base.errors import ConfigError

RATE = 16000


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def sine(hertz, seconds=1.0):
    return np.sin(2 * np.pi * hertz * np.arange(int(seconds * RATE)) / RATE).astype(np.float32)


def level_at(samples, hertz):
    """Amplitude of one frequency, away from the edges."""
    middle = samples[2000:14000] * np.hanning(12000)
    return abs(middle @ np.exp(-2j * np.pi * hertz * np.arange(12000) / RATE)) / 3000


@pytest.mark.parametrize("percent", [1.0, 10.0, 40.0])
def test_clipping_flattens_so_many_percent_and_leaves_the_rest_alone(percent, voiced, rng):
    speech = voiced(1.0)
    clipped = Clipping(percent=(percent, percent)).apply(speech, RATE, rng)
    limit = np.abs(clipped).max()
    assert 100 * np.mean(clipped != speech) == pytest.approx(percent, abs=0.1)
    assert np.array_equal(clipped, speech.clip(-limit, limit))


def test_a_recording_filled_with_zeros_is_not_clipped_to_nothing(voiced, rng):
    speech = np.concatenate([np.zeros(5 * RATE, np.float32), voiced(1.0)])
    clipped = Clipping(percent=(20.0, 20.0)).apply(speech, RATE, rng)
    assert np.mean(clipped != speech) == pytest.approx(0.2 / 6, abs=0.002)


@pytest.mark.parametrize("amount", [0.01, 0.3, 1.0])
def test_overdrive_bends_the_curve_and_keeps_power_sign_and_order(amount, voiced, rng):
    speech = voiced(1.0)
    bent = TanhDistortion(amount=(amount, amount)).apply(speech, RATE, rng)
    order = np.argsort(speech)
    assert power(bent) == pytest.approx(power(speech), rel=1e-4)
    assert np.all(np.diff(bent[order]) >= -1e-6)
    assert np.array_equal(np.sign(bent), np.sign(speech))


def test_more_overdrive_is_flatter(voiced, rng):
    bent = [TanhDistortion(amount=(amount, amount)).apply(voiced(1.0), RATE, rng) for amount in (0.05, 0.3, 0.7)]
    crests = [np.abs(one).max() for one in bent]
    assert crests == sorted(crests, reverse=True)


@pytest.mark.parametrize("bits", [2, 5, 12])
def test_so_many_bits_leave_so_many_steps_and_an_error_of_half_a_step(bits, rng):
    ramp = np.linspace(-1, 1, 100001).astype(np.float32)
    crushed = BitCrush(bits=(bits, bits)).apply(ramp, RATE, rng)
    assert len(np.unique(crushed)) == 2**bits + 1
    assert np.abs(crushed - ramp).max() <= 0.5001 / 2 ** (bits - 1)


def test_a_tone_above_half_the_lower_rate_comes_back_as_its_mirror(rng):
    heard = Aliasing(share=(0.5, 0.5)).apply(sine(5000), RATE, rng)
    assert heard.size == RATE
    assert level_at(heard, 3000) > 0.2
    assert level_at(sine(5000), 3000) < 1e-3


def test_a_low_tone_survives_a_lower_rate(rng):
    assert level_at(Aliasing(share=(0.5, 0.5)).apply(sine(200), RATE, rng), 200) == pytest.approx(1.0, abs=0.02)


def test_the_stopped_band_is_gone_and_the_others_are_not():
    heard = stop_band(sum(sine(hertz) for hertz in (200, 700, 1000, 1400, 5000)), RATE, 1000.0, 800.0, 4)
    assert level_at(heard, 1000) < 0.001
    assert level_at(heard, 200) == pytest.approx(1.0, abs=0.01)
    assert level_at(heard, 5000) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_each_order_of_the_band_stop_is_as_steep_as_butterworth(order):
    ratio = 600 * 1100 / (1100**2 - 1000**2)
    expected = 1 / np.sqrt(1 + ratio ** (2 * order))
    assert level_at(stop_band(sine(1100), RATE, 1000.0, 600.0, order), 1100) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("order", [1, 2, 8])
def test_the_edges_of_the_band_have_half_the_power_whatever_the_order(order):
    centre, width = 1000.0, 600.0
    edge = width / 2 + np.sqrt((width / 2) ** 2 + centre**2)
    assert level_at(stop_band(sine(edge), RATE, centre, width, order), edge) == pytest.approx(0.5**0.5, abs=0.02)


def test_the_band_stop_does_not_delay_or_leak_round_the_ends():
    click = np.zeros(1 << 14, np.float32)
    click[-1] = 1.0
    heard = stop_band(click, RATE, 1000.0, 500.0, 2)
    assert int(np.abs(heard).argmax()) == click.size - 1
    assert np.abs(heard[: click.size // 2]).max() < 1e-3


def test_centres_lie_within_the_range_and_below_half_the_rate(rng):
    noise = rng.standard_normal(RATE).astype(np.float32)
    stop = BandStop(hertz=(3000.0, 20000.0), width=(0.05, 0.05), order=8)
    for _ in range(10):
        gains = np.abs(np.fft.rfft(stop.apply(noise, RATE, rng))) / np.abs(np.fft.rfft(noise))
        assert 2900 <= np.argmin(gains) <= 8000


def test_a_band_that_cannot_be_heard_is_refused(rng):
    with pytest.raises(ConfigError, match="a band at 5000 Hz is not heard at 8000 samples a second"):
        BandStop(hertz=(5000.0, 6000.0)).apply(np.zeros(8, np.float32), 8000, rng)
