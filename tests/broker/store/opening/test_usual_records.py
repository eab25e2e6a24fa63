# SPDX-License-Identifier: Apache-2.0
"""Queues and index are completed with the compiled kernel as they are without it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.store.conftest import ROOT, SMALL
from tests.disk import MemoryFiles
from tests.kernel.installed import kernel, needs_kernel
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore, PutMessage
from txrocketmq.broker.store.opening.usual_records import UsualRecords
from txrocketmq.broker.store.upkeep.reput import Reput
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.process.compiled_kernel import VARIABLE

NOW_MS = 1_700_000_000_000
HALF = int(MessageSysFlag.TRANSACTION_PREPARED_TYPE)
Build = Callable[..., PutMessage]
LARGE: dict[str, Any] = {
    "mapped_file_size_commit_log": 1 << 20,
    "mapped_file_size_consume_queue": 20_000,
    "max_hash_slot_num": 500,
    "max_index_num": 20_000,
}
"""Sizes of files with which many records follow one another."""


def _opened(files: MemoryFiles, **sizes: Any) -> MessageStore:
    config = StoreConfig(store_path_root_dir=ROOT, **{**SMALL, **sizes})
    return MessageStore(config, files=files, new_rows=None if kernel is None else kernel.Rows)


def _left(
    message: Build,
    count: int,
    *,
    deleted_at: int = -1,
    unusual: int = 0,
    end: str = "killed",
    **sizes: Any,
) -> MemoryFiles:
    """The files of a store that was killed, or closed, or whose machine went down. Every
    `unusual`-th message is a half one.
    """
    files = MemoryFiles()
    store = _opened(files, **sizes)
    store.load(NOW_MS)
    for number in range(count):
        if number == deleted_at:
            store.delete_topic("A")
        text: dict[str, Any] = {"keys": f"k{number}"}
        if not number % 5:
            text |= {"uniq_key": f"u{number}", "tags": "a", "tags_code": tags_code("a")}
        if unusual and not number % unusual:
            text["sys_flag"] = HALF
        store.put([message("AB"[number % 2], number % 3, bytes(60), **text)], NOW_MS + number)
        if number == count * 2 // 3:
            store._index.write_pending(NOW_MS)
            store.tick(NOW_MS + number)
    if end == "closed":
        store.stop(NOW_MS + count)
        return files
    return files.after_kill() if end == "killed" else files.after_power_cut(Random(count))


def _recovered(
    files: MemoryFiles, topics: set[str] | None = None, **sizes: Any
) -> tuple[Any, dict[str, bytes]]:
    """What opening the store says, and the files of queues and index afterwards."""
    store = _opened(files, **sizes)
    said = store.load(NOW_MS + 99_999, topics=topics)
    store._index.write_pending(NOW_MS)
    return said, {path: bytes(data) for path, data in files.maps.items() if "index" not in path} | {
        f"index {at}": bytes(each.file.map()) for at, each in enumerate(store._index.files)
    }


def _with_and_without(
    files_of: Callable[[], MemoryFiles], topics: set[str] | None = None, **sizes: Any
) -> list[Any]:
    """What comes of opening a store without the kernel, and with it."""
    found: list[Any] = []
    for word in ("off", "require"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(VARIABLE, word)
            try:
                found.append(_recovered(files_of(), topics, **sizes))
            except Exception as error:  # noqa: BLE001 - both must fail in the same way
                found.append(repr(error))
    return found


def _lose(files: MemoryFiles, losses: list[tuple[str, int, int]]) -> None:
    """Takes away what a crash of the machine takes, or a person."""
    for what, number, at in losses:
        for each in [path for path in files.small if "/deleted/" in path and what == "mark"]:
            files.remove(each)
        paths = sorted(path for path in files.maps if "/consumequeue/" in path)
        if not paths:
            continue
        path = paths[number % len(paths)]
        if what == "end":  # of a queue file, which was not durable yet
            data = files.maps[path]
            start = at * 20 % len(data)
            data[start:] = bytes(len(data) - start)
        elif what == "file":
            files.remove(path)
        elif what == "queues":
            for each in paths:
                files.remove(each)
            files.directories -= {each for each in files.directories if "/consumequeue" in each}
        elif what == "index":
            for each in [path for path in files.maps if "/index/" in path]:
                files.remove(each)
        elif what == "byte":
            data = files.maps[path]
            data[at % len(data)] ^= 1 << number % 8


LOSSES = st.lists(
    st.tuples(
        st.sampled_from(["end", "end", "file", "queues", "index", "byte", "mark"]),
        st.integers(0, 50),
        st.integers(0, 8191),
    ),
    max_size=4,
)


@needs_kernel
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 60),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 8191), st.integers(0, 255)), max_size=4),
)
def test_a_damaged_store_is_opened_as_without_it(
    message: Build, count: int, damages: list[tuple[int, int, int]]
) -> None:
    def damaged() -> MemoryFiles:
        files = _left(message, count)
        paths = sorted(path for path in files.maps if "index" not in path)
        for number, at, value in damages if paths else ():
            data = files.maps[paths[number % len(paths)]]
            data[at % len(data)] = value
        return files

    without, found = _with_and_without(damaged)
    assert without == found


@needs_kernel
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    count=st.integers(0, 120),
    losses=LOSSES,
    deleted_at=st.integers(-1, 120),
    unusual=st.sampled_from([0, 0, 2, 7, 40]),
    end=st.sampled_from(["closed", "killed", "down"]),
    topics=st.sampled_from([None, {"A", "B"}, {"A"}, set[str]()]),
    sizes=st.sampled_from([{}, LARGE]),
)
def test_what_a_store_has_lost_comes_back_as_without_it(
    message: Build,
    count: int,
    losses: list[tuple[str, int, int]],
    deleted_at: int,
    unusual: int,
    end: str,
    topics: set[str] | None,
    sizes: dict[str, Any],
) -> None:
    def left() -> MemoryFiles:
        files = _left(message, count, deleted_at=deleted_at, unusual=unusual, end=end, **sizes)
        _lose(files, losses)
        return files

    without, found = _with_and_without(left, topics, **sizes)
    assert without == found


@needs_kernel
def test_topics_that_are_not_known_get_no_queues(message: Build) -> None:
    def left() -> MemoryFiles:
        files = _left(message, 60, end="closed", **LARGE)
        _lose(files, [("queues", 0, 0)])
        return files

    without, found = _with_and_without(left, {"A"}, **LARGE)
    assert without == found
    assert found[0].unknown_messages == 30
    assert not any("/consumequeue/B/" in path for path in found[1])


@needs_kernel
def test_messages_from_before_a_topic_was_made_anew_stay_out(message: Build) -> None:
    def left() -> MemoryFiles:
        files = MemoryFiles()
        store = _opened(files)
        store.load(NOW_MS)
        store.put([message("A", 0, bytes(400), keys="k") for _ in range(15)], NOW_MS)
        store.delete_topic("A")
        # These are in the next file. One of the old messages would be the next of the queue, when
        # many are tried again for the third time.
        store.put([message("B", 0, bytes(900), keys="k")], NOW_MS)
        store.put([message("A", 0, b"new", keys="k") for _ in range(7)], NOW_MS)
        files = files.after_kill()
        _lose(files, [("mark", 0, 0)])
        return files

    without, found = _with_and_without(left)
    assert without == found
    assert not isinstance(found, str)


def _one_by_one(files: MemoryFiles, patch: pytest.MonkeyPatch, **sizes: Any) -> int:
    """How many records are dispatched one by one when the store is opened with the kernel."""
    seen: list[int] = []
    dispatch = Reput.dispatch

    def noted(self: Reput, record: Any) -> Any:
        seen.append(record.physical_offset)
        return dispatch(self, record)

    patch.setenv(VARIABLE, "require")
    patch.setattr(Reput, "dispatch", noted)
    _recovered(files, **sizes)
    return len(seen)


@needs_kernel
@pytest.mark.parametrize("what", ["nothing", "end", "queues", "index"])
def test_hardly_any_record_is_dispatched_one_by_one(
    message: Build, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _left(message, 2_000, **LARGE)
    _lose(files, [(what, 0, 17)])
    assert _one_by_one(files, monkeypatch, **LARGE) == 0


@needs_kernel
def test_only_unusual_records_are_dispatched_one_by_one(
    message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _left(message, 1_000, unusual=10, **LARGE)
    _lose(files, [("queues", 0, 0)])
    assert 100 <= _one_by_one(files, monkeypatch, **LARGE) <= 110


@needs_kernel
def test_a_wrong_unit_leaves_few_records_to_be_dispatched_one_by_one(
    message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _left(message, 900, **LARGE)
    path = next(path for path in sorted(files.maps) if "/consumequeue/A/0/" in path)
    files.maps[path][40 + 11] ^= 1  # the size of the third message
    assert 1 <= _one_by_one(files, monkeypatch, **LARGE) <= 32


@needs_kernel
def test_without_rows_of_the_kernel_the_index_is_completed_one_by_one(
    message: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = _left(message, 60, **LARGE)
    monkeypatch.setenv(VARIABLE, "require")
    config = StoreConfig(store_path_root_dir=ROOT, **{**SMALL, **LARGE})
    said = MessageStore(config, files=files).load(NOW_MS + 99_999)
    assert said.indexed_messages == 19


def test_without_a_kernel_all_records_are_dispatched(monkeypatch: pytest.MonkeyPatch) -> None:
    class Walk:
        def records(self, start: int, end: int) -> Any:
            return iter((start, end))

    monkeypatch.setenv(VARIABLE, "off")
    nothing: Any = None
    walk: Any = Walk()
    usual = UsualRecords(nothing, nothing, nothing, nothing, True)
    assert list(usual.others(walk, 3, 9)) == [3, 9]
