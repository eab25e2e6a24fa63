# SPDX-License-Identifier: Apache-2.0
"""Whatever fails while a message is put: it is stored and will be seen, or it is not stored."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import pytest

from tests.stored import for_each_queue
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.log.commit_point import Ticket
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus
from txrocketmq.broker.store.upkeep import record_dispatch as module
from txrocketmq.broker.store.upkeep.record_dispatch import ArrivalListener
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.message.tags import tags_code

NOW_MS = 1_700_000_000_000
OpenStore = Callable[..., MessageStore]
Build = Callable[..., PutMessage]


EVENTS: Final = ("call",) if sys.version_info >= (3, 13) else ("call", "c_call")
"""CPython 3.13.0 crashes (SIGSEGV) when a profile function raises at the call of a function of C;
newer ones have not been tried.
"""


@contextmanager
def failing_at(number: int, error: type[Exception]) -> Iterator[list[int]]:
    """The number-th call, of a function of Python or of C, raises; gives how many there were."""
    count = [0]

    def profile(frame: FrameType, event: str, arg: object) -> None:
        if event in EVENTS and "/broker/store/" in frame.f_code.co_filename:
            if frame.f_code.co_filename == __file__:
                return
            count[0] += 1
            if count[0] == number:
                raise error(f"at call {number}")

    sys.setprofile(profile)
    try:
        yield count
    finally:
        sys.setprofile(None)


def bodies(store: MessageStore, topic: str = "Topic") -> list[bytes]:
    found = []
    for unit in store.queue_units(topic, 0, 0, 1000):
        record = store.message_at(unit.physical_offset, unit.size_bytes)
        assert record is not None
        found += decode_messages(record)
    return [each.body for each in found]


def synced(store: MessageStore) -> None:
    job = store.flush.begin()
    if job is not None:
        job.run()
        store.flush.finish(job)


@pytest.mark.parametrize("error", [MemoryError, OSError])
@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
@pytest.mark.parametrize("body_bytes", [10, 3000])
def test_a_put_that_fails_anywhere_leaves_nothing_behind(
    open_store: OpenStore, files: Any, message: Build, error: type[Exception], flush: str,
    body_bytes: int,
) -> None:  # fmt: skip
    number = 0
    while True:
        number += 1
        store = open_store(type(files)(), flush_disk_type=flush)
        run = [message(body=bytes([n]) * body_bytes, uniq_key=f"{n:032X}") for n in range(7)]
        store.put(run[:1], NOW_MS)
        with failing_at(number, error) as calls:
            try:
                statuses = {each.status for each in store.put(run[1:5], NOW_MS)}
            except (MemoryError, OSError):
                statuses = set()
        acknowledged = 4 if statuses == {PutStatus.PUT_OK} else 0
        assert statuses <= {PutStatus.PUT_OK, PutStatus.SERVICE_NOT_AVAILABLE}
        synced(store)
        store.tick(NOW_MS)
        results = store.put(run[5:], NOW_MS)
        assert {each.status for each in results} == {PutStatus.PUT_OK}
        synced(store)
        store.tick(NOW_MS)
        stored = bodies(store)
        first = [each.body for each in run[:1]]
        last = [each.body for each in run[5:]]
        middle = [each.body for each in run[1:5]]
        assert stored == first + middle + last or (stored == first + last and not acknowledged)
        assert results[-1].queue_offset == len(stored) - 1
        for each in (run[0], *run[5:], *(run[1:5] if acknowledged else ())):
            assert each.uniq_key is not None
            assert len(finished(store.query("Topic", each.uniq_key, 9, 0, NOW_MS * 2)).buffers) == 1
        store.stop(NOW_MS)
        if calls[0] < number:
            break
    assert number > (40 if "c_call" in EVENTS else 15)


def test_a_listener_is_called_as_long_as_somebody_waits(
    open_store: OpenStore, message: Build
) -> None:
    store = open_store()
    waiting: list[str] = []
    arrived: list[int] = []
    store.on_arrivals.append(ArrivalListener(waiting, lambda rows: arrived.append(len(rows))))
    store.put([message("A")], NOW_MS)
    waiting.append("a pull")
    store.put([message("A"), message("B")], NOW_MS)
    waiting.clear()
    store.put([message("A")], NOW_MS)
    assert arrived == [2]


def test_what_could_not_be_dispatched_comes_before_what_comes_later(
    open_store: OpenStore, message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    arrived: list[tuple[str, int]] = []
    store.on_arrivals.append(
        for_each_queue(lambda topic, queue_id, end: arrived.append((topic, end)))
    )

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr(store._reput.dispatchers, "in_order", (fail,))
        (lost,) = store.put([message("A", uniq_key="U" * 32)], NOW_MS)
    assert lost.status is PutStatus.PUT_OK
    assert (store.max_offset("A", 0), arrived) == (0, [])
    store.put([message("B")], NOW_MS)
    assert arrived == [("A", 1), ("B", 1)]
    assert len(finished(store.query("A", "U" * 32, 9, 0, NOW_MS * 2)).buffers) == 1


def test_what_was_not_dispatched_is_with_the_next_tick(
    open_store: OpenStore, message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()

    def fail(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as broken:
        broken.setattr(store._reput.dispatchers, "in_order", (fail,))
        store.put([message()], NOW_MS)
        store.tick(NOW_MS)
    assert store.dispatch_behind_bytes > 0
    store.tick(NOW_MS)
    assert store.max_offset("Topic", 0) == 1


def test_too_much_that_is_not_confirmed_is_not_kept_at_hand(
    open_store: OpenStore, message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_UNSEEN", 3)
    store = open_store(flush_disk_type="SYNC_FLUSH", mapped_file_size_commit_log=1 << 16)
    for number in range(20):
        store.put([message(body=b"%d" % number, uniq_key=f"{number:032}")] * 2, NOW_MS)
        if number % 7 == 3:
            job = store.flush.begin()
        if number % 7 == 5:
            assert job is not None
            job.run()
            store.flush.finish(job)
    assert len(store._confirmed._unseen) <= 3
    synced(store)
    assert bodies(store) == [b"%d" % (number // 2) for number in range(40)]
    for number in range(20):
        found = finished(store.query("Topic", f"{number:032}", 9, 0, NOW_MS * 2))
        assert len(found.buffers) == 2


def test_bytes_of_another_log_are_shown_when_they_are_confirmed(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    master = open_store(type(files)())
    run = [message(body=bytes([n]) * 2000, uniq_key=f"{n:032}") for n in range(9)]
    master.put(run, NOW_MS)
    replica = open_store(type(files)(), flush_disk_type="SYNC_FLUSH")
    while replica.max_physical_offset < master.max_physical_offset:
        offset = replica.max_physical_offset
        data = master.read_raw(offset, 3_000)
        assert data is not None
        replica.append_raw(offset, bytes(data))
    assert replica.max_offset("Topic", 0) == 0
    synced(replica)
    assert bodies(replica) == [each.body for each in run]
    assert len(finished(replica.query("Topic", f"{8:032}", 9, 0, NOW_MS * 2)).buffers) == 1
    assert master.read_raw(master.max_physical_offset, 10) is None
    with pytest.raises(ValueError, match="do not follow"):
        replica.append_raw(0, b"again")
    with pytest.raises(ValueError, match="do not fit into one file"):
        replica.append_raw(replica.max_physical_offset, bytes(8192))
    assert not isinstance(replica.commit.outcome(replica.max_physical_offset), Ticket)


def test_a_record_is_dispatched_when_all_of_it_is_there(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    master = open_store(type(files)())
    code = tags_code("TagA")
    master.put([message(tags="TagA", keys="key1 key2", uniq_key="U" * 32, tags_code=code)], NOW_MS)
    size = master.max_physical_offset
    data = bytes(master.read_raw(0, size) or b"")
    for cut in range(1, size):
        replica = open_store(type(files)())
        replica.append_raw(0, data[:cut])
        replica.confirmed()
        assert replica.max_offset("Topic", 0) == 0
        replica.append_raw(cut, data[cut:])
        replica.confirmed()
        assert list(replica.queue_units("Topic", 0, 0, 9)) == list(
            master.queue_units("Topic", 0, 0, 9)
        )
        for key in ("U" * 32, "key1", "key2"):
            assert len(finished(replica.query("Topic", key, 9, 0, NOW_MS * 2)).buffers) == 1


def test_the_end_of_a_file_is_one_when_all_of_it_is_there(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    master = open_store(type(files)())
    master.put([message(body=bytes(5000))], NOW_MS)
    end = master.max_physical_offset
    master.put([message(body=bytes(5000))], NOW_MS)
    replica = open_store(type(files)())
    for at, until in ((0, end), (end, end + 7), (end + 7, 8192), (8192, 8192 + end)):
        replica.append_raw(at, bytes(master.read_raw(at, until - at) or b""))
        replica.confirmed()
        assert replica.dispatch_behind_bytes == (7 if until == end + 7 else 0)
    assert replica.max_offset("Topic", 0) == 2


def test_an_empty_log_begins_with_any_file_of_another(
    open_store: OpenStore, files: Any, message: Build
) -> None:
    master = open_store(type(files)())
    for number in range(9):
        master.put([message(body=bytes(3000), uniq_key=f"{number:032}")], NOW_MS)
    start = 8192 * 2
    own = type(files)()
    replica = open_store(own)
    with pytest.raises(ValueError, match="at 16389 none begins"):
        replica.append_raw(start + 5, b"cut")
    while replica.max_physical_offset < master.max_physical_offset:
        at = max(replica.max_physical_offset, start)
        replica.append_raw(at, bytes(master.read_raw(at, 700) or b""))
        replica.confirmed()
    assert (replica.min_offset("Topic", 0), replica.max_offset("Topic", 0)) == (4, 9)
    again = MessageStore(replica.config, files=own.after_kill())
    assert again.load(NOW_MS).warnings == []
