# SPDX-License-Identifier: Apache-2.0
"""Power cuts, kills and orderly stops of one store, on a disk that forgets what was not synced."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.crash.ledger import Ledger, Shape
from tests.crash.life import LARGE, TINY, Life
from tests.crash.rounds import Round
from tests.disk import NOW_MS, MemoryFiles
from txrocketmq.broker.store.formats.config import ASYNC_FLUSH, SYNC_FLUSH, StoreConfig

LIVES = 4
CLOCK_STEPS_MS = (0, 0, 0, -3_600_000, 3_600_000)


def config(settings: dict[str, Any], flush: str) -> StoreConfig:
    return StoreConfig(store_path_root_dir="/store", flush_disk_type=flush, **settings)


def next_disk(disk: MemoryFiles, life: Life, random: Random, end: str) -> MemoryFiles:
    """The disk that the next life finds."""
    if end == "stop":
        life.stop()
        return disk.after_kill()
    if end == "kill":
        return disk.after_kill()
    life.ledger.lose_power()
    return disk.after_power_cut(random)


@pytest.mark.share(0.3)
@pytest.mark.parametrize("flush", [SYNC_FLUSH, ASYNC_FLUSH])
def test_what_was_durable_is_there_after_every_cut(crash_round: Round, flush: str) -> None:
    """Files so small that all kinds are rolled; old log files are deleted, clocks are set."""
    live_and_die(crash_round, flush, deletes_topics=False)


@pytest.mark.share(0.06)
@pytest.mark.parametrize("flush", [SYNC_FLUSH, ASYNC_FLUSH])
def test_topics_are_deleted_and_made_anew(crash_round: Round, flush: str) -> None:
    """What comes to a topic after it was deleted is as safe as in any other."""
    live_and_die(crash_round, flush, deletes_topics=True)


def live_and_die(crash_round: Round, flush: str, *, deletes_topics: bool) -> None:
    random = crash_round.random
    ledger = Ledger(Shape(crash_round.seed))
    settings = {**TINY, "enable_consume_queue_ext": random.random() < 0.5}
    disk, now_ms = MemoryFiles(), NOW_MS
    for _ in range(LIVES):
        life = Life(config(settings, flush), ledger, now_ms, disk)
        life.start()
        crash_round.judge(life.judge, life.said)
        ledger.durable(life.store.flush.flushed_offset)
        for _ in range(random.randrange(60)):
            life.step(random, deletes_topics=deletes_topics)
        life.set_clock(random.choice(CLOCK_STEPS_MS))
        for _ in range(random.randrange(60)):
            life.step(random, deletes_topics=deletes_topics)
        end = random.choice(("cut", "cut", "cut", "kill", "stop"))
        disk = next_disk(disk, life, random, end)
        now_ms = life.now_ms + 5_000
    crash_round.acknowledged(ledger)


@pytest.mark.share(0.04)
@pytest.mark.parametrize("flush", [SYNC_FLUSH, ASYNC_FLUSH])
def test_many_log_files_of_large_messages(crash_round: Round, flush: str) -> None:
    """What queues and index lack may lie in more log files than commitLogRecoverMaxNum."""
    random = crash_round.random
    ledger = Ledger(Shape(crash_round.seed, least=20_000, most=30_000))
    disk = MemoryFiles()
    life = Life(config(LARGE, flush), ledger, NOW_MS, disk)
    life.start()
    for number in range(120):
        life.put(random.randint(1, 10))
        if flush == SYNC_FLUSH or random.random() < 0.3:
            life.flush()
        if number % 10 == 9:
            life.tick()
    ledger.lose_power()
    again = Life(config(LARGE, flush), ledger, life.now_ms, disk.after_power_cut(random))
    again.start()
    crash_round.judge(again.judge, again.said)
    crash_round.acknowledged(ledger)


@pytest.mark.share(0.06)
@pytest.mark.parametrize("flush", [SYNC_FLUSH, ASYNC_FLUSH])
@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
def test_a_clock_that_jumps_costs_nothing(crash_round: Round, flush: str, step_ms: int) -> None:
    random = crash_round.random
    ledger = Ledger(Shape(crash_round.seed))
    disk = MemoryFiles()
    life = Life(config(TINY, flush), ledger, NOW_MS, disk)
    life.start()
    for part in range(3):
        for _ in range(40):
            life.step(random)
        life.set_clock(step_ms if part == 0 else 0)
    life.flush()
    life.judge()
    for end in ("cut", "kill"):
        disk = next_disk(disk, life, random, end)
        life = Life(config(TINY, flush), ledger, life.now_ms, disk)
        life.start()
        crash_round.judge(life.judge, life.said)
        for _ in range(10):
            life.step(random)
        life.flush()
    crash_round.acknowledged(ledger)
