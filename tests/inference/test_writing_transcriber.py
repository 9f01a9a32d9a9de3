"""A recogniser that writes at work: any length, any neighbours, any sound."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile
import torch
from small_writers import FAMILIES, SETTINGS

from sonant.audio.voice_activity import EnergyDetector
from sonant.base import config as configs
from sonant.base.errors import SonantError
from sonant.checkpoints.bundle import Description, write_bundle
from sonant.checkpoints.seq2seq_bundle import writer_files
from sonant.inference.load import load
from sonant.inference.transcriber import Failure, Request, TranscriberConfig
from sonant.inference.writing import WritingConfig
from sonant.inference.writing_transcriber import WritingTranscriber
from sonant.models.writer import WriterConfig, description, new_model
from sonant.text.prompts import Prompt
from sonant.text.tokenizer import SubwordsConfig, train_tokenizer

RATE = 16000
LIMITED = WritingConfig(tokens_per_second=5)


@pytest.fixture(scope="module", params=FAMILIES)
def bundle(request, tmp_path_factory):
    """One that has learnt nothing, and writes a lot."""
    tokenizer = train_tokenizer(["the quick brown fox jumps over a lazy dog"], SubwordsConfig(size=300))
    torch.manual_seed(1)
    config = WriterConfig(family=request.param, settings=SETTINGS[request.param])
    model = new_model(config, tokenizer.size, {"bos": tokenizer.bos_id, "eos": tokenizer.eos_id, "pad": 0}).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    prompt = Prompt(ids=(tokenizer.bos_id,), end=tokenizer.eos_id, never=(0, 1))
    described = Description(
        task="seq2seq",
        architecture="writer",
        config=description(model),
        text={"prompt": prompt.as_dict()},
        decoding=configs.to_dict(LIMITED),
    )
    folder = str(tmp_path_factory.mktemp(request.param) / "bundle")
    write_bundle(folder, described, model.state_dict(), writer_files(model, tokenizer, prompt, {}, ""))
    return folder


def talk(voiced, seconds: float, num_parts: int, pause: float = 0.6, seed: int = 0) -> np.ndarray:
    """Stretches of voice with silence between them."""
    silence = np.zeros(int(pause * RATE), np.float32)
    parts = [piece for part in range(num_parts) for piece in (voiced(seconds, seed=seed + part), silence)]
    return np.concatenate(parts[:-1])


def test_a_recording_has_the_text_that_it_has_alone(bundle, voiced, tmp_path):
    transcriber = load(bundle)
    sounds = [voiced(seconds, seed=number) for number, seconds in enumerate((0.7, 1.9, 1.2))]
    places = []
    for number, sound in enumerate(sounds):
        places.append(str(tmp_path / f"{number}.wav"))
        soundfile.write(places[-1], sound, RATE, subtype="FLOAT")
    alone = [transcriber.transcribe(sound, RATE) for sound in sounds]
    together = list(transcriber.transcribe_all(map(Request, places)))
    assert [one.text for one in together] == [one.text for one in alone]
    assert len({one.text for one in alone}) > 1
    assert all(one.text for one in alone)


def test_a_long_recording_is_written_between_its_pauses_in_any_blocks(bundle, voiced, tmp_path):
    transcriber = WritingTranscriber.open(bundle, config=TranscriberConfig(window_seconds=2.0, context_seconds=0.1))
    sound = talk(voiced, 1.5, 5)
    found = transcriber.transcribe(sound, RATE)
    assert found.seconds == pytest.approx(len(sound) / RATE)
    starts = [int(word.start / 2.1) for word in found.words]
    assert set(starts) == {0, 1, 2, 3, 4}
    assert starts == sorted(starts)
    place = str(tmp_path / "talk.wav")
    soundfile.write(place, sound, RATE, subtype="FLOAT")
    short = [Request(place, 0.0, 1.0), Request(place), Request(place, 2.1, 1.4)]
    again = list(transcriber.transcribe_all(short))
    assert again[1].text == found.text
    assert again[0].text == transcriber.transcribe(sound[:RATE], RATE).text


def test_what_was_said_is_written_as_it_is_whatever_follows(bundle, voiced):
    config = TranscriberConfig(window_seconds=2.0, context_seconds=0.1, detector=EnergyDetector())
    transcriber = WritingTranscriber.open(bundle, config=config)
    whole, part = (transcriber.transcribe(talk(voiced, 1.5, count), RATE) for count in (5, 4))
    before = [[(word.text, word.start, word.end) for word in one.words if word.end < 6.3] for one in (whole, part)]
    assert before[0]
    assert before[0] == before[1]


@pytest.mark.parametrize(
    "sound",
    [np.zeros(0, np.float32), np.zeros(1, np.float32), np.zeros(3 * RATE, np.float32), np.zeros(90 * RATE, np.float32)],
    ids=["nothing", "one sample", "silence", "long silence"],
)
def test_silence_has_no_text(bundle, sound):
    found = load(bundle).transcribe(sound, RATE)
    assert (found.text, found.words) == ("", ())


def test_any_sound_has_an_answer(bundle, voiced):
    transcriber, rng = load(bundle), np.random.default_rng(0)
    for sound in (rng.standard_normal(10 * RATE), np.ones(1), rng.standard_normal(50), 100 * voiced(1.0)):
        assert isinstance(transcriber.transcribe(sound.astype(np.float32), RATE).text, str)
    low = transcriber.transcribe(voiced(1.0, 8000), 8000)
    assert low.seconds == pytest.approx(1.0)


def test_a_recording_that_cannot_be_read_is_a_failure_between_others(bundle, voiced, tmp_path):
    good, bad = str(tmp_path / "good.wav"), str(tmp_path / "bad.wav")
    soundfile.write(good, voiced(1.0), RATE)
    (tmp_path / "bad.wav").write_bytes(b"nothing")
    found = list(load(bundle).transcribe_all([Request(good), Request(bad), Request(good)]))
    assert [isinstance(one, Failure) for one in found] == [False, True, False]
    assert found[0].text == found[2].text


def test_several_answers_come_best_first_and_need_a_beam(bundle, voiced):
    with pytest.raises(SonantError, match="--beam 3"):
        WritingTranscriber.open(bundle, config=TranscriberConfig(num_best=3))
    beam = WritingConfig(beam=4, tokens_per_second=5)
    transcriber = WritingTranscriber.open(bundle, config=TranscriberConfig(num_best=3), writing=beam)
    found = transcriber.transcribe(voiced(1.0), RATE)
    assert 1 < len(found.alternatives) <= 3
    assert found.alternatives[0].text == found.text


def test_half_precision_writes_as_well(bundle, voiced):
    transcriber = WritingTranscriber.open(bundle, config=TranscriberConfig(precision="bf16"))
    assert transcriber.transcribe(voiced(1.0), RATE).text


def test_a_bundle_of_another_task_is_refused(bundle):
    from sonant.inference.transcriber import Transcriber

    with pytest.raises(SonantError, match="'ctc' is required"):
        Transcriber.open(bundle)
