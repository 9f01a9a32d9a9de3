"""Headers of plain sound that lie, are cut short, or are written as few programs write them."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import soundfile

from sonant.audio.recording import RecordingInfo, open_recording
from sonant.base.errors import AudioError

SAMPLES = np.random.default_rng(0).integers(-9000, 9000, (500, 2)).astype("<i2")


SOUND = SAMPLES.tobytes()


def chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


def wav(*, channels=2, rate=8000, bits=16, tag=1, data=SOUND, before=b"", behind=b"", said=None) -> bytes:
    """A WAV whose header says what one wants; `said` is the size that it gives to its data."""
    frame = channels * bits // 8
    form = chunk(b"fmt ", struct.pack("<HHIIHH", tag, channels, rate, rate * frame % 2**32, frame, bits))
    sound = b"data" + struct.pack("<I", len(data) if said is None else said) + data
    body = b"WAVE" + form + before + sound + behind
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.fixture
def reading(tmp_path):
    """Info and samples of a file with these bytes."""

    def read(content: bytes) -> tuple[RecordingInfo, np.ndarray]:
        (tmp_path / "a.wav").write_bytes(content)
        with open_recording(str(tmp_path / "a.wav")) as recording:
            return recording.info, np.concatenate(list(recording.blocks(100)))

    return read


def is_whole(read: tuple[RecordingInfo, np.ndarray]) -> bool:
    info, samples = read
    return info.num_samples in (None, 500) and np.array_equal(samples * 32768, SAMPLES)


def test_chunks_around_the_sound_are_passed_over(reading):
    tags = chunk(b"LIST", b"INFOISFT\x05\0\0\0sox.\0")
    assert is_whole(reading(wav(before=chunk(b"JUNK", bytes(27)))))
    assert is_whole(reading(wav(behind=tags)))
    assert is_whole(reading(wav(behind=b"TAG" + bytes(125))))  # ID3v1, by players
    assert is_whole(reading(wav(before=chunk(b"bext", bytes(5000)))))  # longer than what is read at first
    odd_and_not_padded = b"note" + struct.pack("<I", 3) + b"abc"
    assert is_whole(reading(wav(before=odd_and_not_padded)))


def test_zeros_behind_the_sound_are_not_sound(reading):
    assert is_whole(reading(wav(behind=bytes(300))))
    assert is_whole(reading(wav() + bytes(300)))  # which its header does not count


@pytest.mark.parametrize("said", [0, 0xFFFFFFFF, 0x7FFFF000, 0x80000000, 100])
def test_a_size_that_was_never_written_back_does_not_end_the_sound(reading, said):
    info, samples = reading(wav(said=said))
    assert info.num_samples is None
    np.testing.assert_array_equal(samples * 32768, SAMPLES)


def test_a_wav_that_was_cut_tells_what_it_promised(reading):
    info, samples = reading(wav()[:-1000])
    assert info.num_samples == 500
    assert len(samples) == 250


def test_the_last_sample_is_whole_or_not_there(reading):
    info, samples = reading(wav()[:-3])
    assert info.num_samples == 500
    assert len(samples) == 499


def test_sizes_beyond_four_gigabytes_stand_in_a_chunk_of_their_own(reading):
    sizes = chunk(b"ds64", struct.pack("<QQQI", 2100, len(SAMPLES) * 4, 500, 0))
    form = chunk(b"fmt ", struct.pack("<HHIIHH", 1, 2, 8000, 32000, 4, 16))
    content = b"RF64\xff\xff\xff\xffWAVE" + sizes + form + b"data\xff\xff\xff\xff" + SAMPLES.tobytes()
    assert reading(content)[0].num_samples == 500
    assert is_whole(reading(content))
    assert reading(content[:-400])[0].num_samples == 500


@pytest.mark.parametrize("rate", [0, 1, 99, 10_000_001, 0xFFFFFFFF])
def test_a_sample_rate_that_cannot_be_is_refused(reading, rate):
    with pytest.raises(AudioError, match="Write its header anew"):
        reading(wav(rate=rate))


@pytest.mark.parametrize("rate", [100, 384_000, 10_000_000])
def test_every_sample_rate_of_sound_is_read(reading, rate):
    assert reading(wav(rate=rate))[0].sample_rate == rate


def test_no_channels_are_refused(reading):
    with pytest.raises(AudioError, match="0 channels"):
        reading(wav(channels=0))


def test_a_header_without_sound_is_told_from_a_recording_cut_behind_its_header(reading):
    with pytest.raises(AudioError, match="nothing was recorded"):
        reading(wav(data=b""))
    with pytest.raises(AudioError, match="it was cut short"):
        reading(wav()[: -len(SAMPLES) * 4])
    with pytest.raises(AudioError, match="leads to no samples"):
        reading(wav()[:36])


def test_a_header_that_says_nothing_of_the_frame_is_understood(reading):
    content = bytearray(wav())
    content[32:34] = bytes(2)
    info, samples = reading(bytes(content))
    assert info.encoding == "wav/pcm_16"
    np.testing.assert_array_equal(samples * 32768, SAMPLES)


def test_twenty_bits_are_read_as_the_upper_ones_of_three_bytes(reading):
    values = np.arange(-400, 400, dtype="<i4") << 12
    packed = values.view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
    content = bytearray(wav(channels=1, bits=24, data=packed))
    content[34:36] = struct.pack("<H", 20)
    _, samples = reading(bytes(content))
    np.testing.assert_array_equal(samples[:, 0], values / np.float32(2**31))


def test_numbers_too_large_or_no_numbers_come_through_without_a_warning(reading, recwarn):
    values = np.array([0.5, 1e300, -1e300, np.nan, np.inf])
    _, samples = reading(wav(channels=1, bits=64, tag=3, data=values.tobytes()))
    np.testing.assert_array_equal(samples[:, 0], np.float32([0.5, np.inf, -np.inf, np.nan, np.inf]))
    assert not recwarn


def test_a_file_that_was_never_finished_is_refused_at_once(reading):
    """Zeros where chunks should be are not walked through eight bytes at a time."""
    content = wav(data=b"")[:36] + bytes(30_000_000)
    with pytest.raises(AudioError, match="leads to no samples"):
        reading(content)


@pytest.mark.parametrize(("exponent", "name"), [(0xFFFF, "infinite"), (0, "none at all")])
def test_an_aiff_of_a_sample_rate_that_cannot_be_is_refused(tmp_path, exponent, name):
    path = tmp_path / "a.aiff"
    soundfile.write(path, SAMPLES, 8000, subtype="PCM_16")
    content = bytearray(path.read_bytes())
    at = content.index(b"COMM") + 16
    content[at : at + 2] = struct.pack(">H", exponent)
    path.write_bytes(content)
    with pytest.raises(AudioError, match="header"), open_recording(str(path)):
        pass


def test_a_caf_of_a_sample_rate_that_is_no_number_is_refused(tmp_path):
    path = tmp_path / "a.caf"
    soundfile.write(path, SAMPLES, 8000, subtype="PCM_16")
    content = bytearray(path.read_bytes())
    at = content.index(b"desc") + 12
    content[at : at + 8] = struct.pack(">d", float("nan"))
    path.write_bytes(content)
    with pytest.raises(AudioError, match="sample rate"), open_recording(str(path)):
        pass


@pytest.mark.parametrize(("kind", "suffix"), [("CAF", "caf"), ("W64", "w64"), ("AU", "au"), ("AIFF", "aiff")])
def test_whatever_the_sizes_in_a_header_say_nothing_but_a_sentence_comes_back(tmp_path, kind, suffix):
    path = tmp_path / f"a.{suffix}"
    soundfile.write(path, SAMPLES, 8000, format=kind, subtype="PCM_16")
    content = path.read_bytes()
    of_data = max(content.find(b"data"), 0)
    for at in (*range(4, 120, 2), *range(of_data + 4, of_data + 24)):
        for value in (b"\0\0\0\0\0\0\0\0", b"\0\0\0\0\0\0\0\1", b"\xff" * 8, b"\x80" + bytes(7), b"\x7f" + b"\xff" * 7):
            path.write_bytes(content[:at] + value + content[at + 8 :])
            try:
                with open_recording(str(path)) as recording:
                    found = recording.read(0, None)
            except AudioError:
                continue
            assert found.shape[1] == recording.info.num_channels
            assert recording.info.num_samples is None or recording.info.num_samples > 0


NIST = """NIST_1A
   1024
channel_count -i 2
sample_count -i 500
sample_rate -i 8000
sample_n_bytes -i 2
sample_byte_format -s2 01
sample_coding -s3 pcm
end_head
"""


def test_sphere_files_of_either_order_of_bytes(reading):
    assert is_whole(reading(NIST.encode().ljust(1024) + SAMPLES.tobytes()))
    swapped = NIST.replace("-s2 01", "-s2 10").encode().ljust(1024)
    assert is_whole(reading(swapped + SAMPLES.byteswap().tobytes()))


def test_a_compressed_sphere_file_is_not_taken_for_a_plain_one(reading):
    shortened = NIST.replace("-s3 pcm", "-s26 pcm,embedded-shorten-v2.00").encode().ljust(1024)
    with pytest.raises(AudioError, match=r"damaged|cannot be decoded"):
        reading(shortened + bytes(2000))
