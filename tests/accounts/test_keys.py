"""The form of API keys, and what may be done with them."""

from __future__ import annotations

import string
import uuid
import zlib
from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounts import keys
from accounts.errors import (
    ApiKeyExpired,
    ApiKeyRevoked,
    InvalidApiKey,
    KeyExpiryInvalid,
    KeyNameInvalid,
    TooManyApiKeys,
    WorkspaceSuspended,
)
from accounts.models import ApiKey, Membership, User, Workspace
from accounts.selectors.api_keys import api_keys_of
from accounts.services import api_keys
from accounts.services.api_keys import authenticate, create_api_key, find_active_key, revoke_api_key
from portal.lib.errors import NotFound


def test_a_key_has_a_prefix_thirty_random_characters_and_a_checksum_in_base_62() -> None:
    key = keys.new_key()
    assert key.startswith("vp_live_")
    assert len(key) == 8 + 30 + 6
    assert set(key[8:]) <= set(string.digits + string.ascii_letters)
    assert keys.is_well_formed(key)
    number = 0
    for character in key[-6:]:
        number = 62 * number + keys.ALPHABET.index(character)
    assert number == zlib.crc32(key[8:-6].encode())


def test_the_checksum_stays_as_it_is_for_keys_that_customers_hold() -> None:
    assert keys.is_well_formed("vp_live_" + "0" * 30 + keys.checksum("0" * 30))
    assert keys.checksum("0" * 30) == "2C8GjS"
    assert len(keys.checksum("a" * 30)) == 6


def test_no_two_keys_are_alike() -> None:
    assert len({keys.new_key() for _ in range(1000)}) == 1000


@given(st.integers(0, 43), st.sampled_from(keys.ALPHABET + "_-é \x00"))
def test_one_mistyped_character_is_told_without_asking_anybody(position: int, other: str) -> None:
    key = keys.new_key()
    changed = key[:position] + other + key[position + 1 :]
    assert keys.is_well_formed(changed) is (changed == key)


@given(st.text(max_size=60))
def test_what_is_no_key_is_told_apart_and_breaks_nothing(text: str) -> None:
    assert not keys.is_well_formed(text)


def test_a_new_key_is_stored_only_as_a_hash(alice: User, alice_workspace: Workspace) -> None:
    row, text = create_api_key(workspace=alice_workspace, user=alice, name="  Shop ")
    stored = ApiKey.objects.filter(pk=row.pk).values().get()
    assert stored["name"] == "Shop"
    assert stored["secret_sha256"] == keys.key_sha256(text)
    assert stored["prefix"] == text[:14]
    assert text not in str(stored)
    assert (stored["expires_at"], stored["last_used_at"], stored["revoked_at"]) == (None, None, None)


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\nb", "a\x00b", "\ud800"])
def test_a_key_needs_a_name_to_recognise_it_by(name: str, alice: User, alice_workspace: Workspace) -> None:
    with pytest.raises(KeyNameInvalid):
        create_api_key(workspace=alice_workspace, user=alice, name=name)
    assert ApiKey.objects.count() == 0


def test_a_key_cannot_be_born_expired(alice: User, alice_workspace: Workspace) -> None:
    with pytest.raises(KeyExpiryInvalid):
        create_api_key(workspace=alice_workspace, user=alice, name="old", expires_at=timezone.now())
    assert ApiKey.objects.count() == 0


def test_no_key_makes_one_that_outlives_it(alice: User, alice_workspace: Workspace) -> None:
    end = timezone.now() + timedelta(days=1)
    parent, _ = create_api_key(workspace=alice_workspace, user=alice, name="parent", expires_at=end)
    child, _ = create_api_key(workspace=alice_workspace, user=alice, name="child", made_by=parent)
    assert child.expires_at == end
    later = end + timedelta(seconds=1)
    with pytest.raises(KeyExpiryInvalid):
        create_api_key(workspace=alice_workspace, user=alice, name="b", expires_at=later, made_by=parent)
    assert ApiKey.objects.count() == 2


def test_a_workspace_has_so_many_keys_at_most(
    alice: User, alice_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_keys, "MAX_KEYS_PER_WORKSPACE", 2)
    first, _ = create_api_key(workspace=alice_workspace, user=alice, name="1")
    create_api_key(workspace=alice_workspace, user=alice, name="2")
    with pytest.raises(TooManyApiKeys):
        create_api_key(workspace=alice_workspace, user=alice, name="3")
    assert ApiKey.objects.count() == 2
    revoke_api_key(workspace=alice_workspace, key_id=first.pk)
    create_api_key(workspace=alice_workspace, user=alice, name="3")


def test_a_key_opens_its_workspace_for_its_maker(alice: User, team: Workspace) -> None:
    row, text = create_api_key(workspace=team, user=alice, name="team")
    found = authenticate(key=text)
    assert (found.pk, found.workspace, found.created_by) == (row.pk, team, alice)


def test_an_unknown_key_is_not_valid(db: None) -> None:
    with pytest.raises(InvalidApiKey):
        authenticate(key=keys.new_key())


def test_a_mistyped_key_costs_no_query(alice: User, django_assert_num_queries: pytest.FixtureRequest) -> None:
    text = keys.new_key()
    with django_assert_num_queries(0), pytest.raises(InvalidApiKey):  # type: ignore[operator]
        authenticate(key=text[:-1] + ("a" if text[-1] != "a" else "b"))


def test_a_revoked_key_is_refused_at_once_and_stays_revoked(alice: User, alice_workspace: Workspace) -> None:
    row, text = create_api_key(workspace=alice_workspace, user=alice, name="x")
    authenticate(key=text)
    revoke_api_key(workspace=alice_workspace, key_id=row.pk)
    with pytest.raises(ApiKeyRevoked):
        authenticate(key=text)
    row.refresh_from_db()
    when = row.revoked_at
    revoke_api_key(workspace=alice_workspace, key_id=row.pk)
    row.refresh_from_db()
    assert row.revoked_at == when
    assert list(api_keys_of(alice_workspace)) == []


def test_another_workspaces_key_cannot_be_revoked(
    alice: User, alice_workspace: Workspace, charlie_workspace: Workspace
) -> None:
    row, text = create_api_key(workspace=alice_workspace, user=alice, name="x")
    for key_id in (row.pk, uuid.uuid4()):
        with pytest.raises(NotFound):
            revoke_api_key(workspace=charlie_workspace, key_id=key_id)
    assert authenticate(key=text).pk == row.pk


def test_an_expired_key_says_so(alice: User, alice_workspace: Workspace) -> None:
    end = timezone.now() + timedelta(hours=1)
    row, text = create_api_key(workspace=alice_workspace, user=alice, name="x", expires_at=end)
    assert find_active_key(text) is not None
    ApiKey.objects.filter(pk=row.pk).update(expires_at=timezone.now())
    with pytest.raises(ApiKeyExpired):
        authenticate(key=text)
    assert find_active_key(text) is None
    assert [key.pk for key in api_keys_of(alice_workspace)] == [row.pk]


def test_the_key_of_an_inactive_person_is_refused(alice: User, alice_workspace: Workspace) -> None:
    _, text = create_api_key(workspace=alice_workspace, user=alice, name="x")
    User.objects.filter(pk=alice.pk).update(is_active=False)
    with pytest.raises(InvalidApiKey):
        authenticate(key=text)


def test_the_key_of_a_member_who_left_is_refused(bob: User, team: Workspace) -> None:
    _, text = create_api_key(workspace=team, user=bob, name="x")
    assert authenticate(key=text).workspace == team
    Membership.objects.filter(workspace=team, user=bob).delete()
    with pytest.raises(InvalidApiKey):
        authenticate(key=text)


def test_a_suspended_workspace_refuses_its_keys(alice: User, alice_workspace: Workspace) -> None:
    _, text = create_api_key(workspace=alice_workspace, user=alice, name="x")
    Workspace.objects.filter(pk=alice_workspace.pk).update(suspended_at=timezone.now())
    with pytest.raises(WorkspaceSuspended):
        authenticate(key=text)


def test_the_last_use_is_written_at_most_once_a_minute(
    alice: User, alice_workspace: Workspace, django_assert_num_queries: pytest.FixtureRequest
) -> None:
    row, text = create_api_key(workspace=alice_workspace, user=alice, name="x")
    authenticate(key=text)
    row.refresh_from_db()
    first = row.last_used_at
    assert first is not None
    assert timezone.now() - first < timedelta(minutes=1)
    with django_assert_num_queries(1):  # type: ignore[operator]
        authenticate(key=text)
    row.refresh_from_db()
    assert row.last_used_at == first
    long_ago = first - timedelta(minutes=2)
    ApiKey.objects.filter(pk=row.pk).update(last_used_at=long_ago)
    authenticate(key=text)
    row.refresh_from_db()
    assert row.last_used_at is not None
    assert row.last_used_at >= first


def test_looking_for_a_key_does_not_count_as_using_it(alice: User, alice_workspace: Workspace) -> None:
    row, text = create_api_key(workspace=alice_workspace, user=alice, name="x")
    assert find_active_key(text) == row
    assert find_active_key("nonsense") is None
    row.refresh_from_db()
    assert row.last_used_at is None
