# SPDX-License-Identifier: Apache-2.0
"""A slave, which follows a master in the same process over connections that the test carries."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, formatEvent

from tests.broker.conftest import Parts
from tests.broker.replication.wire import ADDRESS, HA_ADDRESS, Scene, Wire
from tests.examples import examples
from txrocketmq.broker.replication.slave import LONGEST_PAUSE_MS, RECONNECT_MS
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.replication.frames import HEAD_CODEC, REPORT_CODEC
from txrocketmq.broker.work import notices
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.process.log_limit import Seldom

Open = Callable[..., Scene]


@pytest.fixture(autouse=True)
def _log_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that other tests have logged do not count."""
    monkeypatch.setattr(notices, "_slaves", Seldom(30))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made: list[Scene] = []

    def open_scene(**more: Any) -> Scene:
        made.append(Scene(tmp_path / str(len(made)), **more))
        return made[-1]

    yield open_scene
    for each in made:
        each.close()


@pytest.fixture
def scene(opened: Open) -> Scene:
    return opened()


def master_of(scene: Scene) -> Parts:
    assert scene.master is not None
    return scene.master


def whole(store: MessageStore) -> list[bytes]:
    size = store.config.mapped_file_size_commit_log
    start, end = max(store.min_physical_offset, 0), store.max_physical_offset
    return [bytes(store.read_raw(at, size) or b"") for at in range(start, end, size)]


def derived(store: MessageStore) -> tuple[Any, ...]:
    """The units of queues, and what is found by key."""
    units = {
        (topic, queue): list(store.queue_units(topic, queue, 0, 10_000))
        for topic in sorted(store.topics())
        for queue in store.queue_ids(topic)
    }
    found = [
        [bytes(each) for each in finished(store.query("T", f"k{n}", 99, 0, 1 << 60)).buffers]
        for n in range(3)
    ]
    return units, found


def assert_same(scene: Scene) -> None:
    one, other = master_of(scene).store, scene.parts.store
    assert whole(one) == whole(other)
    assert derived(one) == derived(other)


def said(scene: Scene, do: Callable[[], object]) -> list[str]:
    """What is logged meanwhile."""
    with capturedLogs() as lines:
        do()
    return [str(formatEvent(each)) for each in lines]


# --- following ---


def test_it_gets_the_log_and_what_follows(scene: Scene) -> None:
    master_of(scene).put(KEYS="k1")
    scene.pass_ms(100)
    scene.settle()
    assert_same(scene)
    master_of(scene).put("U", 2, KEYS="k2")
    scene.settle()
    assert_same(scene)
    assert scene.parts.store.dispatch_behind_bytes == 0


def test_the_first_report_leaves_at_once(scene: Scene) -> None:
    scene.append(100)
    scene.pass_ms(100)
    assert scene.wire.near.sent == REPORT_CODEC.pack(100)


def test_one_read_is_reported_once_and_dispatched_later(scene: Scene) -> None:
    for _ in range(3):
        master_of(scene).put()
    scene.pass_ms(100)
    scene.wire.report()
    replica = scene.wire.replica
    assert replica is not None
    taken = b"".join(replica.pieces())
    master_of(scene).set(ha_transfer_batch_size=50)
    scene.wire.link.received(taken)
    end = master_of(scene).store.max_physical_offset
    assert scene.wire.near.sent == REPORT_CODEC.pack(end)
    assert scene.parts.store.max_offset("T", 0) == 0
    scene.turn()
    assert scene.parts.store.max_offset("T", 0) == 3


def test_arrivals_are_announced(scene: Scene) -> None:
    arrived: list[tuple[str, int, int]] = []
    scene.parts.store.on_arrival.append(lambda *news: arrived.append(news))
    scene.pass_ms(100)
    master_of(scene).put("T", 3)
    scene.settle()
    assert arrived == [("T", 3, 1)]


def test_much_is_dispatched_in_several_turns(opened: Open) -> None:
    scene = opened(flush_disk_type="SYNC_FLUSH")
    count = 4_500
    for _ in range(count):
        master_of(scene).put()
    scene.pass_ms(100)
    scene.settle()
    assert scene.syncs > 0
    shown = scene.parts.store.max_offset
    assert shown("T", 0) == 0, "it is not durable"
    scene.flush()
    seen = []
    while scene.turns:
        seen.append(shown("T", 0))
        scene.turn()
    assert shown("T", 0) == count
    steps = [after - before for before, after in zip(seen, [*seen[1:], count], strict=True)]
    assert len(steps) >= 3
    assert max(steps) <= 1_300


def test_the_checkpoint_knows_of_messages_once_they_are_dispatched(scene: Scene) -> None:
    stored_ms = scene.parts.now_ms + 5_000
    master_of(scene).put(stored_ms=stored_ms)
    scene.pass_ms(100)
    scene.settle()
    assert scene.parts.store.flush.log_timestamp_ms == stored_ms


def test_it_may_report_what_is_durable(opened: Open) -> None:
    scene = opened(role="SYNC_MASTER", ha_report_durable=True)
    scene.pass_ms(100)
    master = master_of(scene)
    scene.wire.carry()
    master.put()
    scene.settle()
    end = master.store.max_physical_offset
    assert scene.parts.store.max_physical_offset == end
    assert list(master.store.commit.acknowledged) == [0]
    assert scene.syncs > 0
    scene.flush()
    scene.wire.report()
    assert list(master.store.commit.acknowledged) == [end]


def test_what_came_while_the_disk_was_busy_is_synced_next(opened: Open) -> None:
    scene = opened(ha_report_durable=True)
    scene.pass_ms(100)
    master_of(scene).put()
    scene.settle()
    job = scene.parts.store.flush.begin()
    assert job is not None
    master_of(scene).put()
    scene.settle()
    asked = scene.syncs
    job.run()
    scene.parts.store.flush.finish(job)
    scene.settle()
    assert scene.syncs == asked + 1


# --- connections ---


def test_another_connection_is_attempted_after_a_pause(scene: Scene) -> None:
    scene.master, master = None, scene.master
    lines = said(scene, lambda: scene.pass_ms(RECONNECT_MS + 5_000))
    assert len(scene.wires) == 2
    (line,) = lines
    assert f"does not follow the master at {HA_ADDRESS}: nobody listens there" in line
    scene.master = master
    master_of(scene).put()
    scene.pass_ms(RECONNECT_MS)
    scene.settle()
    assert_same(scene)


def test_a_connection_that_breaks_is_followed_by_another(scene: Scene) -> None:
    master_of(scene).put()
    scene.pass_ms(100)
    scene.wire.carry(most=40)
    scene.wire.break_off()
    scene.pass_ms(RECONNECT_MS - 100)
    assert len(scene.wires) == 1
    scene.pass_ms(100)
    scene.settle()
    assert_same(scene)


def test_a_silent_master_is_left(scene: Scene) -> None:
    scene.pass_ms(100)
    first = scene.wire
    scene.pass_ms(20_000)
    assert not first.is_closed
    lines = said(scene, lambda: scene.pass_ms(100))
    assert first.near.is_closed
    assert "it has sent nothing for 20 s (haHousekeepingInterval)" in lines[0]
    scene.pass_ms(RECONNECT_MS)
    assert len(scene.wires) == 2


def test_it_says_that_it_lives(scene: Scene) -> None:
    scene.pass_ms(100)
    scene.wire.near.sent = b""
    scene.pass_ms(4_900)
    assert scene.wire.near.sent == b""
    scene.pass_ms(100)
    assert scene.wire.near.sent == REPORT_CODEC.pack(0)


def test_the_log_says_when_it_follows_again(scene: Scene) -> None:
    master_of(scene).put()

    def come_and_go() -> None:
        scene.pass_ms(100)
        scene.settle()
        scene.wire.break_off()
        scene.pass_ms(RECONNECT_MS)
        scene.pass_ms(RECONNECT_MS)
        scene.settle()

    end = master_of(scene).store.max_physical_offset
    lines = said(scene, come_and_go)
    assert [each for each in lines if "follow" in each] == [
        f"follows the master at {HA_ADDRESS} from 0 of its log on",
        f"does not follow the master at {HA_ADDRESS}: broken; it is tried again",
        f"follows the master at {HA_ADDRESS} from {end} of its log on",
    ]


def test_who_has_stopped_follows_nobody(scene: Scene) -> None:
    scene.slave.stop()
    scene.pass_ms(1_000)
    assert scene.wires == []


# --- where the master is ---


def test_name_servers_say_where_the_master_is(opened: Open) -> None:
    scene = opened(ha_master_address="")
    scene.pass_ms(1_000)
    assert scene.wires == []
    scene.slave.found_master(None, None)
    assert not scene.slave.is_master_known
    scene.slave.found_master(HA_ADDRESS, ADDRESS)
    assert (scene.slave.ha_address, scene.slave.master_address) == (HA_ADDRESS, ADDRESS)
    assert scene.slave.is_master_known
    scene.pass_ms(100)
    assert len(scene.wires) == 1
    scene.slave.found_master(None, None)
    assert scene.slave.master_address is None
    assert scene.slave.ha_address == HA_ADDRESS


def test_a_new_address_counts_for_the_next_connection_at_once(opened: Open) -> None:
    scene = opened(ha_master_address="")
    scene.slave.found_master(HA_ADDRESS, ADDRESS)
    scene.pass_ms(100)
    scene.slave.told_master("10.0.0.8:10912", None)
    assert scene.slave.master_address == ADDRESS
    assert not scene.wire.is_closed
    scene.wire.break_off()
    scene.slave.found_master("10.0.0.7:10912", "10.0.0.7:10911")
    scene.pass_ms(100)
    assert len(scene.wires) == 2, "without a pause, as nobody has failed there"


def test_ha_master_address_counts_more_than_name_servers(scene: Scene) -> None:
    scene.slave.found_master("10.0.0.8:10912", ADDRESS)
    assert (scene.slave.ha_address, scene.slave.master_address) == (HA_ADDRESS, ADDRESS)


# --- what cannot go on ---


def times(scene: Scene, ms: int, use: Callable[[Wire], object] | None = None) -> list[int]:
    """After how many ms connections are attempted, of which each is used and then ends."""
    start, found = scene.parts.now_ms, []
    count = len(scene.wires)
    while scene.parts.now_ms < start + ms:
        scene.pass_ms(100)
        if len(scene.wires) > count:
            count = len(scene.wires)
            found.append(scene.parts.now_ms - start)
            scene.settle() if use is None else use(scene.wire)
            scene.wire.break_off()
    return found


def test_a_full_disk_is_said_once_and_tried_again_less_and_less_often(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    master_of(scene).put()
    monkeypatch.setattr(scene.parts.store, "append_raw", fails)
    attempts: list[int] = []
    lines = said(scene, lambda: attempts.extend(times(scene, 240_000)))
    assert attempts == [100, 5_100, 15_100, 35_100, 75_100, 135_100, 195_100]
    assert len([each for each in lines if "does not take what it sends" in each]) == 1
    monkeypatch.undo()
    scene.pass_ms(LONGEST_PAUSE_MS)
    scene.settle()
    assert_same(scene)
    monkeypatch.setattr(scene.parts.store, "append_raw", fails)
    master_of(scene).put()
    lines = said(scene, scene.settle)
    assert "does not take what it sends" in lines[-1]


def test_a_disk_that_has_failed_is_not_tried(scene: Scene) -> None:
    scene.parts.store.flush.error = OSError(errno.EIO, "broken")
    lines = said(scene, lambda: scene.pass_ms(60_000))
    assert scene.wires == []
    assert len(lines) == 1
    assert "nothing can be appended, since the disk failed: " in lines[0]


def test_a_disk_that_fails_ends_the_connection(scene: Scene) -> None:
    scene.pass_ms(100)
    scene.parts.store.flush.error = OSError(errno.EIO, "broken")
    lines = said(scene, lambda: scene.pass_ms(100))
    assert scene.wire.near.is_closed
    assert "since the disk failed: " in lines[0]


def test_what_found_no_room_in_queues_is_dispatched_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    master_of(scene).put()
    monkeypatch.setattr(scene.parts.store._reput, "run", fails)
    scene.pass_ms(100)
    scene.settle()
    assert scene.parts.store.max_offset("T", 0) == 0
    assert not scene.wire.is_closed, "the log has it"
    monkeypatch.undo()
    scene.pass_ms(100)
    scene.settle()
    assert_same(scene)


def test_frames_that_do_not_follow_are_said_once(scene: Scene) -> None:
    def send(wire: Wire) -> None:
        wire.link.received(HEAD_CODEC.pack(77, 1) + b"x")

    scene.append(10)
    lines = said(scene, lambda: times(scene, 600_000, send))
    told = [each for each in lines if "does not follow the master" in each]
    assert len(told) == 1
    assert "it sends the log from 77 on, but this slave's log ends at 10" in told[0]


@pytest.mark.parametrize("file_bytes", [32_768, 131_072])
def test_files_of_another_size_are_said(opened: Open, file_bytes: int) -> None:
    scene = opened(mapped_file_size_commit_log=file_bytes)
    for _ in range(5):
        master_of(scene).put(body=bytes(30_000))

    lines = said(scene, lambda: times(scene, 600_000))
    told = [each for each in lines if "does not follow" in each]
    assert len(told) == 1
    assert "mappedFileSizeCommitLog the same on both sides?" in told[0]


def test_another_log_is_said_and_not_followed(scene: Scene) -> None:
    scene.pass_ms(100)
    scene.wire.report()
    scene.wire.link.received(HEAD_CODEC.pack(0, 200) + b"\xff" * 200)
    lines = said(scene, scene.turn)
    assert "there is no message at 0 of this slave's log, where one should begin" in lines[-1]
    assert scene.wire.near.is_closed
    scene.pass_ms(10 * LONGEST_PAUSE_MS)
    assert len(scene.wires) == 1


def test_a_master_that_is_empty_again_is_left(scene: Scene) -> None:
    scene.append(500)
    lines = said(scene, lambda: times(scene, 60_000, lambda wire: wire.report()))
    assert scene.wire.far.is_closed
    assert "is served no more: its log ends at 500" in lines[0]
    assert len([each for each in lines if "does not follow" in each]) == 1


# --- the question before a connection ---


def test_it_connects_when_the_log_may_be_continued(scene: Scene) -> None:
    asked: list[Deferred[None]] = []

    def check() -> Deferred[None]:
        asked.append(Deferred())
        return asked[-1]

    scene.slave.rejoin = check
    scene.pass_ms(1_000)
    assert (len(asked), scene.wires) == (1, [])
    asked[0].callback(None)
    assert len(scene.wires) == 1
    scene.wire.break_off()
    scene.pass_ms(RECONNECT_MS)
    assert len(asked) == 2
    scene.slave.stop()
    asked[1].callback(None)
    assert len(scene.wires) == 1


@pytest.mark.parametrize(
    ("error", "pause_ms"),
    [
        (ValueError("the logs differ from 5 on"), LONGEST_PAUSE_MS),
        (ConnectError("nobody answers"), RECONNECT_MS),
    ],
)
@pytest.mark.parametrize("is_raised", [False, True])
def test_it_does_not_connect_when_it_may_not(
    scene: Scene, error: Exception, pause_ms: int, is_raised: bool
) -> None:
    asked: list[int] = []

    def check() -> Deferred[None]:
        asked.append(scene.parts.now_ms)
        if is_raised:
            raise error
        checked: Deferred[None] = Deferred()
        checked.errback(error)
        return checked

    scene.slave.rejoin = check
    lines = said(scene, lambda: scene.pass_ms(3 * pause_ms))
    assert scene.wires == []
    assert [after - before for before, after in pairwise(asked)] == [pause_ms] * 2
    assert len(lines) == 1
    assert str(error) in lines[0]


# --- how far it is ---


def test_it_knows_how_far_it_is_behind(scene: Scene) -> None:
    gauges = {each.name: each.value for each in scene.life.gauges}
    beats = {getattr(each, "work", None) for each in scene.life.beats}
    assert scene.slave._ask in beats
    scene.slave._ask()
    assert scene.asked == [], "nobody is known"
    scene.slave.found_master(None, ADDRESS)
    scene.slave._ask()
    assert scene.asked == [ADDRESS]
    scene.append(100)
    scene.slave._found_end(3_000_100)
    assert gauges["txrocketmq_behind_master_bytes"]() == 3_000_000
    scene.pass_ms(7_000)
    assert gauges["txrocketmq_master_silent_seconds"]() == 7
    (line,) = said(scene, scene.slave._tell_behind)
    assert "this slave is 3,000,000 bytes behind its master, from which it has heard" in line
    scene.slave._found_end(50)
    assert gauges["txrocketmq_behind_master_bytes"]() == 0
    assert said(scene, scene.slave._tell_behind) == []


def test_its_state_is_that_of_its_connection(scene: Scene) -> None:
    state = scene.slave.state(scene.parts.now_ms)
    assert (state.ha_address, state.max_offset, state.reported_ms) == (HA_ADDRESS, 0, 0)
    master_of(scene).put()
    scene.pass_ms(100)
    scene.settle()
    now_ms = scene.parts.now_ms
    end = master_of(scene).store.max_physical_offset
    state = scene.slave.state(now_ms + 1_000)
    assert state == (HA_ADDRESS, end, end, now_ms, now_ms)
    assert scene.slave.state(now_ms + 5_000).bytes_in_second == 0


# --- all of it ---


def test_a_slave_that_stops_in_the_middle_of_a_message_goes_on_there(scene: Scene) -> None:
    master_of(scene).put()
    master_of(scene).put(body=bytes(3_000))
    master_of(scene).set(ha_transfer_batch_size=50)
    scene.pass_ms(100)
    scene.wire.carry(most=1_000)
    first = scene.parts.store.max_physical_offset
    scene.wire.break_off()
    scene.parts.store.stop(scene.parts.now_ms)
    scene.open()
    assert 0 < scene.parts.store.max_physical_offset < first
    scene.pass_ms(100)
    scene.settle()
    assert_same(scene)


def test_what_cannot_be_dispatched_is_not_cut_off_at_the_end(scene: Scene) -> None:
    scene.parts.store.append_raw(0, b"\xff" * 200)
    with pytest.raises(Exception, match="could not be closed in order: queues lack messages"):
        scene.parts.store.stop(scene.parts.now_ms)
    assert scene.parts.store.max_physical_offset == 200


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_cut_anywhere_and_stopped_anywhere_it_has_the_same_store(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    scene = Scene(tmp_path_factory.mktemp("pair"))
    try:
        master = master_of(scene)
        master.set(ha_transfer_batch_size=data.draw(st.sampled_from([1, 37, 500, 32_768])))
        waiting = data.draw(st.lists(st.integers(0, 9_000), min_size=1, max_size=20))
        cuts = st.integers(1, data.draw(st.sampled_from([40, 2_000, 100_000])))
        turns = 0
        while waiting or scene.parts.store.max_physical_offset < master.store.max_physical_offset:
            turns += 1
            if waiting and (turns % 3 == 1 or turns > 50):
                master.put("T", turns % 3, body=bytes(waiting.pop()), KEYS=f"k{turns % 3}")
            scene.pass_ms(100)
            if scene.wires and not scene.wire.is_closed and scene.slave._link is not None:
                is_late = turns > 60
                if not is_late and data.draw(st.integers(0, 9)) == 0:
                    scene.wire.break_off()
                    scene.pass_ms(RECONNECT_MS)
                scene.wire.carry(*((1 << 30,) * 2 if is_late else (data.draw(cuts), 50)))
            if turns < 60 and data.draw(st.integers(0, 19)) == 0:
                scene.wire.break_off()
                scene.parts.store.stop(scene.parts.now_ms)
                scene.turns.clear()
                scene.open()
            elif data.draw(st.booleans()):
                scene.turn()
        scene.settle()
        assert scene.parts.store.dispatch_behind_bytes == 0
        assert_same(scene)
    finally:
        scene.close()
