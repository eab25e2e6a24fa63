# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.store.conftest import HOST, IPV6_HOST, NOW_MS, SMALL
from tests.disk import MemoryFiles, pages_touched
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.put_message import PutMessage, PutStatus
from txrocketmq.broker.store.log.long_run import LongRun
from txrocketmq.broker.store.message_store import MessageStore, QueueBatch
from txrocketmq.remoting.message.flags import MessageSysFlag

BEFORE_MS = NOW_MS - 5
MESSAGES = st.lists(
    st.tuples(st.binary(max_size=2_000), st.sampled_from("ABC"), st.integers(0, 9)), min_size=1
)


def put_message(body: bytes, tag: str, flag: int, host: bytes) -> PutMessage:
    return PutMessage(
        "T", 3, body, b"TAGS\x01%b\x02" % tag.encode(), ord(tag), BEFORE_MS, host, HOST, None, tag,
        tag, flag, 1, 2,
    )  # fmt: skip


def store_with(puts: list[PutMessage], at_once: int | None) -> tuple[MemoryFiles, QueueBatch]:
    """A store with the messages behind another one, put in the usual way or as a long run."""
    files = MemoryFiles()
    store = MessageStore(StoreConfig(store_path_root_dir="/store", **SMALL), files=files)
    store.load(NOW_MS)
    if at_once is None:
        store.put([puts[0]._replace(queue_id=1)], NOW_MS)
        batch = store.append(puts, NOW_MS)
    else:
        run = store.long_run(puts[0])
        assert isinstance(run, LongRun)
        for at in range(0, len(puts), at_once):
            assert run.add(puts[at : at + at_once]) is None
            if not at:
                store.put([puts[0]._replace(queue_id=1)], NOW_MS)
        batch = store.append(run, NOW_MS)
    store.stop(NOW_MS)
    return files, batch


@given(MESSAGES, st.sampled_from([HOST, IPV6_HOST]), st.integers(1, 20))
def test_a_long_run_leaves_what_the_same_messages_would(
    given: list[tuple[bytes, str, int]], host: bytes, at_once: int
) -> None:
    puts = [put_message(*each, host) for each in given]
    usual, expected = store_with(puts, None)
    files, batch = store_with(puts, at_once)
    assert batch.results == expected.results
    assert list(batch.entries) == expected.entries
    assert [batch.entries[at] for at in range(len(puts))] == expected.entries
    names = {path for path in usual.maps if "lock" not in path}
    assert names <= files.maps.keys()
    for path in names:
        assert files.maps[path][:] == usual.maps[path][:], path


def test_many_units_are_packed_together(open_store: Callable[..., MessageStore]) -> None:
    store = open_store(mapped_file_size_consume_queue=20 * 3_000)
    puts = [put_message(b"", "A", 0, HOST)] * 2_500
    run = store.long_run(puts[0])
    assert isinstance(run, LongRun)
    run.add(puts)
    places = store.append(run, NOW_MS).places
    queue = store._queues.find("T", 3)
    assert queue is not None
    units = queue.units(0, 2_500)
    assert [tuple(each) for each in units] == [(*place[:2], ord("A")) for place in places]
    assert store.max_offset("T", 3) == 2_500


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"body": bytes(9_000)}, PutStatus.MESSAGE_ILLEGAL),
        ({"properties": bytes(32_768)}, PutStatus.MESSAGE_ILLEGAL),
        ({"flag": 1 << 31}, PutStatus.MESSAGE_ILLEGAL),
    ],
)
def test_a_run_that_does_not_fit_is_refused_before_anything_is_made(
    open_store: Callable[..., MessageStore], changes: dict[str, Any], status: PutStatus
) -> None:
    store = open_store()
    like = put_message(b"", "A", 0, HOST)
    run = store.long_run(like)
    assert isinstance(run, LongRun)
    assert run.add([like, like._replace(**changes)]) is status
    assert store.topics() == []


@pytest.mark.parametrize(
    "changes",
    [
        {"born_host": b"123"},
        {"sys_flag": MessageSysFlag.INNER_BATCH},
        {"sys_flag": MessageSysFlag.TRANSACTION_PREPARED_TYPE},
    ],
)
def test_what_is_no_plain_message_makes_no_run(
    open_store: Callable[..., MessageStore], changes: dict[str, Any]
) -> None:
    like = put_message(b"", "A", 0, HOST)._replace(**changes)
    run = open_store().long_run(like)
    refused = run.add([like]) if isinstance(run, LongRun) else run
    assert refused is PutStatus.MESSAGE_ILLEGAL


@pytest.mark.parametrize("topic", ["a/b", "x" * 256])
def test_a_queue_that_cannot_be_refuses_all(
    open_store: Callable[..., MessageStore], topic: str
) -> None:
    store = open_store()
    like = put_message(b"", "A", 0, HOST)._replace(topic=topic)
    run = store.long_run(like)
    assert isinstance(run, LongRun)
    run.add([like] * 3)
    batch = store.append(run, NOW_MS)
    assert set(batch.refused) == {0, 1, 2}
    assert (store.topics(), store.max_physical_offset) == ([], 0)


def test_without_room_nothing_has_happened(
    files: Any, open_store: Callable[..., MessageStore]
) -> None:
    store = open_store()
    like = put_message(bytes(1_000), "A", 0, HOST)
    run = store.long_run(like)
    assert isinstance(run, LongRun)
    run.add([like] * 30)
    files.room_bytes = 0
    batch = store.append(run, NOW_MS)
    assert len(batch.refused) == 30
    assert store.max_physical_offset == 0
    files.room_bytes = None
    assert [each[2] for each in store.append([like], NOW_MS).places] == [0]


def test_it_is_no_sequence_to_look_into(open_store: Callable[..., MessageStore]) -> None:
    run = open_store().long_run(put_message(b"", "A", 0, HOST))
    assert isinstance(run, LongRun)
    with pytest.raises(TypeError):
        run[0]


def test_the_last_step_finds_room_that_was_made_in_small_steps(
    open_store: Callable[..., MessageStore],
) -> None:
    """A page that is written for the first time costs more than all that is copied into it."""
    store = open_store(mapped_file_size_commit_log=8 << 20)
    like = put_message(bytes(1_000), "A", 0, HOST)
    store.put([like], NOW_MS)
    run = store.long_run(like)
    assert isinstance(run, LongRun)
    run.add([like] * 3_000)
    (file,) = store._log.files.mapped_files
    touched = pages_touched(file)
    steps: list[int] = []
    for _ in store.make_room(run):
        steps.append(len(touched) - sum(steps))
    assert len(steps) > 2
    assert max(steps) <= (1 << 20) // 4096 + 1
    reserved_bytes = file.reserved_bytes
    assert not store.append(run, NOW_MS).refused
    assert len(touched) - sum(steps) == 1, "the page in which the log ended"
    assert file.reserved_bytes == reserved_bytes


def test_room_is_made_while_others_write_and_no_further_than_the_file(
    open_store: Callable[..., MessageStore],
) -> None:
    store = open_store(mapped_file_size_commit_log=4 << 20)
    like = put_message(bytes(1_000), "A", 0, HOST)
    store.put([like], NOW_MS)
    run = store.long_run(like)
    assert isinstance(run, LongRun)
    run.add([like] * 10_000)
    assert len(list(store.make_room(run))) == 4
    assert len(store._log.files.mapped_files) == 1
    count = 0
    for _ in store.make_room(run):
        store.put([like] * 1_100, NOW_MS)
        count += 1
    assert 4 < count <= run.size_bytes / 1_100_000 + 1, "it ends, however much others write"
    assert store.append(run, NOW_MS).places[0][2] == 1 + count * 1_100


def test_without_room_none_is_made(files: Any, open_store: Callable[..., MessageStore]) -> None:
    store = open_store(mapped_file_size_commit_log=4 << 20)
    like = put_message(bytes(1_000), "A", 0, HOST)
    run = store.long_run(like)
    assert isinstance(run, LongRun)
    run.add([like] * 3_000)
    assert list(store.make_room(run)) == [], "there is no file yet"
    store.put([like], NOW_MS)
    files.room_bytes = 1_000
    assert list(store.make_room(run)) == []
    files.room_bytes = None
    store.stop(NOW_MS)
    assert list(store.make_room(run)) == []


def test_room_that_was_made_is_nothing_to_recover(
    files: MemoryFiles, open_store: Callable[..., MessageStore]
) -> None:
    store = open_store(mapped_file_size_commit_log=4 << 20)
    like = put_message(bytes(1_000), "A", 0, HOST)
    store.put([like] * 3, NOW_MS)
    run = store.long_run(like)
    assert isinstance(run, LongRun)
    run.add([like] * 3_000)
    list(store.make_room(run))
    again = MessageStore(store.config, files=files.after_kill())
    recovered = again.load(NOW_MS)
    assert (recovered.warnings, recovered.was_cut) == ([], False)
    assert again.max_physical_offset == store.max_physical_offset
    assert again.max_offset("T", 3) == 3
