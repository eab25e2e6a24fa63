# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console

from tests.spark.reports.results import NASTY, empty_results, result
from txrocketmq.spark.reports.findings import Finding
from txrocketmq.spark.reports.page.console import show
from txrocketmq.spark.reports.report import Result


def _shown(results: list[Result], width: int = 100, found: Sequence[Finding] = ()) -> str:
    out = io.StringIO()
    show(Console(file=out, width=width), found, results)
    return out.getvalue()


def test_a_table_has_words_units_and_all_rows() -> None:
    rows = [{"topic": f"T{n}", "bytes": 1536, "age": None} for n in range(3)]
    lines = _shown([result(None, rows)]).splitlines()
    assert lines[:2] == ["Findings", "Nothing stands out in these reports."]
    assert lines[3] == "Made up"
    assert lines[5].split() == ["topic", "bytes", "age"]
    assert [line.split() for line in lines[7:10]] == [[f"T{n}", "1.5", "KiB"] for n in range(3)]


def test_findings_come_first_and_name_their_report() -> None:
    shown = _shown([], found=[Finding("problem", "Group [red]g[/red] lags.", "lag")])
    assert shown.splitlines()[1] == "problem: Group [red]g[/red] lags. [lag]"


def test_names_are_no_markup_and_no_terminal_codes() -> None:
    shown = _shown([result(None, [{"topic": "[red]x[/red]", "tag": NASTY}])], width=200)
    assert "[red]x[/red]" in shown
    assert "\x1b" not in shown


def test_nothing_is_cut_off_on_a_narrow_terminal() -> None:
    shown = _shown([result(None, [{"topic": "t" * 60, "messages": 1}])], width=40)
    assert shown.count("t") >= 60


def test_an_empty_store_says_so() -> None:
    assert _shown(empty_results()).count("Nothing of this kind") == len(empty_results())


def test_a_report_that_a_store_cannot_give_says_why() -> None:
    made = Result(empty_results()[0].report, [], [], "the queues are in RocksDB")
    assert "the queues are in RocksDB" in _shown([made])
