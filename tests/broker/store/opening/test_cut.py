# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.broker.store.opening.test_recover import LOG, Build, Model, mixed, reopened
from tests.disk import MemoryFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.index.index_file import index_file_name
from txrocketmq.broker.store.opening.cut import Cut

NOW_MS = 1_700_000_000_000
ORDERED_MS = NOW_MS + 5_000
LATER_MS = NOW_MS + 10_000
KEPT = f"/store/lost/{index_file_name(ORDERED_MS)}/commitlog/"
FILE_BYTES = 8192
Config = Callable[..., StoreConfig]


class Killed(BaseException):
    """The process has ended here."""


class Scene:
    """A disk with a store of 80 messages, and what it has to be like after a cut."""

    def __init__(self, files: MemoryFiles, config: Config, message: Build, *, closed: bool) -> None:
        self.config, self.message = config, message
        self.messages: list[Any] = []
        model = Model()
        store, _ = reopened(files, config)
        for start in range(0, 80, 4):
            batch = mixed(message, 4, start)
            self.messages += batch
            model.put(store, batch, NOW_MS + start)
        self.ends = model.ends
        self.end = store.max_physical_offset
        raw, self.log = 0, b""
        while raw < self.end:
            piece = store.read_raw(raw, FILE_BYTES)
            assert piece is not None
            self.log += piece
            raw += len(piece)
        if closed:
            store.stop(LATER_MS - 1)
        else:
            store.tick(LATER_MS - 1)
            store.flush.flush_all()
        files.now_ms = LATER_MS
        self.disk = files.after_kill()
        self.newest_ms = NOW_MS + 76

    def order(self, disk: MemoryFiles, at: int) -> None:
        Cut(disk, self.config()).order(at, self.newest_ms, ORDERED_MS)

    def until(self, at: int) -> Model:
        """What is in a store that ends there."""
        model = Model()
        starts = dict(zip(self.ends, [0, *self.ends], strict=False))
        for message, end in zip(self.messages, self.ends, strict=True):
            if end <= at:
                model.bodies.setdefault((message.topic, message.queue_id), []).append(message.body)
                start = starts[end]
                if start % FILE_BYTES and start // FILE_BYTES < (end - 1) // FILE_BYTES:
                    start = (end - 1) // FILE_BYTES * FILE_BYTES  # behind a blank
                model.keys[message.topic, message.uniq_key] = start
        return model

    def check(self, disk: MemoryFiles, at: int) -> None:
        """Checks that the store is cut there, that nothing is lost, and that it goes on."""
        store, done = reopened(disk, self.config)
        assert store.max_physical_offset == done.max_offset == at
        assert not disk.exists("/store/cut")
        model = self.until(at)
        for (topic, queue_id), bodies in model.bodies.items():
            assert store.max_offset(topic, queue_id) == len(bodies)
        for topic, queue_id in {(each.topic, each.queue_id) for each in self.messages}:
            assert store.max_offset(topic, queue_id) == len(model.bodies.get((topic, queue_id), ()))
        model.check(store)
        assert self.kept(disk) == self.log[at:].rstrip(b"\0")
        model.put(store, mixed(self.message, 40, 500), LATER_MS)
        model.check(store)
        store.stop(LATER_MS + 1_000)
        again, second = reopened(disk.after_kill(), self.config)
        model.check(again)
        assert second.warnings == []
        assert second.dispatched_messages == 0

    def kept(self, disk: MemoryFiles) -> bytes:
        """What `lost` has, in the order of the log, without zeros at the end."""
        paths = sorted(path for path in (*disk.maps, *disk.small) if path.startswith(KEPT))
        kept, place = b"", -1
        for path in paths:
            offset = int(path.removeprefix(KEPT).rpartition(".")[2])
            if place >= 0:
                kept = kept.ljust(offset - place, b"\0")
            else:
                place = offset
            kept += disk.read(path)
        return kept.rstrip(b"\0")


@pytest.fixture(params=[True, False], ids=["closed", "open"])
def scene(request: Any, files: MemoryFiles, config: Config, message: Build) -> Scene:
    return Scene(files, config, message, closed=request.param)


def blanks(ends: list[int]) -> list[int]:
    """Ends of files at which one may cut as well."""
    return [end for end in range(FILE_BYTES, ends[-1], FILE_BYTES) if end > ends[0]]


def test_a_store_ends_where_it_is_cut_and_the_rest_is_kept(scene: Scene) -> None:
    assert len(blanks(scene.ends)) >= 2
    for at in [*scene.ends[:-1:7], scene.ends[-2], *blanks(scene.ends)]:
        disk = scene.disk.after_kill()
        scene.order(disk, at)
        _, done = reopened(disk, scene.config)
        assert any(f"cut at {at}" in text and KEPT[:-1] in text for text in done.warnings)
        assert not any("accept_loss" in text for text in done.warnings)
        scene.check(disk.after_kill(), at)


@pytest.mark.parametrize("loses_power", [False, True])
def test_a_cut_that_is_interrupted_anywhere_is_done_by_the_next_start(
    scene: Scene, loses_power: bool
) -> None:
    at = scene.ends[40]
    steps = 0
    for step in range(1, 10_000):
        disk = scene.disk.after_kill()
        for path in (*disk.maps, *disk.small):
            disk.sync(path)
        scene.order(disk, at)
        stop_at(disk, step)
        try:
            reopened(disk, scene.config)
        except Killed:
            steps += 1
        else:
            break
        random = Random(step)
        for _ in range(3 if loses_power else 1):
            after = disk.after_power_cut(random) if loses_power else disk.after_kill()
            scene.check(after, at)
    assert steps > 15


def stop_at(disk: MemoryFiles, step: int) -> None:
    """Ends the process before its `step`th change of the disk."""
    left = [step]

    def counted(work: Callable[..., Any]) -> Callable[..., Any]:
        def does(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] <= 0:
                raise Killed
            return work(*arguments)

        return does

    for name in ("write", "sync", "move", "remove"):
        setattr(disk, name, counted(getattr(disk, name)))


@pytest.mark.parametrize("at", [-1, 0, 1 << 30])
def test_an_order_for_another_log_is_refused_and_changes_nothing(scene: Scene, at: int) -> None:
    scene.order(scene.disk, at)
    before = scene.disk.after_kill().maps
    with pytest.raises(StoreError, match="Remove that file if the log is to stay"):
        reopened(scene.disk, scene.config)
    after = scene.disk.after_kill().maps
    assert {path: each[:] for path, each in before.items()} == {
        path: each[:] for path, each in after.items()
    }
    scene.disk.remove("/store/cut")
    scene.until(scene.end).check(reopened(scene.disk, scene.config)[0])


def test_an_order_is_void_for_a_log_that_was_continued(scene: Scene) -> None:
    ordered = scene.disk.after_kill()
    scene.order(ordered, scene.ends[50])
    store, _ = reopened(scene.disk, scene.config)  # as by an original broker, which knows no orders
    store.put(mixed(scene.message, 1, 600), LATER_MS)
    store.stop(LATER_MS + 1)
    scene.disk.write("/store/cut", ordered.read("/store/cut"))
    with pytest.raises(StoreError, match="it was continued since then"):
        reopened(scene.disk, scene.config)


@pytest.mark.parametrize("content", [b"", b"{", b'{"at":1}', b'{"at":"x","newest":1,"time":1}'])
def test_an_order_that_was_never_durable_is_none(scene: Scene, content: bytes) -> None:
    scene.disk.write("/store/cut", content)
    assert not Cut(scene.disk, scene.config()).is_ordered
    store, _ = reopened(scene.disk, scene.config)
    scene.until(scene.end).check(store)
    assert not scene.disk.exists("/store/cut")


def test_an_order_that_cannot_be_made_durable_is_none(scene: Scene) -> None:
    scene.disk.broken.add("/store/cut")
    with pytest.raises(OSError, match="Input/output"):
        scene.order(scene.disk, scene.ends[3])
    assert not Cut(scene.disk, scene.config()).is_ordered


def test_a_log_that_is_damaged_before_the_cut_is_not_taken_for_a_cut_one(scene: Scene) -> None:
    at = scene.ends[40]
    path = f"{LOG}{at // FILE_BYTES * FILE_BYTES:020d}"
    place = scene.ends[39] % FILE_BYTES
    scene.disk.map(path, FILE_BYTES)[place : place + 8] = bytes(8)
    scene.order(scene.disk, at)
    with pytest.raises(StoreError, match="queues refer to"):
        reopened(scene.disk, scene.config)
