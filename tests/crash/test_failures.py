# SPDX-License-Identifier: Apache-2.0
"""A failure at each call of the disk, for each method and error, and at each call within a put.

One scenario is run again and again; the n-th time, the n-th call fails. It is judged in the same
life, after a kill, after a power cut and after an orderly stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any, Final

import pytest

from tests.crash.calls import ERRORS, FailingFiles, at_call
from tests.crash.judge import RuleBroken
from tests.crash.ledger import Ledger, Shape
from tests.crash.life import TINY, Life
from tests.crash.rounds import ROUNDS
from tests.disk import NOW_MS, MemoryFiles
from txrocketmq.broker.store.formats.config import ASYNC_FLUSH, SYNC_FLUSH, StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError

FAILURES: Final = (OSError, MemoryError, StoreError)
SHAPE: Final = Shape(3, topics=2, queues=2, least=50, most=900)
METHODS: Final = (
    "allocate", "entries", "exists", "filled", "free_bytes", "has_data", "hold", "lock",
    "make_directory", "map", "modified_ms", "read", "release", "remove", "remove_directory", "sync",
    "used_ratio", "write",
)  # fmt: skip
TRANSIENT: Final = ("EMFILE", "MemoryError")
"""What says nothing of the disk: the store must go on after it."""
HOUR_MS: Final = 3_600_000


def config(flush: str, **settings: Any) -> StoreConfig:
    return StoreConfig(
        store_path_root_dir="/store", flush_disk_type=flush,
        **{**TINY, "enable_consume_queue_ext": True, **settings},
    )  # fmt: skip


def steps(life: Life, clock_step_ms: int, deleted: str) -> list[Callable[[], object]]:
    """All that a broker asks of its store, once at least; the topic is deleted if there is one."""
    return [
        lambda: life.put(1),
        lambda: life.put(10),
        life.flush,
        lambda: life.put(60),
        lambda: life.set_clock(clock_step_ms),
        lambda: life.tick(2_000),
        life.flush,
        lambda: life.put(1),
        lambda: life.tick(61_000),
        life.flush,
        life.expire,
        lambda: life.tick(11_000),
        lambda: life.put(5),
        lambda: life.delete_topic(deleted) if deleted else None,
        lambda: life.put(20),
        life.flush,
    ]


class Scenario:
    """One run of the steps on a disk with a little history, in which something fails."""

    def __init__(self, flush: str, clock_step_ms: int = 0, deleted: str = "") -> None:
        self.config = config(flush)
        self.ledger = Ledger(SHAPE)
        self.disk = MemoryFiles()
        self._clock_step_ms = clock_step_ms
        self._deleted = deleted
        before = Life(self.config, self.ledger, NOW_MS, self.disk)
        before.start()
        before.put(30)
        before.flush()
        self.disk = self.disk.after_kill()
        self.files = FailingFiles(self.disk)
        self.life = Life(self.config, self.ledger, NOW_MS + 10_000, self.files)

    def run(self) -> None:
        """The steps from the start on; a start that fails is made again by another process."""
        try:
            self.life.start()
        except FAILURES:
            self.disk = self.disk.after_kill()
            self.files = FailingFiles(self.disk)
            self.life = Life(self.config, self.ledger, self.life.now_ms, self.files)
            self.life.start()
        for step in steps(self.life, self._clock_step_ms, self._deleted):
            with suppress(*FAILURES):
                step()

    def judge(self, *, must_go_on: bool, stop: Callable[[FailingFiles], object] = str) -> None:
        """The rule, in this life and in those that follow on each end that it can have.

        `must_go_on` is whether puts must be taken again; `stop` is called before the store is
        stopped, with its disk.
        """
        life = self.life
        before = self.ledger.count
        for _ in range(4):
            life.put(5)
            life.flush()
        life.tick()
        life.flush()
        if must_go_on:
            taken = self.ledger.count - before
            assert taken >= 20, f"only {taken} of 20 later messages are taken"
        life.judge()
        life.put(3)
        life.flush()
        ends = [(self.disk.after_kill(), self.ledger.copy())]
        cut = self.ledger.copy()
        cut.lose_power()
        ends.append((self.disk.after_power_cut(Random(1)), cut))
        stop(self.files)
        with suppress(*FAILURES):
            life.stop()
        ends.append((self.disk.after_kill(), self.ledger))
        for again_on, ledger in ends:
            again = Life(self.config, ledger, life.now_ms, again_on)
            again.start()
            again.judge()
            again.put(10)
            again.flush()
            again.judge()


@cache
def calls_of(flush: str) -> tuple[Counter[str], Counter[str]]:
    """How many calls of each method the steps make when nothing fails, and how many a stop does."""
    scenario = Scenario(flush)
    scenario.run()
    steps_calls = scenario.files.calls.copy()
    scenario.life.stop()
    return steps_calls, scenario.files.calls - steps_calls


def run_all(run: Callable[[int], object], count: int) -> None:
    """Runs with each number, or a part of them in a short campaign; fails with all that failed."""
    failed: dict[int, BaseException] = {}
    stride = max(count // ROUNDS, 1)
    for number in range(1, count + 1, stride):
        try:
            run(number)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            failed[number] = error
    if failed:
        number, first = next(iter(failed.items()))
        tried = len(range(0, count, stride))
        text = f"{len(failed)} of {tried} fail; call {number}: {type(first).__name__}: {first}"
        raise RuleBroken(text) from first


def test_all_methods_are_called() -> None:
    """A method of the disk that is not in the list would never fail; two of them never do."""
    for calls in calls_of(ASYNC_FLUSH):
        assert set(calls) <= {*METHODS, "booted_ms", "is_in_memory"}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("flush", [ASYNC_FLUSH, SYNC_FLUSH])
def test_each_call_of_the_disk_fails_once(flush: str, method: str, error: str) -> None:
    def run(number: int) -> None:
        scenario = Scenario(flush, clock_step_ms=(0, -HOUR_MS, HOUR_MS)[number % 3])
        scenario.files.plan(method, number, ERRORS[error]())
        scenario.run()
        scenario.judge(must_go_on=error in TRANSIENT or method != "sync")

    def run_stop(number: int) -> None:
        scenario = Scenario(flush)
        scenario.run()
        scenario.judge(
            must_go_on=True, stop=lambda files: files.plan(method, number, ERRORS[error]())
        )

    of_steps, of_stop = calls_of(flush)
    run_all(run, of_steps[method])
    run_all(run_stop, of_stop[method])


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("flush", [ASYNC_FLUSH, SYNC_FLUSH])
def test_each_removal_fails_where_a_topic_is_deleted(flush: str, error: str) -> None:
    def run(number: int) -> None:
        scenario = Scenario(flush, deleted="Topic1")
        scenario.files.plan("remove", number, ERRORS[error]())
        scenario.run()
        scenario.judge(must_go_on=True)

    run_all(run, 12)


PUTS: Final[dict[str, int]] = {"one": 1, "batch": 7, "over-files": 60}


@pytest.mark.parametrize("flush", [ASYNC_FLUSH, SYNC_FLUSH])
@pytest.mark.parametrize("what", PUTS)
def test_memory_ends_at_each_call_of_a_put(flush: str, what: str) -> None:
    """A put that fails, wherever, leaves nothing behind."""

    def fail() -> None:
        raise MemoryError

    def prepared() -> Scenario:
        scenario = Scenario(flush)
        scenario.life.start()
        scenario.life.put(10)
        scenario.life.flush()
        return scenario

    def run(number: int) -> None:
        scenario = prepared()
        with at_call(number, fail), suppress(MemoryError):
            scenario.life.put(PUTS[what])
        scenario.judge(must_go_on=True)

    scenario = prepared()
    with at_call(0, fail) as counted:
        scenario.life.put(PUTS[what])
    run_all(run, counted.count)
