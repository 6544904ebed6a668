"""Reading a page as its reader does."""

from __future__ import annotations

import re
from typing import Any

# What htmx sends along.
HTMX = {"HX-Request": "true"}


def text_of(response: Any) -> str:
    """The page as a reader sees it: tags gone, white space folded."""
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())
