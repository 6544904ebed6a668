"""Vouchers: shown once, redeemed once, and a typing error is told from a code that is not there."""

from __future__ import annotations

import contextlib
import uuid
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.errors import (
    AmountNotPositive,
    CurrencyNotAccepted,
    TooManyVoucherTries,
    VoucherBatchInvalid,
    VoucherDatesInvalid,
    VoucherExpired,
    VoucherMistyped,
    VoucherUnknown,
    VoucherUsed,
    VoucherVoided,
)
from billing.models import (
    CreditAccount,
    CreditGrant,
    GrantKind,
    LedgerAccount,
    LedgerTransaction,
    Voucher,
    VoucherBatch,
    VoucherState,
)
from billing.services.vouchers import create_batch, redeem, void_batch, void_voucher
from billing.voucher_codes import ALPHABET, code_hash, new_code, normal_code
from portal.lib.clock import now
from portal.lib.errors import DomainError, NotFound
from portal.lib.throttling import limiter
from tests.billing.books import all_books, assert_books_agree, at_once, balance, total
from tests.billing.payers import YUAN, make_workspace

USER = uuid.UUID(int=5)


def make_batch(**changed: Any) -> tuple[VoucherBatch, list[str]]:
    """One voucher of 20 yuan."""
    asked = {
        "name": "Spring",
        "amount_micros": 20 * YUAN,
        "currency": "CNY",
        "count": 1,
        "expires_at": None,
        "credit_days": None,
        "created_by_id": USER,
    }
    return create_batch(**{**asked, **changed})


def use(workspace_id: uuid.UUID, code: str) -> Voucher:
    return redeem(workspace_id=workspace_id, user_id=USER, code=code)


def test_a_code_is_in_groups_of_readable_signs() -> None:
    code = new_code()
    assert [len(group) for group in code.split("-")] == [4, 4, 4, 4]
    assert set(code) <= set(ALPHABET) | {"-"}
    assert set("01OI") & set(ALPHABET) == set()
    assert len(ALPHABET) == 32


@given(data=st.data())
def test_any_one_wrong_sign_is_noticed(data: st.DataObject) -> None:
    signs = normal_code(new_code())
    place = data.draw(st.integers(0, 15))
    wrong = data.draw(st.sampled_from([sign for sign in ALPHABET if sign != signs[place]]))
    with pytest.raises(VoucherMistyped):
        normal_code(signs[:place] + wrong + signs[place + 1 :])


@given(place=st.integers(0, 14))
def test_two_signs_that_changed_places_are_noticed(place: int) -> None:
    signs = normal_code(new_code())
    changed = signs[:place] + signs[place + 1] + signs[place] + signs[place + 2 :]
    if changed != signs:
        with pytest.raises(VoucherMistyped):
            normal_code(changed)


@given(typed=st.text(max_size=40))
def test_nothing_that_is_typed_breaks_it(typed: str) -> None:
    with contextlib.suppress(VoucherMistyped):
        assert len(normal_code(typed)) == 16


def test_case_spaces_dashes_and_full_width_letters_do_not_matter() -> None:
    code = new_code()
    wide = "".join(chr(ord(sign) + 0xFEE0) if sign != "-" else "－" for sign in code)
    for typed in (code.lower(), code.replace("-", " "), f"  {code} ", code.replace("-", "—"), wide):
        assert normal_code(typed) == normal_code(code)


def test_a_voucher_is_redeemed_as_credit_that_expires(db: None) -> None:
    _batch, (code,) = make_batch(credit_days=30)
    workspace_id = make_workspace()
    voucher = use(workspace_id, code.lower())
    assert (voucher.state, voucher.workspace_id, voucher.redeemed_by_id) == (
        VoucherState.REDEEMED,
        workspace_id,
        USER,
    )
    grant = CreditGrant.objects.get(pk=voucher.grant_id)
    assert (grant.kind, grant.amount_micros) == (GrantKind.VOUCHER, 20 * YUAN)
    assert grant.expires_at is not None
    assert timedelta(days=29) < grant.expires_at - now() <= timedelta(days=30)
    assert balance(workspace_id) == (20 * YUAN, 0)
    assert total(workspace_id, LedgerAccount.PROMOTION) == -20 * YUAN
    assert_books_agree(workspace_id)


def test_only_hashes_are_stored(db: None) -> None:
    _batch, codes = make_batch(count=3)
    stored = {row.code_sha256: row.code_start for row in Voucher.objects.all()}
    assert stored == {code_hash(normal_code(code)): normal_code(code)[:8] for code in codes}
    assert len(stored) == 3


def refused(code: str, error: type[DomainError], workspace_id: uuid.UUID | None = None) -> None:
    before, vouchers = all_books(), list(Voucher.objects.values_list())
    with pytest.raises(error):
        use(workspace_id or make_workspace(), code)
    assert all_books() == before
    assert list(Voucher.objects.values_list()) == vouchers


def test_each_refusal_says_why(db: None) -> None:
    batch, (used, voided, withdrawn) = make_batch(count=3)
    use(make_workspace(), used)
    refused(used, VoucherUsed)
    first = Voucher.objects.get(code_start=normal_code(voided)[:8])
    assert void_voucher(voucher_id=first.pk)
    assert not void_voucher(voucher_id=first.pk)
    refused(voided, VoucherVoided)
    assert void_batch(batch_id=batch.pk) == 1
    refused(withdrawn, VoucherVoided)
    assert void_batch(batch_id=batch.pk) == 0
    assert Voucher.objects.filter(state=VoucherState.REDEEMED).count() == 1
    refused(new_code(), VoucherUnknown)
    refused("ABCD-EFGH-JKLM-NPQR"[::-1], VoucherMistyped)
    refused("", VoucherMistyped)
    refused("2" * 200, VoucherMistyped)


def test_a_voucher_whose_time_is_over_is_refused(db: None) -> None:
    _batch, (code,) = make_batch(expires_at=now() + timedelta(days=1))
    VoucherBatch.objects.update(expires_at=now())
    refused(code, VoucherExpired)


def test_a_voucher_of_another_currency_is_refused(db: None) -> None:
    _batch, (code,) = make_batch(currency="USD")
    refused(code, CurrencyNotAccepted)


def test_a_deleted_workspace_redeems_nothing(db: None) -> None:
    _batch, (code,) = make_batch()
    refused(code, NotFound, uuid.uuid4())


def test_who_tries_too_many_codes_has_to_wait(db: None, settings: Any) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "VOUCHER_TRIES_PER_MINUTE": 3}
    limiter().storage.reset()
    _batch, (code,) = make_batch()
    workspace_id = make_workspace()
    for _ in range(3):
        refused(new_code(), VoucherUnknown, workspace_id)
    refused(code, TooManyVoucherTries, workspace_id)
    assert use(make_workspace(), code).state == VoucherState.REDEEMED


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"count": 0}, VoucherBatchInvalid),
        ({"count": -1}, VoucherBatchInvalid),
        ({"count": 10_001}, VoucherBatchInvalid),
        ({"count": 1.5}, VoucherBatchInvalid),
        ({"credit_days": 0}, VoucherDatesInvalid),
        ({"expires_at": now() - timedelta(days=1)}, VoucherDatesInvalid),
        ({"amount_micros": 0}, AmountNotPositive),
        ({"amount_micros": -YUAN}, AmountNotPositive),
    ],
)
def test_a_batch_that_makes_no_sense_is_not_made(
    db: None, changed: dict[str, Any], error: type[DomainError]
) -> None:
    with pytest.raises(error):
        make_batch(**changed)
    assert (VoucherBatch.objects.count(), Voucher.objects.count()) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_of_fifty_who_redeem_one_voucher_at_once_one_gets_it() -> None:
    _batch, (code,) = make_batch()
    workspaces = [make_workspace() for _ in range(50)]
    outcomes = at_once(50, lambda number: use(workspaces[number], code))
    assert sum(isinstance(outcome, Voucher) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, VoucherUsed) for outcome in outcomes) == 49
    voucher = Voucher.objects.get()
    assert CreditGrant.objects.get().workspace_id == voucher.workspace_id
    assert voucher.workspace_id is not None
    assert balance(voucher.workspace_id) == (20 * YUAN, 0)
    assert_books_agree(voucher.workspace_id)
    others = CreditAccount.objects.exclude(pk=voucher.workspace_id)
    assert not others.exclude(available_micros=0, held_micros=0, owed_micros=0).exists()
    assert LedgerTransaction.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_workspace_that_sends_a_code_many_times_gets_it_once(settings: Any) -> None:
    settings.VOICEPOOL = {**settings.VOICEPOOL, "VOUCHER_TRIES_PER_MINUTE": 100}
    _batch, (code,) = make_batch()
    workspace_id = make_workspace()
    outcomes = at_once(16, lambda _: use(workspace_id, code))
    assert sum(isinstance(outcome, VoucherUsed) for outcome in outcomes) == 15
    assert balance(workspace_id) == (20 * YUAN, 0)
    assert_books_agree(workspace_id)


@pytest.mark.django_db(transaction=True)
def test_a_voucher_is_redeemed_or_withdrawn_never_both() -> None:
    batch, codes = make_batch(count=6)
    workspaces = [make_workspace() for _ in codes]

    def act(number: int) -> Any:
        return use(workspaces[number], codes[number]) if number < 6 else void_batch(batch_id=batch.pk)

    outcomes = at_once(7, act)
    assert all(isinstance(outcome, Voucher | VoucherVoided | int) for outcome in outcomes)
    redeemed = Voucher.objects.filter(state=VoucherState.REDEEMED).count()
    assert redeemed + outcomes[6] == 6
    assert CreditGrant.objects.count() == redeemed
