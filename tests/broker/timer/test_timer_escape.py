# SPDX-License-Identifier: Apache-2.0
"""Timer messages of a slave that acts as master, with enableRemoteEscape, and of its master."""

from __future__ import annotations

from pathlib import Path
from random import Random
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.elsewhere import Elsewhere
from tests.broker.timer.scene import SECOND_MS, Scene
from tests.examples import examples
from txrocketmq.broker.store.timers.timer_check import BY_ESCAPE, TimerProgress
from txrocketmq.broker.timer import timer_escape as module
from txrocketmq.broker.work.patience import RETRY_MS
from txrocketmq.remoting.message.message import decode_message
from txrocketmq.remoting.message.properties import decode_properties


class Acting(Scene):
    """A slave that acts as master, with a copy of what its master had; `folder` is its own."""

    def __init__(self, folder: Path, now_ms: int, **store_settings: Any) -> None:
        super().__init__(folder, now_ms, broker_role="SLAVE", **store_settings)
        self.other = Elsewhere()
        self.acts = True
        assert self.parts.timer_escape is not None
        self.engine = self.parts.timer_escape
        self.engine.escape, self.engine.escapes = self.other, lambda: self.acts
        self.left: list[tuple[int, str]] = []
        self.engine.on_not_taken.append(lambda told: self.left.append((told.number, told.topic)))
        self.end = self.parts.store.max_physical_offset

    def after(self, seconds: float = 0) -> list[bytes]:
        """Lets time pass; returns what is sent then, and not answered yet."""
        count = len(self.other.asked)
        self.parts.now_ms += int(seconds * SECOND_MS)
        self.steady_ms += int(seconds * SECOND_MS)
        self.engine.tick(self.parts.now_ms, self.steady_ms)
        return [body for bodies, _ in self.other.asked[count:] for body in bodies]

    def comes(self, seconds: float, body: bytes) -> None:
        """A further message comes from the master."""
        self.parts.set(broker_role="ASYNC_MASTER")
        self.later(seconds, body, UNIQ_KEY=f"{body!r}")
        self.parts.set(broker_role="SLAVE")
        self.end = self.parts.store.max_physical_offset

    def arrives(self, *has: bool) -> None:
        """Another master answers the last batch; without arguments it has taken all."""
        bodies, then = self.other.asked[-1]
        then(list(has) or [True] * len(bodies))

    def goes_on(self, seconds: float = 0) -> list[bytes]:
        """Lets time pass, and has all taken; returns what was sent."""
        sent = found = self.after(seconds)
        while found:
            self.arrives()
            found = self.after()
            sent = sent + found
        return sent

    def told(self) -> TimerProgress:
        """What it answers about its progress."""
        self.after(1)
        found = TimerProgress.decode(self.timers.progress().encode())
        assert found is not None
        assert self.parts.store.max_physical_offset == self.end, "nothing is written here"
        return found


@pytest.fixture(name="master")
def master_(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "master")


def slave_of(master: Scene, **store_settings: Any) -> Acting:
    """A slave with the log of its master, and with what it has copied."""
    master.keep()
    master.close()
    folder = master.folder.parent / "slave"
    copytree(master.folder, folder, ignore=ignore_patterns("timerlog*", "timerwheel", "timercheck"))
    slave = Acting(folder, master.parts.now_ms, **store_settings)
    progress = TimerProgress.decode(master.timers.progress().encode())
    assert progress is not None
    slave.timers.follow(progress)
    return slave


def back(master: Scene, slave: Acting, **store_settings: Any) -> Scene:
    """The master comes back, and takes over the progress of its slave."""
    progress = slave.told()
    slave.close()
    found = Scene(master.folder, slave.parts.now_ms, **store_settings)
    is_new = progress.read_ms > found.timers.progress().read_ms
    assert found.timers.take_over(progress) == is_new
    return found


def test_what_is_due_is_sent_elsewhere(master: Scene) -> None:
    master.later(1, b"delivered")
    master.tick()
    master.tick(3 * SECOND_MS)
    assert master.seen() == [b"delivered"]
    master.later(5, b"a", KEYS="k")
    master.later(9, b"b")
    slave = slave_of(master)
    assert slave.after() == slave.after(4) == []
    assert slave.after(2) == [b"a"]
    (sent,) = slave.other.sent
    properties = decode_properties(sent.properties.decode())
    assert (sent.topic, properties["KEYS"]) == ("T", "k")
    assert "TIMER_OUT_MS" in properties, "no other master takes it for one that has to wait"
    assert int(properties["TIMER_DEQUEUE_MS"]) == slave.parts.now_ms
    assert slave.after(5) == [], "one batch at a time"
    slave.arrives()
    assert slave.after() == [b"b"]
    slave.arrives()
    assert slave.goes_on(20) == []
    progress = slave.told()
    assert progress.state_version == BY_ESCAPE
    assert progress.master_offset == 3
    assert progress.read_ms == slave.timers.floored(slave.parts.now_ms)
    assert slave.timers.metrics.count("T") == 0
    slave.close()


def test_what_nobody_takes_is_sent_again_and_others_go_on(master: Scene) -> None:
    for number in range(4):
        master.later(2 + number, b"%d" % number)
    slave = slave_of(master)
    assert slave.after(4) == [b"0"]
    due_ms = slave.timers.floored(slave.parts.now_ms - 2 * SECOND_MS)
    slave.arrives(False)
    assert slave.left == [(1, "T")]
    assert slave.after(2) == [], "name servers are not asked for each message"
    assert slave.after(RETRY_MS / SECOND_MS) == [b"0"]
    slave.arrives()
    assert slave.goes_on() == [b"1", b"2", b"3"]
    assert slave.told().read_ms > due_ms
    slave.close()


def test_the_progress_stands_still_at_the_first_that_has_not_arrived(master: Scene) -> None:
    for number in range(4):
        master.later(2, b"%d" % number)
    master.later(4, b"next")
    slave = slave_of(master)
    assert slave.after(5) == [b"0", b"1", b"2", b"3"]
    before = slave.told().read_ms
    slave.arrives(True, False, True, True)
    assert slave.after() == [b"next"], "those behind it go on"
    slave.arrives()
    assert slave.told().read_ms == before < slave.parts.now_ms - 4 * SECOND_MS
    assert slave.after(RETRY_MS / SECOND_MS) == [b"1"]
    slave.arrives()
    assert slave.told().read_ms == slave.timers.floored(slave.parts.now_ms) > before
    slave.close()


def test_what_is_withdrawn_is_not_sent(master: Scene) -> None:
    master.later(3, b"a")
    handle = master.later(5, b"b")
    master.later(5, b"c")
    assert master.recall(handle)[0] == 0
    slave = slave_of(master)
    assert slave.goes_on(20) == [b"a", b"c"]
    assert slave.engine._window.count == 0
    slave.close()


def test_a_master_that_comes_back_delivers_what_was_not_sent(master: Scene) -> None:
    master.later(5, b"elsewhere")
    handle = master.later(5, b"withdrawn")
    master.recall(handle)
    master.later(30, b"later")
    slave = slave_of(master)
    again = master.again()
    again.later(5, b"never came to the slave")
    again.tick()
    again.keep()
    again.close()
    assert slave.goes_on(10) == [b"elsewhere"]
    returned = back(master, slave)
    returned.tick()
    assert returned.seen() == [b"never came to the slave"]
    returned.tick(40 * SECOND_MS)
    assert returned.seen() == [b"never came to the slave", b"later"]
    assert returned.timers.metrics.count("T") == 0
    returned.close()


def test_a_master_that_had_not_read_its_queue_passes_over_them_too(master: Scene) -> None:
    master.later(5, b"a")
    master.later(30, b"b")
    slave = slave_of(master)
    assert not (master.folder / "timerlog").exists()
    assert slave.goes_on(10) == [b"a"]
    returned = back(master, slave)
    returned.tick(40 * SECOND_MS)
    assert returned.seen() == [b"b"]
    returned.close()


@pytest.mark.parametrize("slots", [4, 20])
def test_messages_that_the_wheel_has_no_room_for(tmp_path: Path, slots: int) -> None:
    """The master rolls them; the slave has no wheel."""
    master = Scene(tmp_path / "master", timer_roll_window_slot=slots)
    for seconds in (5, 25, 45, 90):
        master.later(seconds, b"%d" % seconds)
    master.tick()
    slave = slave_of(master)
    assert slave.goes_on(31) == [b"5", b"25"]
    returned = back(master, slave, timer_roll_window_slot=slots)
    for _ in range(100):
        returned.tick(SECOND_MS)
    assert returned.seen() == [b"45", b"90"]
    returned.close()


def test_what_an_original_slave_says_is_not_taken_over(master: Scene) -> None:
    master.later(5, b"a")
    slave = slave_of(master)
    slave.goes_on(10)
    progress = slave.told()
    slave.close()
    returned = Scene(master.folder, slave.parts.now_ms)
    assert not returned.timers.take_over(progress._replace(state_version=0))
    far = progress._replace(read_ms=progress.read_ms + 2 * 24 * 3600 * SECOND_MS)
    assert not returned.timers.take_over(far), "nor what cannot be"
    returned.tick()
    assert returned.seen() == [b"a"]
    returned.keep()
    assert returned.timers.progress().state_version == 0
    returned.close()


def test_a_slave_goes_on_with_its_own_progress(master: Scene) -> None:
    for seconds in (3, 13, 23):
        master.later(seconds, b"%d" % seconds)
    slave = slave_of(master)
    assert slave.goes_on(5) == [b"3"]
    slave.told()
    slave.kill()
    slave = Acting(slave.folder, slave.parts.now_ms)
    assert slave.goes_on(10) == [b"13"]
    slave.told()
    slave.close()
    promoted = Scene(slave.folder, slave.parts.now_ms)
    promoted.tick(10 * SECOND_MS)
    assert promoted.seen() == [b"23"], "also as a master"
    promoted.keep()
    assert promoted.timers.progress().state_version == 0, "and then it is none of a slave"
    promoted.close()


def test_what_the_master_has_done_counts_when_it_acts_again(master: Scene) -> None:
    master.later(5, b"a")
    master.later(15, b"b")
    slave = slave_of(master)
    assert slave.after(7) == [b"a"]
    slave.acts = False
    assert slave.after() == []
    slave.arrives(False)
    assert slave.left == [], "it acts no more"
    slave.timers.follow(TimerProgress(slave.timers.floored(slave.parts.now_ms), 0, 2, counter=9))
    assert slave.timers.progress().counter == 9
    slave.acts = True
    assert slave.goes_on(20) == [b"b"]
    slave.close()


def test_nothing_is_sent_before_the_progress_of_the_master_is_known(master: Scene) -> None:
    master.later(5, b"a")
    slave = slave_of(master)
    slave.timers.settled = 0, 0
    assert slave.goes_on(20) == []
    slave.timers.follow(TimerProgress(slave.timers.floored(slave.parts.now_ms) - 19_000, 0, 1))
    assert slave.goes_on() == [b"a"]
    slave.close()


def test_without_a_wheel_nothing_is_done(master: Scene) -> None:
    master.later(5, b"a")
    slave = slave_of(master, timer_wheel_enable=False)
    assert slave.goes_on(20) == []
    slave.close()


def test_a_message_without_a_place_is_left_to_the_master(master: Scene) -> None:
    message: dict[str, Any] = {"TIMER_OUT_MS": str(master.parts.now_ms + 2_000)}
    master.parts.put("rmq_sys_wheel_timer", queue_id=0, **message)
    master.later(5, b"a")
    slave = slave_of(master)
    assert slave.goes_on(20) == [b"a"]
    assert slave.goes_on(20) == []
    assert slave.told().read_ms < slave.parts.now_ms - 30_000
    slave.close()


def test_messages_that_the_log_has_lost_are_told(
    master: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seconds in (3, 5, 5, 9):
        master.later(seconds, b"%d" % seconds)
    slave = slave_of(master)
    told: list[tuple[int, int]] = []
    slave.engine.on_unreadable.append(lambda each: told.append((each.number, each.offset)))
    assert slave.goes_on(4) == [b"3"]
    monkeypatch.setattr(slave.parts.store, "min_offset", lambda *_: 2)
    assert slave.goes_on(10) == [b"5", b"9"]
    assert told == [(1, 1)]
    slave.close()


class Revival:
    """Hears check points of popped messages."""

    topic = "rmq_sys_REVIVE_LOG_DefaultCluster"

    def __init__(self) -> None:
        self.heard: list[tuple[bytes, int]] = []
        self.first_ms: int | None = None
        self.has_room = True

    def hear(self, record: memoryview, due_ms: int, now_ms: int) -> bool:
        if self.has_room:
            self.heard.append((decode_message(record)[0].body, due_ms))
        return self.has_room

    def heard_ms(self) -> int | None:
        return self.first_ms


def test_check_points_of_popped_messages_are_not_sent(master: Scene) -> None:
    """They wait as timers in the store of an original master."""
    master.parts.topic(Revival.topic)
    for body in (b"point", b"ack"):
        header: dict[str, Any] = {
            "REAL_TOPIC": Revival.topic,
            "REAL_QID": "0",
            "TIMER_OUT_MS": "1700000005000",
        }
        master.parts.put("rmq_sys_wheel_timer", body=body, queue_id=0, **header)
    master.later(9, b"a")
    slave = slave_of(master)
    slave.engine._revive = revival = Revival()
    revival.has_room = False
    slave.after(7)
    assert revival.heard == []
    revival.has_room, revival.first_ms = True, 1_700_000_005_000
    assert slave.goes_on(RETRY_MS / SECOND_MS) == [b"a"]
    assert revival.heard == [(b"point", 1_700_000_005_000), (b"ack", 1_700_000_005_000)]
    assert slave.told().read_ms == revival.first_ms, "they are not done with"
    revival.first_ms = None
    assert slave.told().read_ms == slave.timers.floored(slave.parts.now_ms)
    slave.close()


def test_what_comes_while_it_acts_is_read_as_well(master: Scene) -> None:
    """The connection to a master that only name servers have lost goes on."""
    master.later(5, b"a")
    slave = slave_of(master)
    slave.after(1)
    slave.comes(2, b"first")
    assert slave.goes_on(10) == [b"first", b"a"]
    assert slave.told().master_offset == 2
    slave.close()


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 40), st.sampled_from([4, 9, 100]))
def test_each_is_sent_once(seed: int, count: int, most: int) -> None:
    """Whatever there is room for, and whatever other masters take; and the master has the rest."""
    random = Random(seed)
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(module, "MAX_REMEMBERED", most)
        patch.setattr(module, "MAX_BATCH", 3)
        patch.setattr(module, "_READ", 5)
        master = Scene(Path(folder) / "master")
        due: dict[bytes, int] = {}
        withdrawn = random.choice((0.1, 0.7))
        for number in range(count):
            due[b"%d" % number] = seconds = random.randint(2, 60)
            handle = master.later(seconds, b"%d" % number)
            if random.random() < withdrawn:
                master.recall(handle)
                del due[b"%d" % number]
        master.tick(random.choice((0, 10)) * SECOND_MS)
        delivered = master.seen()
        slave = slave_of(master)
        sent: list[bytes] = []
        new: set[bytes] = set()
        for number in range(random.randint(5, 40)):
            if random.random() < 0.3:
                new.add(b"new %d" % number)
                slave.comes(random.randint(2, 60), b"new %d" % number)
            bodies = slave.after(1)
            while bodies:
                has = [random.random() < 0.8 for _ in bodies]
                sent += [body for body, is_there in zip(bodies, has, strict=True) if is_there]
                slave.arrives(*has)
                bodies = slave.after()
            assert slave.engine._window.count <= most + 5, "one step more at most"
        if random.random() < 0.5:
            for _ in range(12):
                sent += slave.goes_on(10)
            assert set(sent) == (set(due) | new) - set(delivered)
        returned = back(master, slave)
        for _ in range(8):
            returned.tick(10 * SECOND_MS)
        got = returned.seen()
        assert (set(got) | set(sent)) - new == set(due)
        assert len(sent) == len(set(sent))
        assert not set(delivered) & set(sent)
        assert len(got) == len(set(got))
        returned.close()
