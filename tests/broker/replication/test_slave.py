# SPDX-License-Identifier: Apache-2.0
"""A slave, which follows a master in the same process over connections that the test carries."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from tests.broker.replication.wire import (
    ADDRESS,
    HA_ADDRESS,
    Open,
    Scene,
    assert_same,
    master_of,
    said,
)
from tests.examples import examples
from tests.stored import for_each_queue
from txrocketmq.broker.replication.slave import LONGEST_PAUSE_MS, RECONNECT_MS
from txrocketmq.broker.store.replication.frames import REPORT_CODEC
from txrocketmq.remoting.errors import ConnectError

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
    scene.parts.store.on_arrivals.append(for_each_queue(lambda *news: arrived.append(news)))
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
    lines = said(lambda: scene.pass_ms(RECONNECT_MS + 5_000))
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
    lines = said(lambda: scene.pass_ms(100))
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
    lines = said(come_and_go)
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
    lines = said(lambda: scene.pass_ms(3 * pause_ms))
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
    (line,) = said(scene.slave._tell_behind)
    assert "this slave is 3,000,000 bytes behind its master, from which it has heard" in line
    scene.slave._found_end(50)
    assert gauges["txrocketmq_behind_master_bytes"]() == 0
    assert said(scene.slave._tell_behind) == []


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
