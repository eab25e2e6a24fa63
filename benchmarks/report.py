# SPDX-License-Identifier: Apache-2.0
"""Turns samples into medians, ratios and verdicts: as a table, as JSON, as a plot.

Only `plot` does I/O.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter

from benchmarks.loads import LOADS, Sample

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Round:
    """One side's turn: its start and its memory at rest, without a slave, and the loads."""

    side: str
    start_seconds: float | None
    idle_bytes: int | None
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Goal:
    """What the ratio ours / original must reach, and what our own value may not exceed."""

    min_ratio: float | None = None
    max_ratio: float | None = None
    max_value: float | None = None

    def __str__(self) -> str:
        bounds = (("<= {:g}", self.max_value), (">= {:g}x", self.min_ratio))
        parts = [
            form.format(bound)
            for form, bound in (*bounds, ("<= {:g}x", self.max_ratio))
            if bound is not None
        ]
        return ", ".join(parts)

    def met(self, ours: float, ratio: float) -> bool:
        """Returns whether the value and the ratio keep every bound that is set."""
        return (
            (self.min_ratio is None or ratio >= self.min_ratio)
            and (self.max_ratio is None or ratio <= self.max_ratio)
            and (self.max_value is None or ours <= self.max_value)
        )


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    metric: str
    unit: str
    better: Better
    ours: float | None
    original: float | None
    goal: Goal | None

    @property
    def ratio(self) -> float | None:
        """The ratio ours / original; None when a side was not measured."""
        if self.ours is None or not self.original:
            return None
        return self.ours / self.original

    @property
    def verdict(self) -> str:
        """`met` or `missed`; empty where there is no goal or nothing to compare."""
        if self.goal is None or self.ours is None or self.ratio is None:
            return ""
        return "met" if self.goal.met(self.ours, self.ratio) else "missed"


RATE_GOALS: Final = {
    "sync1": Goal(min_ratio=1.2),
    "sync1-binary-props": Goal(min_ratio=0.95),
    "sync16": Goal(min_ratio=1.2),
    "sync64": Goal(min_ratio=1.2),
    "sync64-props": Goal(min_ratio=1.15),
    "sync64-binary": Goal(min_ratio=0.95),
    "sync64-flush": Goal(min_ratio=1.0),
    "async": Goal(min_ratio=1.1),
    "async-props": Goal(min_ratio=1.1),
    "oneway": Goal(min_ratio=1.0),
    "batch": Goal(min_ratio=0.4),
    "batch-props": Goal(min_ratio=0.4),
    "drain": Goal(min_ratio=0.8),
    **{load.name: Goal(min_ratio=1.0) for load in LOADS if load.slave and load.broker},
}
CPU_GOALS: Final = {"sync64": Goal(max_value=15.0, max_ratio=1.0)}
BEHIND_GOAL: Final = Goal(max_value=200.0)
START_GOAL: Final = Goal(max_ratio=0.5)
IDLE_MEMORY_GOAL: Final = Goal(max_ratio=0.25)
MEBIBYTE: Final = 1 << 20
_PAPER: Final = "#fbfaf7"
_INK: Final = "#1c1c1c"
_WIN: Final = "#2f7fb8"
_LOSS: Final = "#d1622b"


def rows(rounds: Sequence[Round]) -> list[Row]:
    """Returns a row for each metric that a side has, with the medians over its rounds."""
    throughput = [load for load in LOADS if load.mode != "latency"]
    table = [_load_row(rounds, load.name, load.title, "msg/s", "rate") for load in throughput]
    for percentile in ("p50_ms", "p99_ms"):
        title = f"send to consume at 100 msg/s, {percentile.removesuffix('_ms')}"
        table.append(_load_row(rounds, "latency", title, "ms", percentile))
    for load in throughput:
        title = f"broker CPU a message, {load.title}"
        table.append(_load_row(rounds, load.name, title, "us", "broker_cpu_us"))
    for load in (load for load in throughput if load.slave):
        title = f"time until the slave has all, {load.title}"
        table.append(_load_row(rounds, load.name, title, "ms", "slave_behind_ms"))
    table.append(
        _row(
            "start to first accepted send",
            "s",
            "lower",
            START_GOAL,
            _medians(rounds, lambda turn: _known(turn.start_seconds)),
        )
    )
    table.append(
        _row(
            "anonymous memory, idle",
            "MiB",
            "lower",
            IDLE_MEMORY_GOAL,
            _medians(rounds, lambda turn: _known(turn.idle_bytes, MEBIBYTE)),
        )
    )
    table.append(
        _row(
            "anonymous memory, under load",
            "MiB",
            "lower",
            None,
            _medians(rounds, _loaded_mebibytes),
        )
    )
    return [row for row in table if row.ours is not None or row.original is not None]


def _load_row(rounds: Sequence[Round], load: str, title: str, unit: str, field: str) -> Row:
    behind = {each.name: BEHIND_GOAL for each in LOADS}
    goals = {"rate": RATE_GOALS, "broker_cpu_us": CPU_GOALS, "slave_behind_ms": behind}.get(
        field, {}
    )

    def values(turn: Round) -> list[float]:
        of_load = (sample for sample in turn.samples if sample.load == load)
        return [value for sample in of_load for value in _known(getattr(sample, field))]

    return _row(
        title,
        unit,
        "higher" if field == "rate" else "lower",
        goals.get(load),
        _medians(rounds, values),
    )


def _row(
    metric: str,
    unit: str,
    better: Better,
    goal: Goal | None,
    medians: dict[str, float | None],
) -> Row:
    return Row(metric, unit, better, medians["ours"], medians["original"], goal)


def _known(value: float | None, unit: int = 1) -> list[float]:
    """Returns the value in this unit, if it was measured."""
    return [] if value is None else [value / unit]


def _loaded_mebibytes(turn: Round) -> list[float]:
    """Returns the most memory that any load of the turn left, if it was measured."""
    loaded = [sample.anonymous_bytes / MEBIBYTE for sample in turn.samples]
    return [max(loaded)] if loaded else []


def _medians(
    rounds: Iterable[Round], values: Callable[[Round], list[float]]
) -> dict[str, float | None]:
    found: dict[str, list[float]] = {"ours": [], "original": []}
    for turn in rounds:
        found[turn.side].extend(values(turn))
    return {side: median(of_side) if of_side else None for side, of_side in found.items()}


def table(of_rows: Sequence[Row]) -> str:
    """Returns the rows as text with columns of fixed width."""
    head = ("metric", "", "ours", "original", "ratio", "goal", "")
    cells = [head, *(_cells(row) for row in of_rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = []
    for line in cells:
        padded = [
            cell.rjust(width) if 2 <= column <= 4 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    lines.insert(1, "-" * max(len(line) for line in lines))
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}x"
    goal = "" if row.goal is None else str(row.goal)
    return (
        row.metric,
        row.unit,
        _number(row.ours),
        _number(row.original),
        ratio,
        goal,
        row.verdict,
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def from_json(results: dict[str, Any]) -> list[Row]:
    """Returns the rows of results that `as_json` has made, with today's goals."""
    rounds = [
        Round(**{**turn, "samples": tuple(Sample(**sample) for sample in turn["samples"])})
        for turn in results["rounds"]
    ]
    return rows(rounds)


def as_json(rounds: Sequence[Round], machine: dict[str, Any]) -> dict[str, Any]:
    """Returns everything that was measured: the rows, and each round as it was."""
    return {
        "machine": machine,
        "rows": [
            {
                "metric": row.metric,
                "unit": row.unit,
                "ours": row.ours,
                "original": row.original,
                "ratio": row.ratio,
                "goal": None if row.goal is None else str(row.goal),
                "verdict": row.verdict or None,
            }
            for row in rows(rounds)
        ],
        "rounds": [asdict(turn) for turn in rounds],
    }


def plot(of_rows: Sequence[Row], file: Path, title: str = "", source: str = "") -> bool:
    """Bars of the rates beside the original's, as SVG; `source` is noted in it.

    It is to be read on a phone, so names stand above their bars, and on a dark page, so it brings
    its own paper. Answers whether there was a rate to draw; where there is none an earlier file is
    removed.
    """
    drawn = [row for row in reversed(of_rows) if row.ratio is not None and row.unit == "msg/s"]
    if not drawn:
        file.unlink(missing_ok=True)
        return False
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "bench", "font.size": 12}):
        figure = Figure(figsize=(7, 0.62 * len(drawn) + 2), layout="constrained")
        figure.patch.set_facecolor(_PAPER)
        axes = figure.subplots()
        axes.set_facecolor(_PAPER)
        for height, row in enumerate(drawn):
            _bar(axes, height, row)
        axes.axvline(1, color=_INK, lw=1.2)
        axes.set_xscale("log")
        axes.margins(x=0.16, y=0.02)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_yticks([])
        axes.set_ylabel("load")
        axes.set_xlabel("ours / the original's (logarithmic; 1 means equal)")
        axes.set_title(title, loc="left", fontsize=14, fontweight="bold")
        figure.legend(
            handles=[
                Patch(color=_WIN, label="more than the original"),
                Patch(color=_LOSS, label="fewer"),
                Line2D([], [], color=_INK, lw=3, marker="|", ls="", ms=12, mew=3, label="wanted"),
            ],
            loc="outside lower center",
            ncols=3,
            frameon=False,
        )
        figure.savefig(file, format="svg", metadata={"Date": None, "Description": source})
    return True


def _bar(axes: Axes, height: int, row: Row) -> None:
    ratio = row.ratio or 1.0
    color = _WIN if ratio >= 1 else _LOSS
    axes.barh(height, ratio - 1, left=1, color=color, height=0.4)
    if row.goal and row.goal.min_ratio:
        axes.plot([row.goal.min_ratio] * 2, [height - 0.26, height + 0.26], color=_INK, lw=3)
    axes.annotate(f" {ratio:.2f}", (max(ratio, 1), height), va="center")
    axes.annotate(
        row.metric, (0.01, height + 0.24), xycoords=axes.get_yaxis_transform(), va="bottom"
    )
