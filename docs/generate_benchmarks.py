# SPDX-License-Identifier: Apache-2.0
"""Writes docs/benchmarks.md, docs/benchmarks.svg and a part of README from docs/benchmarks.json.

`make bench` leaves the JSON and runs this; `make docs` runs it, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import report
from docs.sections import replaced

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "benchmarks.json"
PAGE = FOLDER / "benchmarks.md"
PLOT = FOLDER / "benchmarks.svg"
README = FOLDER.parent / "README.md"

MAIN = {
    "sync, 1 thread",
    "sync, 64 threads",
    "sync, 64 threads, 3 properties",
    "sync, 64 threads, SYNC_FLUSH",
    "sync, 64 goroutines of the Go client",
    "one-way",
    "batch of 32 x 128 B, 3 properties",
    "drain by push consumer",
    "broker CPU a message, sync, 64 threads, 3 properties",
    "start to first accepted send",
    "anonymous memory, under load",
}
"""What README shows."""

INTRODUCTION = """\
# Benchmarks

<!-- Written by docs/generate_benchmarks.py from docs/benchmarks.json; run `make bench`. -->

This page compares the speed of this broker with that of Apache RocketMQ {original}. Official
clients put the same loads on both brokers in turn, on one machine that clients and servers share.
Bodies have 1 KiB and flushing is asynchronous, unless the name of a load says otherwise. Each
figure is the median of the turns. For messages per second (msg/s) more is better; for milliseconds,
seconds, CPU time and memory less is better. `make bench` measures everything again and writes this
page; [benchmarks.json](benchmarks.json) has the figures of each turn.

![Messages per second for each load: ours divided by the original's](benchmarks.svg)
"""


def digest(results: dict[str, Any]) -> str:
    """Tells results from others; the plot has that of those it was made of."""
    return hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest()[:16]


def number(value: float | None) -> str:
    """A figure as a person reads it: three digits, thousands with commas."""
    if value is None:
        return ""
    if value < 1000:
        return f"{value:.3g}"
    return f"{float(f'{value:.3g}'):,.0f}"


def conditions(results: dict[str, Any]) -> str:
    """Where and how it was measured, in a sentence."""
    machine, rounds = results["machine"], results["rounds"]
    turns = len(rounds) // 2
    others = max(sample["others_cores"] for turn in rounds for sample in turn["samples"])
    length = "short (`--quick`)" if results["quick"] else "full-length"
    runs = f"one {length} run" if turns == 1 else f"{turns} {length} runs"
    return (
        f"Measured on {results['date']} over {runs} of each broker: {machine['cores']} cores,"
        f" {machine['system'].partition('-with')[0]}, Python {machine['python']};"
        f" other processes took up to {others:.1f} cores meanwhile."
    )


def _table(rows: list[report.Row], *, goals: bool) -> Iterator[str]:
    yield "| | ours | original | ratio |" + (" wanted |" if goals else "")
    yield "|---|---:|---:|---:|" + ("---|" if goals else "")
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        figures = f"{number(row.ours)} | {number(row.original)} | {ratio} |"
        wanted = f" {row.goal or ''} {row.verdict}".rstrip() + " |" if goals else ""
        yield f"| {row.metric}, {row.unit} | {figures}{wanted}"


def _rows(results: dict[str, Any]) -> list[report.Row]:
    return report.from_json(results)


def _page(results: dict[str, Any]) -> str:
    lines = [
        INTRODUCTION.format(original=results["machine"]["original"]),
        conditions(results),
        "",
        *_table(_rows(results), goals=True),
        "",
    ]
    return "\n".join(lines)


def _readme(results: dict[str, Any]) -> str:
    rows = [row for row in _rows(results) if row.metric in MAIN]
    lines = [*_table(rows, goals=False), "", conditions(results)]
    return replaced(README.read_text("utf-8"), "benchmarks", lines)


def pages() -> dict[Path, str]:
    """What this writes but for the plot, which says itself what it was made of."""
    results = json.loads(RESULTS.read_text("utf-8"))
    return {PAGE: _page(results), README: _readme(results)}


def main() -> None:
    """Writes the pages and the plot."""
    for path, text in pages().items():
        path.write_text(text, "utf-8")
    results = json.loads(RESULTS.read_text("utf-8"))
    title = f"Messages per second, compared with RocketMQ {results['machine']['original']}"
    report.plot(_rows(results), PLOT, title, digest(results))


if __name__ == "__main__":
    main()
