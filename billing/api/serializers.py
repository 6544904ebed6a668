"""Money and balances as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.lib.money import micros_as_decimal


class MoneySerializer(serializers.Serializer[Any]):
    """An amount: whole micros to calculate with, a decimal string to show."""

    amount_micros = serializers.IntegerField(
        help_text="Millionths of the currency's unit: 1 yuan is 1000000."
    )
    amount = serializers.CharField(help_text="The same in units, with six decimals: “1.250000”.")
    currency = serializers.CharField(help_text="ISO 4217.")


def money(amount_micros: int, currency: str) -> dict[str, Any]:
    """The amount as MoneySerializer describes it."""
    return {
        "amount_micros": amount_micros,
        "amount": f"{micros_as_decimal(amount_micros):.6f}",
        "currency": currency,
    }


class BalanceSerializer(serializers.Serializer[Any]):
    available = MoneySerializer(help_text="What new jobs can be paid from.")
    held = MoneySerializer(help_text="Set aside for jobs that wait or run; what they do not use comes back.")
    affordable_gpu_ms = serializers.IntegerField(
        min_value=0,
        help_text="GPU milliseconds that `available` buys in the interactive class today: 0 where it is a debt.",
    )


class LimitsSerializer(serializers.Serializer[Any]):
    requests_per_minute = serializers.IntegerField()
    submits_per_minute = serializers.IntegerField(help_text="Of the requests, those that make jobs.")
    queued_jobs = serializers.IntegerField(help_text="Jobs that may wait or run at the same time.")
    voices = serializers.IntegerField(help_text="Cloned voices that may be kept.")
    upload_bytes = serializers.IntegerField(help_text="The largest request with a file.")


class AccountWorkspaceSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.CharField()


class AccountSerializer(serializers.Serializer[Any]):
    workspace = AccountWorkspaceSerializer()
    balance = BalanceSerializer()
    limits = LimitsSerializer()
