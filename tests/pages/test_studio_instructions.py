"""How the studio asks how a text is to be read."""

from __future__ import annotations

import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

from tests.api.test_instructions import make_free, make_ready
from tests.pages.reading import HTMX
from tts.models import SynthesisJob, Voice

pytestmark = pytest.mark.django_db
NONE_TAKES_THEM = "No device of the pool takes instructions now"
NONE_IS_CHOSEN = "No instruction is chosen yet."


def fields(voice: Voice, **changes: str) -> dict[str, str]:
    return {
        "text": "你好，很高兴认识你。",
        "voice": str(voice.pk),
        "job_class": "interactive",
        "speed": "1",
        "mode": "instruct",
        "token": str(uuid.uuid4()),
        **changes,
    }


def studio(client: Client, language: str = "en") -> str:
    return client.get(reverse("studio"), headers={"Accept-Language": language}).content.decode()


def test_without_an_engine_that_takes_them_the_list_is_shown_and_says_why(alice_client: Client) -> None:
    page = studio(alice_client)
    assert NONE_TAKES_THEM in page
    choices = re.findall(r'<input type="radio" name="instruction" [^>]*>', page)
    assert len(choices) == 28
    assert [choice for choice in choices if " disabled" not in choice] == []
    assert "现在没有设备" in studio(alice_client, "zh-hans")


def test_the_list_has_names_in_both_languages_and_own_words_where_they_are_taken(
    alice_client: Client,
) -> None:
    make_ready("cosyvoice")
    page = studio(alice_client)
    assert NONE_TAKES_THEM not in page
    assert page.count('name="instruction"') == 28
    assert 'data-words="Sichuanese 四川话 Dialect dialect"' in page
    assert 'data-words="四川话 Sichuanese 方言 dialect"' in studio(alice_client, "zh-hans")
    assert 'name="instruction_text"' not in page
    make_free()
    assert 'name="instruction_text"' in studio(alice_client)


def test_an_instruction_is_spoken_with_its_mode_and_not_with_another(
    alice_client: Client, alices_voice: Voice
) -> None:
    make_ready("cosyvoice")
    sent = fields(alices_voice, instruction="dialect-sichuan")
    assert alice_client.post(reverse("studio"), sent).status_code == 302
    job = SynthesisJob.objects.latest("created_at")
    assert (job.mode, job.instruction) == ("instruct", "dialect-sichuan")
    # The same page shows it again for the next text.
    shown = alice_client.get(reverse("studio"), {"job": str(job.pk)}).content.decode()
    assert 'value="dialect-sichuan" checked' in shown
    assert 'name="mode" value="instruct" checked' in shown
    plain = fields(alices_voice, instruction="dialect-sichuan", mode="plain")
    assert alice_client.post(reverse("studio"), plain).status_code == 302
    job = SynthesisJob.objects.latest("created_at")
    assert (job.mode, job.instruction) == ("plain", "")


def test_what_cannot_be_had_is_said_before_it_is_sent(alice_client: Client, alices_voice: Voice) -> None:
    sent = fields(alices_voice, instruction="emotion-sad")
    quoted = alice_client.post(reverse("quote_page"), sent, headers=HTMX).content.decode()
    assert NONE_TAKES_THEM in quoted
    refused = alice_client.post(reverse("studio"), sent)
    assert refused.status_code == 422
    make_ready("cosyvoice")
    priced = alice_client.post(reverse("quote_page"), sent, headers=HTMX).content.decode()
    assert NONE_TAKES_THEM not in priced
    assert "&quot;instruction&quot;: &quot;emotion-sad&quot;" in priced
    assert NONE_IS_CHOSEN not in priced
    nothing = alice_client.post(reverse("studio"), fields(alices_voice))
    assert nothing.status_code == 422
    assert not SynthesisJob.objects.exists()


def test_the_mode_alone_is_priced_where_there_is_something_to_choose_and_refused_where_not(
    alice_client: Client, alices_voice: Voice
) -> None:
    def quoted(**changes: str) -> str:
        sent = fields(alices_voice, **changes)
        return alice_client.post(reverse("quote_page"), sent, headers=HTMX).content.decode()

    refused = quoted()
    assert NONE_TAKES_THEM in refused
    assert 'class="figures"' not in refused
    sent = alice_client.post(reverse("studio"), fields(alices_voice))
    assert sent.status_code == 422
    # The same words as beside the price, not that one has to be chosen of a closed list.
    assert f"{NONE_TAKES_THEM}. Nothing was charged." in sent.content.decode()
    make_ready("cosyvoice")
    priced = quoted()
    assert NONE_IS_CHOSEN in priced
    assert 'class="figures"' in priced
    assert NONE_IS_CHOSEN not in quoted(mode="plain")
    assert not SynthesisJob.objects.exists()
