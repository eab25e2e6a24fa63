# SPDX-License-Identifier: Apache-2.0
"""What is only in memory when a broker stops, and failures in the middle of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.last_writes import write_all
from txrocketmq.broker.store.formats.errors import StoreError


def nothing_fails(what: str, error: Exception) -> None:
    raise AssertionError(what) from error


def test_what_was_only_in_memory_is_in_the_files(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.topic("T")
    parts.put("T", 0)
    parts.offsets.commit("g", "T", 0, 1)
    assert not (parts.config_folder / "consumerOffset.json").exists()
    write_all(parts, parts.now_ms, nothing_fails)
    assert not (tmp_path / "store" / "abort").exists(), "the store is closed in order"
    again = Parts(tmp_path)
    again.load()
    assert again.store.max_offset("T", 0) == 1
    assert again.offsets.query("g", "T", 0) == 1
    assert again.topics.get("T") is not None
    again.store.stop(again.now_ms)


class Notes:
    """Stands for parts of a broker: notes what is called, and raises what it is told to."""

    def __init__(self, errors: dict[str, Exception], called: list[str], name: str = "") -> None:
        self._errors = errors
        self._called = called
        self._name = name

    def __getattr__(self, name: str) -> Notes:
        return Notes(self._errors, self._called, f"{self._name}.{name}".removeprefix("."))

    def __call__(self, *_: int) -> Any:
        self._called.append(self._name)
        if self._name in self._errors:
            raise self._errors[self._name]
        return None


def steps(errors: dict[str, Exception]) -> tuple[list[str], list[tuple[str, str]]]:
    """What is called, and what has failed and why."""
    called: list[str] = []
    failed: list[tuple[str, str]] = []
    parts: Any = Notes(errors, called)
    write_all(parts, 7, lambda what, error: failed.append((what, str(error))))
    return called, failed


def test_records_of_the_store_come_first_and_its_end_last() -> None:
    called, failed = steps({})
    assert called[:2] == ["pop.check_points.write_all", "flush_all"]
    assert called[-1] == "store.stop"
    assert set(called[2:-1]) == {
        "timers.close", "timers.metrics.saving.write_now", "transaction_check.settle",
        "pop.settle", "offsets.saving.write_now", "pop.orders.saving.write_now",
        "transaction_metrics.saving.write_now", "schedule.settle", "schedule.saving.write_now",
        "modes.saving.write_now", "filters.saving.write_now", "topics.saving.write_now",
        "groups.saving.write_now",
    }  # fmt: skip
    assert failed == []


@pytest.mark.parametrize("error", [OSError("full"), StoreError("full")])
def test_a_failure_does_not_stop_the_rest(error: Exception) -> None:
    expected, _ = steps({})
    names = expected
    for name in names:
        called, failed = steps({name: error})
        assert [each for each in called if each in names] == names
        ((what, why),) = failed
        assert why == "full"
        assert what.split()[0] in {"writing", "keeping", "flushing", "closing"}
    called, failed = steps(dict.fromkeys(names, error))
    assert called == names
    assert len(failed) == len(names)
    assert failed[-1] == ("closing the store", "full")


def test_a_defect_is_not_taken_for_a_full_disk() -> None:
    with pytest.raises(KeyError):
        steps({"flush_all": KeyError("oops")})
