# SPDX-License-Identifier: Apache-2.0
"""Sends that a kernel takes are answered, stored and indexed as if there was none."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.two_brokers import TwoBrokers, with_each_kernel
from tests.examples import examples
from tests.stored import for_each_queue
from txrocketmq.broker.kernel.chosen import REFERENCE, Kernel
from txrocketmq.broker.kernel.run import ReferenceRun
from txrocketmq.broker.processors import raw_sends
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.log import dispatch
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.remoting.protocol.body.route import TopicConfig

ANY_SIZE = (1, 7, 8, 9, 100, 1_000, 5_000, 60_000, 262_144)


@with_each_kernel
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(5), deadline=None)
def test_random_mixes_cut_anywhere_have_equal_results(kernel: Kernel, seed: int) -> None:
    chance = random.Random(seed)
    frames = Frames(chance)
    with tempfile.TemporaryDirectory() as folder:
        two = TwoBrokers(Path(folder), kernel)
        for _ in range(3):
            two.read_cut(frames.some(40), chance, ANY_SIZE)
        two.compare()
        two.read(b"".join([frames.send(b="orders") for _ in range(50)]))
        assert two.other.taken > 0
        two.compare()
        two.stop()


@with_each_kernel
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(5), deadline=None)
def test_mutated_frames_have_equal_results(kernel: Kernel, seed: int) -> None:
    chance = random.Random(seed)
    frames = Frames(chance)
    with tempfile.TemporaryDirectory() as folder:
        two = TwoBrokers(Path(folder), kernel)
        for _ in range(30):
            data = frames.some(chance.randrange(1, 6))
            two.read_cut(frames.mutated(data) if chance.randrange(2) else data, chance, ANY_SIZE)
        two.compare()
        two.stop()


@with_each_kernel
@pytest.mark.parametrize(
    "settings",
    [
        {"flush_disk_type": "SYNC_FLUSH"},
        {"flush_disk_type": "SYNC_FLUSH", "read_un_committed": True},
        {"broker_role": "SYNC_MASTER"},
        {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "flush_disk_type": "SYNC_FLUSH"},
        {"message_index_enable": False},
        {"max_message_size": 2_900},
        {"enable_consume_queue_ext": True},
    ],
    ids=" ".join,
)
def test_every_policy_and_setting_of_the_store_counts(
    kernel: Kernel, settings: dict[str, Any], tmp_path: Path
) -> None:
    chance = random.Random(7)
    frames = Frames(chance)
    two = TwoBrokers(tmp_path, kernel, **settings)
    for _ in range(4):
        two.read_cut(frames.some(40), chance, (5_000, 60_000))
        two.both(lambda one: one.pass_ms(300))
    two.both(lambda one: one.pass_ms(10_000))
    two.compare()
    if "enable_consume_queue_ext" in settings:
        assert two.other.taken == 0
    else:
        assert two.other.taken > 0
    two.stop()


def sends(frames: Frames, count: int, topic: str = "orders") -> bytes:
    """Usual sends to a queue, all with an answer."""
    return b"".join([frames.usual(b=topic, e="1") for _ in range(count)])


class Scene:
    """Two brokers whose kernel knows a place, and a source of frames."""

    def __init__(self, folder: Path, **store_settings: Any) -> None:
        self.frames = Frames(random.Random(3))
        self.two = TwoBrokers(folder, REFERENCE, **store_settings)
        self.two.read(sends(self.frames, 1))  # the queue is made
        self.two.read(sends(self.frames, 4))
        assert self.two.other.taken == 4

    @property
    def store(self) -> MessageStore:
        """The store of the broker with the kernel."""
        return self.two.other.broker.parts.store


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_nothing_is_taken_while_guards_look_at_requests(scene: Scene) -> None:
    seen: list[int] = []
    for one in (scene.two.plain, scene.two.other):
        one.broker.guards.append(lambda _, command: seen.append(command.code))
    scene.two.read(sends(scene.frames, 3))
    assert len(seen) == 6
    assert scene.two.other.taken == 4
    scene.two.compare()


def test_signed_sends_are_not_taken(scene: Scene) -> None:
    signed = b"".join([scene.frames.usual(e="1", Signature="s", AccessKey="k") for _ in range(3)])
    scene.two.read(signed)
    assert scene.two.other.taken == 4
    scene.two.compare()


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.topics.update(TopicConfig(topic_name="orders", write_queue_nums=1)),
        lambda parts: parts.topics.delete("orders"),
        lambda parts: parts.store.delete_topic("orders"),
        lambda parts: parts.configuration.update({"brokerPermission": "4"}),
        lambda parts: parts.configuration.update({"regionId": "elsewhere"}),
        lambda parts: parts.configuration.update({"maxMessageSize": "10"}),
    ],
    ids=["queues", "topic", "files", "permission", "region", "size"],
)
def test_what_was_learned_is_forgotten_when_it_may_be_wrong(
    scene: Scene, change: Callable[[Any], object]
) -> None:
    for one in (scene.two.plain, scene.two.other):
        change(one.broker.parts)
    scene.two.read(sends(scene.frames, 5))
    scene.two.read(sends(scene.frames, 5))
    scene.two.compare()


def test_queues_whose_messages_are_gone_are_made_anew(scene: Scene) -> None:
    for one in (scene.two.plain, scene.two.other):
        store = one.broker.parts.store
        store._queues.remove_expired("orders", store.max_physical_offset + 1)
    scene.two.read(sends(scene.frames, 5))
    scene.two.compare()
    assert scene.store.max_offset("orders", 1) == 5


def test_a_file_that_is_full_is_left_to_the_usual_way(scene: Scene) -> None:
    while len(scene.store._log.files.mapped_files) < 3:
        scene.two.read(sends(scene.frames, 40))
    assert scene.two.other.taken > 100
    scene.two.compare()


def test_what_the_disk_has_no_room_for_is_refused_as_ever(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(ENOSPC, "no room")

    for one in (scene.two.plain, scene.two.other):
        monkeypatch.setattr(one.broker.parts.store._log.files.last, "reserved_bytes", 0)
    monkeypatch.setattr(MappedFile, "reserve", full)
    scene.two.read(sends(scene.frames, 3))
    monkeypatch.undo()
    scene.two.read(sends(scene.frames, 3))
    scene.two.compare()


def test_units_that_could_not_be_written_are_made_from_the_log(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(ENOSPC, "no room")

    before = scene.store.max_offset("orders", 1)
    with monkeypatch.context() as patch:
        patch.setattr(dispatch, "append_all", fails)
        patch.setattr(scene.store._reput, "run", fails)
        scene.two.read(sends(scene.frames, 3))
        assert scene.store.max_offset("orders", 1) == before
    scene.two.read(sends(scene.frames, 2))
    assert scene.store.max_offset("orders", 1) == before + 5
    scene.two.compare()


def test_consumers_hear_of_messages(scene: Scene) -> None:
    heard: list[tuple[str, int, int]] = []
    scene.store.on_arrivals.append(for_each_queue(lambda *place: heard.append(place)))
    scene.two.read(sends(scene.frames, 3))
    assert heard == [("orders", 1, 8)]


def test_a_kernel_that_fails_is_as_if_there_was_none(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> list[bytes]:
        raise ValueError("a fault of the kernel")

    monkeypatch.setattr(ReferenceRun, "write", fails)
    scene.two.read(sends(scene.frames, 3))
    assert scene.two.other.taken == 4
    scene.two.compare()


def halves(frames: Frames, count: int, **changes: str) -> bytes:
    """Half messages for a queue, which are binary and want an answer."""
    text = f"TRAN_MSG\x01true\x02UNIQ_KEY\x01{'F' * 32}\x02PGROUP\x01g\x02WAIT\x01true"
    usual = {"e": "1", "f": "4", "i": text} | changes
    return b"".join([frames.usual(**usual) for _ in range(count)])


def test_half_messages_are_taken_and_counted(scene: Scene) -> None:
    scene.two.read(halves(scene.frames, 1))  # the half queue is made
    scene.two.read(
        halves(scene.frames, 3) + sends(scene.frames, 2) + halves(scene.frames, 1, e="2")
    )
    scene.two.read(halves(scene.frames, 2, e="2") + halves(scene.frames, 2))
    assert scene.two.other.taken == 4 + 10
    scene.two.compare()
    for one in (scene.two.plain, scene.two.other):
        assert one.broker.parts.transaction_metrics.counts() == {"orders": 9}
    assert scene.store.max_offset("RMQ_SYS_TRANS_HALF_TOPIC", 0) == 9


@pytest.mark.parametrize(
    "changes",
    [
        {"i": "UNIQ_KEY\x01AB\x02TRAN_MSG\x01no"},
        {"i": "UNIQ_KEY\x01AB\x02PGROUP\x01g"},
        {"i": "UNIQ_KEY\x01AB\x02TRAN_MSG\x01true\x02DELAY\x011"},
        {"i": "UNIQ_KEY\x01AB\x02TRAN_MSG\x01true\x02REAL_TOPIC\x01bills"},
        {"i": "TRAN_MSG\x01true"},
        {"f": "0"},
        {"f": "8"},
        {"f": "12"},
    ],
    ids=lambda changes: " ".join(changes.values()).translate({1: "=", 2: " "}),
)
def test_unusual_half_messages_are_left_to_the_usual_way(
    scene: Scene, changes: dict[str, str]
) -> None:
    scene.two.read(halves(scene.frames, 2))
    taken = scene.two.other.taken
    scene.two.read(halves(scene.frames, 2, **changes))
    scene.two.read(halves(scene.frames, 2, **changes))
    assert scene.two.other.taken == taken
    scene.two.compare()


def test_half_messages_are_refused_as_ever_when_that_is_set(scene: Scene) -> None:
    scene.two.read(halves(scene.frames, 1))  # the half queue is made
    scene.two.read(halves(scene.frames, 3))
    taken = scene.two.other.taken
    assert taken == 4 + 3
    for one in (scene.two.plain, scene.two.other):
        one.broker.parts.configuration.update({"rejectTransactionMessage": "true"})
    scene.two.read(halves(scene.frames, 2) + sends(scene.frames, 2))
    scene.two.read(halves(scene.frames, 2))
    assert scene.two.other.taken <= taken + 2
    scene.two.compare()


def test_places_are_bounded(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_sends, "MOST_LEARNED", 2)
    for name in range(6):
        scene.two.read(scene.frames.usual(e="1", a=f"group{name}"))
    (handler,) = (
        each
        for each in scene.two.other.broker.parts.raw_requests
        if isinstance(each, raw_sends.RawSends)
    )
    assert handler._learned <= 2
    assert scene.two.other.taken == 10
    scene.two.compare()


def test_sends_that_wait_for_too_few_brokers_are_refused_as_ever(tmp_path: Path) -> None:
    scene = Scene(tmp_path, broker_role="SYNC_MASTER", in_sync_replicas=1)
    for one in (scene.two.plain, scene.two.other):
        one.broker.parts.store.commit.members = 1
        one.broker.parts.configuration.update({"inSyncReplicas": "2"})
    scene.two.read(sends(scene.frames, 3))
    assert scene.store.max_offset("orders", 1) == 5, "nothing is stored"
    assert scene.two.other.taken == 4
    scene.two.compare()
