"""The quality report of a clip: its figures, and what follows from them.

Figures are measured in the decoding child (`measure.py`); this module only draws conclusions, so that a
report read back from the database and one that was just made are judged by the same rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Final

# -- Thresholds ----------------------------------------------------------------------------------------------

# A cloned voice copies the noise it hears. From about 20 dB on, noise is heard only in pauses; below 8 dB it
# covers the consonants.
WARN_SNR_DB: Final = 18.0
REJECT_SNR_DB: Final = 8.0

# One sample in a thousand at full scale is a few clipped vowels; three in a hundred is distortion throughout.
WARN_CLIPPING_RATIO: Final = 0.001
REJECT_CLIPPING_RATIO: Final = 0.03

# Telephone lines end at 3.4 kHz, files sampled at 8 kHz at 4 kHz; a voice copied from one sounds like one.
# Wideband telephony (7 kHz) is enough.
WARN_BANDWIDTH_HZ: Final = 5_000

# A clip of 3 s holds about 2.7 s of speech. Under 2.5 s there is little to copy; under 1.5 s, no sentence.
WARN_SPEECH_SECONDS: Final = 2.5
REJECT_SPEECH_SECONDS: Final = 1.5

# Pauses between sentences take a fifth to a third of natural speech. Above half, the recording is mostly
# empty.
WARN_SILENCE_RATIO: Final = 0.5

# Close speech is recorded at -30 to -15 dBFS; at -42 the noise of the sound card is no longer far below.
WARN_QUIET_DBFS: Final = -42.0

# CosyVoice has answered prompts that begin with a long pause by beginning with one itself.
NOTICE_LEADING_SILENCE_SECONDS: Final = 1.0

REPORT_VERSION: Final = 1


class Verdict(StrEnum):
    """What may be done with the clip: use it, use it knowing its faults, or record it again."""

    PASS = "pass"  # noqa: S105  # a verdict, no password
    WARNINGS = "warnings"
    REJECTED = "rejected"


class Severity(StrEnum):
    """How much a finding matters. A notice does not change the verdict."""

    NOTICE = "notice"
    WARNING = "warning"
    REJECTED = "rejected"


class FindingCode(StrEnum):
    """What can be wrong with a clip, in the order in which the page lists it."""

    LITTLE_SPEECH = "little_speech"
    NOISY = "noisy"
    CLIPPED = "clipped"
    QUIET = "quiet"
    NARROW_BAND = "narrow_band"
    MOSTLY_SILENCE = "mostly_silence"
    LONG_LEADING_SILENCE = "long_leading_silence"
    MULTI_CHANNEL = "multi_channel"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class Finding:
    code: FindingCode
    severity: Severity


@dataclass(frozen=True)
class QualityFigures:
    """What was measured in the decoded samples; the file's header is never asked.

    `snr_db` compares speech with what is heard between it, from -10 to 60. `clipping_ratio` is the share of
    samples at full scale and `silence_ratio` the share of time without speech, both from 0 to 1.
    `bandwidth_hz` is the highest frequency that carries speech, at most 12,000. `rms_dbfs` is the level of
    the speech as it was recorded. `channels_differ`: the channels carry different sound and only the
    strongest was kept. `damaged`: parts of the file could not be decoded.
    """

    duration_s: float
    speech_s: float
    snr_db: float
    clipping_ratio: float
    silence_ratio: float
    bandwidth_hz: int
    channel_count: int
    source_sample_rate_hz: int
    rms_dbfs: float
    leading_silence_s: float
    channels_differ: bool
    damaged: bool

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> QualityFigures:
        """Read figures back from JSON; further keys are ignored.

        Raises:
            ValueError: a figure is missing, of another kind, or not a finite number.
        """
        values: dict[str, Any] = {}
        for item in fields(cls):
            kind = _KINDS[str(item.type)]
            value = data.get(item.name)
            if kind is float and type(value) is int:
                value = float(value)
            if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
                raise ValueError(f"quality figure {item.name} is missing or no {kind.__name__}")
            values[item.name] = value
        return cls(**values)


_KINDS: Final[dict[str, type]] = {"float": float, "int": int, "bool": bool}


@dataclass(frozen=True)
class QualityReport(QualityFigures):
    """The figures of a clip with the verdict and the findings behind it, gravest first within page order."""

    verdict: Verdict
    findings: tuple[Finding, ...]

    @classmethod
    def from_figures(cls, figures: QualityFigures) -> QualityReport:
        """Judge the figures by the thresholds above."""
        findings = tuple(_findings(figures))
        return cls(**asdict(figures), verdict=_verdict(findings), findings=findings)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values, for a database column or an API answer."""
        return {
            "version": REPORT_VERSION,
            **{item.name: getattr(self, item.name) for item in fields(QualityFigures)},
            "verdict": self.verdict.value,
            "findings": [
                {"code": finding.code.value, "severity": finding.severity.value} for finding in self.findings
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> QualityReport:
        """Read a stored report back as it was judged when it was made.

        Raises:
            ValueError: it was not written by `as_dict`.
        """
        try:
            findings = tuple(
                Finding(code=FindingCode(item["code"]), severity=Severity(item["severity"]))
                for item in data["findings"]
            )
            verdict = Verdict(data["verdict"])
        except (KeyError, TypeError) as error:
            raise ValueError("this is no quality report") from error
        return cls(**asdict(QualityFigures.from_dict(data)), verdict=verdict, findings=findings)


def _findings(figures: QualityFigures) -> list[Finding]:
    grades = {
        FindingCode.LITTLE_SPEECH: _low(figures.speech_s, WARN_SPEECH_SECONDS, REJECT_SPEECH_SECONDS),
        FindingCode.NOISY: _low(figures.snr_db, WARN_SNR_DB, REJECT_SNR_DB),
        FindingCode.CLIPPED: _high(figures.clipping_ratio, WARN_CLIPPING_RATIO, REJECT_CLIPPING_RATIO),
        FindingCode.QUIET: _low(figures.rms_dbfs, WARN_QUIET_DBFS),
        FindingCode.NARROW_BAND: _low(figures.bandwidth_hz, WARN_BANDWIDTH_HZ),
        FindingCode.MOSTLY_SILENCE: _high(figures.silence_ratio, WARN_SILENCE_RATIO),
        FindingCode.LONG_LEADING_SILENCE: (
            Severity.NOTICE if figures.leading_silence_s > NOTICE_LEADING_SILENCE_SECONDS else None
        ),
        FindingCode.MULTI_CHANNEL: Severity.NOTICE if figures.channels_differ else None,
        FindingCode.DAMAGED: Severity.WARNING if figures.damaged else None,
    }
    return [Finding(code=code, severity=severity) for code, severity in grades.items() if severity]


def _low(value: float, warn_below: float, reject_below: float = -math.inf) -> Severity | None:
    if value < reject_below:
        return Severity.REJECTED
    return Severity.WARNING if value < warn_below else None


def _high(value: float, warn_above: float, reject_above: float = math.inf) -> Severity | None:
    if value > reject_above:
        return Severity.REJECTED
    return Severity.WARNING if value > warn_above else None


def _verdict(findings: tuple[Finding, ...]) -> Verdict:
    severities = {finding.severity for finding in findings}
    if Severity.REJECTED in severities:
        return Verdict.REJECTED
    return Verdict.WARNINGS if Severity.WARNING in severities else Verdict.PASS
