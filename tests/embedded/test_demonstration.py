"""`make run` does the product's main job once by itself: clone, speak twice, write, and show what it cost."""

from __future__ import annotations

import array
import json
import wave
from pathlib import Path

import psycopg
import pytest

from portal.embedded.console import DEMONSTRATION_EMAIL
from tests.embedded.stack import Stack, environment_for_stack

pytestmark = pytest.mark.slow
SPOKEN_TIMEOUT_S = 300.0
PRICE_MICROS_PER_GPU_SECOND = 12_000  # billing.services.prices: the first price, interactive


def samples_of(path: Path) -> tuple[list[int], float]:
    """The samples and the length in seconds of a mono 16-bit WAV file."""
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24000)
        samples = array.array("h", file.readframes(file.getnframes()))
    return list(samples), len(samples) / 24000


def test_the_first_start_demonstrates_once_what_the_product_does(closed_folder, wait_until):
    # A busy machine may need longer than the watchdog of a device in production allows.
    environment = environment_for_stack(VOICEPOOL_CPU_ENGINE="kokoro", VOICEPOOL_NO_PROGRESS_S="120")
    stack = Stack(closed_folder / "data", environment=environment, arguments=())
    try:
        stack.wait_until_ready()
        marker = stack.folder.demonstration_marker
        wait_until(
            lambda: marker.exists() or "did not succeed" in stack.output,
            timeout_s=SPOKEN_TIMEOUT_S,
            what="the end of the demonstration",
        )
        assert "did not succeed" not in stack.output, stack.output
        receipts = json.loads(marker.read_text())
        assert list(receipts) == ["zh", "en"]
        for language, receipt in receipts.items():
            samples, seconds = samples_of(stack.folder.demonstration / f"{language}.wav")
            assert 3.0 < seconds < 15.0
            assert max(map(abs, samples)) > 3000
            assert abs(seconds * 1000 - receipt["audio_ms"]) < 500
            expected = (receipt["gpu_ms"] * PRICE_MICROS_PER_GPU_SECOND + 500) // 1000
            # Never more than was held: a busy machine may speak slower than any estimate.
            assert receipt["charged"]["amount_micros"] == min(expected, receipt["held"]["amount_micros"])
            assert (
                f"{receipt['characters']} characters, {receipt['audio_ms'] / 1000:.1f} s of audio, "
                f"{receipt['gpu_ms']} GPU milliseconds, {receipt['charged']['amount']} CNY"
            ) in stack.output
        charged = sum(receipt["charged"]["amount_micros"] for receipt in receipts.values())
        with psycopg.connect(stack.database_url()) as connection:
            row = connection.execute(
                "SELECT available_micros, held_micros FROM billing_creditaccount JOIN accounts_membership USING"
                " (workspace_id) JOIN accounts_user ON accounts_user.id = user_id WHERE email = %s",
                [DEMONSTRATION_EMAIL],
            ).fetchone()
        assert row == (300 * PRICE_MICROS_PER_GPU_SECOND - charged, 0)
        assert stack.interrupt() == 0
    finally:
        stack.close()

    again = Stack(closed_folder / "data", environment=environment_for_stack(), arguments=())
    try:
        again.wait_until_ready()
        # Idle now, not about to begin: its children are those that stay.
        assert not (again.folder.run / "processes" / "demonstration.json").exists()
        assert again.interrupt() == 0
        assert "Demonstration" not in again.output
    finally:
        again.close()
