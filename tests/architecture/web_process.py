"""Run in a process of its own: be the web process for a while, then print what it loaded as one JSON object.

Imports portal.wsgi and the module of every management command, resolves every address, asks for each that
takes no argument (by nobody and by an operator), and imports every module of the product outside the engines and
the node's two that use NVML's bindings, which need what is not installed on a web host.
Standard input is a JSON object: every attempt to import one of `noted` is noted with its place, even where the
code would have caught the failure; those of `hidden` are not installed on a web host, so they are not found here.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import traceback
import uuid
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

GIVEN = json.load(sys.stdin)
NOTED = frozenset(GIVEN["noted"])
HIDDEN = frozenset(GIVEN["hidden"])
GPU_HOSTS_ONLY = ("tts.engine", "tts.node.nvml", "tts.node.hardware_watch")
attempts: dict[str, str] = {}


class Watch:
    """First among the finders of modules: notes, hides, and finds nothing itself."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package = name.partition(".")[0]
        if package in NOTED:
            attempts.setdefault(name, "".join(traceback.format_stack(limit=12)))
        if package in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


sys.meta_path.insert(0, Watch())  # type: ignore[arg-type]

import portal.wsgi  # noqa: E402, F401  # the web process, as gunicorn starts it


def product_modules() -> Iterator[str]:
    """Every module of the product but those; of them, what the rest loads by itself is loaded too."""
    for name in ("portal", "accounts", "billing", "tts"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}.", onerror=lambda name: None):
            starts_something = module.name.endswith("__main__") or module.name.startswith("portal.settings.")
            if not module.name.startswith(GPU_HOSTS_ONLY) and not starts_something:
                yield module.name


def command_modules() -> Iterator[str]:
    from django.core.management import get_commands

    for name, app in get_commands().items():
        if app in ("portal", "accounts", "billing", "tts"):
            yield f"{app}.management.commands.{name}"


def addresses() -> tuple[list[str], list[str]]:
    """The addresses that take no argument, and the names of all views."""
    from django.urls import URLPattern, URLResolver, get_resolver

    plain: list[str] = []
    views: list[str] = []

    def walk(patterns: list[Any], prefix: str) -> None:
        for pattern in patterns:
            route = prefix + str(pattern.pattern).removeprefix("^").removesuffix("$").replace("\\Z", "")
            if isinstance(pattern, URLResolver):
                walk(pattern.url_patterns, route)
            elif isinstance(pattern, URLPattern):
                views.append(getattr(pattern.callback, "__module__", ""))
                if not any(mark in route for mark in "<(?["):
                    plain.append(f"/{route}")

    walk(get_resolver().url_patterns, "")
    return plain, views


def ask(plain: list[str]) -> dict[str, int]:
    """The status of each address, asked by nobody and then by an operator."""
    from django.test import Client

    from accounts.models import User

    statuses: dict[str, int] = {}
    operator = User.objects.create_superuser(f"{uuid.uuid4().hex}@example.com", "not-a-secret")
    for who, client in (("nobody", Client()), ("operator", Client())):
        client.raise_request_exception = False
        if who == "operator":
            client.force_login(operator)
        for address in plain:
            if not address.endswith("logout/"):
                response = client.get(address)
                statuses[f"{who} {address}"] = response.status_code
                response.close()
    # The database is the test session's: nothing is left in it.
    client.session.flush()
    operator.delete()
    return statuses


def main() -> None:
    commands = list(command_modules())
    modules = list(product_modules())
    for name in [*commands, *modules]:
        importlib.import_module(name)
    plain, views = addresses()
    result = {
        "commands": commands,
        "modules": modules,
        "views": views,
        "statuses": ask(plain),
        "attempts": attempts,
        "loaded": sorted(
            {name.partition(".")[0] for name, module in sys.modules.items() if module is not None}
        ),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
