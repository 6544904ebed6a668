"""Serializer fields that take a value of their own JSON type and nothing that merely looks like it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from portal.lib.pagination import PAGE_PARAMETERS


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not know: a misspelt option must not be ignored in silence."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = [str(name) for name in data if name not in self.fields]
            if unknown:
                known = ", ".join(name for name, field in self.fields.items() if not field.read_only)
                text = _("There is no such field. Known fields: %(known)s") % {"known": known}
                raise serializers.ValidationError(
                    {name[:60]: [ErrorDetail(text, code="unknown_field")] for name in unknown[:20]}
                )
        return super().to_internal_value(data)


class StrictCharField(serializers.CharField):
    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field(OpenApiTypes.STR)
class RawTextField(serializers.Field[str, str, str, Any]):
    """A text exactly as it was sent: trimming, limits and forbidden characters are the service's to judge."""

    default_error_messages = {"invalid": serializers.CharField.default_error_messages["invalid"]}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return data

    def to_representation(self, value: str) -> str:
        return value


class StrictIntegerField(serializers.IntegerField):
    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictBooleanField(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class StrictFloatField(serializers.FloatField):
    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, (int, float)):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictUUIDField(serializers.UUIDField):
    def to_internal_value(self, data: Any) -> uuid.UUID:
        if not isinstance(data, str):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


class StrictChoiceField(serializers.ChoiceField):
    """Names the choices in its refusal instead of repeating what was sent."""

    default_error_messages = {"invalid_choice": _("Use one of: {choices}.")}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", choices=", ".join(str(choice) for choice in self.choices))
        return data


class StrictDateTimeField(serializers.DateTimeField):
    def to_internal_value(self, value: Any) -> Any:
        if not isinstance(value, str):
            self.fail("invalid", format="ISO 8601")
        return super().to_internal_value(value)


class StrictDateField(serializers.DateField):
    def to_internal_value(self, value: Any) -> Any:
        if not isinstance(value, str):
            self.fail("invalid", format="YYYY-MM-DD")
        return super().to_internal_value(value)


def read_query(serializer_class: type[StrictSerializer], query: Mapping[str, str]) -> dict[str, Any]:
    """The checked query parameters of a list, but for the paginator's own.

    Raises:
        ValidationError: an unknown parameter or a value that is not allowed.
    """
    serializer = serializer_class(data={name: query[name] for name in query if name not in PAGE_PARAMETERS})
    serializer.is_valid(raise_exception=True)
    checked: dict[str, Any] = serializer.validated_data
    return checked
