"""Examples: read, cut, disturbed and encoded, the same wherever and whenever they are made."""

from __future__ import annotations

import os

import numpy as np
import pytest
import soundfile

from sonant.audio.waveform import read_waveform
from sonant.base.errors import AudioError, ConfigError, ManifestError, SonantError, StorageError, TextError
from sonant.batches.examples import ExampleConfig, SpeechExamples
from sonant.corpus.utterance import Utterance


def test_an_example_is_the_recording_with_its_annotations(corpus):
    utterance = corpus[5]
    example = SpeechExamples()(utterance, 0)
    np.testing.assert_array_equal(example.waveform, read_waveform(utterance.audio)[0])
    assert (example.id, example.text, example.speaker) == ("u5", "word 5", "s2")
    assert example.labels == {"age": 5.0, "mood": "glad"}
    assert example.waveform.dtype == np.float32


def test_the_model_hears_its_own_sample_rate(corpus):
    example = SpeechExamples(ExampleConfig(sample_rate=8000))(corpus[0], 0)
    assert example.sample_rate == 8000
    assert len(example.waveform) == pytest.approx(corpus[0].seconds * 8000, abs=1)


def test_a_crop_is_a_stretch_of_the_utterance_drawn_anew_in_each_pass(corpus):
    utterance = next(one for one in corpus if one.seconds > 1.5)
    whole, _ = read_waveform(utterance.audio)
    make = SpeechExamples(ExampleConfig(crop_seconds=0.5), seed=3)
    crops = [make(utterance, number).waveform for number in range(4)]
    starts = [int(np.flatnonzero((whole[:-7999] == crop[0]) & (whole[1:-7998] == crop[1]))[0]) for crop in crops]
    for start, crop in zip(starts, crops, strict=True):
        np.testing.assert_array_equal(whole[start : start + 8000], crop)
    assert len(set(starts)) == 4


def test_crops_reach_the_whole_of_the_utterance(corpus):
    utterance = next(one for one in corpus if one.seconds > 1.5)
    make = SpeechExamples(ExampleConfig(crop_seconds=0.5))
    starts = np.array([make.stretch(utterance, number)[0] for number in range(300)])
    free = utterance.seconds - 0.5
    assert starts.min() < 0.05 * free
    assert 0.95 * free < starts.max() <= free
    assert abs(starts.mean() / free - 0.5) < 0.06


def test_the_same_pass_gives_the_same_bits_and_another_seed_gives_others(corpus):
    utterance = next(one for one in corpus if one.seconds > 1.5)
    config = ExampleConfig(crop_seconds=0.5)
    one, same = (SpeechExamples(config, seed=1)(utterance, 2).waveform for _ in range(2))
    assert one.tobytes() == same.tobytes()
    assert not np.array_equal(one, SpeechExamples(config, seed=2)(utterance, 2).waveform)


def test_what_is_shorter_than_a_crop_is_taken_whole_and_planned_so(corpus):
    make = SpeechExamples(ExampleConfig(crop_seconds=1.0))
    short = next(one for one in corpus if one.seconds < 1)
    assert len(make(short, 0).waveform) == round(short.seconds * 16000)
    np.testing.assert_array_equal(make.sizes(corpus), np.minimum(corpus.seconds, 1.0))


def test_augmentation_is_told_the_utterance_and_the_pass(corpus):
    def augment(samples, sample_rate, *, epoch, id):
        assert (sample_rate, epoch, id) == (16000, 7, "u1")
        return samples[::2]

    plain = SpeechExamples()(corpus[1], 7).waveform
    np.testing.assert_array_equal(SpeechExamples(augment=augment)(corpus[1], 7).waveform, plain[::2])


def test_a_text_is_encoded_and_labels_are_turned(corpus):
    make = SpeechExamples(
        encode=lambda text: [ord(letter) for letter in text], label=lambda labels: {"old": labels["age"]}
    )
    example = make(corpus[4], 0)
    assert example.tokens.tolist() == [ord(letter) for letter in "word 4"]
    assert example.labels == {"old": 4.0}


def test_tokens_of_the_source_serve_where_nothing_is_encoded(corpus):
    utterance = Utterance(id="a", audio=corpus[0].audio, place="m:1", tokens=(3, 4))
    assert SpeechExamples()(utterance, 0).tokens.tolist() == [3, 4]


def test_a_missing_text_is_told_with_its_place(corpus):
    utterance = Utterance(id="a", audio=corpus[0].audio, place="manifest.parquet:9")
    with pytest.raises(TextError, match=r"^manifest.parquet:9: 'a' has no text"):
        SpeechExamples(encode=list)(utterance, 0)


def test_a_text_document_is_not_speech():
    with pytest.raises(ManifestError, match="'a' has a text but no recording"):
        SpeechExamples()(Utterance(id="a", audio=None, place="m:1", text="some"), 0)


@pytest.mark.parametrize("harm", [os.unlink, lambda path: os.truncate(path, 30), lambda path: open(path, "wb").close()])
def test_a_recording_gone_bad_is_told_with_its_place_in_the_manifest_or_skipped(new_corpus, harm):
    corpus = new_corpus([0.3, 0.4])
    utterance = corpus[1]
    harm(utterance.audio)
    with pytest.raises(SonantError) as caught:
        SpeechExamples()(utterance, 0)
    assert isinstance(caught.value, AudioError | StorageError)
    assert caught.value.where == utterance.place
    assert utterance.place.endswith("manifest.parquet:2")
    assert "'u1' cannot be read as it was when the corpus was prepared" in caught.value.problem
    assert SpeechExamples(ExampleConfig(unreadable="skip"))(utterance, 0) is None


def test_a_recording_that_has_become_shorter_is_not_taken_for_the_same(new_corpus):
    corpus = new_corpus([0.5])
    soundfile.write(corpus[0].audio, np.zeros(4000, np.float32), 16000)
    with pytest.raises(AudioError, match=r"0.250 s were read, 0.500 s are in the manifest"):
        SpeechExamples()(corpus[0], 0)


def test_a_crop_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="crop_seconds: 0 was found"):
        ExampleConfig(crop_seconds=0)
