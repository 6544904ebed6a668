"""Heads of tables."""

from __future__ import annotations

from dataclasses import dataclass

from django import template
from django.utils.functional import Promise

register = template.Library()


@dataclass(frozen=True)
class Head:
    """The head of one column of a table."""

    label: str | Promise
    is_number: bool = False
    is_unseen: bool = False


@register.inclusion_tag("partials/table_head.html")
def table_head(*labels: str, numbers: str = "", unseen: str = "") -> dict[str, list[Head]]:
    """A table's head of one row. Columns are counted from 1: `{% table_head _("Time") _("Amount") numbers="2" %}`."""
    is_number, is_unseen = numbers.split(), unseen.split()
    return {
        "heads": [
            Head(label, is_number=str(place) in is_number, is_unseen=str(place) in is_unseen)
            for place, label in enumerate(labels, 1)
        ]
    }
