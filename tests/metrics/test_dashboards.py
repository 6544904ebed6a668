"""The dashboard and the alerts ask only for metrics that there are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from portal.metrics.exposition import pool_registry

FOLDER = Path(__file__).resolve().parent.parent.parent / "deploy" / "grafana"
NAME = re.compile(r"\bvoicepool_\w+")


def expressions() -> list[str]:
    dashboard = json.loads((FOLDER / "voicepool.json").read_text(encoding="utf-8"))
    alerts = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]] + [
        rule["expr"] for group in alerts["groups"] for rule in group["rules"]
    ]


@pytest.mark.django_db
def test_every_metric_that_is_asked_for_exists() -> None:
    families = {family.name: family.type for family in pool_registry().collect()}
    known = set()
    for name, kind in families.items():
        known |= {
            "counter": {f"{name}_total"},
            "histogram": {f"{name}_bucket", f"{name}_sum", f"{name}_count"},
        }.get(kind, {name})
    asked = {name for expression in expressions() for name in NAME.findall(expression)}
    assert len(asked) > 15
    assert asked - known == set()


def test_every_panel_and_every_alert_is_named_once() -> None:
    dashboard = json.loads((FOLDER / "voicepool.json").read_text(encoding="utf-8"))
    alerts = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))
    titles = [panel["title"] for panel in dashboard["panels"]]
    names = [rule["alert"] for group in alerts["groups"] for rule in group["rules"]]
    assert len(set(titles)) == len(titles) > 10
    assert len(set(names)) == len(names) > 5
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(titles)
