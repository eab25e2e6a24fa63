# SPDX-License-Identifier: Apache-2.0
"""The dashboard of docs/grafana can be read: each panel has its place, and each line its name.

That its queries have data is checked with a Prometheus, in compat_tests/test_dashboard.py.
"""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pytest

COLUMNS: Final = 24
MANY: Final = {"topic", "consumer_group"}
"""Labels that may have thousands of values."""
Panel = dict[str, Any]


@pytest.fixture(scope="module")
def board(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / "docs/grafana/txrocketmq.json").read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def panels(board: dict[str, Any]) -> list[Panel]:
    found = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len(found) > 30
    return found


def test_each_place_has_one_panel(board: dict[str, Any]) -> None:
    places: dict[tuple[int, int], str] = {}
    for panel in board["panels"]:
        at = panel["gridPos"]
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                assert (x, y) not in places, f"{panel['title']} lies over {places[x, y]}"
                places[x, y] = panel["title"]
    height = max(y for _, y in places) + 1
    assert set(places) == {(x, y) for x in range(COLUMNS) for y in range(height)}, "gaps"
    for one, other in combinations(board["panels"], 2):
        assert one["id"] != other["id"], f"{one['title']} and {other['title']}"


def test_what_may_be_many_is_cut_to_ten(panels: list[Panel]) -> None:
    """A line for each of a thousand topics could not be told from the others."""
    for panel in panels:
        for target in panel["targets"]:
            expression = target["expr"]
            by = {
                label.strip()
                for labels in re.findall(r"by \(([^)]*)\)", expression)
                for label in labels.split(",")
            }
            assert not by & MANY or "topk(10, " in expression, f"{panel['title']}: {expression}"


def test_lines_of_one_panel_have_names_of_their_own(panels: list[Panel]) -> None:
    for panel in panels:
        names = [target["legendFormat"] for target in panel["targets"]]
        assert all(names), panel["title"]
        assert len(set(names)) == len(names), panel["title"]
        grouped = [re.findall(r"by \(([^)]*)\)", target["expr"]) for target in panel["targets"]]
        for name, by in zip(names, grouped, strict=True):
            labels = {label.strip() for each in by for label in each.split(",")} - {"le"}
            assert labels <= set(re.findall(r"\{\{(\w+)\}\}", name)), f"{panel['title']}: {name}"


def test_a_number_is_red_only_where_the_dashboard_says_so(panels: list[Panel]) -> None:
    """Without thresholds of its own a panel has those of Grafana, which is red from 80."""
    numbers = [panel for panel in panels if panel["type"] == "stat"]
    assert numbers
    for panel in numbers:
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert steps[0] == {"value": None, "color": "green"}, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] == "ms" or len(steps) == 1, panel["title"]


def test_processes_are_only_ours(board: dict[str, Any], panels: list[Panel]) -> None:
    """Much else that a Prometheus watches has process metrics, and would be in "All"."""
    (job,) = [each for each in board["templating"]["list"] if each["name"] == "job"]
    assert "process_" not in job["query"]
    assert "allValue" not in job, "All is what the query finds"
    shown = [
        target["expr"]
        for panel in panels
        for target in panel["targets"]
        if re.search(r"\b(process|txrocketmq_namesrv)_", target["expr"])
    ]
    assert len(shown) >= 4
    for expression in shown:
        metrics = len(re.findall(r"\b(?:process|txrocketmq_namesrv)_", expression))
        assert expression.count('job=~"$job"') == metrics, expression
