# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter

import pytest

from txrocketmq.spark.ingest.documents import (
    Commit,
    Lost,
    Part,
    Plan,
    Position,
    Split,
    SplitResult,
    commit_of,
)

PLAN = Plan(
    run=2,
    id="one",
    created_ms=5,
    splits=(
        Split("a", 100, 200, first_is_boundary=True),
        Split("a", 200, 250, first_is_boundary=True),
        Split("b/1", 0, 50, first_is_boundary=True),
    ),
    ends={"a": Position(250, "fe"), "b/1": Position(50)},
    lost=(Lost("a", 90, 100),),
    check_crc=True,
)
PART = Part("topic=消息/part-x.parquet", 3, 999, "a", {"topic": "消息"}, 1, 2)


def results() -> list[SplitResult]:
    return [
        SplitResult(
            "a-1", "one", [PART], 4, 3, Counter({"消息": 3}), 100, Counter({"crc": 1}),
            [Lost("a", 120, 130)], 11,
        ),
        SplitResult("a-2", "one", [], 0, 0, size_bytes=50),
        SplitResult("b-1", "one", [PART], 1, 1, Counter({"消息": 1}), 50),
    ]  # fmt: skip


def test_the_name_of_a_split_is_that_of_its_files() -> None:
    assert PLAN.splits[2].name == "b%2F1-00000000000000000000-00000000000000000050"


def test_documents_come_back() -> None:
    assert Plan.from_json(PLAN.to_json()) == PLAN
    for result in results():
        assert SplitResult.from_json(result.to_json()) == result
    commit = commit_of(PLAN, results(), None, 77)
    assert Commit.from_json(commit.to_json()) == commit


def test_a_document_of_other_software_is_refused() -> None:
    with pytest.raises(ValueError, match="version 2"):
        Plan.from_json(PLAN.to_json().replace(b'"v": 1', b'"v": 2'))


def test_a_commit_adds_up_what_its_splits_gave() -> None:
    commit = commit_of(PLAN, results(), None, 77)
    assert (commit.run, commit.plan_id, commit.committed_ms) == (2, "one", 77)
    assert commit.parts == (PART, PART)
    assert (commit.rows, commit.records, commit.log_bytes) == (4, 5, 200)
    assert commit.topics == {"消息": 4}
    assert commit.quarantined == {"crc": 1}
    assert commit.lost == (Lost("a", 90, 100), Lost("a", 120, 130))
    assert commit.positions == {
        "a": Position(250, "fe"),
        "b/1": Position(50),
    }
    assert commit.starts == {"a": 100, "b/1": 0}
    assert (commit.total_rows, commit.total_parts) == (4, 2)


def test_a_commit_goes_on_from_the_one_before() -> None:
    before = commit_of(PLAN, results(), None, 77)
    plan = Plan(3, "two", 6, (Split("a", 250, 260, first_is_boundary=True),), {"a": Position(260)})
    commit = commit_of(plan, [SplitResult("a-3", "two", rows=2)], before, 78)
    assert commit.positions == {
        "a": Position(260),
        "b/1": Position(50),
    }
    assert commit.starts == before.starts
    assert (commit.total_rows, commit.total_parts) == (6, 2)
