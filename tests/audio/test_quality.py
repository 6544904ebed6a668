"""The quality report:

figures measured on made recordings, the verdicts drawn from them, and the words for them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.utils import translation

from tests.audio import clips
from tts.audio.findings import FINDING_TEXTS, VERDICT_TEXTS, checklist, verdict_text
from tts.audio.intake import inspect_clip
from tts.audio.quality import (
    Finding,
    FindingCode,
    QualityFigures,
    QualityReport,
    Severity,
    Verdict,
)

GOOD = QualityFigures(
    duration_s=6.0,
    speech_s=5.4,
    snr_db=35.0,
    clipping_ratio=0.0,
    silence_ratio=0.1,
    bandwidth_hz=11_500,
    channel_count=1,
    source_sample_rate_hz=48_000,
    rms_dbfs=-22.0,
    leading_silence_s=0.1,
    channels_differ=False,
    damaged=False,
)


def report(tmp_path: Path, samples: clips.Samples, *, rate_hz: int = 48_000) -> QualityReport:
    source = tmp_path / "clip"
    source.write_bytes(clips.wav(samples, rate_hz=rate_hz))
    return inspect_clip(source=source).report


def codes(judged: QualityReport) -> dict[str, str]:
    return {finding.code.value: finding.severity.value for finding in judged.findings}


def test_clean_speech_passes(tmp_path: Path) -> None:
    judged = report(tmp_path, clips.speech(6.0))
    assert judged.verdict is Verdict.PASS
    assert judged.findings == ()
    assert judged.duration_s == 6.0
    assert 5.0 < judged.speech_s <= 6.0
    assert judged.snr_db > 30
    assert judged.bandwidth_hz > 10_000
    assert -26 < judged.rms_dbfs < -19
    assert judged.clipping_ratio == 0
    assert (judged.channel_count, judged.source_sample_rate_hz) == (1, 48_000)


@pytest.mark.parametrize(
    ("ratio_db", "severity"), [(25, None), (10, "warning"), (0, "rejected")], ids=["light", "heavy", "equal"]
)
def test_noise_is_measured_against_the_voice(tmp_path: Path, ratio_db: int, severity: str | None) -> None:
    speech = clips.speech(6.0)
    rms = float(np.sqrt(np.mean(speech**2))) * 10 ** (-ratio_db / 20)
    noisy = np.concatenate(
        [
            clips.noise(0.5, rms=rms),
            speech + clips.noise(6.0, rms=rms, seed=2),
        ]
    )
    judged = report(tmp_path, noisy)
    assert codes(judged).get("noisy") == severity
    # The voice is louder while it speaks than on average: what is measured lies up to 5 dB above what was
    # mixed.
    assert ratio_db <= judged.snr_db < ratio_db + 6


@pytest.mark.parametrize(("gain", "severity"), [(2.5, "warning"), (12.0, "rejected")])
def test_clipping_is_counted_at_full_scale(tmp_path: Path, gain: float, severity: str) -> None:
    overdriven = np.clip(clips.speech(6.0) * gain, -1, 1)
    judged = report(tmp_path, overdriven)
    assert codes(judged).get("clipped") == severity
    assert judged.clipping_ratio == pytest.approx(float(np.mean(np.abs(overdriven) >= 0.998)), abs=1e-4)


def test_a_telephone_recording_is_narrow_however_it_was_saved(tmp_path: Path) -> None:
    telephone = clips.at_rate(clips.speech(6.0), 8_000)
    saved_again = clips.resample(telephone, source_rate_hz=8_000, target_rate_hz=48_000)
    judged = report(tmp_path, saved_again)
    assert codes(judged) == {"narrow_band": "warning"}
    assert 3_000 <= judged.bandwidth_hz <= 4_500
    assert judged.source_sample_rate_hz == 48_000


def test_a_quiet_recording_is_reported_and_raised(tmp_path: Path) -> None:
    source = tmp_path / "clip"
    source.write_bytes(clips.wav(clips.speech(6.0) * np.float32(10 ** (-30 / 20))))
    clip = inspect_clip(source=source)
    assert codes(clip.report) == {"quiet": "warning"}
    assert clip.report.rms_dbfs < -48
    samples = np.frombuffer(clip.canonical_wav[44:], "<i2") / 32_768
    assert 0.2 < np.abs(samples).max() < 0.9


def test_pauses_and_a_late_beginning_are_reported(tmp_path: Path) -> None:
    judged = report(tmp_path, np.concatenate([np.zeros(48_000 * 5, np.float32), clips.speech(3.5)]))
    assert codes(judged) == {"mostly_silence": "warning", "long_leading_silence": "notice"}
    assert 4.8 < judged.leading_silence_s < 5.3
    assert 0.55 < judged.silence_ratio < 0.7


def test_a_word_in_a_long_silence_is_too_little_speech(tmp_path: Path) -> None:
    silence = np.zeros(48_000 * 2, np.float32)
    judged = report(tmp_path, np.concatenate([silence, clips.speech(1.2), silence]))
    assert judged.verdict is Verdict.REJECTED
    assert codes(judged)["little_speech"] == "rejected"
    assert judged.speech_s < 1.5


def test_an_overdriven_voice_that_overshoots_in_a_float_file_is_not_clipped(tmp_path: Path) -> None:
    source = tmp_path / "clip"
    source.write_bytes(
        clips.riff((clips.speech(4.0) * 3).astype("<f4").tobytes(), format_tag=3, bits=32, rate_hz=48_000)
    )
    clip = inspect_clip(source=source)
    assert codes(clip.report) == {}
    assert np.abs(np.frombuffer(clip.canonical_wav[44:], "<i2")).max() < 30_000


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"speech_s": 2.49}, {"little_speech": "warning"}),
        ({"speech_s": 2.5}, {}),
        ({"speech_s": 1.49}, {"little_speech": "rejected"}),
        ({"snr_db": 17.9}, {"noisy": "warning"}),
        ({"snr_db": 18.0}, {}),
        ({"snr_db": 7.9}, {"noisy": "rejected"}),
        ({"clipping_ratio": 0.001}, {}),
        ({"clipping_ratio": 0.0011}, {"clipped": "warning"}),
        ({"clipping_ratio": 0.031}, {"clipped": "rejected"}),
        ({"rms_dbfs": -42.1}, {"quiet": "warning"}),
        ({"bandwidth_hz": 4_999}, {"narrow_band": "warning"}),
        ({"silence_ratio": 0.51}, {"mostly_silence": "warning"}),
        ({"leading_silence_s": 1.1}, {"long_leading_silence": "notice"}),
        ({"channels_differ": True}, {"multi_channel": "notice"}),
        ({"damaged": True}, {"damaged": "warning"}),
        (
            {"snr_db": 1.0, "damaged": True, "channels_differ": True},
            {"noisy": "rejected", "multi_channel": "notice", "damaged": "warning"},
        ),
    ],
)
def test_thresholds(change: dict[str, float | bool], expected: dict[str, str]) -> None:
    judged = QualityReport.from_figures(replace(GOOD, **change))  # type: ignore[arg-type]
    assert codes(judged) == expected
    gravest = (
        "rejected"
        if "rejected" in expected.values()
        else "warnings"
        if "warning" in expected.values()
        else "pass"
    )
    assert judged.verdict == gravest


def test_a_report_survives_json_as_it_was_judged() -> None:
    judged = QualityReport.from_figures(replace(GOOD, snr_db=12.0, channels_differ=True))
    stored = json.loads(json.dumps(judged.as_dict(), allow_nan=False))
    assert stored["version"] == 1
    assert stored["verdict"] == "warnings"
    assert stored["findings"] == [
        {"code": "noisy", "severity": "warning"},
        {"code": "multi_channel", "severity": "notice"},
    ]
    assert QualityReport.from_dict(stored) == judged
    # A later, stricter rule does not change what was said then.
    assert QualityReport.from_dict({**stored, "verdict": "pass", "findings": []}).verdict is Verdict.PASS


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"verdict": "pass"},
        {"findings": [{"code": "unheard_of", "severity": "warning"}]},
        {"findings": None},
        {"verdict": "fine"},
        {"duration_s": None},
        {"damaged": 1},
    ],
)
def test_what_is_no_report_is_not_read_as_one(broken: dict[str, object]) -> None:
    stored = QualityReport.from_figures(GOOD).as_dict()
    data = {**stored, **broken} if len(broken) == 1 and broken != {"verdict": "pass"} else broken
    with pytest.raises(ValueError, match=r"figure|report|valid"):
        QualityReport.from_dict(data)


def test_the_checklist_names_every_check_with_advice_where_it_failed() -> None:
    judged = QualityReport.from_figures(replace(GOOD, snr_db=12.3, clipping_ratio=0.2))
    items = checklist(judged)
    assert [item.code for item in items] == [code.value for code in FindingCode]
    by_code = {item.code: item for item in items}
    noisy, clipped, loudness = by_code["noisy"], by_code["clipped"], by_code["quiet"]
    assert (noisy.state, str(noisy.measured)) == ("warning", "12 dB above the background")
    assert str(noisy.advice).startswith("Record in a quiet room")
    assert (clipped.state, str(clipped.measured)) == ("rejected", "20.0 % overdriven")
    assert (loudness.state, str(loudness.advice), str(loudness.measured)) == ("passed", "", "-22 dBFS")
    assert str(loudness.message) == "The voice is loud enough."
    assert str(verdict_text(judged)) == "This recording cannot be used. Please record again."


def test_every_finding_and_verdict_has_words_that_fill_in() -> None:
    assert set(FINDING_TEXTS) == set(FindingCode)
    assert set(VERDICT_TEXTS) == set(Verdict)
    with translation.override("en"):
        for text in FINDING_TEXTS.values():
            for part in (text.title, text.good, text.bad, text.advice):
                assert str(part)
                assert "{" not in str(part)


def test_findings_can_be_compared() -> None:
    assert Finding(FindingCode.NOISY, Severity.WARNING) == Finding(FindingCode("noisy"), Severity("warning"))
