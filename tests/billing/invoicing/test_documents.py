"""What an invoice looks like on paper and in a spreadsheet."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import uuid
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.test import RequestFactory
from pypdf import PdfReader

from billing.invoice_annex import HEADER, annex_pages, annex_response
from billing.invoice_document import has_chinese_font, invoice_pdf
from billing.models import BillingProfile, CreditAccount, GrantKind, Invoice
from billing.services.credit_notes import credit
from billing.services.refunds import refund_part
from portal.lib.clock import database_now
from tests.billing.invoicing.months import AFTER, LONG_AGO, NOVEMBER, YUAN, closed, money, november
from tests.billing.speech import VOICE_ID, plan, speak, subscribed

ROOT = Path(__file__).resolve().parent.parent.parent.parent
# A font is the host's, no package of ours: without one the document says less, and there is nothing to read.
OF_DEBIAN = "Debian's fonts-noto-cjk is not installed"


def text_of(pdf: bytes) -> str:
    """All words of a document, in their order."""
    return " ".join(" ".join(page.extract_text() for page in PdfReader(io.BytesIO(pdf)).pages).split())


@pytest.fixture
def invoice(customer: uuid.UUID) -> Invoice:
    """Of a fee of 150 yuan, 3.5 yuan of speech and 2 yuan of given credit."""
    BillingProfile.objects.filter(pk=customer).update(
        name="示例科技有限公司", address="上海市黄浦区\n中山路 1 号", tax_number="91310000MA1K"
    )
    money(customer, 2 * YUAN, GrantKind.PROMOTIONAL)
    subscribed(customer, plan(150 * YUAN), LONG_AGO)
    speak(customer, 3_500_001, finished_at=november(3))
    return closed(customer)


@pytest.mark.skipif(not has_chinese_font(), reason=OF_DEBIAN)
def test_the_document_has_number_parties_and_sums(invoice: Invoice) -> None:
    text = text_of(invoice_pdf(invoice, language="en"))
    # 151.500001 yuan net, 9.09 yuan tax; 100 yuan were paid in, of which 1.500001 went for speech.
    for expected in [
        "Invoice",
        "INV2025-000001",
        "VoicePool",
        "示例科技有限公司",
        "中山路 1 号",
        "91310000MA1K",
        "2025-11-01 – 2025-11-30 (UTC)",
        "To be paid by 2025-12-15",
        "2025-11-03 Speech · h200 1.500 CN¥3.500001",
        "Covered by credit given −CN¥2.00",
        "Net CN¥151.500001",
        "Tax at 6 % CN¥9.09",
        "Total CN¥160.590001",
        "Paid from the balance −CN¥100.00",
        "Due CN¥60.590001",
        "To be paid, in whole cents CN¥60.60",
    ]:
        assert expected in text


@pytest.mark.skipif(not has_chinese_font(), reason=OF_DEBIAN)
def test_the_document_speaks_chinese(invoice: Invoice) -> None:
    text = text_of(invoice_pdf(invoice, language="zh-hans"))
    for expected in ["账单", "INV2025-000001", "示例科技有限公司", "月费", "总计 ¥160.590001", "税率 6 %"]:
        assert expected in text
    assert "Total" not in text


def test_a_credit_note_names_what_it_corrects(invoice: Invoice) -> None:
    note = credit(invoice_id=invoice.pk, reason="Wrong plan", idempotency_key="1", amount_micros=53 * YUAN)
    text = text_of(invoice_pdf(note, language="en"))
    for expected in [
        "Credit note",
        f"CN{datetime.now(UTC).year}-000001",
        "Corrects the invoice INV2025-000001",
        "Reason Wrong plan",
        "Net CN¥50.00",
        "Tax at 6 % CN¥3.00",
        "Total CN¥53.00",
    ]:
        assert expected in text


def test_a_name_is_text_and_fetches_nothing(customer: uuid.UUID) -> None:
    name = '<img src="http://[::1]:9/"><style>*{display:none}</style>'
    BillingProfile.objects.filter(pk=customer).update(name=name)
    speak(customer, YUAN, finished_at=november(3))
    text = text_of(invoice_pdf(closed(customer), language="en"))
    # Where a long name breaks depends on the font.
    assert "".join(name.split()) in "".join(text.split())


WITHOUT_CHINESE = """
import sys
import django
django.setup()
from billing.invoice_document import has_chinese_font, render_pdf
from billing.models import Invoice
from datetime import UTC, datetime
language, name = sys.argv[1:]
invoice = Invoice(
    period_start=datetime(2025, 11, 1, tzinfo=UTC), period_end=datetime(2025, 12, 1, tzinfo=UTC), time_zone="UTC",
    currency="CNY", total_micros=1_000_000, series="INV2025", number=7, state="final",
    parties={"buyer": {"name": name, "address": "\u4e0a\u6d77\u5e02 <1>" if name != "Acme" else ""}},
)
assert not has_chinese_font()
sys.stdout.buffer.write(render_pdf(invoice, [], language=language))
"""


def made_without_chinese(folder: Path, language: str, name: str) -> str:
    """The words of a document that is made where the DejaVu fonts are the only ones."""
    fonts = Path("/usr/share/fonts/truetype/dejavu")
    if not fonts.is_dir():
        pytest.skip("the DejaVu fonts are not installed")
    config = folder / "fonts.conf"
    config.write_text(
        f"<fontconfig><dir>{fonts}</dir><cachedir>{folder}/cache</cachedir></fontconfig>", encoding="utf-8"
    )
    made = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_CHINESE, language, name],
        cwd=ROOT,
        env={**os.environ, "FONTCONFIG_FILE": str(config)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert made.returncode == 0, made.stderr.decode()
    return text_of(made.stdout)


def test_without_a_chinese_font_the_document_is_in_english_and_says_so(tmp_path: Path) -> None:
    text = made_without_chinese(tmp_path, "zh-hans", "Acme")
    assert "This server has no Chinese font, so this document is in English. Its operator" in text
    assert "INV2025-000007" in text
    assert "Total CN¥1.00" in text


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_without_a_chinese_font_names_in_chinese_are_spelled_as_they_are_read(
    tmp_path: Path, language: str
) -> None:
    text = made_without_chinese(tmp_path, language, "示例科技（Acme）有限公司")
    assert "Shi Li Ke Ji (Acme) You Xian Gong Si" in text
    assert "Shang Hai Shi <1>" in text
    assert "stands here in Latin letters, as it is read" in text
    assert "fonts-noto-cjk" in text


def test_an_english_document_with_latin_names_lacks_nothing(tmp_path: Path) -> None:
    assert "font" not in made_without_chinese(tmp_path, "en", "Acme")


def called(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
    return dict.fromkeys(ids, "=Voice()")


def rows_of(invoice: Invoice) -> list[dict[str, object]]:
    return [
        dict(zip(HEADER, row, strict=True))
        for page in annex_pages(invoice, voice_names=called)
        for row in page
    ]


def charged(invoice: Invoice) -> int:
    return int(sum(Decimal(str(row["charged"])) for row in rows_of(invoice)) * YUAN)


def test_the_annex_has_a_receipt_for_each_attempt_in_the_workspaces_time(customer: uuid.UUID) -> None:
    CreditAccount.objects.filter(pk=customer).update(time_zone="Asia/Kolkata")
    job_id = speak(customer, 1_234_567, finished_at=datetime(2025, 10, 31, 18, 30, tzinfo=UTC))
    speak(customer, YUAN, finished_at=datetime(2025, 11, 30, 18, 29, 59, tzinfo=UTC))
    invoice = closed(customer)
    first, second = rows_of(invoice)
    assert first["job_id"] == job_id
    assert first["finished_at"] == datetime(2025, 11, 1, tzinfo=ZoneInfo("Asia/Kolkata"))
    assert str(first["finished_at"]) == "2025-11-01 00:00:00+05:30"
    assert (first["day"], second["day"]) == ("2025-11-01", "2025-11-30")
    assert (first["price_per_gpu_second"], first["charged"]) == (Decimal("0.008"), Decimal("1.234567"))
    assert charged(invoice) == invoice.usage_micros == 2_234_567


def test_an_annex_never_changes_and_late_speech_is_in_the_next(customer: uuid.UUID) -> None:
    today = database_now()
    month = date(today.year, today.month, 1)
    job_id = speak(customer, 10 * YUAN, finished_at=today)
    first = closed(customer, month, today + timedelta(days=40))
    assert charged(first) == first.usage_micros == 10 * YUAN
    speak(customer, 3 * YUAN, finished_at=today)
    refund_part(job_id=job_id, amount_micros=4 * YUAN, idempotency_key="1", reason="noise")
    assert charged(first) == 10 * YUAN
    second = closed(customer, month + timedelta(days=32), today + timedelta(days=80))
    assert [(row["kind"], row["charged"]) for row in rows_of(second)] == [
        ("speech", Decimal(3)),
        ("refund", Decimal(-4)),
    ]
    assert charged(second) == second.usage_micros == -1 * YUAN


def test_the_annex_of_many_records_comes_in_pages(customer: uuid.UUID) -> None:
    for number in range(7):
        speak(customer, YUAN, finished_at=november(1 + number % 2))
    invoice = closed(customer, NOVEMBER, AFTER)
    days = [row["day"] for row in rows_of(invoice)]
    assert days == ["2025-11-01"] * 4 + ["2025-11-02"] * 3


def test_the_annex_is_a_file_that_no_spreadsheet_runs(customer: uuid.UUID) -> None:
    speak(customer, YUAN, finished_at=november(3), device_name='=HYPERLINK("http://x"),"\n')
    invoice = closed(customer)
    response = annex_response(RequestFactory().get("/"), invoice, voice_names=called)
    assert response["Content-Disposition"] == 'attachment; filename="INV2025-000001.csv"'
    body = b"".join(response)  # type: ignore[arg-type]
    response.close()
    header, row = csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""))
    assert tuple(header) == HEADER
    values = dict(zip(HEADER, row, strict=True))
    assert values["device"] == '\'=HYPERLINK("http://x"),"\n'
    assert (values["voice_id"], values["voice"]) == (str(VOICE_ID), "'=Voice()")
    assert (values["charged"], values["currency"]) == ("1", "CNY")
    assert body.count(b"\r\n") == 2
