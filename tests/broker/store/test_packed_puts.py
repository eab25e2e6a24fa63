# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from tests.broker.store.conftest import ROOT, SMALL
from tests.disk import MemoryFiles
from tests.stored import for_each_queue
from txrocketmq.broker.kernel.rows import ReferenceRows
from txrocketmq.broker.kernel.table import ReferenceTable
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame

NOW_MS = 1_700_000_000_000
HOST = bytes([127, 0, 0, 1, 0, 0, 1, 1])
FIELDS = {"b": "Topic", "e": "0", "g": "1", "i": "UNIQ_KEY\x01K1\x02"}


def opened(new_rows: Any = ReferenceRows) -> MessageStore:
    """A store with a message in queue 0 of Topic."""
    config = StoreConfig(store_path_root_dir=ROOT, **SMALL)
    store = MessageStore(config, files=MemoryFiles(), new_rows=new_rows)
    store.load(NOW_MS)
    store.put([PutMessage("Topic", 0, b"x", b"", 0, 1, HOST, HOST, None, None, None)], NOW_MS)
    return store


def taken(store: MessageStore, count: int = 3) -> tuple[Any, ReferenceTable]:
    """A run of sends for that queue, and its table."""
    frame = b"".join(encode_frame(RemotingCommand(310, FIELDS, b"body")))
    table = ReferenceTable([], [], [], b"")
    queue = store.packed_queue("Topic", 0)
    assert queue is not None
    end = queue.queue
    at = table.add_queue(queue, end.record_topic, end.magic, 0)
    header = frame[8 : 8 + int.from_bytes(frame[5:8], "big")]
    assert table.learn(0, header, at, False, False, 0, 0, 0, 310, None, 0, None)
    run = table.take(frame * count, 0)
    assert run is not None
    return run, table


def test_a_run_is_put_like_messages() -> None:
    store = opened()
    arrived: list[tuple[str, int, int]] = []
    store.on_arrivals.append(for_each_queue(lambda *its: arrived.append(its)))
    run, table = taken(store)
    packed = store.append_run(run, table, HOST, HOST, NOW_MS + 1)
    assert packed is not None
    assert store.max_physical_offset == packed.end_offset
    assert (store.max_offset("Topic", 0), arrived) == (4, [("Topic", 0, 4)])
    assert store.get("Topic", 0, 1, 32, 1 << 20).count == 3
    assert store.flush.log_timestamp_ms == NOW_MS + 1


def test_nothing_is_put_that_cannot_be_put() -> None:
    store = opened(None)
    run, table = taken(store)
    assert store.append_run(run, table, HOST, HOST, NOW_MS) is None
    store = opened()
    run, table = taken(store)
    end = store.max_physical_offset
    assert store.append_run(run, table, b"short", HOST, NOW_MS) is None
    store.stop(NOW_MS)
    assert store.append_run(run, table, HOST, HOST, NOW_MS) is None
    assert store.max_physical_offset == end


def test_only_queues_of_plain_units_are_for_runs() -> None:
    store = opened()
    assert store.packed_queue("Topic", 0) is not None
    assert store.packed_queue("Topic", 1) is None
    assert store.packed_queue("Other", 0) is None
    assert store.queues_given_up == 0
