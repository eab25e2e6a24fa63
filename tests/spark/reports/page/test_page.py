# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
from html.parser import HTMLParser

from tests.spark.reports.results import AT, NASTY, empty_results, one_of_each_plot, result
from txrocketmq.spark.reports.findings import Finding
from txrocketmq.spark.reports.page.page import page
from txrocketmq.spark.reports.report import Bars, Result

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Outline(HTMLParser):
    """Checks that elements nest, and collects what a page refers to and says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.said = ""
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


def test_the_page_needs_nothing_else() -> None:
    text = page("/data/store", AT, [], one_of_each_plot())
    outline = Outline(text)
    assert outline.tags.count("svg") == len(one_of_each_plot())
    assert not {"script", "link", "img", "iframe"} & set(outline.tags)
    for name, value in outline.attributes:
        if name in {"href", "xlink:href", "src"}:
            assert value is not None
            assert value.startswith("#"), value
    ids = [value for name, value in outline.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert "@import" not in text
    assert re.search(r"url\((?!#)", text) is None


def test_it_says_of_what_and_when_it_is() -> None:
    said = Outline(page("/data/store", AT, [], one_of_each_plot())).said
    assert "RocketMQ store /data/store" in said
    assert "Made at 2026-11-20 12:00:00 UTC" in said
    assert "SELECT 1" in said
    assert "messages per second" in said


def test_findings_come_first_and_lead_to_their_report() -> None:
    found = [Finding("problem", NASTY, "bars"), Finding("note", "all is well", "stack")]
    text = page("s", AT, found, one_of_each_plot())
    assert text.index("all is well") < text.index('<section id="bars"')
    assert text.count('href="#bars"') == 2
    assert "<script" not in text
    assert "Nothing stands out" in page("s", AT, [], one_of_each_plot())


def test_plots_and_tables_say_what_they_are_and_scroll_by_themselves() -> None:
    text = page("s", AT, [], one_of_each_plot())
    outline = Outline(text)
    labels = [value for name, value in outline.attributes if name == "aria-label"]
    assert labels.count("Plot: Made up") == len(one_of_each_plot())
    assert labels.count("Table: Made up") == len(one_of_each_plot())
    assert outline.tags.count("figcaption") == outline.tags.count("figure")
    assert "Made up. Messages by topic and queue id; the first 15 of 20 rows." in labels


def test_a_long_table_under_a_plot_is_folded() -> None:
    rows = [{"topic": f"t{n}", "messages": n} for n in range(30)]
    drawn = result(Bars(["topic"], "messages"), rows)
    assert "Table with 30 rows" in page("s", AT, [], [drawn])
    assert "Table with" not in page("s", AT, [], [result(None, rows)])


def test_only_long_texts_are_wrapped() -> None:
    text = page("s", AT, [], [result(None, [{"topic": "t" * 100, "tag": "short words stay"}])])
    assert f'<td class="long">{"t" * 100}</td>' in text
    assert "<td>short words stay</td>" in text


def test_dark_and_light_have_the_same_colours_by_name() -> None:
    text = page("s", AT, [], one_of_each_plot())
    light, dark = re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    names = re.findall(r"(--[\w-]+):", light)
    assert names == re.findall(r"(--[\w-]+):", dark)
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= set(names)


def test_whatever_a_name_holds_stays_text() -> None:
    text = page(NASTY, AT, [], one_of_each_plot(NASTY))
    outline = Outline(text)
    assert "script" not in outline.tags
    assert "<script>alert('x')</script>" in outline.said
    text.encode("utf-8")
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_an_empty_store_has_a_page() -> None:
    results = empty_results()
    outline = Outline(page("/data/store", AT, [], results))
    assert outline.said.count("Nothing of this kind") == len(results)
    assert "svg" not in outline.tags


def test_numbers_stand_to_the_right() -> None:
    text = page("s", AT, [], [result(None, [{"topic": "a", "messages": 1500}])])
    assert '<td class="number">1,500</td>' in text
    assert "<td>a</td>" in text


def test_a_report_that_a_store_cannot_give_says_why() -> None:
    made = Result(empty_results()[0].report, [], [], "the queues are in <RocksDB>")
    assert "the queues are in <RocksDB>" in Outline(page("s", AT, [], [made])).said
