"""How a workspace's audio is delivered: chosen by those who run it, within the operator's rule."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry, Membership, Role, User, Workspace

pytestmark = pytest.mark.django_db
WANTED = {"explicit_label": "tone", "label_position": "end", "loudness_lufs": "-16"}


def stored(workspace: Workspace) -> tuple[str, str, float | None]:
    workspace.refresh_from_db()
    return workspace.explicit_label, workspace.label_position, workspace.loudness_lufs


def test_what_is_chosen_is_stored_and_written_down(
    alice_client: Client, alice: User, alice_workspace: Workspace
) -> None:
    page = alice_client.get(reverse("output_settings")).content.decode()
    assert "Heard now: Nothing" in page
    assert reverse("output_settings") in alice_client.get(reverse("account_settings")).content.decode()
    assert alice_client.post(reverse("output_settings"), WANTED).status_code == 302
    assert stored(alice_workspace) == ("tone", "end", -16.0)
    entry = AuditEntry.objects.get(act="workspace.output")
    assert (entry.actor, entry.object_id) == (alice, str(alice_workspace.pk))
    assert (entry.before["explicit_label"], entry.after["loudness_lufs"]) == ("", -16.0)
    alice_client.post(reverse("output_settings"), WANTED)
    assert AuditEntry.objects.filter(act="workspace.output").count() == 1
    chinese = alice_client.get(reverse("output_settings"), headers={"Accept-Language": "zh-hans"})
    assert "音频的交付方式" in chinese.content.decode()


def test_nothing_may_not_be_chosen_against_the_operators_rule(
    alice_client: Client, alice_workspace: Workspace, settings: Any
) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "EXPLICIT_LABEL": "tone"}
    page = alice_client.get(reverse("output_settings")).content.decode()
    assert '<option value="none"' not in page
    assert "Heard now: A tone" in page
    refused = alice_client.post(reverse("output_settings"), {**WANTED, "explicit_label": "none"})
    assert refused.status_code == 422
    assert stored(alice_workspace) == ("", "start", None)
    # What an operator has allowed for this workspace stays while the rest is changed.
    Workspace.objects.filter(pk=alice_workspace.pk).update(explicit_label="none")
    alice_client.post(reverse("output_settings"), {**WANTED, "explicit_label": "none"})
    assert stored(alice_workspace) == ("none", "end", -16.0)


@pytest.mark.parametrize(
    "wrong", [{"loudness_lufs": "-5"}, {"label_position": "middle"}, {"explicit_label": "song"}]
)
def test_what_cannot_be_is_refused_where_it_stands(
    wrong: dict[str, str], alice_client: Client, alice_workspace: Workspace
) -> None:
    assert alice_client.post(reverse("output_settings"), {**WANTED, **wrong}).status_code == 422
    assert stored(alice_workspace) == ("", "start", None)
    assert not AuditEntry.objects.exists()


def test_members_who_do_not_run_the_workspace_are_refused(
    alice: User, alice_client: Client, alice_workspace: Workspace
) -> None:
    Membership.objects.filter(user=alice, workspace=alice_workspace).update(role=Role.MEMBER)
    assert alice_client.get(reverse("output_settings")).status_code == 403
    assert alice_client.post(reverse("output_settings"), WANTED).status_code == 403
    assert stored(alice_workspace) == ("", "start", None)
    assert reverse("output_settings") not in alice_client.get(reverse("account_settings")).content.decode()
