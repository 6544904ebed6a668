"""Finding jobs, log lines and acts by what an operator was told; files that are harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
import uuid
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import ApiKey, User
from accounts.services.audit import record_act
from portal.console.job_search import JobSearchForm, find_jobs
from portal.console.log_search import ConsoleLogForm, attempts_for_operators
from portal.console.queue_page import read_queue
from portal.lib.clock import database_now
from portal.lib.queues import redis_connection
from portal.logs.models import RequestLog
from tests.console.rows import ago, attempt, device, job, somebody, workspace
from tests.large_tables import copy_row, rows_read
from tts.models import Attempt, FairShareClass, SynthesisJob
from tts.states import AttemptState, JobClass, JobState, SegmentState

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    redis_connection().flushdb()


@pytest.fixture
def two(db: None) -> tuple[SynthesisJob, SynthesisJob]:
    """A job of alice's that failed on GPU-1, and one of bob's that waits."""
    alice, acme = somebody("alice@example.com"), workspace("Acme")
    key = ApiKey.objects.create(
        workspace=acme, created_by=alice, name="server", prefix="vp_abc", secret_sha256="0" * 64
    )
    first = job(
        created_at=ago(hours=2),
        owner=acme,
        created_by=alice,
        api_key=key,
        client_address="203.0.113.9",
        request_id="request-1",
        state=JobState.FAILED,
        error_code="engine_failed",
        segment_state=SegmentState.FAILED,
    )
    attempt(first, device("GPU-1"), state=AttemptState.FAILED, error_code="gpu_oom", bound_at=ago(hours=2))
    second = job(
        created_at=ago(minutes=5),
        owner=workspace("Bobs"),
        created_by=somebody("bob@example.com"),
        client_address="2001:db8::7",
        request_id="request-2",
        job_class=JobClass.BATCH,
    )
    attempt(second, device("GPU-2"), slot=0, bound_at=ago(minutes=4), started_at=ago(minutes=4))
    return first, second


def found_jobs(client: Client, **query: Any) -> set[str]:
    html = client.get("/console/jobs/", query).content.decode()
    return set(re.findall(r'id="job-([0-9a-f-]{36})"', html))


@pytest.mark.parametrize(
    "query",
    [
        "alice@example.com",
        "ALICE@example",
        "Acme",
        "acm",
        "203.0.113.9",
        "request-1",
        "vp_abc",
        "vp_abc…",
        "engine_failed",
    ],
)
def test_a_job_is_found_by_what_is_known_of_it(
    operator_client: Client, two: tuple[SynthesisJob, SynthesisJob], query: str
) -> None:
    assert found_jobs(operator_client, q=query) == {str(two[0].pk)}


def test_a_job_is_found_by_every_id_that_leads_to_it(
    operator_client: Client, two: tuple[SynthesisJob, SynthesisJob]
) -> None:
    first = two[0]
    tried = Attempt.objects.get(job=first)
    for wanted in (first.pk, tried.pk, first.workspace_id, first.created_by_id):
        assert found_jobs(operator_client, q=f" {wanted} ") == {str(first.pk)}
    assert found_jobs(operator_client, q=str(uuid.uuid4())) == set()


def test_what_was_searched_for_stands_still(operator_client: Client) -> None:
    for address in ("/console/jobs/", "/console/log/"):
        assert "data-console-live" in operator_client.get(address).content.decode()
        assert "data-console-live" not in operator_client.get(address, {"q": "acme"}).content.decode()


@pytest.mark.parametrize("query", ["203.0.113.9", "engine_failed", "Acme", "request-1", "alice@example.com"])
def test_a_search_for_jobs_reads_what_it_finds_alone(
    two: tuple[SynthesisJob, SynthesisJob], query: str
) -> None:
    copy_row(
        two[1], created_at="created_at - number * interval '1 second'", request_id="'request-2-' || number"
    )
    found = find_jobs(JobSearchForm({"q": query}))
    assert rows_read(found)["tts_synthesisjob"] == 1
    assert [job.pk for job in found] == [two[0].pk]


@pytest.mark.parametrize("words", ["nothing-is-called-so", "nobody@example.com"])
def test_words_that_mean_nothing_read_no_jobs_and_no_attempts(db: None, words: str) -> None:
    for find, table in (
        (lambda: find_jobs(JobSearchForm({"q": words})), '"tts_synthesisjob"."text"'),
        (lambda: attempts_for_operators(ConsoleLogForm({"q": words})), '"tts_attempt"."bound_at"'),
    ):
        with CaptureQueriesContext(connection) as queries:
            assert list(find()) == []
        assert not [query for query in queries if table in query["sql"]]


def test_jobs_are_filtered_by_state_class_device_and_time(
    operator_client: Client, two: tuple[SynthesisJob, SynthesisJob]
) -> None:
    first, second = (str(one.pk) for one in two)
    used = Attempt.objects.get(job=two[0]).device_id
    assert found_jobs(operator_client) == {first, second}
    assert found_jobs(operator_client, state="failed") == {first}
    assert found_jobs(operator_client, job_class="batch") == {second}
    assert found_jobs(operator_client, device=used) == {first}
    assert found_jobs(operator_client, since="2026-11-30T11:00") == {second}
    assert found_jobs(operator_client, until="2026-11-30T11:00") == {first}
    assert found_jobs(operator_client, state="failed", job_class="batch") == set()


@pytest.mark.parametrize(
    "query",
    [
        {"state": "nonsense", "device": "999", "since": "yesterday"},
        {"before": "nonsense"},
        {"before": "2026-11-30T11:00:00+00:00,1"},
        {"before": "9999-12-31T23:59:59-12:00,00000000-0000-0000-0000-000000000000"},
        {"q": "x\x00y"},
        {"q": "'; --"},
        {"q": "%"},
    ],
)
@pytest.mark.parametrize(
    "place", ["/console/jobs/", "/console/log/", "/console/log/?kind=requests", "/console/audit/"]
)
def test_nonsense_breaks_no_page(operator_client: Client, place: str, query: dict[str, str]) -> None:
    address, _, fixed = place.partition("?")
    assert (
        operator_client.get(address, {**query, **({"kind": "requests"} if fixed else {})}).status_code == 200
    )


def test_long_lists_go_on_without_gaps_or_repetitions(operator_client: Client) -> None:
    owner = workspace()
    # Many of one moment: their order is by id.
    made = {str(job(created_at=ago(minutes=number // 40), owner=owner).pk) for number in range(120)}
    seen: list[str] = []
    address = "/console/jobs/"
    for _ in range(3):
        html = operator_client.get(address).content.decode()
        seen += re.findall(r'id="job-([0-9a-f-]{36})"', html)
        older = re.search(r'href="([^"]+)">Older', html)
        if older is None:
            break
        assert "hx-select-oob" not in html or address == "/console/jobs/"
        address = "/console/jobs/" + older.group(1).replace("&amp;", "&")
    assert len(seen) == 120
    assert set(seen) == made


def lines(client: Client, **query: Any) -> list[list[str]]:
    answer = client.get("/console/log/", {"format": "csv", **query})
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    text = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    return list(csv.reader(io.StringIO(text)))


def test_attempts_are_exported_with_their_filters(
    operator_client: Client, two: tuple[SynthesisJob, SynthesisJob]
) -> None:
    header, *rows = lines(operator_client, outcome="failed")
    assert len(rows) == 1
    row = dict(zip(header, rows[0], strict=True))
    assert row["user"] == "alice@example.com"
    assert (row["workspace"], row["api_key"], row["address"]) == ("Acme", "vp_abc", "203.0.113.9")
    assert (row["job"], row["characters"], row["mode"]) == (str(two[0].pk), "24", "plain")
    assert (row["device"], row["outcome"], row["error"]) == ("GPU-1", "failed", "gpu_oom")
    assert "What the customer wrote" not in str(rows)
    for query in ("alice@example.com", "Acme", "203.0.113.9", "request-1", "gpu_oom", str(two[0].pk)):
        assert [line[5] for line in lines(operator_client, q=query)[1:]] == [str(two[0].pk)], query


def test_a_workspace_named_like_a_formula_runs_in_no_spreadsheet(operator_client: Client) -> None:
    for name in ('=HYPERLINK("http://evil.example")', "+1", "-1", "@SUM(A1)", "\t=1", "＝1"):
        attempt(job(created_at=ago(minutes=1), owner=workspace(name)), device(name[:5]))
    names = [row[1] for row in lines(operator_client)[1:]]
    assert len(names) == 6
    assert all(name.startswith("'") for name in names)


def note(**fields: Any) -> None:
    RequestLog.objects.create(
        **{
            "created_at": ago(minutes=1),
            "method": "POST",
            "route": "/api/v1/jobs",
            "status": 202,
            "duration_ms": 12,
            "request_id": "request-1",
            **fields,
        }
    )


def test_requests_are_found_by_person_workspace_address_and_id(operator_client: Client) -> None:
    alice, acme = somebody("alice@example.com"), workspace("Acme")
    note(user_id=alice.pk, workspace_id=acme.pk, address="203.0.113.9")
    note(request_id="request-2", status=429, code="queue_full", created_at=ago(minutes=3))
    for query in ("alice@example.com", "Acme", "203.0.113.9", "request-1", str(acme.pk)):
        (row,) = lines(operator_client, kind="requests", q=query)[1:]
        assert row[:4] == ["Acme", "2026-11-30T11:59:00.000+00:00", "alice@example.com", ""]
    (row,) = lines(operator_client, kind="requests", answer="4")[1:]
    assert row[-3:] == ["queue_full", "12", "request-2"]
    html = operator_client.get("/console/log/", {"kind": "requests"}).content.decode()
    assert html.index("request-1") < html.index("request-2")
    assert "queue_full" in html


def test_acts_are_found_by_kind_person_object_and_reason(operator: User, operator_client: Client) -> None:
    for act, name, reason in (
        ("device.drain", "GPU-1", "Its fan is loud"),
        ("device.drain.done", "GPU-1", "Its fan is loud"),
        ("job.refund", "0123abcd", "It stuttered"),
    ):
        record_act(
            actor=operator, act=act, object_kind="device", object_id=1, object_name=name, reason=reason
        )

    def acts(**query: str) -> list[str]:
        html = operator_client.get("/console/audit/", query).content.decode()
        return re.findall(r"<code [^>]+>([a-z_.]+)</code>", html)

    assert acts() == ["job.refund", "device.drain.done", "device.drain"]
    assert acts(act="device") == ["device.drain.done", "device.drain"]
    assert acts(act="job.refund") == ["job.refund"]
    assert acts(q="fan") == ["device.drain.done", "device.drain"]
    assert acts(q="0123abcd") == ["job.refund"]
    assert acts(q="operator@") == ["job.refund", "device.drain.done", "device.drain"]
    assert acts(q="nobody") == []


def test_shares_got_stand_beside_shares_due() -> None:
    now = database_now()
    heavy, light = workspace("Heavy"), workspace("Light")
    heavy.weight = 3
    heavy.save(update_fields=["weight"])
    one = device(heartbeat_at=now)
    for owner, seconds in ((heavy, 30), (light, 10)):
        begun = now - timedelta(minutes=10)
        attempt(
            job(
                created_at=begun, owner=owner, segment_state=SegmentState.SUCCEEDED, state=JobState.SUCCEEDED
            ),
            one,
            state=AttemptState.SUCCEEDED,
            bound_at=begun,
            started_at=begun,
            finished_at=begun + timedelta(seconds=seconds),
        )
        job(created_at=now - timedelta(seconds=9), owner=owner, segments=2)
    job(created_at=now, owner=light, job_class=JobClass.BATCH)
    shown = read_queue(now=now)
    weights = dict(FairShareClass.objects.values_list("job_class", "weight"))
    active = weights["interactive"] + weights["batch"]
    by_class = {share.row.job_class: share for share in shown.classes}
    assert (by_class["interactive"].got_percent, by_class["batch"].got_percent) == (100, 0)
    assert by_class["interactive"].due_percent == pytest.approx(100 * weights["interactive"] / active)
    assert by_class["standard"].due_percent is None
    rows = {(row.workspace_name, row.job_class): row for row in shown.customers}
    assert list(rows) == [("Heavy", "interactive"), ("Light", "interactive"), ("Light", "batch")]
    assert (rows["Heavy", "interactive"].got_percent, rows["Heavy", "interactive"].due_percent) == (75, 75)
    assert (rows["Light", "interactive"].got_percent, rows["Light", "interactive"].due_percent) == (25, 25)
    assert (rows["Light", "interactive"].queued, rows["Light", "interactive"].queued_gpu_ms) == (2, 2_000)
    assert rows["Light", "interactive"].oldest_wait_ms == 9_000
    # Two seconds of work at a quarter of the interactive share of one slot.
    share = 0.25 * weights["interactive"] / active
    assert rows["Light", "interactive"].empty_in_ms == round(2_000 / share)


@pytest.mark.parametrize("words", ["x\x00y", "a" * 201, "no such thing"])
@pytest.mark.parametrize(
    ("place", "rows_id", "said"),
    [
        ("/console/jobs/", "job-rows", "No job is like that."),
        ("/console/log/", "line-rows", "No attempt is like that."),
        ("/console/log/?kind=requests", "line-rows", "No request is like that."),
        ("/console/audit/", "audit-rows", "No act is like that."),
    ],
)
def test_words_that_find_nothing_never_show_everything(
    operator: User,
    operator_client: Client,
    two: tuple[SynthesisJob, SynthesisJob],
    words: str,
    place: str,
    rows_id: str,
    said: str,
) -> None:
    record_act(
        actor=operator, act="job.refund", object_kind="job", object_id=two[0].pk, reason="It stuttered"
    )
    RequestLog.objects.create(
        created_at=ago(minutes=1), method="GET", route="/", status=200, duration_ms=1, request_id="request-3"
    )
    assert said not in operator_client.get(place).content.decode()
    html = operator_client.get(
        f"{place}{'&' if '?' in place else '?'}{urlencode({'q': words})}"
    ).content.decode()
    rows = re.search(rf'<tbody id="{rows_id}">(.*?)</tbody>', html, re.DOTALL)
    assert rows is not None
    assert re.sub(r"<[^>]+>", "", rows[1]).strip() == said
    assert ">Show all</a>" in html


@pytest.mark.parametrize(
    ("language", "shown"),
    [
        ("en", ["Drain: Done", "Job refunded", "State: Done", "Charged: 0.01216", "Refunded: 0.01216"]),
        ("zh-hans", ["排空: 完成", "任务已退款", "扣费: 0.01216", "已退款: 0.01216"]),
    ],
)
def test_acts_and_what_they_changed_are_said_in_words(
    operator: User, operator_client: Client, language: str, shown: list[str]
) -> None:
    record_act(
        actor=operator,
        act="device.drain.done",
        object_kind="device",
        object_id=1,
        reason="Its fan is loud",
        after={"command_id": 3, "result": ""},
    )
    record_act(
        actor=operator,
        act="job.refund",
        object_kind="job",
        object_id=uuid.uuid4(),
        reason="It stuttered",
        before={"charged_micros": 12_160, "state": "succeeded"},
        after={"charged_micros": 0, "refunded_micros": 12_160},
    )
    record_act(actor=operator, act="moon.howl", object_kind="moon", object_id=1, reason="", after={"tide": 2})
    html = operator_client.get("/console/audit/", headers={"Accept-Language": language}).content.decode()
    text = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    for words in [*shown, "moon.howl moon.howl", "tide: 2"]:
        assert words in re.sub(r" :", ":", text), words
