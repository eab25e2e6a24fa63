# SPDX-License-Identifier: Apache-2.0
"""Nobody waits for the disk where everybody waits: no request, and no work of the broker itself.

A broker is started anew over a store, and nothing of its files is in memory. Whatever touches a
mapped file that was not asked for first, and read in a thread, is found: files are small here, so
one that is read is read as a whole. Every request that is served is asked; one that is not named
fails the test.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import STORE_HOST, Parts
from tests.broker.test_turns import BODIES, FIELDS, IN_TWENTY_YEARS_MS
from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.metrics import BrokerMetrics
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.disk.in_memory import (
    CHUNK_BYTES,
    Check,
    ColdRead,
    NotInMemory,
    unchecked,
)
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.disk.steps import finished, when_in_memory
from txrocketmq.broker.store.message_store import GetResult
from txrocketmq.broker.store.queues.consume_queue import ConsumeQueue
from txrocketmq.broker.store.queues.consume_queue_ext import ExtUnit
from txrocketmq.remoting.call import PendingReply, Request
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Registry, Run
from txrocketmq.remoting.host.exporter import exposition
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import decode_message
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import (
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TRANS_CHECK_MAX_TIME_TOPIC,
    TRANS_HALF_TOPIC,
)
from txrocketmq.remoting.rpc_times import RpcTimes

LATER_MS = NOW_MS + 3_600_000
AT_TIME = str(NOW_MS - 1)
SEND = {
    "producerGroup": "P", "topic": "T", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4",
    "queueId": "1", "sysFlag": "0", "bornTimestamp": str(NOW_MS), "flag": "0", "properties": "",
    "reconsumeTimes": "0", "unitMode": "false", "batch": "false",
}  # fmt: skip
PULL = {
    "consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "8",
    "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*",
    "subVersion": "0",
}  # fmt: skip
POP = {
    "consumerGroup": "N", "topic": "T", "queueId": "0", "maxMsgNums": "8", "invisibleTime": "60000",
    "pollTime": "0", "bornTime": str(LATER_MS), "initMode": "0",
}  # fmt: skip
ACK = {
    "consumerGroup": "G", "topic": "T", "queueId": "0", "offset": "0",
    "extraInfo": f"0 {NOW_MS} 60000 0 0 broker-a 0 0",
}  # fmt: skip
FIELDS_HERE: dict[int, dict[str, str]] = {
    10: SEND, 310: {}, 320: SEND, 324: SEND, 325: SEND,
    11: PULL, 361: PULL,
    14: {"consumerGroup": "N", "topic": "T", "queueId": "0"},
    29: {"topic": "T", "queueId": "0", "timestamp": AT_TIME},
    36: {"group": "G", "offset": "0", "delayLevel": "0"},
    222: {"topic": "T", "group": "G", "timestamp": AT_TIME, "isForce": "true"},
    303: {"topic": "T", "group": "G"},
    370: {"topic": "T", "recallHandle": "x"},
    202: {"topic": "T"},
    200050: POP, 200052: POP, 200051: ACK, 200053: {**ACK, "invisibleTime": "60000"},
    200054: {**POP}, 200056: {}, 200151: {},
}  # fmt: skip
"""Other fields than those of test_turns.py, or more."""
NO_MESSAGES = {25, 26, 34, 35, 41, 42, 46, 223, 307, 400, 905, 906, 1007, 1008, 5001,
               *range(50, 55), *range(3001, 3011)}  # fmt: skip
"""What looks at no message."""
READING = {11, 12, 14, 28, 29, 32, 33, 36, 37, 202, 208, 222, 303, 309, 317, 321, 323, 361, 200050,
           200052}  # fmt: skip
"""What cannot be answered without the files."""
BY_UNITS = {14, 321}
"""Of these, what looks at queues only, and at no message."""
PUTTING = {36, 37, 323, 200050}
"""What puts messages, too: bitmaps are made of records that were just written."""


def _message_id(offset: int) -> str:
    return (STORE_HOST + offset.to_bytes(8, "big")).hex().upper()


class Disk:
    """Files of which nothing is in memory but what has been read in a thread."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.is_in_thread = False
        self.read: set[str] = set()
        self.touched: list[str] = []
        self.is_watched = False
        self.patch = patch
        viewed: Any = vars(MappedFile)["view"]
        run = ColdRead.run

        def view(file: MappedFile) -> memoryview:
            if self.is_watched and file.path not in self.read:
                assert file.size_bytes <= CHUNK_BYTES
                self.touched.append(file.path + "\n" + "".join(traceback.format_stack(limit=9)))
            found: memoryview = viewed.fget(file)
            return found

        reads = OsFiles.read_ahead

        def read_ahead(files: OsFiles, path: str, offset_bytes: int, length_bytes: int) -> bytes:
            assert self.is_in_thread, "the disk is waited for where everybody waits"
            self.read.add(path)
            return reads(files, path, offset_bytes, length_bytes)

        def in_thread(read: ColdRead) -> None:
            self.is_in_thread = True
            run(read)
            self.is_in_thread = False

        patch.setattr(MappedFile, "view", property(view))
        patch.setattr(OsFiles, "read_ahead", read_ahead)
        patch.setattr(
            OsFiles,
            "is_in_memory",
            lambda *_: not self.is_watched,
        )
        patch.setattr(ColdRead, "run", in_thread)

    def watch(self, call: Callable[[], Any]) -> Any:
        """Does something, with nothing in memory at its start."""
        self.read.clear()
        self.is_watched = True
        try:
            return call()
        finally:
            self.is_watched = False
            assert not self.touched, self.touched[0]


class Scene:
    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, **settings: Any) -> None:
        self.places: dict[str, int] = {}
        self.settings = {"max_hash_slot_num": 50, **settings}
        first = self._open(folder)
        self._fill(first)
        first.store.stop(first.now_ms)
        self.parts = self._open(folder)
        self.parts.now_ms = LATER_MS
        self.disk = Disk(patch)
        self.registry = Registry(*all_processors(self.parts))
        self.peer = self.parts.consumer("G", "c1", "T")

    def _open(self, folder: Path) -> Parts:
        parts = Parts(folder, store_settings=self.settings)
        parts.topic("T", queues=1)
        parts.topic("W", queues=2)
        parts.groups.find("G")
        parts.offsets.commit("G", "T", 0, 2)
        parts.timers.open(parts.now_ms)
        return parts

    def _fill(self, parts: Parts) -> None:
        for number in range(4):
            parts.put("T", 0, KEYS="hot", UNIQ_KEY=f"{number:032X}", TAGS="AB"[number % 2])
        real: dict[str, Any] = {names.REAL_TOPIC: "T", names.REAL_QID: "0", names.PGROUP: "P"}
        self.places["half"] = parts.put(TRANS_HALF_TOPIC, 0, **real).physical_offset
        given_up = parts.put(TRANS_CHECK_MAX_TIME_TOPIC, 0, **real)
        self.places["given up"] = given_up.physical_offset
        parts.put(SCHEDULE_TOPIC, 0, **real, DELAY="1")
        out = str(NOW_MS + 5_000)
        parts.put(TIMER_TOPIC, 0, **real, TIMER_OUT_MS=out)
        self._pop(parts)
        parts.store.tick(NOW_MS)
        while len(parts.store._log.files.mapped_files) < 3:
            parts.put("other", 0, body=bytes(20_000))

    def _pop(self, parts: Parts) -> None:
        registry = Registry(*all_processors(parts))
        self._asked(parts, registry, 200050, {**POP, "bornTime": str(NOW_MS)}, b"", FakePeer())
        parts.pop.check_points.write_all(NOW_MS)

    def _asked(
        self,
        parts: Parts,
        registry: Registry,
        code: int,
        fields: dict[str, str],
        body: bytes,
        peer: FakePeer,
    ) -> Any:
        binding = registry.bindings[code]
        command = RemotingCommand(code, fields, body)
        if code in registry.runs():
            answer: Any = lambda _peer, _command, reply: [reply]  # noqa: E731
            return registry.runs()[code](Run(peer, [command], parts.now_ms, answer))
        handler = binding.handler
        assert handler is not None
        header = binding.call.request.decode(fields)
        reply = handler(Request(header, command, peer, parts.now_ms, parts.now_ms))
        if isinstance(reply, PendingReply):
            found: list[Any] = []
            reply.then(found.append)
            return found
        return reply

    def fields(self, code: int) -> dict[str, str]:
        """With what a request is asked."""
        at = self.places
        if code == 37:
            return {
                "producerGroup": "P", "tranStateTableOffset": "0", "commitOrRollback": "8",
                "commitLogOffset": str(at["half"]), "fromTransactionCheck": "true",
                "msgId": "x", "transactionId": "x",
            }  # fmt: skip
        if code == 323:
            return {"msgId": _message_id(at["given up"])}
        if code == 309:
            return {"consumerGroup": "G", "clientId": "c1", "msgId": _message_id(0)}
        return FIELDS_HERE.get(code) or FIELDS[code]

    def ask(self, code: int) -> Any:
        """Asks it."""
        body = BODIES.get(code, b"")
        return self._asked(self.parts, self.registry, code, self.fields(code), body, self.peer)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(tmp_path, monkeypatch)
    yield made
    made.parts.store.stop(LATER_MS)


@pytest.fixture
def with_ext(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """A store whose queues have ext files."""
    made = Scene(
        tmp_path,
        monkeypatch,
        enable_consume_queue_ext=True,
        mapped_file_size_consume_queue_ext=4_096,
    )
    yield made
    made.parts.store.stop(LATER_MS)


CODES = sorted(FIELDS_HERE.keys() | FIELDS.keys() | {37, 309, 323})


def test_every_request_is_asked(scene: Scene) -> None:
    assert set(scene.registry.bindings) == set(CODES) | NO_MESSAGES


@pytest.mark.parametrize("code", CODES, ids=lambda code: RequestCode(code).name)
def test_no_request_waits_for_the_disk(scene: Scene, code: int) -> None:
    def ask() -> None:
        try:
            scene.ask(code)
        except Exception as error:  # noqa: BLE001 - as the dispatcher does
            assert code not in READING, error

    scene.disk.watch(ask)
    if code in READING:
        assert scene.disk.read


@pytest.mark.parametrize("code", sorted(READING - PUTTING), ids=lambda code: RequestCode(code).name)
def test_no_request_waits_for_an_ext_file(with_ext: Scene, code: int) -> None:
    with_ext.disk.watch(lambda: with_ext.ask(code))
    assert with_ext.disk.read


def test_tags_and_bitmaps_of_ext_files_are_read_in_a_thread(with_ext: Scene) -> None:
    store, disk = with_ext.parts.store, with_ext.disk
    wanted = frozenset([tags_code("B")])
    seen: list[ExtUnit] = []

    def get(**only: bool) -> GetResult:
        return store.get("T", 0, 0, 8, 1 << 20, wanted, None, filter_ext, **only)

    def filter_ext(unit: ExtUnit) -> bool:
        seen.append(unit)
        return True

    for _ in range(2):
        seen.clear()
        found = disk.watch(lambda: finished(when_in_memory(get)))
        assert found.count == 2
        assert {unit.tags_code for unit in seen} == wanted
        assert any("/consumequeue_ext/T/" in path for path in disk.read)
        store._records.memory.tick()
        store._records.memory.tick()


def test_what_is_in_memory_is_given_though_an_ext_unit_behind_it_is_not(with_ext: Scene) -> None:
    parts, disk = with_ext.parts, with_ext.disk
    parts.put("T", 0, body=bytes(10), TAGS="B")
    queue = parts.store._queues.find("T", 0)
    assert queue is not None
    assert queue.ext is not None
    units = [queue.stored(offset) for offset in range(queue.max_offset)]
    hidden = units[3]
    assert hidden is not None
    tags_code_of = queue.tags_code

    def hide(code: int, check: Check = unchecked) -> int | None:
        if code == hidden[2]:
            raise NotInMemory(ColdRead(OsFiles(), parts.store._records.memory, []))
        return tags_code_of(code, check)

    disk.patch.setattr(ConsumeQueue, "tags_code", lambda _, *of: hide(*of))
    wanted = frozenset([tags_code("B")])
    found = parts.store.get("T", 0, 0, 8, 1 << 20, wanted)
    assert (found.count, found.next_begin_offset) == (1, 3)
    with pytest.raises(NotInMemory):
        parts.store.get("T", 0, 2, 8, 1 << 20, wanted)


def test_delayed_messages_are_read_in_a_thread(scene: Scene) -> None:
    schedule, store = scene.parts.schedule, scene.parts.store
    before = store.max_offset("T", 0)

    def deliver() -> None:
        for _ in range(4):
            schedule.tick(LATER_MS, LATER_MS)

    scene.disk.watch(deliver)
    assert store.max_offset("T", 0) == before + 1
    assert any("/commitlog/" in path for path in scene.disk.read)


def test_half_messages_are_read_in_a_thread(scene: Scene) -> None:
    check, parts = scene.parts.transaction_check, scene.parts
    before = parts.store.max_offset(TRANS_HALF_TOPIC, 0)

    def look() -> None:
        check.tick(LATER_MS, 0)
        for number in range(6):
            check.tick(LATER_MS, parts.config.transaction_check_interval + number)

    scene.disk.watch(look)
    assert parts.store.max_offset(TRANS_HALF_TOPIC, 0) == before + 1
    assert any("/commitlog/" in path for path in scene.disk.read)


def test_what_was_popped_is_read_in_a_thread(scene: Scene) -> None:
    revive, store = scene.parts.pop.revive, scene.parts.store
    retry = "%RETRY%N_T"

    def bring_back() -> None:
        for number in range(12):
            revive.tick(LATER_MS, number)

    scene.disk.watch(bring_back)
    assert sum(store.max_offset(retry, each) for each in store.queue_ids(retry)) == 4
    assert any("/commitlog/" in path for path in scene.disk.read)


def test_timer_messages_are_read_in_a_thread(scene: Scene) -> None:
    timers, store = scene.parts.timers, scene.parts.store
    before = store.max_offset("T", 0)

    def deliver() -> None:
        for number in range(20):
            timers.tick(LATER_MS, number)

    scene.disk.watch(deliver)
    assert store.max_offset("T", 0) == before + 1
    assert any("/commitlog/" in path for path in scene.disk.read)


def test_what_is_done_every_second_reads_nothing(scene: Scene) -> None:
    parts = scene.parts

    def pass_a_second() -> None:
        parts.store.tick(LATER_MS)
        parts.pop.tick(LATER_MS, LATER_MS)
        parts.polling.tick(LATER_MS)
        parts.broadcast_offsets.scan(parts.walks)
        parts.filters.clean()

    scene.disk.watch(pass_a_second)


def test_queues_follow_the_log_in_a_thread(scene: Scene) -> None:
    parts = scene.parts
    store = parts.store
    store.delete_expired(IN_TWENTY_YEARS_MS)
    assert store.min_physical_offset > 0
    failed: list[Exception] = []

    def follow_log() -> None:
        steps = store.follow_log()
        assert steps is not None
        parts.walks.run(steps, failed.append)

    scene.disk.watch(follow_log)
    assert failed == []
    assert store.min_offset("T", 0) == store.max_offset("T", 0) == 4
    assert any("/consumequeue/T/" in path for path in scene.disk.read)
    assert store.follow_log() is None


def test_a_key_is_looked_for_in_a_thread(scene: Scene) -> None:
    scene.disk.watch(lambda: scene.ask(12))
    assert any("/index/" in path for path in scene.disk.read)
    assert any("/commitlog/" in path for path in scene.disk.read)


def test_metrics_are_collected_without_the_disk(scene: Scene) -> None:
    metrics = BrokerMetrics(
        scene.parts, {}, lambda: LATER_MS, RpcTimes(), scene.parts.walked().gauges()
    )
    text = scene.disk.watch(lambda: exposition(metrics.collect()))
    assert b"rocketmq_consumer_lag_latency" in text
    assert any("/commitlog/" in path for path in scene.disk.read)


@pytest.fixture
def altered(scene: Scene) -> Scene:
    """The first byte of each body has changed on the disk."""
    store = scene.parts.store
    for record in store.records(0):
        message, _ = decode_message(record)
        at = bytes(record).index(message.body)
        file = store._log.files.find(message.commit_log_offset)
        assert file is not None
        with Path(file.path).open("r+b") as opened:
            opened.seek(message.commit_log_offset - file.from_offset + at)
            opened.write(bytes([record[at] ^ 1]))
    return scene


@pytest.mark.parametrize("code", sorted(READING), ids=lambda code: RequestCode(code).name)
def test_a_request_that_reads_the_log_from_the_disk_finds_what_has_changed_there(
    altered: Scene, code: int
) -> None:
    altered.disk.watch(lambda: altered.ask(code))
    reads_log = any("/commitlog/" in path for path in altered.disk.read)
    assert reads_log == (code not in BY_UNITS)
    assert (altered.parts.store.wrong_bodies.count > 0) == reads_log


WORK: dict[str, Callable[[Parts, int], object]] = {
    "delays": lambda parts, _: parts.schedule.tick(LATER_MS, LATER_MS),
    "half messages": lambda parts, number: parts.transaction_check.tick(
        LATER_MS, number and parts.config.transaction_check_interval + number
    ),
    "popped messages": lambda parts, number: parts.pop.revive.tick(LATER_MS, number),
    "timers": lambda parts, number: parts.timers.tick(LATER_MS, number),
}


@pytest.mark.parametrize("name", WORK)
def test_so_does_what_the_broker_does_by_itself(altered: Scene, name: str) -> None:
    def work() -> None:
        for number in range(20):
            WORK[name](altered.parts, number)

    altered.disk.watch(work)
    assert altered.parts.store.wrong_bodies.count > 0
