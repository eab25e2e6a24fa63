# SPDX-License-Identifier: Apache-2.0
"""Medians, ratios and verdicts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.loads import Sample


def turn(side: str, rate: float, cpu_us: float = 10.0, load: str = "sync64") -> report.Round:
    sample = Sample(
        load=load,
        rate=rate,
        p50_ms=None,
        p99_ms=None,
        broker_cpu_us=cpu_us,
        client_cpu_us=1.0,
        anonymous_bytes=300 << 20,
        failed=0,
        first_error=None,
        others_cores=0.0,
    )
    return report.Round(side, 1.0, 100 << 20, (sample,))


def row(rounds: list[report.Round], metric: str) -> report.Row:
    [found] = [row for row in report.rows(rounds) if row.metric == metric]
    return found


def test_a_rate_is_compared_by_the_medians_of_both_sides() -> None:
    rounds = [turn("ours", rate) for rate in (10, 60, 70)]
    rounds += [turn("original", rate) for rate in (50, 50, 900)]
    found = row(rounds, "sync, 64 threads")
    assert (found.ours, found.original) == (60, 50)
    assert found.ratio == pytest.approx(1.2)
    assert found.verdict == "met"


def test_a_rate_below_its_goal_is_missed() -> None:
    assert row([turn("ours", 59), turn("original", 50)], "sync, 64 threads").verdict == "missed"


@pytest.mark.parametrize(
    ("ours", "original", "verdict"), [(14, 20, "met"), (16, 20, "missed"), (12, 11, "missed")]
)
def test_cpu_must_keep_its_budget_and_beat_the_original(
    ours: float, original: float, verdict: str
) -> None:
    rounds = [turn("ours", 1, ours), turn("original", 1, original)]
    assert row(rounds, "broker CPU a message, sync, 64 threads").verdict == verdict


def test_memory_at_rest_counts_in_mebibytes() -> None:
    found = row([turn("ours", 1), turn("original", 1)], "anonymous memory, idle")
    assert (found.ours, found.ratio, found.verdict) == (100, 1.0, "missed")


def test_one_side_alone_has_values_but_no_ratio_and_no_verdict() -> None:
    found = row([turn("ours", 1)], "sync, 64 threads")
    assert (found.ours, found.original, found.ratio, found.verdict) == (1, None, None, "")


def test_loads_that_did_not_run_have_no_row() -> None:
    metrics = [row.metric for row in report.rows([turn("ours", 1)])]
    assert "sync, 1 thread" not in metrics
    assert "send to consume at 100 msg/s, p50" not in metrics


def test_a_turn_whose_loads_all_failed_still_has_its_start_and_memory() -> None:
    failed = report.Round("ours", 1.0, 100 << 20, ())
    metrics = [row.metric for row in report.rows([failed])]
    assert metrics == ["start to first accepted send", "anonymous memory, idle"]


def test_the_table_shows_ratio_goal_and_verdict() -> None:
    lines = report.table(report.rows([turn("ours", 60), turn("original", 50)])).splitlines()
    [line] = [line for line in lines if line.startswith("sync, 64 threads")]
    assert line.split()[3:] == ["msg/s", "60", "50", "1.20x", ">=", "1.2x", "met"]


def test_the_plot_is_drawn_only_where_there_is_a_ratio(tmp_path: Path) -> None:
    file = tmp_path / "ratios.svg"
    assert report.plot(report.rows([turn("ours", 60), turn("original", 50)]), file, "T", "S1")
    drawn = file.read_text()
    for text in ("1.20", "S1", "sync, 64 threads"):
        assert text in drawn
    assert not report.plot(report.rows([turn("ours", 60)]), file)
    assert not file.exists()


def test_results_come_back_from_their_json() -> None:
    rounds = [turn("ours", 60), turn("original", 50)]
    results = json.loads(json.dumps(report.as_json(rounds, {"cores": 2})))
    assert report.from_json(results) == report.rows(rounds)


def test_a_slave_may_be_200_ms_behind() -> None:
    rounds = []
    for side, behind_ms in (("ours", 150.0), ("original", 900.0), ("ours", 260.0)):
        one = turn(side, 1, load="sync64-replicated")
        sample = replace(one.samples[0], slave_behind_ms=behind_ms)
        rounds.append(replace(one, samples=(sample,)))
    metric = "time until the slave has all, sync, 64 threads, SYNC_MASTER of 4.9.7"
    assert (row(rounds[:2], metric).ours, row(rounds[:2], metric).verdict) == (150, "met")
    assert row(rounds[1:], metric).verdict == "missed"


def test_loads_without_a_slave_have_no_row_of_it() -> None:
    metrics = [found.metric for found in report.rows([turn("ours", 1), turn("original", 1)])]
    assert not [metric for metric in metrics if "slave" in metric]
