# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.stored import for_each_queue
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH
from txrocketmq.broker.store.formats.scan import RecordWalk
from txrocketmq.broker.store.log.commit_log import CommitLog
from txrocketmq.broker.store.message_store import MessageStore, PutMessage, PutStatus
from txrocketmq.broker.store.queues import light_queues

NOW_MS = 1_700_000_000_000
LIGHT = {"enable_lmq": True, "enable_multi_dispatch": True}
FIRST, SECOND = "%LMQ%a", "%LMQ%b"
Build = Callable[..., PutMessage]


def listing(message: Build, *names: str, topic: str = "T", **fields: Any) -> PutMessage:
    text = f"INNER_MULTI_DISPATCH\x01{','.join(names)}\x02".encode()
    built = message(topic, 0, **fields)
    return built._replace(properties=text, sys_flag=MULTI_DISPATCH)


def units(store: MessageStore, topic: str) -> list[tuple[int, int]]:
    """Where the messages are that a queue names."""
    found = store.queue_units(topic, 0, 0, 1000)
    return [(unit.physical_offset, unit.size_bytes) for unit in found]


@pytest.fixture
def store(open_store: Callable[..., MessageStore]) -> MessageStore:
    return open_store(**LIGHT)


def test_a_message_is_in_its_queue_and_in_each_light_one(
    store: MessageStore, message: Build
) -> None:
    arrived: list[tuple[str, int, int]] = []
    store.on_arrivals.append(for_each_queue(lambda *what: arrived.append(what)))
    results = store.put(
        [
            listing(message, FIRST, SECOND),
            message("T", 0),
            listing(message, SECOND, body=b"b" * 50),
        ],
        NOW_MS,
    )
    assert [each.status for each in results] == [PutStatus.PUT_OK] * 3
    assert [each.queue_offset for each in results] == [0, 1, 2]
    at = [(each.physical_offset, each.size) for each in results]
    assert units(store, "T") == at
    assert units(store, FIRST) == [at[0]]
    assert units(store, SECOND) == [at[0], at[2]]
    assert set(arrived) == {("T", 0, 3), (FIRST, 0, 1), (SECOND, 0, 2)}
    got = store.get(SECOND, 0, 0, 10, 1 << 20)
    assert got.count == 2
    last = store.message_at(at[2][0])
    assert last is not None
    assert b"INNER_MULTI_QUEUE_OFFSET\x011\x02" in bytes(last)


def test_a_message_that_is_refused_leaves_no_gap(store: MessageStore, message: Build) -> None:
    results = store.put(
        [
            listing(message, FIRST)._replace(born_timestamp_ms=1 << 70),
            listing(message, FIRST)._replace(queue_id=-1),
            listing(message, FIRST, body=bytes(9000)),
            listing(message, "%LMQ%" + "x" * 300),
            listing(message, FIRST),
        ],
        NOW_MS,
    )
    statuses = [each.status for each in results]
    assert statuses == [PutStatus.MESSAGE_ILLEGAL] * 4 + [PutStatus.PUT_OK]
    assert units(store, FIRST) == [(results[-1].physical_offset, results[-1].size)]


def test_there_are_no_more_light_queues_than_allowed(
    open_store: Callable[..., MessageStore], message: Build
) -> None:
    store = open_store(**LIGHT, max_lmq_consume_queue_num=2)
    assert store.put([listing(message, FIRST)], NOW_MS)[0].status is PutStatus.PUT_OK
    many = store.put([listing(message, SECOND, "%LMQ%c")], NOW_MS)[0]
    assert many.status is PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED
    assert store.put([listing(message, FIRST, SECOND)], NOW_MS)[0].status is PutStatus.PUT_OK
    assert store.delete_topic(FIRST)
    assert store.put([listing(message, "%LMQ%c")], NOW_MS)[0].status is PutStatus.PUT_OK


def test_without_the_settings_nothing_enters_them(
    open_store: Callable[..., MessageStore], message: Build
) -> None:
    store = open_store()
    assert store.put([listing(message, FIRST)], NOW_MS)[0].status is PutStatus.MESSAGE_ILLEGAL
    assert FIRST not in store.topics()


def test_records_are_found_that_have_places(files: Any, config: Any, message: Build) -> None:
    store = MessageStore(config(**LIGHT), files=files)
    store.load(NOW_MS)
    store.put([message("T", 0), listing(message, FIRST)], NOW_MS)
    log = CommitLog(files, config())
    log.files.load()
    plain, light = list(RecordWalk(log.files.mapped_files[0], 0, check_crc=True))
    assert not light_queues.has_places(plain)
    assert light_queues.places_of(plain) == []
    assert light_queues.places_of(light) == [(FIRST, 0)]
    assert light_queues.parts_with_places(log.files, light.physical_offset) == []
    end = store.max_physical_offset
    assert light_queues.parts_with_places(log.files, end) == [(0, end)]


def lose(files: Any, folder: str) -> None:
    """Removes the files of a folder and those in it."""
    for entry in files.entries(folder):
        path = f"{folder}/{entry.name}"
        if entry.is_directory:
            lose(files, path)
        else:
            files.remove(path)


@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("gone", ["nothing", "consumequeue/%LMQ%a", "consumequeue"])
def test_light_queues_are_built_again(
    files: Any,
    open_store: Callable[..., MessageStore],
    message: Build,
    stopped: bool,
    gone: str,
) -> None:
    store = open_store(**LIGHT)
    for n in range(40):  # in several files of log and queues
        store.put([listing(message, FIRST, SECOND, body=bytes(n)), message("T", 1)], NOW_MS + n)
    before = {topic: units(store, topic) for topic in ("T", FIRST, SECOND)}
    if stopped:
        store.stop(NOW_MS)
    left = files.after_kill()
    lose(left, f"/store/{gone}")
    again = open_store(left, **LIGHT)
    assert {topic: units(again, topic) for topic in ("T", FIRST, SECOND)} == before
    result = again.put([listing(message, SECOND)], NOW_MS + 100)[0]
    assert units(again, SECOND)[40] == (result.physical_offset, result.size)


def test_a_light_queue_that_was_deleted_stays_away(
    files: Any, open_store: Callable[..., MessageStore], message: Build
) -> None:
    store = open_store(**LIGHT)
    store.put([listing(message, FIRST, SECOND)] * 3, NOW_MS)
    store.delete_topic(FIRST)
    result = store.put([listing(message, FIRST, SECOND)], NOW_MS)[0]
    again = open_store(files.after_kill(), **LIGHT)
    assert units(again, FIRST) == [(result.physical_offset, result.size)]
    assert len(units(again, SECOND)) == 4


MANY = [f"%LMQ%{number}" for number in range(500)]


@pytest.mark.parametrize(
    "wrong",
    [{"born_host": bytes(3)}, {"flag": 1 << 40}, {"body": bytes(900_000)}, {"topic": "a/b"}],
)
def test_a_refused_message_leaves_none_of_its_queues(
    store: MessageStore, files: Any, message: Build, wrong: dict[str, Any]
) -> None:
    store.put([message("T", 0)], NOW_MS)
    before = store.topics(), sorted(files.maps), sorted(files.directories)
    bad = listing(message, *MANY)._replace(**wrong)
    (refused,) = store.put([bad], NOW_MS)
    assert refused.status is PutStatus.MESSAGE_ILLEGAL
    (refused,) = store.put([listing(message, *MANY, "T")], NOW_MS)
    assert refused.status is PutStatus.MESSAGE_ILLEGAL
    assert (store.topics(), sorted(files.maps), sorted(files.directories)) == before
    assert store._queues.light_count == 0
    assert store.make_files() is None


def test_what_has_no_room_leaves_none_of_its_queues(
    store: MessageStore, files: Any, message: Build
) -> None:
    store.put([message("T", 0)], NOW_MS)
    before = store.topics(), sorted(files.maps), sorted(files.directories)
    files.room_bytes = 0
    new = listing(message, *MANY, topic="New")
    (refused,) = store.put([new], NOW_MS)
    assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert (store.topics(), sorted(files.maps), sorted(files.directories)) == before
    files.room_bytes = None
    (taken,) = store.put([new], NOW_MS)
    assert taken.status is PutStatus.PUT_OK
    assert len(units(store, MANY[-1])) == 1


def test_a_new_light_queue_makes_its_file_later(
    store: MessageStore, files: Any, message: Build
) -> None:
    """However many there are: a file with each step."""
    calls = count_of_calls(files)
    store.put([listing(message, *MANY)], NOW_MS)
    assert calls["map"] + calls["create"] <= 2, "the log, and the queue of the topic"
    steps = store.make_files()
    assert steps is not None
    made = [sum("%LMQ%" in path for path in files.maps) for _ in steps]
    assert made == list(range(1, 501))
    assert store.make_files() is None
    assert len(units(store, MANY[0])) == 1


def make_files(store: MessageStore) -> None:
    steps = store.make_files()
    if steps is not None:
        finished(steps)


def count_of_calls(files: Any) -> Counter[str]:
    calls: Counter[str] = Counter()
    for name in ("map", "create"):
        original = getattr(files, name)

        def counted(*args: Any, name: str = name, original: Any = original) -> Any:
            calls[name] += 1
            return original(*args)

        setattr(files, name, counted)
    return calls


def test_files_that_cannot_be_made_are_tried_again(
    store: MessageStore, files: Any, message: Build
) -> None:
    store.put([listing(message, FIRST, SECOND)], NOW_MS)
    files.room_bytes = 0
    with pytest.raises(OSError, match="No space"):
        make_files(store)
    assert [len(units(store, name)) for name in (FIRST, SECOND)] == [1, 1]
    files.room_bytes = None
    make_files(store)
    assert sum("%LMQ%" in path for path in files.maps) == 2


@pytest.mark.parametrize("ends_in_order", [False, True])
def test_units_without_a_file_survive(
    store: MessageStore, files: Any, open_store: Any, message: Build, ends_in_order: bool
) -> None:
    store.put([listing(message, FIRST, SECOND), listing(message, SECOND)], NOW_MS)
    before = units(store, FIRST), units(store, SECOND)
    if ends_in_order:
        store.stop(NOW_MS)
        assert sum("%LMQ%" in path for path in files.maps) == 2
    else:
        files = files.after_kill()
    again = open_store(files, **LIGHT)
    assert (units(again, FIRST), units(again, SECOND)) == before


def test_a_light_queue_that_is_deleted_first_gets_no_file(
    store: MessageStore, files: Any, message: Build
) -> None:
    store.put([listing(message, FIRST)], NOW_MS)
    store.delete_topic(FIRST)
    make_files(store)
    assert not any("%LMQ%" in path for path in files.maps)


def test_a_record_says_its_offset_in_each_queue(store: MessageStore, message: Build) -> None:
    store.put([listing(message, SECOND), listing(message, FIRST, SECOND)], NOW_MS)
    file = store._log.files.mapped_files[0]
    found = list(RecordWalk(file, 0, check_crc=True))
    assert [light_queues.offset_in(each, SECOND) for each in found] == [0, 1]
    assert [light_queues.offset_in(each, FIRST) for each in found] == [None, 0]
