"""Plans in words: what one means, and what a change would change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.models import PlanVersion
from portal.lib.display import bytes_text, count_text, money_exact

# With the setting that is in force where a plan says nothing of its own.
LIMITS: Final[dict[str, tuple[str | Promise, str]]] = {
    "requests_per_minute": (gettext_lazy("Requests a minute"), "REQUESTS_PER_MINUTE"),
    "characters_per_day": (gettext_lazy("Characters in 24 hours"), ""),
    "queued_jobs": (gettext_lazy("Jobs that wait or run at once"), "QUEUED_JOBS_PER_WORKSPACE"),
    "running_segments": (gettext_lazy("Pieces spoken at once"), ""),
    "voices": (gettext_lazy("Cloned voices"), "VOICES_PER_WORKSPACE"),
    "storage_bytes": (gettext_lazy("Storage"), ""),
    "retention_days": (gettext_lazy("Days that audio is kept"), ""),
    "longest_job_characters": (gettext_lazy("Characters of the longest job"), ""),
}


@dataclass(frozen=True)
class PlanFact:
    """One thing that a plan says. `before` is what the plan before says, where the two are compared."""

    label: str | Promise
    value: str
    before: str = ""

    @property
    def changes(self) -> bool:
        return self.before != self.value


def plan_facts(version: PlanVersion) -> list[PlanFact]:
    """Everything that the plan says, in words; limits that it does not have are left out."""
    return [fact for fact in _every_fact(version) if fact.value]


def compared(version: PlanVersion, current: PlanVersion | None) -> list[PlanFact]:
    """The facts of `version` beside those of the plan that it would replace; what neither has is left out."""
    before = [fact.value for fact in _every_fact(current)] if current is not None else []
    return [
        PlanFact(fact.label, fact.value or _("no limit"), before[place] or _("no limit") if before else "–")
        for place, fact in enumerate(_every_fact(version))
        if fact.value or (before and before[place])
    ]


def _every_fact(version: PlanVersion) -> list[PlanFact]:
    facts = [
        PlanFact(_("Monthly fee"), _fee(version)),
        PlanFact(_("Included GPU time a month"), _included(version)),
        PlanFact(_("Share when the pool is full"), _("%(weight)d×") % {"weight": version.fair_share_weight}),
    ]
    return facts + [
        PlanFact(label, _limit(version, name, setting)) for name, (label, setting) in LIMITS.items()
    ]


def _fee(version: PlanVersion) -> str:
    if not version.monthly_fee_micros:
        return _("none")
    return money_exact(version.monthly_fee_micros, version.currency)


def _included(version: PlanVersion) -> str:
    if not version.included_gpu_seconds:
        return _("none")
    return _("%(seconds)s s") % {"seconds": count_text(version.included_gpu_seconds)}


def _limit(version: PlanVersion, name: str, setting: str) -> str:
    own = getattr(version, name)
    if own is None:
        own = settings.VOICEPOOL.get(setting) if setting else None
    if own is None:
        return ""
    return bytes_text(own) if name == "storage_bytes" else count_text(own)
