# SPDX-License-Identifier: Apache-2.0
"""A replica that is killed, or loses its power, between two pieces of a record."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.broker.store.opening.test_recover import Build, OpenStore, reopened
from tests.disk import MemoryFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore

NOW_MS = 1_700_000_000_000
FILE_BYTES = 8192
Config = Callable[..., StoreConfig]


def a_log(
    open_store: OpenStore, message: Build, properties: bytes
) -> tuple[MessageStore, list[int]]:
    store = open_store(MemoryFiles())
    ends = []
    for number in range(4):
        put = message("T", 0, b"b%d" % number)._replace(properties=properties)
        (one,) = store.put([put], NOW_MS + number)
        ends.append(one.physical_offset + one.size)
    return store, ends


@pytest.mark.parametrize("properties", [b"TAGS\x01a\x02KEYS\x01k\x02", b"TAGS\x01a", b""])
def test_a_record_ends_where_its_last_byte_came(
    open_store: OpenStore, config: Config, message: Build, properties: bytes
) -> None:
    master, ends = a_log(open_store, message, properties)
    data = bytes(master.read_raw(0, FILE_BYTES) or b"")
    for at in range(1, ends[-1] + 1):
        files = MemoryFiles()
        replica = open_store(files)
        replica.append_raw(0, data[:at])
        again, done = reopened(files.after_kill(), config)
        whole = max((end for end in (0, *ends) if end <= at), default=0)
        if not properties and at in [end - 1 for end in ends] + [end - 2 for end in ends]:
            whole = min(end for end in ends if end > at)  # what is missing are zeros
        assert again.max_physical_offset == done.max_offset == whole
        count = sum(end <= whole for end in ends)
        assert done.last_store_timestamp_ms == (NOW_MS + count - 1 if count else 0)
        assert again.max_offset("T", 0) == count
        again.append_raw(whole, data[whole:])
        again.confirmed()
        assert again.max_offset("T", 0) == len(ends)
        assert bytes(again.read_raw(0, FILE_BYTES) or b"") == data


def test_a_damaged_part_begins_before_it(
    open_store: OpenStore, config: Config, message: Build
) -> None:
    master, ends = a_log(open_store, message, b"TAGS\x01a\x02")
    while master.max_physical_offset < FILE_BYTES + 500:
        master.put([message("T", 0, b"c" * 400)], NOW_MS + 9)
    files = MemoryFiles()
    replica = open_store(files)
    for at in (0, FILE_BYTES):
        replica.append_raw(at, bytes(master.read_raw(at, FILE_BYTES) or b""))
    mapped = replica.log_files.mapped_files[0].map()
    mapped[ends[3] - 2 : FILE_BYTES] = bytes(FILE_BYTES - ends[3] + 2)
    again, done = reopened(files.after_kill(), config)
    assert done.damaged_from == again.damaged_from == ends[2]
    assert done.max_offset == master.max_physical_offset


def test_what_a_master_has_put_is_kept_whatever_it_ends_with(
    open_store: OpenStore, config: Config, message: Build
) -> None:
    files = MemoryFiles()
    store = open_store(files)
    store.put([message()._replace(properties=b"KEYS\x01odd\x00")], NOW_MS)
    again, done = reopened(files.after_kill(), config)
    assert again.max_physical_offset == done.max_offset == store.max_physical_offset > 0
    data = bytes(store.read_raw(0, FILE_BYTES) or b"")
    of_replica = MemoryFiles()
    open_store(of_replica).append_raw(0, data)
    replica, _ = reopened(of_replica.after_kill(), config)
    assert replica.max_physical_offset == 0, "it is sent the record again"


def test_a_store_that_was_closed_is_believed(
    open_store: OpenStore, config: Config, message: Build
) -> None:
    files = MemoryFiles()
    store = open_store(files)
    store.put([message()._replace(properties=b"KEYS\x01odd\x00")], NOW_MS)
    end = store.max_physical_offset
    store.stop(NOW_MS)
    again, done = reopened(files.after_kill(), config)
    assert again.max_physical_offset == done.max_offset == end
