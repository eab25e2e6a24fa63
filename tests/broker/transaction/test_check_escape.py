# SPDX-License-Identifier: Apache-2.0
"""Half messages of a slave that acts as master, with enableRemoteEscape: check.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.elsewhere import Elsewhere
from tests.broker.transaction.scene import COMMIT, INTERVAL_MS, Scene, killed
from txrocketmq.broker.transaction import check as module
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.message.topics import TRANS_HALF_TOPIC, TRANS_OP_TOPIC


class Acting(Scene):
    """A broker that becomes a slave which acts as master."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.other = Elsewhere()
        self.acts = True

    def is_slave_now(self) -> None:
        """As if all that is there had been copied."""
        self.make_durable()
        self.parts.set(broker_role="SLAVE")
        killed(self)
        check = self.parts.transaction_check
        check.escape, check.escapes = self.other, lambda: self.acts
        self.check(0)

    def round(self) -> list[bytes]:
        """Returns the bodies that are sent elsewhere in one round, all of which are taken."""
        first = len(self.other.sent)
        self.check()
        at = len(self.other.asked)
        while self.answer_all(at):
            at = len(self.other.asked)
            self.check(1_000)
        return [each.body for each in self.other.sent[first:]]

    def answer_all(self, at: int) -> bool:
        if at == 0 or self.parts.transaction_check._escaping is None:
            return False
        bodies, then = self.other.asked[-1]
        then([True] * len(bodies))
        return True


@pytest.fixture(name="scene")
def scene_(tmp_path: Path) -> Iterator[Acting]:
    made = Acting(tmp_path)
    yield made
    made.close()
    assert not made.failures


def test_open_half_messages_become_those_of_another_master(scene: Acting) -> None:
    peer = scene.joins()
    scene.end(scene.begin(b"ended"), COMMIT)
    scene.check()
    scene.begin(b"young", KEYS="k", DELAY="3", CHECK_IMMUNITY_TIME_IN_SECONDS="600")
    scene.is_slave_now()
    end = scene.parts.store.max_physical_offset
    assert not scene.other.asked, "it is not time for a round"
    scene.check()
    ((bodies, then),) = scene.other.asked
    assert bodies == [b"young"], "however young it is"
    (sent,) = scene.other.sent
    assert (sent.topic, sent.sys_flag & 12, sent.flag) == ("T", 4, 5)
    properties = decode_properties(sent.properties.decode())
    assert (properties["TRAN_MSG"], properties["PGROUP"]) == ("true", "p")
    assert (properties["KEYS"], properties["DELAY"]) == ("k", "3")
    assert scene.sync()[0] == -1
    scene.check()
    assert len(scene.other.asked) == 1, "it is under way"
    then([True])
    assert scene.sync() == (2, 1)
    assert scene.round() == []
    assert not scene.asked(peer)
    assert scene.parts.store.max_physical_offset == end, "nothing is written here"


def test_only_the_last_copy_of_a_message_is_sent(scene: Acting) -> None:
    peer = scene.joins()
    scene.begin(b"asked")
    scene.begin(b"other")
    scene.check()
    assert len(scene.asked(peer)) == 2
    scene.make_durable()
    scene.is_slave_now()
    assert scene.round() == [b"asked", b"other"]
    asked = [decode_properties(each.properties.decode()) for each in scene.other.sent]
    assert [each["TRANSACTION_CHECK_TIMES"] for each in asked] == ["1", "1"]
    assert all("TRAN_PREPARED_QUEUE_OFFSET" not in each for each in asked)


def test_what_nobody_takes_waits_and_the_others_go_on(
    scene: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 2)
    told: list[tuple[int, int, str]] = []
    for number in range(5):
        scene.begin(b"%d" % number)
    scene.is_slave_now()
    scene.parts.transaction_check.on_not_taken.append(
        lambda each: told.append((each.number, each.offset, each.topic))
    )
    scene.check()
    assert scene.other.asked[-1][0] == [b"0", b"1"]
    scene.other.asked[-1][1]([False, True])
    assert told == [(1, 0, "T")]
    assert scene.sync()[0] == -1
    for bodies in ([b"2", b"3"], [b"4"]):
        scene.check(1_000)
        assert scene.other.asked[-1][0] == bodies
        scene.other.asked[-1][1]([True] * len(bodies))
    scene.check(1_000)
    assert len(scene.other.asked) == 3
    assert scene.sync()[0] == -1, "the first one is still open"
    scene.check()
    assert scene.other.asked[-1][0] == [b"0"], "in the next round, and nothing else"
    scene.other.asked[-1][1]([True])
    assert scene.sync()[0] == 5


def test_a_round_ends_when_nothing_is_taken(scene: Acting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 2)
    for number in range(5):
        scene.begin(b"%d" % number)
    scene.is_slave_now()
    scene.check()
    scene.other.asked[-1][1]([False, False])
    scene.check(1_000)
    assert len(scene.other.asked) == 1
    assert scene.round() == [b"0", b"1", b"2", b"3", b"4"]


def test_what_cannot_be_read_is_passed_over(scene: Acting) -> None:
    told: list[int] = []
    scene.parts.put(TRANS_HALF_TOPIC)
    scene.parts.put(TRANS_HALF_TOPIC, body=b"without a topic")
    scene.begin(b"whole")
    scene.is_slave_now()
    check = scene.parts.transaction_check
    check.on_unreadable.append(lambda each: told.append(each.offset))
    queue = check._queues[0]
    readable = queue.message
    queue.message = lambda offset: readable(offset) if offset else None  # type: ignore[method-assign]
    assert scene.round() == [b"whole"]
    assert told == [0]
    assert scene.sync()[0] == 1, "what names no topic waits for the master"
    assert scene.round() == []
    assert told == [0], "it is told once"


def test_what_the_master_does_counts_when_it_acts_again(scene: Acting) -> None:
    scene.begin(b"1")
    scene.begin(b"2")
    scene.is_slave_now()
    scene.check()
    _, late = scene.other.asked[-1]
    scene.acts = False
    scene.check(0)
    late([True, True])
    assert scene.sync()[0] == -1, "it acts no more"
    group = "CID_RMQ_SYS_TRANS"
    scene.parts.offsets.commit(group, TRANS_HALF_TOPIC, 0, 1)
    scene.parts.offsets.commit(group, TRANS_OP_TOPIC, 0, 0)
    scene.check()
    assert len(scene.other.asked) == 1
    scene.acts = True
    scene.check(0)
    assert scene.round() == [b"2"]
    assert scene.parts.transaction_check._began_ms is not None
    assert scene.parts.config.transaction_check_interval == INTERVAL_MS
