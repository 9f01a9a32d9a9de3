"""What is told of a recogniser: rates of sums, groups side by side, and both texts word by word."""

from __future__ import annotations

import numpy as np
import pytest
from small_recogniser import RATE, write_recogniser

from sonant.batches.collate import collate_speech
from sonant.batches.examples import SpeechExample
from sonant.evaluation.breakdown import broken_down, side_by_side
from sonant.evaluation.recognition import MEASURES, recognition_figures, recognition_rows
from sonant.evaluation.recognition_page import aligned, confused, recognition_page
from sonant.evaluation.table import Evaluation, Facts, Row
from sonant.inference.transcriber import Transcriber
from sonant.metrics.edits import character_edits, word_edits
from sonant.objectives.ctc import Ctc, CtcConfig


def row(id: str, said: str, written: str, speaker: str = "s") -> Row:
    words, characters = word_edits(said, written), character_edits(said, written)
    totals = {"wer": words.errors, "cer": characters.errors, "substitutions": words.substitutions}
    totals |= {"deletions": words.deletions, "insertions": words.insertions, "loss": 1.0}
    counts = dict.fromkeys(MEASURES, float(words.num_reference)) | {"cer": float(characters.num_reference)}
    return Row(id=id, totals=totals, counts=counts, group=speaker, seconds=1.0, reference=said, hypothesis=written)


ROWS = (
    row("a", "the cat sat", "the cat sat", "s1"),
    row("b", "a <dog> ran far", "a dog far away", "s2"),
    row("c", "yes", "", "s3"),
)


def test_figures_are_those_of_all_words_together():
    found = recognition_figures(ROWS)
    assert found["wer"] == pytest.approx((0 + 3 + 1) / (3 + 4 + 1))
    assert found["wer"] == pytest.approx(found["substitutions"] + found["deletions"] + found["insertions"])


def test_both_texts_stand_in_one_and_nothing_of_them_is_markup():
    shown = aligned(ROWS[1])
    assert "<del" in shown
    assert "<ins" in shown
    assert "&lt;dog&gt;" in shown
    assert "<dog>" not in shown


def test_words_confused_are_counted_with_what_was_left_out_or_put_in():
    found = confused([*ROWS, row("d", "yes", "")])
    assert found[0] == ["yes", "–", 2]
    assert ["<dog>", "dog", 1] in found


def test_groups_add_up_to_the_whole():
    evaluation = Evaluation(Facts(task="ctc", split="test"), ROWS)
    found = broken_down(evaluation, {"a": "near", "b": "far", "c": "far"})
    assert [group.value for group in found] == ["far", "near"]
    assert [group.num_utterances for group in found] == [2, 1]
    assert sum(group.num_words * group.wer.value for group in found) == pytest.approx(4)
    columns, rows = side_by_side(found)
    assert [dict(zip(columns, row, strict=True))["wer %"] for row in rows] == [80.0, 0.0]
    assert rows[1][4] == ""  # one speaker says nothing of others
    assert "95 %" not in side_by_side(found[1:])[0]
    assert found[1].as_dict()["interval"] is None


def test_the_page_holds_what_matters():
    evaluation = Evaluation(Facts(task="ctc", split="test"), ROWS)
    intervals = {measure: evaluation.interval(measure) for measure in evaluation.measures}
    page = recognition_page("bundle", evaluation, intervals, {"accent": {"a": "near", "b": "far", "c": "far"}})
    for told in ("By accent", "Worst utterances", "Words that were confused", "3 utterances", "50.00 %"):
        assert told in page


@pytest.mark.parametrize("longest", [2.0, 40.0], ids=["whole", "in windows"])
def test_what_is_measured_is_what_is_transcribed_silence_too(tmp_path, voiced, longest):
    transcriber = Transcriber.open(write_recogniser(str(tmp_path / "bundle"), "conformer"))
    sounds = [voiced(longest, seed=3), np.zeros(RATE, np.float32), voiced(1.0, seed=4)]
    known = {"pass_number": 0, "sample_rate": RATE, "tokens": np.zeros(0, np.int64), "text": ""}
    examples = [SpeechExample(id=f"u{number}", waveform=sound, **known) for number, sound in enumerate(sounds)]
    objective = Ctc(CtcConfig(), transcriber.model.num_frames, transcriber.spelling.blank_id)
    rows = recognition_rows(transcriber.model, [collate_speech(examples)], transcriber.spelling, objective)
    written = [transcriber.transcribe(sound, RATE).text for sound in sounds]
    assert [row.hypothesis for row in rows] == written
    assert [bool(text) for text in written] == [True, False, True]
