# SPDX-License-Identifier: Apache-2.0
"""Runs one measurement with several interpreters in turn, so disturbances affect them alike."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Final

TURNS: Final = 3
LINE: Final = "{name}\t{one}\t{many}"
"""A line of output for a load: microseconds with one request in a read, and with many."""


def compare(beside: str | None, arguments: Sequence[str], names: Iterable[str], title: str) -> None:
    """Runs `arguments` with this interpreter and the other one; prints the least of each load."""
    sides = [sys.executable, *([beside] if beside else [])]
    best: list[dict[str, tuple[float, float]]] = [{} for _ in sides]
    for _ in range(TURNS):
        for side, found in zip(sides, best, strict=True):
            done = subprocess.run([side, *arguments], check=True, capture_output=True, text=True)
            for line in done.stdout.splitlines():
                name, *figures = line.split("\t")
                one, many = map(float, figures)
                known = found.get(name, (one, many))
                found[name] = min(known[0], one), min(known[1], many)
    print(f"{title:<32}" + "  1 in a read / 32" * len(sides))
    for name in names:
        row = "".join(f"  {found[name][0]:>8.2f} / {found[name][1]:>5.2f}" for found in best)
        print(f"{name:<32}{row}")
