# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.spark.reports.results import AT, NASTY, empty_results, one_of_each_plot, result
from txrocketmq.spark.reports.page import plot
from txrocketmq.spark.reports.page.plot import svg
from txrocketmq.spark.reports.report import Bars, Result, Stack, Timeline

KINDS = {made.report.name: made for made in one_of_each_plot()}


def _drawn(made: Result) -> str:
    drawn = svg(made)
    assert drawn is not None
    return drawn


def _element(drawn: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawn)  # noqa: S314 - our own output


def _texts(drawn: str) -> str:
    return " ".join(_element(drawn).itertext())


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_well_formed_and_takes_its_colours_from_the_page(kind: str) -> None:
    drawn = _drawn(KINDS[kind])
    assert _element(drawn).tag.endswith("svg")
    assert "var(--ink)" in drawn
    assert "var(--series-1)" in drawn
    assert "#0102" not in drawn, "a stand-in colour is left"
    assert not re.search(r"https?://(?!www\.w3\.org/)", drawn), "something outside the page"


def test_the_same_rows_give_the_same_picture() -> None:
    assert [svg(made) for made in one_of_each_plot()] == [svg(made) for made in one_of_each_plot()]


def test_ids_of_two_plots_on_a_page_differ_and_what_is_referred_to_is_there() -> None:
    seen: set[str] = set()
    for made in one_of_each_plot():
        drawn = _drawn(made)
        ids = set(re.findall(r'\bid="([^"]+)"', drawn))
        assert ids
        assert not ids & seen
        assert set(re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', drawn)) <= ids
        seen |= ids


def test_names_are_escaped_and_never_formulas() -> None:
    for made in one_of_each_plot(NASTY):
        drawn = _drawn(made)
        assert "<script" not in drawn
        _element(drawn)


def test_bars_show_label_and_unit() -> None:
    rows = [{"topic": "Orders", "bytes": 3 << 30}, {"topic": "Payments", "bytes": 1 << 20}]
    shown = _texts(_drawn(result(Bars(["topic"], "bytes"), rows)))
    assert "Orders" in shown
    assert "Payments" in shown
    assert "GiB" in shown


def test_long_lists_are_cut_and_long_names_shortened() -> None:
    rows = [{"topic": f"{n}-" + "x" * 200 + "-end", "messages": 1} for n in range(50)]
    shown = _texts(_drawn(result(Bars(["topic"], "messages"), rows)))
    assert f"{plot.MAX_BARS - 1}-xx" in shown
    assert f"{plot.MAX_BARS}-xx" not in shown
    assert "x" * 50 not in shown
    assert "x-end" in shown


def _colors_of_tags(topics: int, tags: int) -> tuple[Result, set[str]]:
    """The plot of topics with so many tags each, and the colours that are in it."""
    rows = [
        {"topic": f"t{topic}", "tag": f"tag-{topic}-{tag}", "percent": 100 / tags}
        for topic in range(topics)
        for tag in range(tags)
    ]
    made = result(Stack("topic", "tag", "percent"), rows)
    return made, set(re.findall(r"fill: (var\(--series-\d+\))", _drawn(made)))


def test_a_few_tags_have_a_colour_each_in_all_topics() -> None:
    made, colors = _colors_of_tags(topics=3, tags=4)
    assert len(colors) == 12
    assert "tag-0-3" in _texts(_drawn(made)), "in the legend"
    assert plot.caption(made) == "Share of each tag in each topic."


def test_where_there_are_many_tags_each_topic_has_all_colours() -> None:
    """None of them is drawn like the others of its topic, except beyond the last colour."""
    made, colors = _colors_of_tags(topics=9, tags=10)
    assert len(colors) == 10
    assert "colours are those of each topic alone" in plot.caption(made)
    assert "tag-8-3" in _texts(_drawn(made)), "in its bar"


def test_a_single_moment_can_be_seen() -> None:
    rows = [{"time": AT, "messagesPerSecond": 7.0}]
    drawn = _drawn(result(Timeline("time", ["messagesPerSecond"]), rows))
    assert "<use" in drawn, "no mark"


def test_without_rows_there_is_no_picture() -> None:
    assert [svg(made) for made in empty_results()] == [None] * len(empty_results())
    assert svg(result(None, [{"a": 1}])) is None
