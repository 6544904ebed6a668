"""`python -m tests.bench NAME`: run one benchmark.

A benchmark is a module `tests.bench.NAME` with a function `run() -> dict[str, float]`. It may print what it
likes; the last line of standard output is always one JSON object: {"bench": NAME, "figures": {"figure_name":
number, …}}.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys

import tests.bench


def names() -> list[str]:
    """The benchmarks there are."""
    return sorted(
        module.name
        for module in pkgutil.iter_modules(tests.bench.__path__)
        if not module.name.startswith("_")
    )


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in names():
        print(f"Name one benchmark: make bench NAME=…  There are: {', '.join(names())}.", file=sys.stderr)
        return 2
    figures = importlib.import_module(f"tests.bench.{arguments[0]}").run()
    print(
        json.dumps(
            {"bench": arguments[0], "figures": {name: float(value) for name, value in figures.items()}}
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
