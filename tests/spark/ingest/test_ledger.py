# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from txrocketmq.spark.ingest.documents import Part, Plan, Position, Split, SplitResult, commit_of
from txrocketmq.spark.ingest.errors import TableBusy, TableError
from txrocketmq.spark.ingest.folder import LocalFolder
from txrocketmq.spark.ingest.ledger import Ledger
from txrocketmq.spark.ingest.settings import TableSettings, chosen_columns

SETTINGS = TableSettings(columns=chosen_columns(None))
SPLITS = (
    Split("a", 0, 100, first_is_boundary=True),
    Split("a", 100, 150, first_is_boundary=True),
)
PLAN = Plan(1, "one", 5, SPLITS, {"a": Position(150)})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(LocalFolder(str(tmp_path / "table")))


def result(number: int, plan_id: str = "one") -> SplitResult:
    split = SPLITS[number]
    path = f"topic=t/part-{split.name}.parquet"
    return SplitResult(split.name, plan_id, [Part(path, 1, 4, "a", {"topic": "t"}, 1, 1)], 1, 1)


def test_a_new_table_has_nothing(ledger: Ledger) -> None:
    assert ledger.settings() is None
    assert ledger.last_commit() is None
    assert ledger.plan(1) is None
    assert list(ledger.data_files()) == []


def test_settings_are_fixed_once(ledger: Ledger) -> None:
    with ledger.folder.lock():  # which makes _ingest
        assert ledger.settings() is None
    ledger.create_table(SETTINGS)
    assert ledger.settings() == SETTINGS


def test_a_folder_with_other_things_is_no_table(ledger: Ledger) -> None:
    ledger.folder.write("holiday.jpg", b"")
    with pytest.raises(TableError, match=r"holiday.jpg"):
        ledger.settings()


def test_a_plan_is_fixed_once(ledger: Ledger) -> None:
    ledger.write_plan(PLAN)
    assert ledger.plan(1) == PLAN
    with pytest.raises(TableBusy):
        ledger.write_plan(replace(PLAN, id="two"))


def test_results_of_the_plan_that_is_there(ledger: Ledger) -> None:
    ledger.write_plan(PLAN)
    assert ledger.results(PLAN) == {}
    ledger.write_result(PLAN, result(1))
    ledger.write_result(PLAN, result(0, plan_id="of another run"))
    assert ledger.results(PLAN) == {SPLITS[1].name: result(1)}
    assert ledger.results(PLAN, {SPLITS[1].name}) == {}
    assert ledger.result(PLAN, SPLITS[0]) is None
    assert ledger.result(PLAN, SPLITS[1]) == result(1)


def test_a_commit_ends_the_run(ledger: Ledger) -> None:
    ledger.write_plan(PLAN)
    commit = commit_of(PLAN, [result(0), result(1)], None, 9)
    ledger.commit(PLAN, commit)
    assert ledger.last_commit() == commit
    assert list(ledger.commits()) == [commit]
    assert ledger.plan(2) is None
    with pytest.raises(TableBusy, match="has committed run 1"):
        ledger.commit(PLAN, commit)


def test_a_plan_that_was_written_over_is_not_committed(ledger: Ledger) -> None:
    """Where there are no locks, two runs may begin at once."""
    ledger.write_plan(PLAN)
    ledger.folder.write("_ingest/plans/0000000001.json", replace(PLAN, id="two").to_json())
    with pytest.raises(TableBusy, match="nothing was committed"):
        ledger.commit(PLAN, commit_of(PLAN, [result(0), result(1)], None, 9))
    assert ledger.last_commit() is None


def test_sweeping_leaves_what_the_next_run_needs(ledger: Ledger) -> None:
    ledger.write_plan(PLAN)
    ledger.write_result(PLAN, result(0))
    ledger.sweep(None)
    assert ledger.plan(1) == PLAN
    assert ledger.results(PLAN) == {SPLITS[0].name: result(0)}
    commit = commit_of(PLAN, [result(0), result(1)], None, 9)
    ledger.commit(PLAN, commit)
    following = replace(PLAN, run=2)
    ledger.write_plan(following)
    ledger.sweep(commit)
    assert ledger.folder.list("_ingest/done") == []
    assert ledger.plan(2) == following


def test_parts_that_no_commit_names_are_deleted(ledger: Ledger) -> None:
    commit = commit_of(PLAN, [result(0), result(1)], None, 9)
    stray = f"topic=u/part-{SPLITS[0].name}-0001.parquet"
    others = "topic=t/part-a-7-8.parquet"
    for path in [part.path for part in commit.parts] + [stray, others]:
        ledger.folder.write(path, b"PAR1")
    assert ledger.delete_strays(PLAN, commit) == [stray]
    assert set(ledger.data_files()) == {others, *(part.path for part in commit.parts)}


@pytest.mark.parametrize("document", [b"", b'{"v": 1}', b'{"v": 2}', b"[]", b'"text"'])
@pytest.mark.parametrize(
    "path",
    [
        "_manifest/0000000001.json",
        "_ingest/plans/0000000001.json",
        f"_ingest/done/0000000001/{SPLITS[0].name}.json",
    ],
)
def test_damaged_documents_are_named(ledger: Ledger, path: str, document: bytes) -> None:
    ledger.folder.write(path, document)
    with pytest.raises(TableError, match=f"{path} is damaged"):
        ledger.last_commit() or ledger.plan(1) or ledger.results(PLAN)
