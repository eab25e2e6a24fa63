# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.store.batches import FLAGS, batched, kind_of, plain
from tests.broker.store.conftest import NOW_MS, SMALL
from tests.disk import MemoryFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH
from txrocketmq.broker.store.log.inner_batch import count_of
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import decode_messages

HALF = MessageSysFlag.TRANSACTION_PREPARED_TYPE
TWO = batched(plain("Batches"), [b"a", b"b"])


@pytest.fixture
def store(files: MemoryFiles) -> MessageStore:
    store = MessageStore(StoreConfig(store_path_root_dir="/store", **SMALL), files=files)
    store.load(NOW_MS, kind_of=kind_of)
    return store


def test_what_is_no_batch_is_one_message() -> None:
    assert count_of(0, {}) == count_of(0, {"INNER_NUM": "7"}) == 1
    assert count_of(FLAGS, {"INNER_NUM": "7"}) == 7
    for wrong in ("0", "", "x", "-1", "32768", "\N{SUPERSCRIPT TWO}"):
        assert count_of(FLAGS, {"INNER_NUM": wrong}) == 0
    assert count_of(FLAGS, {}) == 0


def test_batches_say_where_they_begin(store: MessageStore) -> None:
    results = store.put([plain("Batches"), TWO, plain("Plain"), TWO, plain("Batches")], NOW_MS)
    assert [result.queue_offset for result in results] == [0, 1, 0, 3, 5]
    got = store.get("Batches", 0, 0, 32, 1 << 20)
    assert (got.count, got.next_begin_offset) == (6, 6)
    found = decode_messages(b"".join(got.buffers))
    assert [each.properties.get("INNER_BASE") for each in found] == [None, "1", "3", None]
    assert [each.queue_offset for each in found] == [0, 1, 3, 5]
    assert found[1].sys_flag & FLAGS == FLAGS


@pytest.mark.parametrize(
    "wrong",
    [
        TWO._replace(topic="Plain"),
        TWO._replace(properties=b""),
        TWO._replace(properties=b"INNER_NUM\x010\x02"),
        TWO._replace(properties=TWO.properties + b"INNER_BASE\x010\x02"),
        TWO._replace(sys_flag=FLAGS | HALF),
        TWO._replace(flag=1 << 31),
        TWO._replace(sys_flag=FLAGS | MULTI_DISPATCH),
    ],
)
def test_what_is_wrong_leaves_no_trace(store: MessageStore, wrong: PutMessage) -> None:
    results = store.put([TWO, wrong, TWO], NOW_MS)
    statuses = [result.status for result in results]
    assert statuses == [PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL, PutStatus.PUT_OK]
    assert [results[0].queue_offset, results[2].queue_offset] == [0, 2]
    assert store.max_offset("Batches", 0) == 4


def test_properties_need_room_for_the_offset(store: MessageStore) -> None:
    long = b"k\x01" + bytes(b"v" * (32_767 - len(TWO.properties) - 3)) + b"\x02"
    settings = {**SMALL, "mapped_file_size_commit_log": 1 << 17}
    wide = MessageStore(StoreConfig(store_path_root_dir="/wide", **settings), files=MemoryFiles())
    wide.load(NOW_MS, kind_of=kind_of)
    (result,) = wide.put([TWO._replace(properties=TWO.properties + long)], NOW_MS)
    assert result.status is PutStatus.PROPERTIES_SIZE_EXCEEDED


def test_half_messages_enter_no_queue(store: MessageStore) -> None:
    results = store.put([plain("Batches")._replace(sys_flag=HALF), TWO], NOW_MS)
    assert [result.queue_offset for result in results] == [0, 0]
    assert store.max_offset("Batches", 0) == 2
