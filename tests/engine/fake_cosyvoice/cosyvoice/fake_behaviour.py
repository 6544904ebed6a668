"""What the double is to do wrong, and how often.

A list of objects in `fake_behaviour.json` in the folder of the model, or put into `model.behaviour.planned` in the same
process: `{"do": NAME, "times": N, …}`. The first that has times left is done by the next call of the model; no `times`
is always. Names:

- llm_error: the model's thread breaks after `after` tokens; with `memory` as torch does when there is none left
- never_stop: no stop token until the model's own limit · no_tokens: the stop token comes first
- stop_early: after `after` tokens · nan, silent: of the audio · slow: `seconds` for each token
- other_speaker: a voice that has little of the reference's
- wedge: the thread makes no token and does not end · flow_error: the second half of the model breaks
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = "fake_behaviour.json"
ORDERLY: dict[str, Any] = {"do": ""}


class Behaviour:
    current: dict[str, Any] = ORDERLY

    def __init__(self, model_dir: str) -> None:
        file = Path(model_dir) / FILE
        self.planned: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []

    def next(self) -> dict[str, Any]:
        """What this call does."""
        for entry in self.planned:
            if entry.get("times", 1) > 0:
                if "times" in entry:
                    entry["times"] -= 1
                return entry
        return ORDERLY
