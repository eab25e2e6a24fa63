# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.store.opening.test_cut import LATER_MS, ORDERED_MS, Scene
from tests.broker.store.opening.test_recover import Build, reopened
from tests.disk import MemoryFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.opening_report import Recovered
from txrocketmq.broker.store.index.index_file import index_file_name
from txrocketmq.broker.store.opening.cut_progress import CutProgress
from txrocketmq.broker.store.opening.loss import Loss
from txrocketmq.broker.store.timers.timer_check import TimerCheck, TimerProgress
from txrocketmq.broker.store.timers.timer_log import NONE, UNIT_BYTES, TimerLog
from txrocketmq.remoting.serialize.json import decode_body

CHECK = "/store/config/timercheck"
FILE_BYTES = 4096
Config = Callable[..., StoreConfig]


class NoQueues:
    """The queues of a store that has none."""

    def find(self, topic: str, queue_id: int) -> None:
        return None


def test_progress_is_taken_back_to_the_end_of_the_queues(
    files: MemoryFiles, config: Config, message: Build
) -> None:
    scene = Scene(files, config, message, closed=True)
    at = scene.ends[39]
    queue = scene.until(at).bodies["A", 0]
    disk = scene.disk
    folder = "/store/config/"
    disk.write(
        folder + "consumerOffset.json", b'{"dataVersion":{"counter":7},"offsetTable":{'
        b'"A@slow":{0:3,1:0},"A@fast":{0:20,1:2},"Gone@fast":{0:5}}}',
    )  # fmt: skip
    disk.write(folder + "consumerOffset.json.bak", b'{"offsetTable":{"A@fast":{"0":19}}}')
    disk.write(folder + "delayOffset.json", b'{"offsetTable":{3:12}}')
    disk.write(folder + "lmqConsumerOffset.json", b"no JSON")
    scene.order(disk, at)
    store, done = reopened(disk, scene.config)
    assert store.max_offset("A", 0) == len(queue) == 7

    def table(name: str) -> Any:
        return decode_body(disk.read(folder + name))

    assert table("consumerOffset.json") == {
        "dataVersion": {"counter": 7},
        "offsetTable": {
            "A@slow": {0: 3, 1: 0},
            "A@fast": {0: 7, 1: 2},
            "Gone@fast": {0: 0},
        },
    }
    assert table("consumerOffset.json.bak") == {"offsetTable": {"A@fast": {"0": 7}}}
    assert table("delayOffset.json") == {"offsetTable": {3: 0}}
    kept = disk.read(f"/store/lost/{index_file_name(ORDERED_MS)}/config/consumerOffset.json")
    assert b'"A@fast":{0:20,1:2}' in kept
    assert [text for text in done.warnings if "lmqConsumerOffset.json cannot be read" in text]
    assert not [path for path in disk.small if path.endswith(".tmp")]


def timers(disk: MemoryFiles, offsets: list[int], progress: TimerProgress) -> None:
    """Writes a timer log with units of messages of 10 bytes at these offsets of the log."""
    log = TimerLog(disk, "/store/timerlog", FILE_BYTES)
    log.load()
    for offset in offsets:
        log.append(NONE, 1, 1_000, 4_000, (offset, 10, 0))
    log.close()
    check = TimerCheck(disk, CHECK)
    check.write(progress)
    check.close()


def taken_back(disk: MemoryFiles, config: StoreConfig, log_end: int) -> tuple[Any, list[int]]:
    """Returns the progress after the log was cut there, and the offsets in the timer log."""
    queues: Any = NoQueues()
    for _ in range(2):  # the process may end before the order is forgotten
        follow = CutProgress(disk, config, Loss(disk, "/store", ORDERED_MS))
        follow.follow(queues, Recovered(was_closed=True, max_offset=log_end))
    log = TimerLog(disk, "/store/timerlog", FILE_BYTES)
    log.load()
    found = [
        unit.physical_offset
        for file in log.files.mapped_files
        for _, units in log.walk(file, 0)
        for _, unit in units
    ]
    return TimerCheck(disk, CHECK).read(), found


@pytest.mark.parametrize("count", [5, 78, 79, 200])
@pytest.mark.parametrize("left", [0, 1, 4, 77, 78, 79])
def test_timers_wait_for_messages_that_are_left(config: Config, count: int, left: int) -> None:
    disk, left = MemoryFiles(), min(left, count)
    offsets = [10 * number for number in range(count)]
    end = count + (count - 1) // 78 * 40  # a file has 78 units and a blank of 40 bytes
    timers(disk, offsets, TimerProgress(4_000, end * UNIT_BYTES, 70, counter=3))
    progress, found = taken_back(disk, config(mapped_file_size_timer_log=FILE_BYTES), 10 * left + 9)
    assert found == offsets[:left]
    assert progress.queue_offset == 0, "the timer topic has no queue any more"
    assert (progress.read_ms, progress.counter) == (4_000, 3)
    if left < count:
        assert progress.log_end == left % 78 * UNIT_BYTES + left // 78 * FILE_BYTES


def test_messages_of_units_behind_the_cut_are_read_again(config: Config) -> None:
    disk = MemoryFiles()
    timers(disk, [0, 10, 500, 20], TimerProgress(4_000, 4 * UNIT_BYTES, 9))
    progress, found = taken_back(disk, config(mapped_file_size_timer_log=FILE_BYTES), 100)
    assert found == [0, 10]
    assert (progress.log_end, progress.queue_offset) == (0, 0)


def test_a_timer_log_of_another_size_is_left_alone(config: Config) -> None:
    disk = MemoryFiles()
    timers(disk, [0, 500], TimerProgress(4_000, 2 * UNIT_BYTES, 9))
    progress, _ = taken_back(disk, config(mapped_file_size_timer_log=2 * FILE_BYTES), 100)
    assert (progress.log_end, progress.queue_offset) == (2 * UNIT_BYTES, 0)


def test_without_timers_nothing_is_made(config: Config) -> None:
    disk = MemoryFiles()
    follow = CutProgress(disk, config(), Loss(disk, "/store", LATER_MS))
    queues: Any = NoQueues()
    follow.follow(queues, Recovered(was_closed=True, max_offset=100))
    assert not disk.maps
    assert not disk.small
