"""Every fault that preparation looks for, each in a file or line made bad on purpose."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import soundfile

import sonant
from sonant.base.errors import ConfigError, ManifestError
from sonant.corpus.preparation.config import Limits
from sonant.corpus.preparation.rules import RULES
from sonant.corpus.splits import SplitConfig

LINE = "table.csv:10"  # of the bad row, behind the header and eight sound ones


def _no_recording(laid):
    (laid.folder / "bad.wav").write_bytes(b"<html>404: not found</html>" * 40)
    laid.add("bad.wav")


def _cut_wav(laid):
    path = laid.write("bad.wav", laid.speech(1.0))
    path.write_bytes(path.read_bytes()[:-9000])
    laid.add("bad.wav")


def _cut_flac(laid):
    path = laid.write("bad.flac", laid.speech(1.0))
    path.write_bytes(path.read_bytes()[:-3000])
    laid.add("bad.flac")


def _cut_ogg(laid):
    path = laid.write("bad.ogg", laid.speech(4.0), format="OGG", subtype="OPUS")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    laid.add("bad.ogg")


def _no_bytes(laid):
    (laid.folder / "bad.wav").write_bytes(b"")
    laid.add("bad.wav")


def _no_samples(laid):
    laid.add("bad.wav", np.zeros(0, np.float32))


def _silence(laid):
    laid.add("bad.wav", np.zeros(4000, np.float32))


def _murmur(laid):
    laid.add("bad.wav", laid.speech() * 1e-4)


def _clipped(laid):
    laid.add("bad.wav", (laid.speech() * 20).clip(-1, 1))


def _nan(laid):
    samples = laid.speech()
    samples[100:103] = np.nan, np.inf, -np.inf
    laid.write("bad.wav", samples, subtype="FLOAT")
    laid.add("bad.wav")


def _short(laid):
    laid.add("bad.wav", laid.speech(0.05), text="a")


def _long(laid):
    laid.add("bad.wav", np.tile(laid.speech(1.0), 301), text="it was a long story " * 10)


def _beyond(laid):
    laid.add("bad.wav", laid.speech(), start="0.1", end="0.61")


def _backwards(laid):
    laid.add("bad.wav", laid.speech(), start="0.4", end="0.1")


def _before(laid):
    laid.add("bad.wav", laid.speech(), start="-0.1", end="0.3")


def _channel(laid):
    laid.add("bad.wav", laid.speech(), channel="1")


def _missing(laid):
    laid.add("bad.wav")


def _no_text(laid):
    laid.add("bad.wav", laid.speech(), text=" ")


def _same_id(laid):
    for row in laid.rows:
        row["id"] = row["audio"][:-4]
    laid.add("bad.wav", laid.speech(), id="a3")


def _same_sound(laid):
    samples, _ = soundfile.read(laid.folder / "a3.wav", dtype="int16")
    laid.add("bad.flac", samples)


def _fast_talker(laid):
    laid.add("bad.wav", laid.speech(), text="nobody can say as much as this in half a second")


CASES = [
    (_no_recording, "unreadable-audio", "this is text, not audio: it begins with '<html>404"),
    (_cut_wav, "truncated-audio", "its header promises 1.00 s, 0.44 s are there. Copy the file again."),
    (_cut_flac, "unreadable-audio", "bad.flac"),
    (_cut_ogg, "unreadable-audio", "bad.ogg"),
    (_no_bytes, "unreadable-audio", "empty"),
    (_no_samples, "unreadable-audio", "a header and no samples: nothing was recorded. Copy or record"),
    (_silence, "silent-audio", "digital silence. Listen to it"),
    (_murmur, "silent-audio", "dB below full scale"),
    (_nan, "not-finite-audio", "3 samples of 'bad' are no numbers (NaN or infinite). Export"),
    (_short, "too-short", "lasts 0.050 s; 0.1 s are required"),
    (_long, "too-long", "lasts 301.0 s; at most 300 s are allowed. Cut it"),
    (_beyond, "end-beyond-recording", "'bad-0001' ends at 0.61 s, but its recording lasts 0.50 s. Correct the end"),
    (_backwards, "bad-time", "it ends at 0.1 s, but starts at 0.4 s. Correct"),
    (_before, "bad-time", "it starts at -0.1 s, before its recording. Correct"),
    (_channel, "missing-channel", "channel 1 is asked for"),
    (_missing, "missing-audio", "'bad.wav' is neither at that path nor below"),
    (_no_text, "empty-text", "'bad' has no text, while others have. Write"),
    (_same_id, "duplicated-id", "the id 'a3' is taken: "),
    (_same_sound, "duplicated-audio", "'bad' sounds exactly as 'a3' does ("),
    (
        _fast_talker,
        "too-much-text",
        "'bad' has 47 characters in 0.50 s, 94 a second ('nobody can say as much as this in half a second'); 40",
    ),
]


@pytest.mark.parametrize(("spoil", "rule", "says"), CASES, ids=[case[0].__name__.strip("_") for case in CASES])
def test_a_fault_stops_preparation_with_file_and_line_or_is_left_out_and_counted(
    lay, prepared, listed, tmp_path, spoil, rule, says
):
    laid = lay()
    spoil(laid)
    table = laid.table()
    with pytest.raises(ManifestError) as refused:
        prepared(table)
    told = str(refused.value)
    assert f"1 fault was found (1 {rule}); 8 utterances are sound." in told
    assert LINE in told
    assert says in told
    assert "findings.csv" in told
    assert "--skip-invalid" in told
    assert not (tmp_path / "corpus" / "manifest.parquet").exists()

    result = prepared(table, skip_invalid=True)
    assert (result.num_utterances, result.num_rejected, result.rejected) == (8, 1, {rule: 1})
    (line,) = listed("rejected.csv")
    assert line["place"].endswith(LINE)
    assert line["rule"] == rule
    assert says in f"{line['problem']} {line['action']}"
    corpus = sonant.open_corpus(str(tmp_path / "corpus"))
    assert [one.id.partition("-")[0] for one in corpus] == [f"a{number}" for number in range(8)]


def test_a_recording_that_is_cut_at_any_byte_is_refused_or_whole(lay, prepared, listed):
    laid = lay(2)
    whole = {}
    for kind, subtype in (("wav", "PCM_16"), ("flac", "PCM_16"), ("ogg", "VORBIS"), ("mp3", "MPEG_LAYER_III")):
        path = laid.write(f"whole.{kind}", laid.speech(0.7), subtype=subtype)
        whole[kind] = path.read_bytes()
        path.unlink()
        for number, cut in enumerate(np.random.default_rng(0).integers(0, len(whole[kind]), 12)):
            (laid.folder / f"cut{number}.{kind}").write_bytes(whole[kind][:cut])
            laid.add(f"cut{number}.{kind}")
    result = prepared(laid.table(), skip_invalid=True)
    assert result.num_utterances == 2
    assert result.num_rejected == 48
    assert {line["severity"] for line in listed("findings.csv") if line["id"]} == {"error"}


def test_damage_anywhere_in_a_recording_ends_in_words_and_never_in_a_traceback(lay, prepared):
    laid = lay(2)
    rng = np.random.default_rng(1)
    kinds = {"wav": {}, "flac": {}, "ogg": {"subtype": "VORBIS"}, "mp3": {}, "aiff": {}, "au": {}, "w64": {}}
    for kind, options in kinds.items():
        path = laid.write(f"whole.{kind}", laid.speech(0.7), **options)
        content = np.frombuffer(path.read_bytes(), np.uint8)
        path.unlink()
        for number in range(12):
            spoilt = content.copy()
            reach = 80 if number % 2 else len(spoilt)  # every other time in the header
            spoilt[rng.integers(0, reach, 6)] = rng.integers(0, 256, 6)
            (laid.folder / f"spoilt{number}.{kind}").write_bytes(spoilt.tobytes())
            laid.add(f"spoilt{number}.{kind}")
    result = prepared(laid.table(), skip_invalid=True)
    assert result.num_utterances + result.num_rejected == len(laid.rows)


@pytest.mark.parametrize(
    ("spoil", "rule", "says"),
    [
        (_clipped, "clipped-audio", "of the samples of 'bad' are at full scale. Record at a lower level."),
        (
            lambda laid: laid.add("bad.wav", laid.speech(6), text="a"),
            "too-little-text",
            "0.167 a second ('a'); 0.2 are the",
        ),
        (lambda laid: laid.add("bad.wav", laid.speech(), text="so Öl"), "rare-character", "'Ö' ({line})"),
        (lambda laid: laid.add("bad.wav", laid.speech(), text=laid.rows[3]["text"]), "duplicated-text", "2 utterances"),
    ],
)
def test_what_may_be_meant_so_is_told_and_kept(lay, prepared, listed, spoil, rule, says):
    laid = lay()
    spoil(laid)
    result = prepared(laid.table())
    assert result.num_utterances == 9
    assert result.warnings[rule] == 1
    (found,) = (line for line in listed("findings.csv") if line["rule"] == rule)
    says = says.replace("{line}", str(laid.folder / LINE))
    assert says in f"{found['problem']} {found['action']}"
    assert found["severity"] == "warning"
    assert re.search(r"table\.csv:\d+$", found["place"])


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("sample-rate-surprise", "1 of 31 utterances have 16000 Hz, most have 8000 Hz"),
        ("channel-surprise", "1 of 31 utterances have 2 channels, most have 1 channels"),
    ],
)
def test_one_recording_of_another_kind_is_told_with_its_line(lay, prepared, listed, rule, says):
    laid = lay(30)
    samples = laid.speech(1.0)
    laid.write(
        "bad.wav", *((samples, 16000) if rule == "sample-rate-surprise" else (np.stack([samples, samples / 2], 1),))
    )
    laid.add("bad.wav")
    assert prepared(laid.table()).warnings[rule] == 1
    (found,) = (line for line in listed("findings.csv") if line["rule"] == rule)
    assert says in found["problem"]
    assert found["place"].endswith("table.csv:32")


def test_characters_outside_the_declared_alphabet_are_named(lay, prepared, listed):
    laid = lay()
    laid.add("bad.wav", laid.speech(), text="a naïve café")
    limits = Limits(alphabet="abcdefghijklmnopqrstuvwxyz0123456789")
    result = prepared(laid.table(), limits=limits, skip_invalid=True)
    assert result.rejected == {"outside-alphabet": 1}
    (line,) = listed("rejected.csv")
    assert "outside the alphabet: 'é' 'ï'." in line["problem"]
    assert line["place"].endswith(LINE)


def test_a_speaker_in_two_splits_is_refused_and_stays_where_most_utterances_are(lay, prepared, listed, tmp_path):
    laid = lay(8)
    for row in laid.rows:
        row["split"] = "test" if row["speaker"] == "s3" else "train"
    laid.rows[-1]["split"] = "train"  # of s3, whose other utterance is for the test
    laid.add("b.wav", laid.speech(seed=50), speaker="s3", split="test")
    table = laid.table()
    with pytest.raises(ManifestError, match=r"table\.csv:9: the speaker 's3' of 'a7' is in 'train' and in 'test'"):
        prepared(table)
    result = prepared(table, skip_invalid=True)
    assert result.rejected == {"speaker-in-two-splits": 1}
    assert result.splits == {"test": 2, "train": 6}
    (line,) = listed("rejected.csv")
    assert line["place"].endswith("table.csv:9")
    assert prepared(table, severities={"speaker-in-two-splits": "warning"}).num_utterances == 9


def test_whoever_splits_by_hash_is_told_that_speakers_cross(lay, prepared, listed):
    table = lay(8).table()
    result = prepared(table, splits=SplitConfig(by="hash"))
    assert (result.num_utterances, result.warnings["speaker-in-two-splits"]) == (8, 1)
    (found,) = (line for line in listed("findings.csv") if line["rule"] == "speaker-in-two-splits")
    assert re.search(
        r"speakers are in several splits \(\d of them\), for instance 's\d' in '(dev|test|train)' and", found["problem"]
    )
    with pytest.raises(ManifestError, match="speaker-in-two-splits"):
        prepared(table, splits=SplitConfig(by="hash"), severities={"speaker-in-two-splits": "error"})


def test_texts_in_two_splits_and_utterances_in_none_are_told(lay, prepared, listed):
    laid = lay(8)
    for row in laid.rows:
        row["split"] = {"s0": "train", "s1": "test", "s2": "dev", "s3": ""}[row["speaker"]]
    laid.rows[1]["text"] = laid.rows[0]["text"]
    warnings = prepared(laid.table()).warnings
    assert warnings["text-in-two-splits"] == warnings["no-split"] == 1
    found = {line["rule"]: line for line in listed("findings.csv")}
    assert "2 of 8 utterances are in no split" in found["no-split"]["problem"]
    assert found["no-split"]["place"].endswith("table.csv:5")


def test_words_among_numbers_are_told(lay, prepared, listed, tmp_path):
    laid = lay(4)
    for row, score in zip(laid.rows, ("1", "2", "n.a.!", "4"), strict=True):
        row["score"] = score
    options = replace(sonant.PrepareConfig().source, labels=("score",))
    assert prepared(laid.table(), source=options).num_utterances == 4
    assert sonant.open_corpus(str(tmp_path / "corpus")).labels == {"score": "string"}


def test_what_is_left_out_and_what_is_kept_are_together_all_there_was(lay, prepared, listed):
    laid = lay()
    for spoil, *_ in CASES:
        spoil(laid)
        row = laid.rows[-1]
        name = f"{spoil.__name__}.{row['audio'].rpartition('.')[2]}"
        if (laid.folder / row["audio"]).exists():
            (laid.folder / row["audio"]).rename(laid.folder / name)
        row["audio"] = name
        row.setdefault("id", spoil.__name__)
    laid.rows.append({"audio": "a0.wav", "text": "x", "start": "soon"})
    table = laid.table()
    result = prepared(table, skip_invalid=True)
    assert result.num_utterances + result.num_rejected == len(laid.rows)
    assert len(listed("rejected.csv")) == result.num_rejected
    assert len({line["place"] for line in listed("rejected.csv")}) == result.num_rejected
    assert set(result.rejected) >= {rule for _, rule, _ in CASES}


def test_where_nothing_sound_is_left_nothing_can_be_skipped(lay, prepared):
    laid = lay(0)
    _silence(laid)
    with pytest.raises(ManifestError, match="0 utterances are sound") as refused:
        prepared(laid.table(), skip_invalid=True)
    assert "--skip-invalid" not in str(refused.value)


def test_severities_decide_what_a_rule_means(lay, prepared):
    laid = lay()
    _silence(laid)
    _clipped(laid)
    laid.rows[-2]["audio"] = "silent.wav"
    laid.write("silent.wav", np.zeros(4000, np.float32))
    table = laid.table()
    result = prepared(table, severities={"silent-audio": "warning", "clipped-audio": "off"})
    assert result.num_utterances == 10
    assert "clipped-audio" not in result.warnings
    assert result.warnings["silent-audio"] == 1
    with pytest.raises(ManifestError, match=r"1 silent-audio, 1 clipped-audio|1 clipped-audio, 1 silent-audio"):
        prepared(table, severities={"clipped-audio": "error"})


def test_rules_that_lose_an_utterance_cannot_be_silenced():
    for rule in ("missing-audio", "unreadable-audio", "bad-line", "ambiguous-audio", "duplicated-id", "bad-time"):
        with pytest.raises(ConfigError, match="this is always an error"):
            sonant.PrepareConfig(severities={rule: "off"})
    with pytest.raises(ConfigError, match="Did you mean 'silent-audio'"):
        sonant.PrepareConfig(severities={"silent-audo": "off"})


def test_every_rule_that_the_sources_speak_of_is_known():
    from importlib import resources

    folder = resources.files("sonant.corpus")
    texts = [path.read_text() for path in folder.rglob("*.py")]
    spoken_of = re.compile(r'(?:rule=|_fault\(\s*|Fault\(\s*|new_finding\(\s*)"([a-z-]+)"')
    spoken = {rule for text in texts for rule in spoken_of.findall(text)}
    assert len(spoken) > 20
    assert spoken <= set(RULES)
