"""The quality report as the API answers it: the figures, and the checklist in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tts.audio.findings import checklist, verdict_text
from tts.audio.quality import QualityFigures, QualityReport


def report_as_json(report: QualityReport) -> dict[str, Any]:
    """Plain JSON values; the words are in the language that is active now."""
    return {
        "verdict": report.verdict.value,
        "message": str(verdict_text(report)),
        **{item.name: getattr(report, item.name) for item in fields(QualityFigures)},
        "checks": [
            {
                "code": item.code,
                "state": item.state,
                "title": str(item.title),
                "message": str(item.message),
                "advice": str(item.advice),
                "measured": str(item.measured),
            }
            for item in checklist(report)
        ],
    }


def stored_report(stored: Mapping[str, Any] | None) -> QualityReport | None:
    """The report that a voice keeps, as it was judged then; None where there is none that can be read."""
    if not stored:
        return None
    try:
        return QualityReport.from_dict(stored)
    except ValueError:
        return None
