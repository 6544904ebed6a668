"""The quality report in words: a checklist of everything that was looked at, for the page and the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from tts.audio.limits import BEST_CLIP_SECONDS
from tts.audio.quality import FindingCode, QualityReport, Severity, Verdict

_BEST: Final = {"best_from": BEST_CLIP_SECONDS[0], "best_to": BEST_CLIP_SECONDS[1]}


def _text(message: Any, **params: object) -> Any:
    """A lazy text with its places filled in."""
    return format_lazy(message, **params)


@dataclass(frozen=True)
class FindingText:
    """What was looked at, how it is called when all is well, and when not, with what to do then."""

    title: str | Promise
    good: str | Promise
    bad: str | Promise
    advice: str | Promise


FINDING_TEXTS: Final[dict[FindingCode, FindingText]] = {
    FindingCode.LITTLE_SPEECH: FindingText(
        title=_("Amount of speech"),
        good=_("There is enough speech to copy a voice from."),
        bad=_("There is little speech in the clip."),
        advice=_text(
            _("Record {best_from} to {best_to} seconds of continuous speech: one or two whole sentences."),
            **_BEST,
        ),
    ),
    FindingCode.NOISY: FindingText(
        title=_("Background noise"),
        good=_("The voice stands well above the background."),
        bad=_("The background is loud compared with the voice, and the cloned voice would copy it."),
        advice=_(
            "Record in a quiet room without music, close the windows, and come nearer to the microphone."
        ),
    ),
    FindingCode.CLIPPED: FindingText(
        title=_("Distortion"),
        good=_("The recording is not overdriven."),
        bad=_("The recording is overdriven: loud syllables are cut off and crackle."),
        advice=_("Lower the input level of the microphone, or speak from a little further away."),
    ),
    FindingCode.QUIET: FindingText(
        title=_("Loudness"),
        good=_("The voice is loud enough."),
        bad=_("The voice is very quiet."),
        advice=_("Raise the input level of the microphone, or come nearer to it: a hand's width is right."),
    ),
    FindingCode.NARROW_BAND: FindingText(
        title=_("Clarity"),
        good=_("The high sounds of speech are there."),
        bad=_(
            "The high sounds are missing, as on a telephone line, and the cloned voice will sound muffled."
        ),
        advice=_(
            "Record with a computer or an app that records at 24 kHz or more, not from a phone call or a "
            "headset on Bluetooth."
        ),
    ),
    FindingCode.MOSTLY_SILENCE: FindingText(
        title=_("Pauses"),
        good=_("Most of the clip is speech."),
        bad=_("More than half of the clip is without speech."),
        advice=_("Cut the pauses away, or read a text without stopping."),
    ),
    FindingCode.LONG_LEADING_SILENCE: FindingText(
        title=_("Beginning"),
        good=_("The speech begins at once."),
        bad=_("The clip begins with a long pause, and spoken sentences may begin with one too."),
        advice=_("Cut the beginning so that the first word comes within half a second."),
    ),
    FindingCode.MULTI_CHANNEL: FindingText(
        title=_("Channels"),
        good=_("All channels hold the same sound."),
        bad=_("The channels of the clip differ. Only the one with the clearest speech is used."),
        advice=_("Listen to the clip: if this is not the voice that you want, upload it as mono."),
    ),
    FindingCode.DAMAGED: FindingText(
        title=_("File"),
        good=_("The file could be read completely."),
        bad=_("Parts of the file could not be read and are missing from the clip."),
        advice=_("Export or copy the recording again, and listen to the clip before you use it."),
    ),
}

VERDICT_TEXTS: Final[dict[Verdict, str | Promise]] = {
    Verdict.PASS: _("This is a good recording."),
    Verdict.WARNINGS: _("This recording can be used, but a better one would give a better voice."),
    Verdict.REJECTED: _("This recording cannot be used. Please record again."),
}


@dataclass(frozen=True)
class CheckItem:
    """One line of the checklist.

    `state` is `passed`, `notice`, `warning` or `rejected`; `measured` is the figure with its unit, empty
    where there is none; `advice` is empty for what passed.
    """

    code: str
    state: str
    title: str | Promise
    message: str | Promise
    advice: str | Promise
    measured: str | Promise


def verdict_text(report: QualityReport) -> str | Promise:
    """One sentence that says what the verdict means for the customer."""
    return VERDICT_TEXTS[report.verdict]


def checklist(report: QualityReport) -> list[CheckItem]:
    """Return every check in page order, passed ones included. The texts are lazily translated."""
    severities: dict[FindingCode, Severity] = {finding.code: finding.severity for finding in report.findings}
    measured = _measured(report)
    items = []
    for code, text in FINDING_TEXTS.items():
        severity = severities.get(code)
        items.append(
            CheckItem(
                code=code.value,
                state=severity.value if severity else "passed",
                title=text.title,
                message=text.bad if severity else text.good,
                advice=text.advice if severity else "",
                measured=measured.get(code, ""),
            )
        )
    return items


def _measured(report: QualityReport) -> dict[FindingCode, str | Promise]:
    return {
        FindingCode.LITTLE_SPEECH: _text(_("{seconds} s of speech"), seconds=f"{report.speech_s:.1f}"),
        FindingCode.NOISY: _text(_("{decibels} dB above the background"), decibels=f"{report.snr_db:.0f}"),
        FindingCode.CLIPPED: _text(_("{percent} % overdriven"), percent=f"{100 * report.clipping_ratio:.1f}"),
        FindingCode.QUIET: _text(_("{decibels} dBFS"), decibels=f"{report.rms_dbfs:.0f}"),
        FindingCode.NARROW_BAND: _text(
            _("up to {kilohertz} kHz"), kilohertz=f"{report.bandwidth_hz / 1000:.1f}"
        ),
        FindingCode.MOSTLY_SILENCE: _text(
            _("{percent} % pauses"), percent=f"{100 * report.silence_ratio:.0f}"
        ),
        FindingCode.LONG_LEADING_SILENCE: _text(
            _("begins after {seconds} s"), seconds=f"{report.leading_silence_s:.1f}"
        ),
        FindingCode.MULTI_CHANNEL: _text(_("channels: {count}"), count=report.channel_count),
    }
