# SPDX-License-Identifier: Apache-2.0
"""Draws results as SVG that stands inside a page and takes its colours from the page's style.

matplotlib draws with stand-in colours; afterwards they become CSS variables (`--ink`, `--grid`,
`--series-1` ...), so that one picture suits light and dark pages. Texts stay texts.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from xml.sax.saxutils import quoteattr

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MultipleLocator, SymmetricalLogLocator

from txrocketmq.spark.reports import texts
from txrocketmq.spark.reports.report import (
    Bars,
    Histogram,
    Percentiles,
    ReportRow,
    Result,
    Stack,
    Timeline,
)

INK: Final = "#010203"
GRID: Final = "#010204"
SERIES: Final = tuple(f"#0102{n:02x}" for n in range(16, 28))
_VARIABLES: Final = {
    INK: "var(--ink)",
    GRID: "var(--grid)",
    **{color: f"var(--series-{n})" for n, color in enumerate(SERIES, 1)},
}
_OTHER_PARTS: Final = SERIES[-1]
_ON_SERIES: Final = "#0b1016"
"""The colour of text on a bar, the same on light and dark pages."""
MAX_BARS: Final = 15
"""The most bars in a plot; further rows are only in the table."""
_MOST_TICKS: Final = 7
_LABEL_CHARACTERS: Final = 60
_WIDTH_INCHES: Final = 10.8
"""The whole width of the page: a plot is not scaled there, and its texts are as large as meant."""
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a topic may contain dollar signs
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


def svg(result: Result) -> str | None:
    """Returns the plot of a result as an `<svg>` element; None when there is nothing to draw."""
    plot, rows = result.report.plot, result.rows
    if plot is None or not rows:
        return None
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": result.report.name}):
        match plot:
            case Bars():
                figure = _bars(plot, rows)
            case Timeline():
                figure = _timeline(plot, rows)
            case Histogram():
                figure = _histogram(plot, rows)
            case Percentiles():
                figure = _percentiles(plot, rows)
            case Stack():
                figure = _stack(plot, rows)
        return _inline(figure, result.report.name, f"{result.report.title}. {caption(result)}")


def caption(result: Result) -> str:
    """Describes the plot of a result in words; empty when it has no plot."""
    plot, rows = result.report.plot, result.rows
    text = ""
    match plot:
        case Bars() | Percentiles():
            things = " and ".join(
                filter(None, (_listed(plot.labels[:-1]), _listed(plot.labels[-1:])))
            )
            shown = f"{_measured(plot)} by {things}"
            more = len(rows) > MAX_BARS
            text = f"{shown}; the first {MAX_BARS} of {len(rows)} rows" if more else shown
        case Timeline():
            text = f"{_listed(plot.values)} over time"
        case Histogram():
            text = f"{texts.axis(plot.value)} by {texts.axis(plot.bucket)}"
        case Stack():
            text = f"{texts.heading(plot.value)} of each {plot.part} in each {plot.label}"
            if _are_of_each_bar(plot, _in_plot(plot, rows)):
                text += f"; there are so many that colours are those of each {plot.label} alone"
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _measured(plot: Bars | Percentiles) -> str:
    if isinstance(plot, Bars):
        return texts.axis(plot.value)
    return f"{_listed(plot.values)} of the delay, on a logarithmic scale,"


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(map(texts.heading, columns))


def _figure(height_inches: float, panels: int = 1) -> tuple[Figure, Sequence[Axes]]:
    figure = Figure(figsize=(_WIDTH_INCHES, height_inches), layout="constrained")
    axes = figure.subplots(panels, 1, sharex=True, squeeze=False)
    return figure, list(axes[:, 0])


def _rows_of_bars(labels: Sequence[str], more_inches: float = 0.0) -> tuple[Figure, Axes]:
    """Makes a figure with a place for a label on the left for each bar, the first on top."""
    figure, (axes,) = _figure(0.6 + more_inches + 0.26 * len(labels))
    axes.set_yticks(range(len(labels)), [_short(text) for text in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    return figure, axes


def _short(text: str) -> str:
    if len(text) <= _LABEL_CHARACTERS:
        return text
    keep = _LABEL_CHARACTERS // 2
    return f"{text[:keep]}\N{HORIZONTAL ELLIPSIS}{text[-keep:]}"


def _number(row: ReportRow, column: str) -> float:
    value = row[column]
    return 0.0 if value is None else float(value)


def _scale(axis: Any, column: str) -> None:
    """Sets the ticks of an axis to the unit of the column."""
    if column in texts.BYTES_COLUMNS:
        largest = max(1.0, *axis.get_data_interval())
        axis.set_major_locator(MultipleLocator(2 ** math.ceil(math.log2(largest / _MOST_TICKS))))
        axis.set_major_formatter(FuncFormatter(lambda value, _: texts.size(value)))
    elif column not in texts.PERCENT_COLUMNS:
        axis.set_major_formatter(FuncFormatter(lambda value, _: _short_number(value)))


def _short_number(value: float) -> str:
    for unit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:g}{suffix}"
    return f"{value:g}"


def _short_time(millis: float) -> str:
    return f"{millis:g} ms" if abs(millis) < 1000 else f"{millis / 1000:,g} s"


def _bars(plot: Bars, rows: Sequence[ReportRow]) -> Figure:
    shown = rows[:MAX_BARS]
    figure, axes = _rows_of_bars([texts.label(row, plot.labels) for row in shown])
    axes.barh(range(len(shown)), [_number(row, plot.value) for row in shown], color=SERIES[0])
    axes.set_xlabel(texts.axis(plot.value))
    axes.set_xlim(left=0)
    _scale(axes.xaxis, plot.value)
    return figure


def _timeline(plot: Timeline, rows: Sequence[ReportRow]) -> Figure:
    figure, panels = _figure(0.4 + 1.6 * len(plot.values), len(plot.values))
    times = [row[plot.time] for row in rows]
    if len(times) > 1:  # the last step has an end, too
        times.append(times[-1] + (times[-1] - times[-2]))
    for axes, column, color in zip(panels, plot.values, SERIES, strict=False):
        values = [_number(row, column) for row in rows]
        values += values[-1:] * (len(times) - len(values))
        axes.fill_between(times, values, step="post", color=color, alpha=0.25, linewidth=0)
        axes.step(times, values, where="post", color=color, linewidth=1.4, marker=_mark(rows))
        axes.set_ylim(bottom=0)
        axes.set_ylabel(texts.axis(column))
        _scale(axes.yaxis, column)
    locator = AutoDateLocator()
    panels[-1].xaxis.set_major_locator(locator)
    panels[-1].xaxis.set_major_formatter(ConciseDateFormatter(locator))
    panels[-1].set_xlabel("UTC")
    return figure


def _mark(rows: Sequence[ReportRow]) -> str:
    """Returns a mark for a single point, which as a line would not be seen."""
    return "o" if len(rows) == 1 else ""


def _histogram(plot: Histogram, rows: Sequence[ReportRow]) -> Figure:
    figure, (axes,) = _figure(2.4)
    axes.bar(range(len(rows)), [_number(row, plot.value) for row in rows], 0.9, color=SERIES[0])
    names = [texts.cell(plot.bucket, row[plot.bucket]) for row in rows]
    axes.set_xticks(range(len(rows)), names, rotation=45, ha="right")
    axes.grid(visible=False, axis="x")
    axes.set_ylabel(texts.axis(plot.value))
    axes.set_xlabel(texts.axis(plot.bucket))
    _scale(axes.yaxis, plot.value)
    return figure


def _percentiles(plot: Percentiles, rows: Sequence[ReportRow]) -> Figure:
    shown = rows[:MAX_BARS]
    figure, axes = _rows_of_bars([texts.label(row, plot.labels) for row in shown])
    for place, row in enumerate(shown):
        values = [_number(row, column) for column in plot.values]
        axes.plot(values, [place] * len(values), color=GRID, linewidth=2, zorder=1)
    for column, color in zip(plot.values, SERIES, strict=False):
        values = [_number(row, column) for row in shown]
        axes.scatter(
            values, range(len(shown)), color=color, label=texts.heading(column), s=22, zorder=2
        )
    axes.set_xscale("symlog", linthresh=1)
    low, high = axes.dataLim.intervalx
    few = low > 0 and high / low < 1_000
    axes.xaxis.set_major_locator(
        SymmetricalLogLocator(base=10, linthresh=1, subs=[1, 2, 5] if few else [1])
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short_time(value)))
    axes.set_xlabel("time from producer to store")
    axes.legend(ncols=len(plot.values), loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def _stack(plot: Stack, rows: Sequence[ReportRow]) -> Figure:
    shown = _in_plot(plot, rows)
    labels = _labels(plot, shown)
    colors = _part_colors(plot, shown)
    of_all = {name: color for (label, name), color in colors.items() if label is None}
    figure, axes = _rows_of_bars(labels, more_inches=0.3 if of_all else 0.0)
    ends = dict.fromkeys(range(len(labels)), 0.0)
    for row in shown:
        label, name = texts.label(row, [plot.label]), texts.label(row, [plot.part])
        place, width = labels.index(label), _number(row, plot.value)
        color = colors.get((None, name)) or colors.get((label, name), _OTHER_PARTS)
        axes.barh(place, width, left=ends[place], color=color)
        if width >= 0.75 * len(name) + 1:
            axes.text(
                ends[place] + width / 2, place, name,
                ha="center", va="center", fontsize=7, color=_ON_SERIES,
            )  # fmt: skip
        ends[place] += width
    if of_all:
        handles = [Patch(color=color, label=_short(name)) for name, color in of_all.items()]
        figure.legend(handles=handles, ncols=6, loc="outside upper center", fontsize=8)
    axes.set_xlim(0, 100)
    axes.set_xlabel(texts.axis(plot.value))
    return figure


def _labels(plot: Stack, rows: Sequence[ReportRow]) -> list[str]:
    return list(dict.fromkeys(texts.label(row, [plot.label]) for row in rows))[:MAX_BARS]


def _in_plot(plot: Stack, rows: Sequence[ReportRow]) -> list[ReportRow]:
    """Returns the rows of the bars that are shown."""
    labels = set(_labels(plot, rows))
    return [row for row in rows if texts.label(row, [plot.label]) in labels]


def _part_colors(plot: Stack, rows: Sequence[ReportRow]) -> dict[tuple[str | None, str], str]:
    """Gives parts colours: by their names alone (None) while there are as many colours.

    Otherwise each bar begins with the first colour, so that the parts of a bar differ, and a colour
    means nothing in another bar.
    """
    if not _are_of_each_bar(plot, rows):
        weights: Counter[str] = Counter()
        for row in rows:
            weights[texts.label(row, [plot.part])] += int(1000 * _number(row, plot.value))
        names = [name for name, _ in weights.most_common()]
        return {(None, name): color for name, color in zip(names, SERIES, strict=False)}
    colors: dict[tuple[str | None, str], str] = {}
    places: Counter[str] = Counter()
    for row in rows:
        label = texts.label(row, [plot.label])
        if places[label] < len(SERIES) - 1:
            colors[label, texts.label(row, [plot.part])] = SERIES[places[label]]
            places[label] += 1
    return colors


def _are_of_each_bar(plot: Stack, rows: Sequence[ReportRow]) -> bool:
    """Returns whether there are too many parts for a colour each."""
    return len({texts.label(row, [plot.part]) for row in rows}) > len(SERIES)


def _inline(figure: Figure, name: str, title: str) -> str:
    """Returns the figure as an HTML element, with unique ids and the page's colours."""
    buffer = io.StringIO()
    with warnings.catch_warnings():  # glyphs that are missing here exist in the reader's browser
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        FigureCanvasSVG(figure).print_svg(
            buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\1{name}-", text)
    for color, variable in _VARIABLES.items():
        text = text.replace(color, variable)
    return text.replace("<svg ", f'<svg role="img" aria-label={quoteattr(title)} ', 1).rstrip()
