# SPDX-License-Identifier: Apache-2.0
"""Queues and index of which something is missing or wrong are built again from the log."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.store.filled import NOW_MS, QUEUES, Build, Config, Filled
from tests.broker.store.opening.test_recover import FAR_MS, all_bodies, reopened
from tests.examples import examples
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.queues.consume_queue import UNIT, UNIT_BYTES


@pytest.mark.parametrize(
    "what",
    ["consumequeue", "index", "consumequeue/A", "consumequeue/B/1", "consumequeue/A/0/" + "0" * 20],
)
def test_what_was_removed_is_built_again(filled: Filled, what: str) -> None:
    filled.remove("/store/" + what)
    done = filled.check()
    assert bool(done.warnings) is done.was_closed, "after a crash it is what a crash does"


@pytest.mark.parametrize("cut", [0, 1, 20, 50, 99])
@pytest.mark.parametrize("number", [0, 1, -1])
def test_a_queue_file_that_is_zeroed_or_cut_is_built_again(
    filled: Filled, number: int, cut: int
) -> None:
    path = sorted(path for path in filled.disk.maps if path.startswith(QUEUES + "A/0/"))[number]
    mapped = filled.disk.maps[path]
    mapped[cut:] = bytes(100 - cut)
    filled.check()


@pytest.mark.parametrize("size", [7, 60, 150])
@pytest.mark.parametrize("number", [0, 1, -1])
def test_a_queue_file_of_another_size_is_built_again(
    filled: Filled, number: int, size: int
) -> None:
    path = sorted(path for path in filled.disk.maps if path.startswith(QUEUES + "A/0/"))[number]
    data = bytes(filled.disk.maps.pop(path))
    filled.disk.small[path] = (data + b"x" * 50)[:size]
    done = filled.check()
    assert any(f"{path} has {size} bytes, where others have 100" in each for each in done.warnings)
    assert any(each.startswith("/store/lost/") for each in filled.disk.small) is (size > 100)


def test_one_queue_that_was_cut_is_built_again(files: Any, config: Config, message: Build) -> None:
    store, _ = reopened(files, config)
    store.put([message("T", body=b"%d" % each) for each in range(4)], NOW_MS)
    store.stop(NOW_MS)
    path = QUEUES + "T/0/" + "0" * 20
    files.small[path] = bytes(files.maps.pop(path))[:33]
    again, _ = reopened(files, config)
    assert all_bodies(again, "T", 0) == [b"%d" % each for each in range(4)]


def test_a_zeroed_stretch_in_the_middle_of_a_queue_is_built_again(filled: Filled) -> None:
    row = [path for path in sorted(filled.disk.maps) if path.startswith(QUEUES + "B/1/")]
    filled.disk.maps[row[0]][20:60] = bytes(40)
    filled.check()


def test_all_queues_are_built_again_but_only_of_known_topics(closed: Filled) -> None:
    closed.remove("/store/consumequeue")
    store = MessageStore(closed.config(), files=closed.disk)
    done = store.load(NOW_MS, topics={"A"})
    assert done.unknown_messages == 50
    assert store.topics() == ["A"]
    assert any("50 messages of topics" in each and ": B." in each for each in done.warnings)


@pytest.mark.parametrize("number", [0, 1, -1])
@pytest.mark.parametrize("how", ["gone", "zeroed", "count", "offsets"])
def test_an_index_file_is_built_again(filled: Filled, number: int, how: str) -> None:
    path = sorted(each for each in filled.disk.maps if each.startswith("/store/index/"))[number]
    mapped = filled.disk.maps[path]
    if how == "gone":
        filled.disk.remove(path)
    elif how == "zeroed":
        mapped[:] = bytes(len(mapped))
    elif how == "count":
        mapped[36:40] = (41).to_bytes(4, "big")
    else:
        mapped[16:24] = (1 << 60).to_bytes(8, "big")
    done = filled.check()
    if how in ("count", "offsets"):
        assert any(path in each and "is damaged" in each for each in done.warnings)
        assert any(each.startswith("/store/lost/") for each in filled.disk.maps)


def test_a_cut_index_file_is_built_again(closed: Filled) -> None:
    path = max(each for each in closed.disk.maps if each.startswith("/store/index/"))
    closed.disk.small[path] = closed.disk.maps.pop(path)[:500]
    done = closed.check()
    assert any("it has 500 bytes" in each for each in done.warnings)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(st.data())
def test_whatever_is_removed_of_queues_and_index_is_as_before(
    files: Any, config: Config, message: Build, data: st.DataObject
) -> None:
    closed = data.draw(st.booleans())
    store = Filled(type(files)(), config, message, closed=closed)
    before = queue_files(store.disk)
    paths = sorted(path for path in store.disk.maps if "index" in path or "queue" in path)
    for path in data.draw(st.lists(st.sampled_from(paths), unique=True, max_size=12)):
        mapped = store.disk.maps[path]
        how = data.draw(st.sampled_from(["gone", "zero", "unit", "tail"]))
        if how == "gone" or "index" in path:
            store.disk.remove(path)
        elif how == "zero":
            mapped[:] = bytes(len(mapped))
        elif how == "unit":
            at = data.draw(st.integers(0, 4)) * UNIT_BYTES
            wrong = UNIT.pack(data.draw(st.integers(0, 60_000)), 77, 0)
            mapped[at : at + UNIT_BYTES] = wrong if any(mapped[at : at + UNIT_BYTES]) else bytes(20)
        else:
            at = data.draw(st.integers(0, 99))
            mapped[at:] = bytes(100 - at)
    again, _ = reopened(store.disk, config)
    store.model.check(again)
    again.stop(NOW_MS)
    assert queue_files(store.disk) == before


def queue_files(disk: Any) -> dict[str, bytes]:
    """Offsets and sizes in the units of each file."""
    return {
        path: b"".join(data[at : at + 12] for at in range(0, 100, UNIT_BYTES))
        for path, mapped in disk.maps.items()
        if path.startswith(QUEUES) and any(data := bytes(mapped))
    }


def test_a_topic_made_anew_is_built_as_it_was(files: Any, config: Config, message: Build) -> None:
    store, _ = reopened(files, config)
    store.put([message("T", body=b"old") for _ in range(30)], NOW_MS)
    store.delete_topic("T")
    store.put([message("T", body=b"new %d" % each) for each in range(7)], NOW_MS)
    store.put([message("Gone")] * 3, NOW_MS)
    store.delete_topic("Gone")
    store.stop(NOW_MS)
    expected = [b"new %d" % each for each in range(7)]
    whole, done = reopened(files.after_kill(), config)
    assert (done.dispatched_messages, done.warnings) == (0, [])
    assert whole.topics() == ["T"]
    assert all_bodies(whole, "T", 0) == expected
    for path in [path for path in files.maps if path.startswith(QUEUES)]:
        files.remove(path)
    files.directories = {each for each in files.directories if not each.startswith(QUEUES)}
    again = MessageStore(config(), files=files)
    done = again.load(NOW_MS, topics={"T"})
    assert all_bodies(again, "T", 0) == expected
    assert again.topics() == ["T"]
    assert len(done.warnings) == 1, "topics that were deleted before are nobody's concern"


def test_queries_find_what_was_indexed_again(closed: Filled) -> None:
    closed.remove("/store/index")
    store, done = reopened(closed.disk, closed.config)
    assert done.indexed_messages == 100
    assert len(finished(store.query("A", "7F00000100000000", 32, 0, FAR_MS)).buffers) == 1
