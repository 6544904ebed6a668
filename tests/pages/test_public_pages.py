"""Landing, documentation, error codes, consent and samples: what anybody may read."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

from accounts.consent_statements import STATEMENTS
from billing.models import PriceVersion
from billing.services.prices import ensure_first_price
from portal.error_codes import MODULES, documented_errors
from portal.lib.errors import DomainError
from portal.pages import landing_samples
from portal.speech_price import class_prices
from tests.factories import tone
from tts import storage
from tts.audio.wav import wav_file
from tts.engine.catalogue import PRESET_VOICES

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def media(tmp_path: Path, settings: Any) -> Path:
    """Storage of its own: samples of other tests are not seen."""
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path},
        },
    }
    return tmp_path


def text_of(client: Client, address: str, language: str = "en") -> str:
    response = client.get(address, headers={"Accept-Language": language})
    assert response.status_code == 200
    return " ".join(re.sub(r"<[^>]+>", " ", response.content.decode()).split())


def test_the_price_of_a_minute_follows_from_the_price_and_the_engine(client: Client, settings: Any) -> None:
    PriceVersion.objects.create(
        number=7,
        currency="CNY",
        interactive_gpu_second_micros=20_000,
        standard_gpu_second_micros=10_000,
        batch_gpu_second_micros=5_000,
        effective_at=timezone.now(),
    )
    # 600 ms of a device for each second of speech: a minute takes 36 GPU-seconds.
    settings.VOICEPOOL = {**settings.VOICEPOOL, "CPU_ENGINE": "kokoro"}
    cache.clear()  # the pace is remembered
    assert [price.audio_minute_micros for price in class_prices()] == [720_000, 360_000, 180_000]
    page = text_of(client, reverse("landing"))
    assert "CN¥0.72 per minute of speech" in page
    assert "CN¥0.005 per GPU-second" in page
    assert "CN¥0.72" in text_of(client, reverse("documentation"))


def test_without_a_price_the_pages_say_nothing_about_it(client: Client) -> None:
    PriceVersion.objects.all().delete()
    assert "per GPU-second" not in text_of(client, reverse("landing"))
    assert client.get(reverse("documentation")).status_code == 200


def test_before_anything_was_spoken_the_landing_page_says_so(client: Client, media: Path) -> None:
    ensure_first_price()
    page = client.get(reverse("landing")).content.decode()
    assert "<audio" not in page
    assert 'class="empty"' in page


def speak_sample(preset_key: str) -> bytes:
    content = wav_file(tone(0.5), sample_rate_hz=24_000)
    storage.save(storage.preset_sample_key(preset_key), content)
    return content


def test_samples_that_are_there_can_be_heard(client: Client, media: Path) -> None:
    speak_sample("claire")
    page = client.get(reverse("landing")).content.decode()
    assert re.findall(r'<audio[^>]*src="([^"]+)"', page) == ["/samples/claire.wav"]


def test_samples_speak_the_readers_language_first(media: Path) -> None:
    with override("zh-hans"):
        samples = landing_samples()
        assert [sample.language for sample in samples] == ["zh", "zh", "en"]
        assert samples[0].name == "小荷"
    with override("en"):
        assert [sample.language for sample in landing_samples()] == ["en", "en", "zh"]
    speak_sample("henry")
    with override("en"):
        assert landing_samples()[0].key == "henry"


def test_a_sample_is_a_file_that_players_can_seek_in(client: Client, media: Path) -> None:
    content = speak_sample("emma")
    address = reverse("preset_sample", args=["emma"])
    whole = client.get(address)
    assert (whole.status_code, whole["Content-Type"]) == (200, "audio/wav")
    assert b"".join(whole.streaming_content) == content
    part = client.get(address, headers={"Range": "bytes=44-143"})
    assert (part.status_code, part["Content-Range"]) == (206, f"bytes 44-143/{len(content)}")
    assert b"".join(part.streaming_content) == content[44:144]
    assert client.get(address, headers={"If-None-Match": whole["ETag"]}).status_code == 304


@pytest.mark.parametrize("key", ["emma", "nobody"])
def test_a_sample_that_is_not_there_is_a_missing_page(client: Client, media: Path, key: str) -> None:
    assert client.get(f"/samples/{key}.wav").status_code == 404


def test_no_file_but_a_presets_sample_can_be_asked_for(client: Client, media: Path) -> None:
    (media / "workspaces").mkdir()
    (media / "workspaces" / "sample.wav").write_bytes(b"private")
    for path in ("/samples/../workspaces.wav", "/samples/..%2Fworkspaces.wav", "/samples/workspaces.wav"):
        assert client.get(path).status_code == 404
    assert len({preset.key for preset in PRESET_VOICES}) == len(PRESET_VOICES)


def test_who_is_signed_in_goes_to_work(alice_client: Client) -> None:
    assert alice_client.get(reverse("landing"))["Location"] == reverse("studio")
    assert alice_client.get(reverse("landing"), {"stay": "1"}).status_code == 200


def _classes(base: type[DomainError]) -> set[type[DomainError]]:
    found: set[type[DomainError]] = set()
    for subclass in base.__subclasses__():
        found |= {subclass} | _classes(subclass)
    return found


def test_every_error_of_the_product_stands_on_the_page(client: Client) -> None:
    page = client.get("/docs/errors").content.decode()
    shown = re.findall(r'<div class="definition" id="([^"]+)"', page)
    assert shown == sorted(set(shown)) == [row.code for row in documented_errors()]
    own = {cls for cls in _classes(DomainError) if cls.__module__.partition(".")[0] != "tests"}
    assert {cls.code for cls in own if "code" in vars(cls)} <= set(shown)
    assert {cls.__module__ for cls in own if "code" in vars(cls)} <= set(MODULES)


def _defines_a_code(path: Path) -> bool:
    """Whether a class of this file has `code = "…"` and is a DomainError by the names that it knows."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    if not imported & {"DomainError", "NotFound", "Conflict", "InvalidInput", "ServiceUnavailable"}:
        return False
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.bases]
    texts = [item for node in classes for item in node.body if isinstance(item, ast.Assign)]
    return any(
        ast.unparse(item.targets[0]) == "code" and isinstance(item.value, ast.Constant) for item in texts
    )


def test_modules_with_errors_are_all_named() -> None:
    """Also those that nothing has imported in this process."""
    found = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for app in ("accounts", "billing", "portal", "tts")
        for path in (ROOT / app).rglob("*.py")
        if "engine" not in path.parts and _defines_a_code(path)
    }
    assert "tts.errors" in found
    assert found <= set(MODULES)


def test_a_codes_address_is_what_a_problem_names(alice_api: Any, client: Client) -> None:
    problem = alice_api.get("/api/v1/jobs/00000000-0000-4000-8000-000000000000").json()
    path, _, anchor = problem["type"].partition("#")
    assert f'id="{anchor}"' in client.get(path).content.decode()


def test_texts_of_errors_show_no_places_to_fill() -> None:
    assert [row.code for row in documented_errors() if "%(" in row.text] == []


@pytest.mark.parametrize(("language", "first"), [("en", "en"), ("zh-hans", "zh-hans")])
def test_the_wording_of_consent_stands_in_all_languages(client: Client, language: str, first: str) -> None:
    page = client.get(reverse("consent_wording"), headers={"Accept-Language": language}).content.decode()
    for text in STATEMENTS["1"].values():
        assert text in page
    assert re.findall(r'<section class="card" lang="([\w-]+)"', page)[0] == first
