# SPDX-License-Identifier: Apache-2.0
"""Settings of the store that are declared live: for each a check that a change counts at once.

Those whose effect needs a whole broker are in tests/broker/test_live_settings.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.store.upkeep.test_flush import flushed
from tests.broker.store.upkeep.test_retention import FOUR_MS, HOUR_MS, NOON_MS, OLD_MS, logs, ticks
from tests.live import Checks
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus
from txrocketmq.remoting.settings.config_file import Configuration

NOW_MS = FOUR_MS + 2 * HOUR_MS
check = Checks()
SETTINGS: dict[str, dict[str, Any]] = {
    "max_lmq_consume_queue_num": {"enable_lmq": True, "enable_multi_dispatch": True},
    "max_filter_message_size": {"mapped_file_size_consume_queue": 20_000},
    "offset_check_in_slave": {"broker_role": "SLAVE"},
}
"""What else a check needs from the start."""


class Live:
    """An open store whose settings change."""

    def __init__(self, files: Any, config: StoreConfig, message: Callable[..., PutMessage]) -> None:
        self.files = files
        self.message = message
        self.now_ms = NOON_MS
        self.configuration = Configuration((config,), {})
        self.store = MessageStore(config, files=files)
        self.store.load(NOW_MS)

    def set(self, **settings: object) -> None:
        """Changes settings under their keys."""
        self.configuration.update({key: str(value) for key, value in settings.items()})

    def put(self, count: int = 1, **fields: Any) -> list[PutStatus]:
        messages = [self.message(**fields) for _ in range(count)]
        return [each.status for each in self.store.put(messages, NOW_MS)]

    def get(self, offset: int = 0, **wanted: Any) -> Any:
        return self.store.get("Topic", 0, offset, 100, 1 << 20, **wanted)

    def found(self) -> int:
        """How many messages have the key."""
        return len(finished(self.store.query("Topic", "k", 99, 0, 2 * NOW_MS)).buffers)

    def old_files(self, count: int) -> None:
        """Fills ten log files, the first of which are old."""
        self.put(10, body=bytes(7000))
        self.store.flush.flush_all()
        for number, path in enumerate(logs(self.files)):
            self.files.modified[path] = OLD_MS if number < count else NOON_MS

    def left(self) -> int:
        """How many log files are left a while later, at about noon."""
        ticks(self.store, self.now_ms)
        self.now_ms += 60_000
        return len(logs(self.files))


@check
def max_message_size(live: Live) -> None:
    assert live.put(body=bytes(100)) == [PutStatus.PUT_OK]
    live.set(maxMessageSize=99)
    assert live.put(body=bytes(100)) == [PutStatus.MESSAGE_ILLEGAL]


@check
def auto_message_version_on_topic_len(live: Live) -> None:
    live.set(autoMessageVersionOnTopicLen="false")
    assert live.put(topic="x" * 200) == [PutStatus.MESSAGE_ILLEGAL]
    live.set(autoMessageVersionOnTopicLen="true")
    assert live.put(topic="x" * 200) == [PutStatus.PUT_OK]


@check
def message_index_enable(live: Live) -> None:
    live.set(messageIndexEnable="false")
    live.put(keys="k")
    assert live.found() == 0
    live.set(messageIndexEnable="true")
    live.put(keys="k")
    assert live.found() == 1


@check
def max_transfer_bytes_on_message_in_memory(live: Live) -> None:
    live.put(5)
    assert live.get().count == 5
    live.set(maxTransferBytesOnMessageInMemory=1)
    assert live.get().count == 1


@check
def max_transfer_count_on_message_in_memory(live: Live) -> None:
    live.put(5)
    live.set(maxTransferCountOnMessageInMemory=3)
    assert live.get().count == 3


@check
def max_transfer_bytes_on_message_in_disk(live: Live) -> None:
    live.put(5)
    live.set(accessMessageInMemoryMaxRatio=0)
    assert live.get().count == 5
    live.set(maxTransferBytesOnMessageInDisk=1)
    assert live.get().count == 1


@check
def max_transfer_count_on_message_in_disk(live: Live) -> None:
    live.put(5)
    live.set(accessMessageInMemoryMaxRatio=0, maxTransferCountOnMessageInDisk=3)
    assert live.get().count == 3


@check
def access_message_in_memory_max_ratio(live: Live) -> None:
    live.put(5)
    live.set(maxTransferCountOnMessageInDisk=3)
    assert live.get().count == 5
    live.set(accessMessageInMemoryMaxRatio=0)
    assert live.get().count == 3


@check
def max_filter_message_size(live: Live) -> None:
    live.put(200, tags_code=1)
    nobodys = frozenset({2})
    assert live.get(tag_codes=nobodys).next_begin_offset == 200
    live.set(maxFilterMessageSize=20)
    assert live.get(tag_codes=nobodys).next_begin_offset < 200


@check
def travel_cq_file_num_when_get_message(live: Live) -> None:
    live.put(20, tags_code=1)
    nobodys = frozenset({2})
    assert live.get(tag_codes=nobodys).next_begin_offset == 5
    live.set(travelCqFileNumWhenGetMessage=3)
    assert live.get(tag_codes=nobodys).next_begin_offset == 15


@check
def max_msgs_num_batch(live: Live) -> None:
    live.put(5, keys="k")
    live.set(maxMsgsNumBatch=2)
    assert live.found() == 2


@check
def flush_interval_consume_queue(live: Live) -> None:
    live.set(flushConsumeQueueLeastPages=0)
    live.store.tick(NOW_MS)
    live.put()
    flushed(live.store)
    live.set(flushIntervalConsumeQueue=5_000)
    live.store.tick(NOW_MS + 4_000)
    assert flushed(live.store) == []
    live.set(flushIntervalConsumeQueue=3_000)
    live.store.tick(NOW_MS + 4_000)
    assert flushed(live.store) == ["consumequeue"]


@check
def flush_consume_queue_least_pages(live: Live) -> None:
    live.store.tick(NOW_MS)
    live.put()
    flushed(live.store)
    live.store.tick(NOW_MS + 2_000)
    assert flushed(live.store) == []
    live.set(flushConsumeQueueLeastPages=0)
    live.store.tick(NOW_MS + 4_000)
    assert flushed(live.store) == ["consumequeue"]


@check
def flush_consume_queue_thorough_interval(live: Live) -> None:
    live.store.tick(NOW_MS)
    live.put()
    flushed(live.store)
    live.store.tick(NOW_MS + 2_000)
    assert flushed(live.store) == []
    live.set(flushConsumeQueueThoroughInterval=3_000)
    live.store.tick(NOW_MS + 4_000)
    assert "consumequeue" in flushed(live.store)


@check
def file_reserved_time(live: Live) -> None:
    live.old_files(3)
    live.set(deleteWhen="12", fileReservedTime=1_000)
    assert live.left() == 10
    live.set(fileReservedTime=72)
    assert live.left() == 7


@check
def delete_when(live: Live) -> None:
    live.old_files(3)
    assert live.left() == 10
    live.set(deleteWhen="12")
    assert live.left() == 7


@check
def clean_resource_interval(live: Live) -> None:
    live.store.tick(NOON_MS)
    live.set(cleanResourceInterval=30_000)
    live.files.ratio = 0.95
    live.store.tick(NOON_MS + 20_000)
    assert live.store.writeable
    live.set(cleanResourceInterval=20_000)
    live.store.tick(NOON_MS + 20_000)
    assert not live.store.writeable


@check
def delete_file_batch_max(live: Live) -> None:
    live.old_files(8)
    live.set(deleteWhen="12", deleteFileBatchMax=2)
    ticks(live.store, NOON_MS, 9)
    assert len(logs(live.files)) == 8


@check
def disk_max_used_space_ratio(live: Live) -> None:
    live.old_files(3)
    live.files.ratio = 0.7
    assert live.left() == 10
    live.set(diskMaxUsedSpaceRatio=60)
    assert live.left() == 7


@check
def disk_space_clean_forcibly_ratio(live: Live) -> None:
    live.old_files(0)
    live.set(deleteFileBatchMax=2, cleanResourceInterval=20_000)
    live.files.ratio = 0.8
    assert live.left() == 10
    live.set(diskSpaceCleanForciblyRatio=70)
    assert live.left() < 10


@check
def disk_space_warning_level_ratio(live: Live) -> None:
    live.files.ratio = 0.8
    live.store.tick(NOON_MS)
    assert live.put() == [PutStatus.PUT_OK]
    live.set(diskSpaceWarningLevelRatio=70)
    assert live.put() == [PutStatus.SERVICE_NOT_AVAILABLE]


@check
def clean_file_forcibly_enable(live: Live) -> None:
    live.old_files(0)
    live.set(cleanFileForciblyEnable="false")
    live.files.ratio = 0.86
    assert live.left() == 10
    live.set(cleanFileForciblyEnable="true")
    assert live.left() < 10


@check
def offset_check_in_slave(live: Live) -> None:
    live.put(4)
    assert live.get(99).next_begin_offset == 99
    live.set(offsetCheckInSlave="true")
    assert live.get(99).next_begin_offset == 4


@check
def max_lmq_consume_queue_num(live: Live) -> None:
    def put() -> PutStatus:
        lists_one = live.message()._replace(
            properties=b"INNER_MULTI_DISPATCH\x01%LMQ%a\x02", sys_flag=MULTI_DISPATCH
        )
        return live.store.put([lists_one], NOW_MS)[0].status

    live.set(maxLmqConsumeQueueNum=0)
    assert put() is PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED
    live.set(maxLmqConsumeQueueNum=1)
    assert put() is PutStatus.PUT_OK


@pytest.mark.parametrize("name", check)
def test_a_live_setting_counts_at_once(
    files: Any,
    config: Callable[..., StoreConfig],
    message: Callable[..., PutMessage],
    name: str,
) -> None:
    check[name](Live(files, config(**SETTINGS.get(name, {})), message))


@check
def disk_space_min_free_bytes(live: Live) -> None:
    live.files.ratio, live.files.free = 0.95, 5_000
    live.store.tick(NOON_MS)
    assert live.put() == [PutStatus.SERVICE_NOT_AVAILABLE]
    live.set(diskSpaceMinFreeBytes=1_000)
    assert live.put() == [PutStatus.PUT_OK]
    live.set(diskSpaceMinFreeBytes=5_001)
    assert live.put() == [PutStatus.SERVICE_NOT_AVAILABLE]
    assert "has 5,000 bytes left" in live.store.why_not_writeable()
