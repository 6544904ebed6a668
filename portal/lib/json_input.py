"""JSON that callers send: strict, bounded, and without what no other part could store or send back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import IO, Any, Final

from django.conf import settings
from django.utils.translation import gettext_lazy as _
from rest_framework.parsers import BaseParser

from portal.lib.errors import DomainError

# 64-bit integers have at most 19 digits; what is longer fits no column, and floats overflow on it.
MAX_INTEGER_DIGITS: Final = 19


class MalformedJson(DomainError):
    code = "malformed_json"
    status = 400
    message = _("The body is not valid JSON in UTF-8. Send one JSON object.")


class DuplicateJsonField(DomainError):
    code = "duplicate_field"
    status = 400
    message = _("A field of the JSON object is given twice. Send each once.")


class InvalidUnicode(DomainError):
    code = "invalid_unicode"
    status = 400
    message = _(
        "A text holds half of a surrogate pair (such as \\ud83d alone), which is no character. Send whole characters."
    )


class JsonTooLarge(DomainError):
    code = "request_too_large"
    status = 413
    message = _(
        "This is too large: at most %(megabytes)s MB can be sent here. Nothing was stored or charged."
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no name comes twice: two readers would read it differently."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DuplicateJsonField
    return found


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise MalformedJson
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise MalformedJson
    return number


def _refuse_constant(name: str) -> float:
    """NaN, Infinity and -Infinity are Python's, not JSON's."""
    raise MalformedJson


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_refuse_constant
)


def _refuse_surrogates(value: Any) -> None:
    """Half pairs come in as escapes only; they can neither be stored nor be quoted in an answer."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidUnicode from error
    elif isinstance(value, dict):
        for name, item in value.items():
            _refuse_surrogates(name)
            _refuse_surrogates(item)
    elif isinstance(value, list):
        for item in value:
            _refuse_surrogates(item)


def decode_json(raw: bytes) -> Any:
    """The value that `raw` holds.

    Raises:
        MalformedJson: also for NaN, for numbers that no column holds, and for nesting without end.
        DuplicateJsonField, InvalidUnicode.
    """
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
        _refuse_surrogates(value)
    except (ValueError, RecursionError) as error:
        raise MalformedJson from error
    return value


class StrictJsonParser(BaseParser):
    """Parses `application/json` by `decode_json`, reading no more than DATA_UPLOAD_MAX_MEMORY_SIZE."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        assert limit is not None  # noqa: S101  # settings.base sets it
        parts: list[bytes] = []
        size = 0
        # A stream may give less than was asked for before it ends.
        while chunk := stream.read(min(64 * 1024, limit + 1 - size)):
            parts.append(chunk)
            size += len(chunk)
            if size > limit:
                raise JsonTooLarge(megabytes=limit // (1024 * 1024))
        return decode_json(b"".join(parts))
