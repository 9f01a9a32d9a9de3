"""What a file is, told from its first bytes and never from its name; and what it is if it is no recording."""

from __future__ import annotations

import re

HEAD_BYTES = 4096  # enough for every signature, and for the header of nearly every WAV

_SIGNATURES = (
    (b"RF64", "rf64"),
    (b"BW64", "rf64"),
    (b"riff\x2e\x91\xcf\x11", "w64"),
    (b".snd", "au"),
    (b"dns.", "au"),
    (b"NIST_1A", "nist"),
    (b"caff\x00\x01", "caf"),
    (b"fLaC", "flac"),
    (b"OggS", "ogg"),
    (b"Creative Voice File", "voc"),
    (b"#!AMR", "amr"),
    (b"\x1a\x45\xdf\xa3", "matroska"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "asf"),
    (b"FLV\x01", "flv"),
    (b"wvpk", "wavpack"),
)
_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")  # behind their size, of MP4 and QuickTime
_FORMS = {b"WAVE": "wav", b"AVI ": "avi", b"AIFF": "aiff", b"AIFC": "aiff", b"8SVX": "svx"}  # of RIFF and IFF
# What PyAV reads; everything else is for libsndfile. No playlists: they would make it open other addresses.
FOR_LIBAV = frozenset(("amr", "matroska", "asf", "flv", "wavpack", "aac", "mp4", "avi", "mpegts"))

_ARCHIVES = (
    (0, b"PK\x03\x04", "a zip archive", "Name a member: archive.zip#member"),
    (0, b"PAR1", "a Parquet file", "Name a row and a column: part.parquet#0/audio"),
    (257, b"ustar", "a tar archive", "Name a member: archive.tar#member"),
    (0, b"\x1f\x8b", "compressed with gzip", "Unpack it."),
    (0, b"BZh", "compressed with bzip2", "Unpack it."),
    (0, b"\xfd7zXZ", "compressed with xz", "Unpack it."),
    (0, b"7z\xbc\xaf", "a 7z archive", "Unpack it."),
    (0, b"Rar!", "a rar archive", "Unpack it."),
    (0, b"\x00\x05\x16\x07", "a note that macOS keeps beside a file", "Remove it."),
    (0, b"%PDF", "a PDF document", "Replace it by the recording."),
    (0, b"\x89PNG", "an image", "Replace it by the recording."),
    (0, b"\xff\xd8\xff", "an image", "Replace it by the recording."),
    (0, b"MThd", "a score (MIDI), which holds no sound", "Replace it by a recording."),
    (0, b"\xf0\x7e", "a sample dump of MIDI", "Convert it to WAV or FLAC."),
    (0, b"\x93NUMPY", "a numpy array, which has no sample rate", "Write it as WAV or FLAC."),
    (0, b"\x00BFM ", "a Kaldi matrix of features", "Name the archive of waveforms (wav.scp), not of features."),
    (0, b"\x00BCM", "a compressed Kaldi matrix of features", "Name the archive of waveforms, not of features."),
    (0, b"version https://git-lfs", "a pointer of Git LFS", "Fetch the recordings with: git lfs pull"),
    (0, b"\x00BDM ", "a Kaldi matrix of features", "Name the archive of waveforms (wav.scp), not of features."),
)


def kind_of(head: bytes) -> str:
    """The kind of recording that begins with these bytes (an ID3 tag taken off), or nothing."""
    if head[:4] in (b"RIFF", b"RIFX", b"FORM"):
        return _FORMS.get(head[8:12], "")
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    if head[4:8] in _BOXES and head[0] < 0x20:
        return "mp4"
    if head[:377:188] == b"GGG":
        return "mpegts"
    return _mpeg_audio(head)


def _mpeg_audio(head: bytes) -> str:
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return ""
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    if layer == 3:  # layer I, which nobody uses: this is UTF-16
        return ""
    if layer == 0:
        return "aac" if head[1] & 0xF0 == 0xF0 else ""
    is_sound = version != 1 and head[2] >> 4 != 15 and head[2] >> 2 & 3 != 3
    return "mp3" if is_sound else ""


def size_of_tag(head: bytes) -> int:
    """Bytes of the ID3 tag that MP3, AAC and even FLAC files may begin with."""
    if head[:3] != b"ID3" or len(head) < 10 or max(head[6:10]) > 127:
        return 0
    return 10 + (head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9]) + (10 if head[5] & 0x10 else 0)


def explain(head: bytes, size: int) -> tuple[str, str] | None:
    """What these bytes are instead of a recording, and what to do; None where nothing can be said."""
    if not size:
        return "the file is empty.", "Copy or record it again, or remove it."
    if size < 12 and head[:4] in (b"RIFF", b"RIFX", b"FORM"):
        return "the file ends inside its header.", "Copy or record it again, or remove it."
    for offset, signature, what, action in _ARCHIVES:
        if head.startswith(signature, offset):
            return f"this is {what}, not a recording.", action
    text = _as_text(head)
    if text:
        is_page = re.match(r"<(!doctype html|html|\?xml|error)", text, re.IGNORECASE)
        action = "Download it again: a server sent a page in its place." if is_page else "Replace it by the recording."
        return f"this is text, not audio: it begins with '{text}'.", action
    if not head.strip(b"\0"):
        return "it begins with zeros and has no header.", "Restore it from where it came from."
    return None


def unknown(head: bytes) -> tuple[str, str]:
    """The last word on bytes that nobody knows."""
    shown = head[:8].hex(" ")
    return f"its first bytes ({shown}) are those of no audio format known here.", "Convert it to WAV or FLAC."


def _as_text(head: bytes) -> str:
    """The beginning of a text, or nothing if these bytes are none."""
    try:
        text = head.decode("utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # the last character may be cut
            return ""
        text = head[: error.start].decode("utf-8", "replace")
    if re.search(r"[\x00-\x08\x0e-\x1f]", text):
        return ""
    return " ".join(text.split())[:40]
