"""Pages as those who do not look at them find them."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def serious_findings(page: Page) -> list[str]:
    """What axe-core calls serious or critical, as `rule: target`."""
    results = Axe().run(page)
    return [
        f"{violation['id']}: {node['target']}"
        for violation in results.response["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
