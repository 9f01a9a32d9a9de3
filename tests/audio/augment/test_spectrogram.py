import numpy as np
import pytest

from sonant.audio.augment.spectrogram import SpecAugment, SpecSub, SpecTrim

TIMES = np.arange(1, 201, dtype=np.float32)[:, None] * np.ones((1, 40), np.float32)  # each frame tells its number


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def runs(is_masked):
    """The lengths of the stretches of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_masked, [0]])))
    return edges[1::2] - edges[::2]


def test_masks_are_as_many_and_as_wide_as_allowed_and_nothing_else_changes(rng):
    one = SpecAugment(time_masks=2, time_width=20, time_share=1.0, frequency_masks=1, frequency_width=6, fill=0.0)
    widest = 0
    for _ in range(200):
        masked = one.apply(TIMES, rng)
        rows, columns = (masked == 0).all(axis=1), (masked == 0).all(axis=0)
        assert 1 <= runs(rows).size <= 2
        assert rows.sum() <= 40
        assert runs(columns).size == 1
        assert columns.sum() <= 6
        assert np.array_equal(masked, np.where(rows[:, None] | columns[None, :], 0, TIMES))
        widest = max(widest, runs(rows).max())
    assert widest >= 20


def test_a_time_mask_is_never_wider_than_its_share_of_the_utterance(rng):
    one = SpecAugment(time_masks=1, time_width=50, time_share=0.1, frequency_masks=0)
    widths = [(one.apply(TIMES, rng) == 0).all(axis=1).sum() for _ in range(300)]
    assert max(widths) == 20
    assert min(widths) >= 1
    assert np.array_equal(one.apply(TIMES[:9], rng), TIMES[:9])


def test_masks_begin_anywhere_and_are_cut_at_the_edge(rng):
    one = SpecAugment(time_masks=1, time_width=20, time_share=1.0, frequency_masks=0)
    hidden = np.mean([(one.apply(TIMES, rng) == 0).all(axis=1) for _ in range(2000)], axis=0)
    assert hidden[0] > 0
    assert hidden[25:].mean() == pytest.approx(10.5 / 200, rel=0.1)


@pytest.mark.parametrize(("fill", "value"), [("mean", 100.5), (-3.0, -3.0), (0.0, 0.0)])
def test_masked_cells_hold_the_value_asked_for(fill, value, rng):
    masked = SpecAugment(fill=fill, frequency_masks=0).apply(TIMES, rng)
    assert set(masked[masked != TIMES]) == {np.float32(value)}


def test_substituted_frames_come_from_the_original_a_while_before(rng):
    one = SpecSub(times=3, width=30)
    furthest = 0
    for _ in range(200):
        replaced = one.apply(TIMES, rng)
        source = replaced[:, 0]
        assert np.array_equal(replaced, source[:, None] * np.ones((1, 40)))
        back = TIMES[:, 0] - source
        assert back.min() >= 0
        assert np.sum(back != 0) <= 90
        for width in runs(back != 0):
            assert width <= 90
        furthest = max(furthest, back.max())
    assert furthest > 100


def test_substitutions_follow_the_rule_of_the_reference_draw_by_draw():
    for seed in range(50):
        rng, expected = np.random.default_rng(seed), TIMES.copy()
        for _ in range(3):
            start, length = int(rng.integers(0, 199, endpoint=True)), int(rng.integers(1, 30, endpoint=True))
            end, back = min(200, start + length), int(rng.integers(0, start, endpoint=True))
            expected[start:end] = TIMES[start - back : end - back]
        assert np.array_equal(SpecSub(times=3, width=30).apply(TIMES, np.random.default_rng(seed)), expected)


def test_a_single_substitution_is_one_stretch_moved_by_one_distance(rng):
    for _ in range(100):
        back = TIMES[:, 0] - SpecSub(times=1, width=30).apply(TIMES, rng)[:, 0]
        assert runs(back != 0).size <= 1
        assert np.sum(back != 0) <= 30
        assert len(set(back[back != 0])) <= 1


def test_trimming_takes_frames_from_the_end_but_never_half_of_them(rng):
    left = [SpecTrim(width=50).apply(TIMES, rng) for _ in range(300)]
    assert {200 - len(one) for one in left} == set(range(1, 51))
    assert all(np.array_equal(one, TIMES[: len(one)]) for one in left)
    short = {len(SpecTrim(width=50).apply(TIMES[:20], rng)) for _ in range(300)}
    assert short == set(range(11, 21))
    assert len(SpecTrim(width=50).apply(TIMES[:2], rng)) == 2
