"""The metrics in Prometheus' form: read from the database at each scrape, the same from whichever process answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from portal.logs import writer
from portal.logs.totals import Labels
from portal.metrics import counting
from portal.metrics.gauges import devices_by_state, open_holds, queue_gauges, ready_device_ids
from tts.models import Device
from tts.states import JobClass

PREFIX = "voicepool_"
MS_PER_S = 1000
MICROS_PER_UNIT = 1_000_000


class PoolCollector(Collector):
    """Everything at one moment; a fixed number of queries."""

    def collect(self) -> Iterator[Metric]:
        yield from _queues()
        yield from _devices()
        totals = counting.totals_now()
        yield from _outcomes(totals)
        for measure, text in (
            ("wait", "From the submission of a job to its start."),
            ("first_audio", "From the submission of a job to its first audio."),
            ("duration", "From the submission of a job to its end, of jobs that succeeded."),
        ):
            yield _job_histogram(f"job_{measure}_seconds", text, measure, totals)
        yield from _http(totals)
        yield from _holds()


def pool_registry() -> CollectorRegistry:
    """A registry with nothing but the pool's metrics: the numbers of one process would say little of many."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(PoolCollector())
    return registry


def _queues() -> Iterator[Metric]:
    queued = GaugeMetricFamily(PREFIX + "queue_segments", "Segments that wait.", labels=["job_class"])
    work = GaugeMetricFamily(
        PREFIX + "queue_device_seconds",
        "Device time that waiting segments need, about.",
        labels=["job_class"],
    )
    oldest = GaugeMetricFamily(
        PREFIX + "queue_oldest_wait_seconds",
        "How long the oldest waiting segment has waited.",
        labels=["job_class"],
    )
    running = GaugeMetricFamily(
        PREFIX + "segments_in_hand", "Segments that devices have in hand.", labels=["job_class"]
    )
    for gauge in queue_gauges():
        queued.add_metric([gauge.job_class], gauge.queued)
        work.add_metric([gauge.job_class], gauge.queued_gpu_ms / MS_PER_S)
        oldest.add_metric([gauge.job_class], gauge.oldest_wait_s)
        running.add_metric([gauge.job_class], gauge.running)
    yield from (queued, work, oldest, running)


def _devices() -> Iterator[Metric]:
    states = GaugeMetricFamily(PREFIX + "devices", "Devices in each state.", labels=["state"])
    for state, count in devices_by_state().items():
        states.add_metric([state], count)
    yield states
    labels = ["device", "node"]
    ready = GaugeMetricFamily(PREFIX + "device_ready", "1: it takes work.", labels=labels)
    figures = {
        "memory_used_bytes": (
            GaugeMetricFamily(PREFIX + "device_memory_used_bytes", "Memory in use.", labels=labels),
            1,
        ),
        "memory_total_bytes": (
            GaugeMetricFamily(PREFIX + "device_memory_total_bytes", "Memory in all.", labels=labels),
            1,
        ),
        "utilisation_percent": (
            GaugeMetricFamily(PREFIX + "device_utilisation_ratio", "0 to 1.", labels=labels),
            100,
        ),
        "temperature_c": (
            GaugeMetricFamily(PREFIX + "device_temperature_celsius", "Temperature.", labels=labels),
            1,
        ),
        "power_mw": (GaugeMetricFamily(PREFIX + "device_power_watts", "Power drawn.", labels=labels), 1000),
    }
    restarts = CounterMetricFamily(PREFIX + "device_restarts", "Restarts of its workers.", labels=labels)
    recycles = CounterMetricFamily(PREFIX + "device_recycles", "Engines replaced on purpose.", labels=labels)
    ready_ids = ready_device_ids()
    for device in Device.objects.order_by("name"):
        names = [device.name, device.node_name]
        ready.add_metric(names, int(device.pk in ready_ids))
        restarts.add_metric(names, device.restarts)
        recycles.add_metric(names, device.recycles)
        for field, (family, divisor) in figures.items():
            value = getattr(device, field)
            # What a device does not tell is no zero.
            if value is not None:
                family.add_metric(names, value / divisor)
    yield from (ready, restarts, recycles)
    yield from (family for family, _ in figures.values())


def _outcomes(totals: Mapping[str, Mapping[Labels, int]]) -> Iterator[Metric]:
    for family, name, text, labels, divisor in (
        (counting.ATTEMPTS, "attempts", "Attempts that ended.", ("result", "code"), 1),
        (
            counting.DEVICE_MS,
            "device_seconds",
            "Time of devices by what came of it.",
            ("device", "outcome"),
            MS_PER_S,
        ),
        (counting.JOBS, "jobs", "Jobs that ended.", ("job_class", "state"), 1),
    ):
        metric = CounterMetricFamily(PREFIX + name, text, labels=labels)
        for found, value in sorted(totals.get(family, {}).items()):
            values = dict(found)
            metric.add_metric([values[label] for label in labels], value / divisor)
        yield metric


def _seconds(bound_ms: str) -> str:
    return bound_ms if bound_ms == "+Inf" else str(int(bound_ms) / MS_PER_S)


def _buckets(counts: Mapping[str, int], bounds_ms: tuple[int, ...]) -> list[tuple[str, float]]:
    """Cumulative buckets, as Prometheus wants them, from the count of each."""
    total = 0
    found: list[tuple[str, float]] = []
    for bound in (*map(str, bounds_ms), "+Inf"):
        total += counts.get(bound, 0)
        found.append((_seconds(bound), total))
    return found


def _job_histogram(
    name: str, text: str, measure: str, totals: Mapping[str, Mapping[Labels, int]]
) -> HistogramMetricFamily:
    histogram = HistogramMetricFamily(PREFIX + name, text, labels=["job_class"])
    for job_class in JobClass:
        counts = {
            dict(labels)["le"]: value
            for labels, value in totals.get(f"{measure}_bucket", {}).items()
            if dict(labels)["job_class"] == job_class.value
        }
        total_ms = totals.get(f"{measure}_ms", {}).get((("job_class", job_class.value),), 0)
        histogram.add_metric(
            [job_class.value], _buckets(counts, counting.BOUNDS_MS), sum_value=total_ms / MS_PER_S
        )
    return histogram


def _http(totals: Mapping[str, Mapping[Labels, int]]) -> Iterator[Metric]:
    labels = ("route", "method", "status")
    requests = CounterMetricFamily(PREFIX + "http_requests", "Answered requests.", labels=labels)
    for found, value in sorted(totals.get(writer.REQUESTS, {}).items()):
        values = dict(found)
        requests.add_metric([values[label] for label in labels], value)
    yield requests
    histogram = HistogramMetricFamily(
        PREFIX + "http_request_duration_seconds",
        "Until the answer was complete; of a stream, until it was closed.",
        labels=["route", "method"],
    )
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for found, value in totals.get(writer.DURATION_BUCKETS, {}).items():
        values = dict(found)
        counts.setdefault((values["route"], values["method"]), {})[values["le"]] = value
    sums = {
        (dict(found)["route"], dict(found)["method"]): value
        for found, value in totals.get(writer.DURATION_MS, {}).items()
    }
    for (route, method), by_bound in sorted(counts.items()):
        histogram.add_metric(
            [route, method],
            _buckets(by_bound, writer.DURATION_BOUNDS_MS),
            sum_value=sums.get((route, method), 0) / MS_PER_S,
        )
    yield histogram
    dropped = totals.get(writer.DROPPED, {}).get((), 0)
    yield CounterMetricFamily(
        PREFIX + "request_log_dropped", "Lines of the request log that were dropped.", value=dropped
    )


def _holds() -> Iterator[Metric]:
    count, amount_micros = open_holds()
    yield GaugeMetricFamily(PREFIX + "holds_open", "Holds that are open.", value=count)
    yield GaugeMetricFamily(
        PREFIX + "holds_open_amount",
        "Money in open holds, in units of the currency.",
        value=amount_micros / MICROS_PER_UNIT,
    )
