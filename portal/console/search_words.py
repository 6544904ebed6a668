"""What the words of a search may mean. Looked up first, so that the search itself asks indexed columns of one table.

A condition is made only of what was found: most words mean one thing, which one index finds.
"""

from __future__ import annotations

import ipaddress
import uuid
from typing import Any, Final

from django.db.models import Q, QuerySet

from accounts.models import ApiKey, User, Workspace
from portal.console.search_bar import MAX_QUERY_CHARACTERS

# Of people, workspaces and so on that a word may mean; an operator looks for one of them.
MEANT_AT_MOST: Final = 200


def cannot_be_stored(query: str) -> bool:
    """Whether no column can hold the words: they find nothing, and are not worth a query."""
    return "\x00" in query or len(query) > MAX_QUERY_CHARACTERS


def known_uuid(query: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(query)
    except ValueError:
        return None


def known_address(query: str) -> str | None:
    """The IP address in its canonical form."""
    try:
        return str(ipaddress.ip_address(query))
    except ValueError:
        return None


def ids(rows: QuerySet[Any], column: str = "pk") -> list[Any]:
    """The rows' keys, or another column's values; at most so many."""
    return list(rows.values_list(column, flat=True)[:MEANT_AT_MOST])


def people_with(email: str) -> list[uuid.UUID]:
    """Users in whose e-mail address it stands."""
    return ids(User.objects.filter(email__icontains=email))


def people_from(email: str) -> list[uuid.UUID]:
    """Users whose e-mail address begins so."""
    return ids(User.objects.filter(email__istartswith=email))


def workspaces_named(name: str) -> list[uuid.UUID]:
    """Workspaces in whose name it stands."""
    return ids(Workspace.objects.filter(name__icontains=name))


def keys_that_begin(prefix: str) -> list[uuid.UUID]:
    """API keys by their first characters, as they are shown."""
    return ids(ApiKey.objects.filter(prefix=prefix.rstrip("…")))


def any_of(meant: dict[str, list[Any]]) -> Q:
    """Rows of which one of the columns has one of its values. No values at all mean no rows."""
    met = Q(pk__in=[])
    for column, values in meant.items():
        if values:
            met |= Q(**{f"{column}__in": values})
    return met
