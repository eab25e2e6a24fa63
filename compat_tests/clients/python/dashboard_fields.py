# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: INP001 - a program, not a module of the tests
"""Prints the fields of a dashboard that Grafana's own types do not know, as a JSON list of paths.

The dashboard is read into these types and written again: a field that they do not have is lost, and
a value that has another meaning in them comes back changed. Like the clients, this program runs in
an environment of its own.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog import plugins  # type: ignore[import-not-found]
from grafana_foundation_sdk.cog.encoder import JSONEncoder  # type: ignore[import-not-found]
from grafana_foundation_sdk.models.dashboard import Dashboard  # type: ignore[import-not-found]


def lost(was: Any, now: Any, path: str) -> Iterator[str]:
    """Yields the paths where `now` lacks what `was` has, or differs from it."""
    if isinstance(was, dict):
        for name, value in was.items():
            if isinstance(now, dict) and name in now:
                yield from lost(value, now[name], f"{path}/{name}")
            else:
                yield f"{path}/{name}"
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from lost(one, other, f"{path}/{index}")
    elif was != now:
        yield path


if __name__ == "__main__":
    plugins.register_default_plugins()
    written = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    again = json.loads(json.dumps(Dashboard.from_json(written), cls=JSONEncoder))
    print(json.dumps(list(lost(written, again, ""))))
