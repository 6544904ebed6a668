"""The overview: all that its page shows, and the one line that says whether all is well."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from portal.charts import Chart
from portal.console.history import History, read_history
from portal.console.money_page import open_difference_count
from portal.console.overview_charts import overview_charts
from portal.console.revenue import revenue_today
from portal.console.selectors import (
    DeviceRow,
    FailureRow,
    QueueRow,
    device_rows,
    live_attempts,
    queue_rows,
)
from portal.lib.clock import database_now
from portal.lib.display import wait_text
from tts.states import DeviceState, JobClass

# Nobody who presses a button and listens should wait longer than this for a device.
INTERACTIVE_WAIT_LIMIT_MS = 30_000
# The sweep takes back what no worker claimed after three seconds: what is older shows that it does not run.
UNCLAIMED_LIMIT_MS = 10_000
# The platform's own failures among the attempts of the last hour; fewer than this happen to a healthy pool.
FAILED_ATTEMPTS_LIMIT = 5


@dataclass(frozen=True)
class Problem:
    """What is wrong, in a sentence, and the address of the page that shows the cause."""

    text: str
    address: str


@dataclass(frozen=True)
class Overview:
    """The overview's contents at the moment `fresh_at`, by the database's clock."""

    fresh_at: datetime
    problems: list[Problem]
    devices: list[DeviceRow]
    queues: list[QueueRow]
    history: History
    charts: list[Chart]
    revenue_today_micros: int

    @property
    def ready_count(self) -> int:
        return sum(device.takes_work for device in self.devices)

    @property
    def busy_slot_count(self) -> int:
        return sum(slot.work is not None for device in self.devices for slot in device.slots)

    @property
    def slot_count(self) -> int:
        return sum(len(device.slots) for device in self.devices)

    @property
    def queued_segment_count(self) -> int:
        return sum(queue.queued_segments for queue in self.queues)


def read_overview() -> Overview:
    """Everything at one moment. The number of queries does not depend on how much there is."""
    now = database_now()
    attempts = live_attempts()
    devices = device_rows(attempts=attempts, now=now)
    queues = queue_rows(attempts=attempts, now=now)
    history = read_history(now=now)
    return Overview(
        fresh_at=now,
        problems=[
            *problems_of(devices=devices, queues=queues, failures=history.failures),
            *_money_problems(),
        ],
        devices=devices,
        queues=queues,
        history=history,
        charts=overview_charts(now=now),
        revenue_today_micros=revenue_today(now=now).net_micros,
    )


def problems_of(
    *, devices: list[DeviceRow], queues: list[QueueRow], failures: list[FailureRow]
) -> list[Problem]:
    """What is wrong, in sentences, the worst first; empty when all is well."""
    problems = [*_device_problems(devices), *_wire_problems(devices)]
    for queue in queues:
        late = (
            queue.job_class == JobClass.INTERACTIVE
            and (queue.oldest_wait_ms or 0) > INTERACTIVE_WAIT_LIMIT_MS
        )
        if late:
            text = gettext("Interactive work has waited %(time)s for a device.")
            problems.append(
                Problem(text % {"time": wait_text(queue.oldest_wait_ms or 0)}, reverse("console_queue"))
            )
    failed = sum(row.last_hour for row in failures if row.kind == "attempt")
    if failed >= FAILED_ATTEMPTS_LIMIT:
        text = gettext("%(count)d attempts failed in the last hour.") % {"count": failed}
        problems.append(Problem(text, f"{reverse('console_log')}?kind=attempts&outcome=failed"))
    return problems


def _money_problems() -> list[Problem]:
    """What the nightly reconciliation found and nobody has explained."""
    differences = open_difference_count()
    if not differences:
        return []
    text = ngettext(
        "The books differ in %(count)d place, and nobody has explained it.",
        "The books differ in %(count)d places, and nobody has explained them.",
        differences,
    )
    return [Problem(text % {"count": differences}, f"{reverse('console_money')}#books")]


def _device_problems(devices: list[DeviceRow]) -> list[Problem]:
    texts = []
    if not any(device.takes_work for device in devices):
        texts.append(gettext("No device is ready. Nothing can be spoken."))
    quarantined = sum(device.state == DeviceState.QUARANTINED for device in devices)
    if quarantined:
        texts.append(
            ngettext("%(count)d device is quarantined.", "%(count)d devices are quarantined.", quarantined)
            % {"count": quarantined}
        )
    silent = sum(device.silent for device in devices)
    if silent:
        texts.append(
            ngettext("%(count)d device sends no heartbeat.", "%(count)d devices send no heartbeat.", silent)
            % {"count": silent}
        )
    return [Problem(text, reverse("console_devices")) for text in texts]


def _wire_problems(devices: list[DeviceRow]) -> list[Problem]:
    slots = [slot for device in devices for slot in device.slots]
    texts = []
    if any(slot.wire_length is None for slot in slots):
        texts.append(gettext("Redis does not answer. Work goes on when it is back; nothing is lost."))
    if any((slot.unclaimed_ms or 0) > UNCLAIMED_LIMIT_MS for slot in slots):
        texts.append(gettext("An attempt waits for its worker and is not taken back. Is the clock running?"))
    return [Problem(text, f"{reverse('console_queue')}#wire") for text in texts]
