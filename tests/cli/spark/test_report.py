# SPDX-License-Identifier: Apache-2.0
"""The command line; what reports find is in tests/engine/test_reports.py."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.cli.spark import report
from txrocketmq.spark.arrow.errors import SparkSourceError
from txrocketmq.spark.reports import catalog
from txrocketmq.spark.reports.report import Report, Result

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """The reports that were run; each found one row. Nothing is read."""
    ran: list[Report] = []

    def results(options: argparse.Namespace, reports: Sequence[Report]) -> list[Result]:
        options.now = options.now or NOW
        ran.extend(reports)
        rows = [{"topic": "<消息>", "messages": 3, "first": NOW}]
        return [Result(each, list(rows[0]), rows) for each in reports]

    monkeypatch.setattr(report, "_results", results)
    return ran


def test_all_reports_as_tables(asked: list[Report], capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["--store", "/s"]) == 0
    assert asked == list(catalog.REPORTS)
    shown = capsys.readouterr().out
    assert all(each.title in shown for each in catalog.REPORTS)
    assert "<消息>" in shown


@pytest.mark.parametrize(
    "words", [["topics,lag"], ["topics", "lag"], ["topics", "--only", "lag"], ["lag,", "topics"]]
)
def test_some_reports_in_the_order_of_the_page(asked: list[Report], words: list[str]) -> None:
    assert report.main(["--store", "/s", "--only", *words]) == 0
    assert asked == [catalog.LAG, catalog.TOPICS]


def test_json_is_one_object(asked: list[Report], capsys: pytest.CaptureFixture[str]) -> None:
    assert report.main(["--store", "/a", "/b", "--json", "--only", "topics"]) == 0
    time = "2026-11-20T12:00:00+00:00"
    assert json.loads(capsys.readouterr().out) == {
        "stores": ["/a", "/b"],
        "now": time,
        "findings": [],
        "reports": {"topics": [{"topic": "<消息>", "messages": 3, "first": time}]},
        "problems": {},
    }


def test_a_page_instead_of_tables(
    asked: list[Report], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.html"
    assert report.main(["--store", "/s", "--html", str(file), "--only", "topics"]) == 0
    assert "&lt;消息&gt;" in file.read_text("utf-8")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert str(file) in shown.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "/nowhere"], "/nowhere"),
        (["--store", "/s", "--html", "/nowhere/report.html"], "the folder /nowhere"),
        (["--store", "/s", "--option", "maxBytesPerTrigger=1"], "maxBytesPerTrigger"),
        (["--store", "/s", "--only", "lags"], "lags"),
        (["--store", "/s", "--option", "colums=a"], "colums"),
        (["--store", "/s", "--option", "startingTimestamp=soon"], "startingTimestamp"),
        (["--store", "/s", "--option", "columns=topic"], "columns"),
        (["--store", "/s", "--option", "storepath=/t"], "storePath"),
        (["--store", "/s", "--option", "path=/t"], "storePath"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_read(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("txrocketmq report: ")
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_page_that_cannot_be_written_is_told_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert report.main(["--store", "/s", "--html", str(tmp_path)]) == 1
    assert f"--html {tmp_path} is a folder: give the name of a file" in capsys.readouterr().err
    page = tmp_path / "report.html"
    for locked in (tmp_path, page):
        monkeypatch.setattr("os.access", lambda path, _mode, locked=locked: path != locked)
        assert report.main(["--store", "/s", "--html", str(page)]) == 1
        assert f"--html: {page} may not be written by this user" in capsys.readouterr().err
        page.touch()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--store"],
        ["--store", "/s", "--top", "0"],
        ["--store", "/s", "--top", "many"],
        ["--store", "/s", "--now", "yesterday"],
        ["--store", "/s", "--option", "a"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        report.main(arguments)
    assert ended.value.code == 2
    assert "Usage: txrocketmq report" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["2026-11-20T12:00:00", "2026-11-20T12:00:00Z", "2026-11-20 14:00+02:00"]
)
def test_times_are_utc_unless_they_say_otherwise(text: str) -> None:
    assert report.parse_arguments(["--store", "/s", "--now", text]).now == NOW


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (SparkSourceError("a record is damaged"), 1, "a record is damaged"),
        (ModuleNotFoundError("No module", name="duckdb"), 1, "pip install 'txrocketmq[reports]'"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_are_one_sentence(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(*_: Any) -> list[Result]:
        raise error

    monkeypatch.setattr(report, "_results", fails)
    assert report.main(["--store", "/s"]) == code
    shown = capsys.readouterr().err
    assert said in shown
    assert len(shown.splitlines()) <= 1
