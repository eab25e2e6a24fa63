# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.disk import MemoryFiles
from tests.examples import examples
from txrocketmq.broker.replication.rejoin import DivergedError, Rejoin
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore, PutMessage
from txrocketmq.broker.store.replication.own_records import OwnRecords
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ConnectError, RequestTimeout, ResponseError
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.operations.admin import GET_BROKER_RUNTIME_INFO
from txrocketmq.remoting.protocol.query import VIEW_MESSAGE_BY_ID

NOW_MS: Final = 1_700_000_000_000
FILE_BYTES: Final = 8192
MOST_REQUESTS: Final = 40
ADDRESS: Final = "10.0.0.1:10911"
HOST: Final = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")


def a_store() -> MessageStore:
    config = StoreConfig(
        store_path_root_dir="/store",
        mapped_file_size_commit_log=FILE_BYTES,
        mapped_file_size_consume_queue=400,
        message_index_enable=False,
    )
    store = MessageStore(config, files=MemoryFiles())
    store.load(NOW_MS)
    return store


def put(store: MessageStore, *bodies: bytes, now_ms: int = NOW_MS) -> None:
    for body in bodies:
        message = PutMessage(
            "T", len(body) % 3, body, b"", tags_code=0, born_timestamp_ms=now_ms, born_host=HOST,
            store_host=HOST, uniq_key=None, keys=None, tags=None,
        )  # fmt: skip
        store.put([message], now_ms)


def copy(source: MessageStore, end: int | None = None, start: int = 0) -> MessageStore:
    """A replica of a log, from the file at `start` up to an offset."""
    replica = a_store()
    end = source.max_physical_offset if end is None else end
    at = start
    while at < end and (data := source.read_raw(at, end - at)) is not None:
        replica.append_raw(at, data)
        at += len(data)
    replica.confirmed()
    return replica


class FakeMaster:
    """Answers as a broker with this store does; `is_java`: as one that does not know records."""

    def __init__(self, store: MessageStore, *, is_java: bool = False, start: int = 0) -> None:
        self.store = store
        self.is_java = is_java
        self.start = start
        self.asked: list[int | None] = []
        self.answer: Reply[Any] | Exception | None = None
        """What is answered to everything, if it is not None."""

    def invoke(
        self, address: str, call: Any, header: Any, body: bytes = b"", *, timeout_ms: int
    ) -> PendingReply:
        assert address == ADDRESS
        pending = PendingReply()
        if self.answer is not None:
            pending.resolve(self.answer)
        elif call is VIEW_MESSAGE_BY_ID:
            self.asked.append(header.offset)
            pending.resolve(self._view(header.offset))
        else:
            assert call is GET_BROKER_RUNTIME_INFO
            self.asked.append(None)
            table = self.store.runtime_info(0)
            if self.start:
                table["commitLogMinOffset"] = str(self.start)
            pending.resolve(Reply(body=KVTable(table=table).encode()))
        return pending

    def _view(self, offset: int) -> Reply[Any]:
        store = self.store
        found = store.message_at(offset)
        if self.is_java and (head := store.read_raw(offset, 4)) is not None and len(head) == 4:
            size = int.from_bytes(head, "big", signed=True)
            found = store.read_raw(offset, size) if size > 0 else None
            found = found if found is not None and len(found) == size else None
            if size < 0:
                return Reply(code=ResponseCode.SYSTEM_ERROR, remark="IllegalArgumentException")
        if found is None or offset < self.start:
            text = f"can not find message by the offset, {offset}"
            return Reply(code=ResponseCode.SYSTEM_ERROR, remark=text)
        return Reply(body=bytes(found))


class Scene:
    """A slave that is about to follow a master."""

    def __init__(
        self, slave: MessageStore, master: MessageStore, *, truncates: bool = False, **how: Any
    ) -> None:
        self.master = FakeMaster(master, **how)
        self.cuts: list[int] = []
        self.turns = 0
        self.address: str | None = ADDRESS
        self._rejoin = Rejoin(
            OwnRecords(slave.log_files),
            lambda: self.address,
            self.master,
            self._soon,
            self.cuts.append if truncates else None,
        )

    def _soon(self, call: Callable[[], None]) -> None:
        self.turns += 1
        call()

    def check(self) -> None:
        """Raises what the check fails with."""
        outcome: list[Any] = []
        self._rejoin.check().then(outcome.append)
        (found,) = outcome
        assert len(self.master.asked) <= MOST_REQUESTS
        if isinstance(found, Exception):
            raise found


def test_an_empty_store_asks_nothing() -> None:
    master = a_store()
    put(master, b"a")
    scene = Scene(a_store(), master)
    scene.address = None
    scene.check()
    assert scene.master.asked == []


def test_the_same_log_takes_one_question() -> None:
    master = a_store()
    put(master, *[b"x" * 50] * 100)
    slave = copy(master)
    put(master, b"more")
    scene = Scene(slave, master)
    scene.check()
    assert len(scene.master.asked) == 1


@pytest.mark.parametrize("is_java", [False, True])
def test_a_slave_whose_log_ends_anywhere_follows(is_java: bool) -> None:
    master = a_store()
    put(master, *[bytes([each]) * (each * 37 % 900) for each in range(40)])
    end = master.max_physical_offset
    assert end > 2 * FILE_BYTES
    for at in [*range(1, end, 61), *range(FILE_BYTES - 30, FILE_BYTES + 30), end]:
        scene = Scene(copy(master, at), master, is_java=is_java)
        scene.check()
        assert len(scene.master.asked) <= 3
    # A master that has no more than its slave, whose last message ended a file.
    for at in range(FILE_BYTES, end, FILE_BYTES):
        Scene(copy(master, at), copy(master, at), is_java=is_java).check()


@pytest.mark.parametrize("is_java", [False, True])
@pytest.mark.parametrize("common", [1, 2, 30, 200])
@pytest.mark.parametrize(("mine", "theirs"), [(1, 0), (1, 1), (50, 3), (3, 50), (300, 300)])
def test_what_only_the_slave_has_is_told(
    common: int, mine: int, theirs: int, is_java: bool
) -> None:
    old = a_store()
    put(old, *[b"common"] * common)
    end = old.max_physical_offset
    new = copy(old)
    put(old, *[b"mine"] * mine, now_ms=NOW_MS + 1)
    put(new, *[b"their"] * theirs, now_ms=NOW_MS + 2)
    scene = Scene(old, new, is_java=is_java)
    size = old.max_physical_offset - end
    with pytest.raises(DivergedError) as caught:
        scene.check()
    text = str(caught.value)
    assert f"differ from {end} on" in text
    count = "1 message" if mine == 1 else f"{mine} messages"
    assert f"the last {count} of its log, {size:,} bytes" in text
    assert f"txrocketmq store cut STORE --at {end}" in text
    assert scene.cuts == []


def test_it_is_cut_where_that_is_wanted() -> None:
    old = a_store()
    put(old, *[b"common"] * 100)
    end, new = old.max_physical_offset, copy(old)
    put(old, *[b"mine"] * 200, now_ms=NOW_MS + 1)
    scene = Scene(old, new, truncates=True)
    with pytest.raises(DivergedError, match="as haTruncate=true says: it starts again"):
        scene.check()
    assert scene.cuts == [end]


def test_bytes_of_a_message_that_the_master_has_not() -> None:
    old = a_store()
    put(old, *[b"common"] * 10)
    end, new = old.max_physical_offset, copy(old)
    put(old, b"m" * 300)
    put(new, b"t" * 300)
    for at in (end + 300, end + 41, end + 390):
        slave = copy(old, at)
        with pytest.raises(DivergedError, match=f"differ from {end} on: only this slave has the"):
            Scene(slave, new).check()
    # The first bytes of both are the same.
    Scene(copy(old, end + 8), new).check()
    # The master ends before.
    with pytest.raises(DivergedError, match=f"differ from {end} on"):
        Scene(copy(old, end + 8), copy(old, end)).check()


def test_a_blank_where_the_master_has_a_message() -> None:
    old = a_store()
    put(old, b"c" * 7_000)
    end, new = old.max_physical_offset, copy(old)
    put(old, b"m" * 3_000)
    put(new, b"t" * 300, b"t" * 3_000)
    for at in (end + 6, end + 30, FILE_BYTES, FILE_BYTES + 50, old.max_physical_offset):
        for is_java in (False, True):
            with pytest.raises(DivergedError, match=f"differ from {end} on"):
                Scene(copy(old, at), new, is_java=is_java).check()


@pytest.mark.parametrize("is_java", [False, True])
def test_a_blank_that_both_have(is_java: bool) -> None:
    old = a_store()
    put(old, b"c" * 7_000)
    end = old.max_physical_offset
    new, short = copy(old), copy(old)
    put(old, b"m" * 3_000, b"m")
    put(new, b"t" * 3_000)
    for master, place in ((new, FILE_BYTES), (short, end)):
        scene = Scene(old, master, truncates=True, is_java=is_java)
        with pytest.raises(DivergedError, match=f"differ from {place} on"):
            scene.check()
        assert scene.cuts == [place]


def test_messages_that_the_master_has_no_more_are_not_compared() -> None:
    old = a_store()
    put(old, *[b"c" * 400] * 100)
    new = copy(old, start=2 * FILE_BYTES)
    Scene(old, new).check()
    end = old.max_physical_offset
    put(old, b"mine", now_ms=NOW_MS + 1)
    put(new, b"their", now_ms=NOW_MS + 2)
    with pytest.raises(DivergedError, match=f"differ from {end} on"):
        Scene(old, new).check()
    short = copy(old, FILE_BYTES + 1_000)
    with pytest.raises(DivergedError, match="nothing in common that could be compared"):
        Scene(short, new, truncates=True).check()


@pytest.mark.parametrize("truncates", [False, True])
def test_logs_of_different_masters_are_never_cut(truncates: bool) -> None:
    one, other = a_store(), a_store()
    put(one, *[b"one"] * 100)
    put(other, *[b"other"] * 100)
    scene = Scene(one, other, truncates=truncates)
    with pytest.raises(DivergedError, match="they are logs of different masters"):
        scene.check()
    assert scene.cuts == []


def test_a_master_that_came_back_empty() -> None:
    slave = a_store()
    put(slave, b"a", b"b")
    scene = Scene(slave, a_store(), truncates=True)
    with pytest.raises(DivergedError, match="and the master's from 0 to 0"):
        scene.check()
    assert scene.cuts == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Reply(code=ResponseCode.SYSTEM_BUSY, remark="busy"), "busy \\(code 2\\)"),
        (Reply(code=ResponseCode.SYSTEM_ERROR, remark="NullPointer"), "its log ends: NullPointer"),
        (Reply(code=ResponseCode.NO_PERMISSION, remark="who are you"), "who are you"),
        (RequestTimeout("3 s"), "3 s"),
    ],
)
def test_a_master_that_does_not_answer_can_be_asked_again(
    answer: Reply[Any] | Exception, why: str
) -> None:
    slave = a_store()
    put(slave, b"a")
    scene = Scene(slave, copy(slave))
    scene.master.answer = answer
    with pytest.raises((ResponseError, RequestTimeout), match=why):
        scene.check()
    scene.master.answer = None
    scene.check()


def test_a_master_that_fails_once_is_not_taken_for_another_one() -> None:
    slave = a_store()
    put(slave, *[b"a"] * 40)
    scene = Scene(slave, copy(slave), truncates=True)
    view, failures = scene.master._view, [3]

    def failing(offset: int) -> Reply[Any]:
        failures[0] -= 1
        if failures[0] in (2, 1):
            return Reply(code=ResponseCode.SYSTEM_ERROR, remark="OutOfMemoryError")
        return view(offset)

    scene.master._view = failing  # type: ignore[method-assign]
    with pytest.raises((ResponseError, DivergedError)) as caught:
        scene.check()
    assert scene.cuts == []
    assert "empty store" in str(caught.value) or "different things" in str(caught.value)
    failures[0] = 2
    with pytest.raises(ResponseError, match="has said different things about the message"):
        scene.check()
    assert scene.cuts == []
    scene.check()


def test_a_master_that_nobody_knows_yet() -> None:
    slave = a_store()
    put(slave, b"a")
    scene = Scene(slave, copy(slave))
    scene.address = None
    with pytest.raises(ConnectError, match="no name server names the master yet"):
        scene.check()


def test_a_master_that_does_not_say_where_its_log_ends() -> None:
    slave = a_store()
    put(slave, b"a")
    scene = Scene(slave, a_store())
    view = scene.master.invoke

    def invoke(address: str, call: Any, header: Any, body: bytes = b"", **how: Any) -> PendingReply:
        if call is VIEW_MESSAGE_BY_ID:
            return view(address, call, header, body, **how)
        pending = PendingReply()
        pending.resolve(Reply(body=b"{}", remark="no"))
        return pending

    scene.master.invoke = invoke  # type: ignore[method-assign]
    with pytest.raises(ResponseError, match="does not say where its log ends"):
        scene.check()


@settings(max_examples=examples(20))
@given(
    seed=st.integers(0, 1 << 30),
    common=st.integers(1, 60),
    mine=st.integers(0, 60),
    theirs=st.integers(0, 60),
    is_java=st.booleans(),
)
def test_any_two_logs(seed: int, common: int, mine: int, theirs: int, is_java: bool) -> None:
    random = Random(seed)

    def bodies(count: int) -> list[bytes]:
        return [random.randbytes(random.randrange(1_200)) for _ in range(count)]

    old = a_store()
    put(old, *bodies(common))
    end, new = old.max_physical_offset, copy(old)
    put(old, *bodies(mine), now_ms=NOW_MS + 1)
    put(new, *bodies(theirs), now_ms=NOW_MS + 2)
    scene = Scene(old, new, is_java=is_java, truncates=True)
    if mine:
        with pytest.raises(DivergedError):
            scene.check()
        # Both may have ended the file there with a blank, which is the same in both.
        assert scene.cuts in ([end], [-(-end // FILE_BYTES) * FILE_BYTES])
        assert old.log_files.find(end) is not None
        if blank_bytes := scene.cuts[0] - end:
            assert new.read_raw(end, blank_bytes) == old.read_raw(end, blank_bytes)
        assert len(scene.master.asked) <= 6 + old.max_physical_offset.bit_length()
    else:
        scene.check()
        assert scene.cuts == []
