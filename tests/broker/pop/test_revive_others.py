# SPDX-License-Identifier: Apache-2.0
"""Check points that a slave of another broker has sent: revive.py, waiting.py.

Other tests see how they are sent (test_send_message.py) and how messages are fetched
(test_popped_elsewhere.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.broker.elsewhere import Elsewhere
from tests.broker.pop.scene import GROUP, INVISIBLE_MS, Scene
from tests.broker.store.batches import FLAGS
from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.pop import messages
from txrocketmq.broker.pop import waiting as module
from txrocketmq.broker.pop.records import MergeKey, PopCheckPoint, check_point
from txrocketmq.broker.pop.revive import RETRY_MS
from txrocketmq.broker.pop.waiting import REPUT_S, Fetched
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.message import (
    Message,
    MessageExt,
    decode_messages,
    encode_batch,
    encode_message,
)

RETRY = f"%RETRY%{GROUP}_T"
DISTANCES = (0, 1, 3)


class Others:
    """Other brokers, whose answers the test gives."""

    def __init__(self) -> None:
        self.asked: list[tuple[PopCheckPoint, list[int], Callable[[Fetched | None], None]]] = []

    def fetch(
        self, point: PopCheckPoint, offsets: Sequence[int], then: Callable[[Fetched | None], None]
    ) -> None:
        self.asked.append((point, list(offsets), then))

    def take(self) -> tuple[list[int], Callable[[Fetched | None], None]]:
        """Returns what is asked, which is one question, and whom to answer."""
        ((_, offsets, then),) = self.asked
        self.asked.clear()
        return offsets, then


class Sent(Scene):
    """A broker that is sent check points of others."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.others = Others()
        self.parts.groups.find(GROUP)

    def open(self, now_ms: int | None) -> None:
        super().open(now_ms)
        self.waits_for_answers()

    def waits_for_answers(self) -> None:
        if hasattr(self, "others"):
            self.parts.pop.revive.others.elsewhere = self.others

    def key(self, start: int = 5) -> MergeKey:
        return MergeKey("T", GROUP, 2, start, self.parts.now_ms, "other")

    def send(self, record: InnerMessage, way: Way = Way.SEND) -> None:
        """As the processor of sends stores it."""
        self.waits_for_answers()
        record.way = way
        record.properties.pop("TIMER_DELIVER_MS", None)
        self.parts.intake.admit(record, self.parts.now_ms)
        record.properties["CLUSTER"] = "DefaultCluster"
        assert not self.parts.intake.put([record.to_put()], self.parts.now_ms).refused

    def popped(self, queue_id: int = 0, start: int = 5) -> MergeKey:
        """A check point comes of three messages that were popped elsewhere just now."""
        key = self.key(start)
        topic = self.parts.pop.revive_topic
        point = check_point(key, INVISIBLE_MS, DISTANCES)
        self.send(topic.check_point(point, queue_id, self.parts.now_ms))
        return key

    def acked(self, key: MergeKey, offset: int, queue_id: int = 0) -> None:
        topic = self.parts.pop.revive_topic
        self.send(topic.ack(key, offset, 0, queue_id, self.parts.now_ms))

    def is_due(self) -> None:
        self.advance(INVISIBLE_MS + 5_000)

    def back(self) -> list[str]:
        """What is in the retry topic."""
        found = []
        store = self.parts.store
        for physical_offset, size, _ in store.queue_units(RETRY, 0, 0, 1_000):
            record = store.message_at(physical_offset, size)
            assert record is not None
            (message,) = decode_messages(record)
            assert message.reconsume_times == 1
            assert message.properties["ORIGIN_GROUP"] == GROUP
            found.append(message.body.decode())
        return found


def fetched(*offsets: int, end: int | None = None) -> Fetched:
    records = {
        each: memoryview(
            encode_message(MessageExt(topic="T", queue_id=2, queue_offset=each, body=b"%d" % each))
        )
        for each in offsets
    }
    return Fetched(records, max(offsets) + 1 if end is None else end)


@pytest.fixture(name="scene")
def scene_(tmp_path: Path) -> Iterator[Sent]:
    made = Sent(tmp_path)
    yield made
    made.close()


def test_messages_of_another_broker_are_fetched_when_they_are_due(scene: Sent) -> None:
    scene.popped()
    scene.parts.topic("T", 4)
    scene.parts.put("T", 2, body=b"of this broker")
    scene.advance(INVISIBLE_MS // 2)
    assert scene.others.asked == []
    scene.is_due()
    assert scene.others.asked[0][0].key.broker_name == "other"
    offsets, then = scene.others.take()
    assert offsets == [5, 6, 8]
    assert scene.revived() == 0
    then(fetched(5, 6, 8))
    scene.advance(1_000)
    assert scene.back() == ["5", "6", "8"]
    assert scene.revived() == len(scene.records()) == 1
    assert not scene.parts.pop.revive
    assert scene.parts.topics.get(RETRY) is not None
    assert scene.others.asked == []


def test_acknowledgements_may_come_in_another_queue(scene: Sent) -> None:
    one, other = scene.popped(0), scene.popped(1, 50)
    scene.advance(1_000)
    for offset in (50, 51, 53):
        scene.acked(other, offset, 0)
    scene.acked(one, 6, 3)
    scene.is_due()
    offsets, then = scene.others.take()
    assert offsets == [5, 8], "nothing is fetched of what is acknowledged"
    scene.acked(one, 5, 2)
    scene.tick()
    then(fetched(5, 8))
    scene.advance(1_000)
    assert scene.back() == ["8"], "what was acknowledged while it was fetched stays away"
    assert not scene.parts.pop.revive


def test_what_is_acknowledged_while_it_is_fetched_is_done_with(scene: Sent) -> None:
    key = scene.popped()
    scene.is_due()
    _, then = scene.others.take()
    for offset in (5, 6, 8):
        scene.acked(key, offset)
    scene.tick()
    assert not scene.parts.pop.revive
    then(fetched(5, 6, 8))
    scene.advance(1_000)
    assert scene.back() == []


def test_what_has_come_and_is_acknowledged_before_it_is_put(scene: Sent) -> None:
    key = scene.popped()
    scene.is_due()
    _, then = scene.others.take()
    then(fetched(5, 6, 8))
    for offset in (5, 6, 8):
        scene.acked(key, offset)
    scene.advance(1_000)
    assert scene.back() == []
    assert scene.revived() == len(scene.records())


def test_messages_come_some_at_a_time(scene: Sent) -> None:
    scene.popped()
    scene.is_due()
    _, then = scene.others.take()
    then(fetched(5))
    scene.advance(1_000)
    assert scene.back() == ["5"]
    offsets, then = scene.others.take()
    assert offsets == [6, 8]
    then(fetched(8, end=9))
    scene.advance(1_000)
    assert scene.back() == ["5", "8"], "what is gone there does not come back"
    assert not scene.parts.pop.revive


def test_while_nobody_has_them_they_wait_longer(scene: Sent) -> None:
    key = scene.popped()
    scene.is_due()
    _, then = scene.others.take()
    then(None)
    scene.advance(1_000)
    assert scene.tags() == ["ck", "ck"]
    assert scene.revived() == 1, "the first one is replaced"
    assert scene.others.asked == []
    scene.acked(key, 6)
    scene.restart()
    scene.advance(REPUT_S[0] * 1_000)
    offsets, then = scene.others.take()
    assert offsets == [5, 8], "the new one has the name of the old one, and is another broker's"
    then(None)
    scene.advance(1_000)
    scene.advance(REPUT_S[1] * 1_000)
    _, then = scene.others.take()
    then(fetched(5, 8))
    scene.advance(1_000)
    assert scene.back() == ["5", "8"]
    assert scene.revived() == len(scene.records())


def test_they_may_be_given_up_after_many_attempts(scene: Sent) -> None:
    scene.parts.set(skip_when_ck_re_put_reach_max_times=True)
    scene.popped()
    for at in range(len(REPUT_S) + 1):
        scene.is_due()
        _, then = scene.others.take()
        then(None)
        scene.advance(1_000)
        scene.advance(REPUT_S[min(at, len(REPUT_S) - 1)] * 1_000)
    assert not scene.parts.pop.revive
    assert len(scene.records()) == len(REPUT_S) + 1


def test_while_the_store_takes_nothing_nothing_is_lost(
    scene: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = scene.popped()
    scene.is_due()
    _, then = scene.others.take()
    then(fetched(5, 6))
    take = scene.parts.intake.take
    monkeypatch.setattr(
        scene.parts.intake,
        "take",
        lambda messages, _: [PutStatus.SERVICE_NOT_AVAILABLE] * len(messages),
    )
    scene.advance(1_000)
    assert scene.back() == []
    monkeypatch.setattr(scene.parts.intake, "take", take)
    scene.advance(RETRY_MS + 1_000)
    offsets, then = scene.others.take()
    assert offsets == [5, 6, 8]
    monkeypatch.setattr(
        scene.parts.intake,
        "take",
        lambda messages, _: [PutStatus.SERVICE_NOT_AVAILABLE] * len(messages),
    )
    then(None)
    scene.advance(1_000)
    monkeypatch.setattr(scene.parts.intake, "take", take)
    scene.advance(RETRY_MS + 1_000)
    _, then = scene.others.take()
    then(fetched(5, 6, 8))
    scene.advance(1_000)
    assert scene.back() == ["5", "6", "8"]
    assert key.broker_name == "other"


def test_the_store_may_take_some(scene: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does not take gets a check point of its own, which is another broker's as well."""
    scene.popped()
    scene.is_due()
    _, then = scene.others.take()
    then(fetched(5, 6, 8))
    take = scene.parts.intake.take

    def takes(messages: Sequence[InnerMessage], now_ms: int) -> list[PutStatus]:
        taken = [each for each in messages if each.body != b"6"]
        statuses = iter(take(taken, now_ms))
        refused = PutStatus.MESSAGE_ILLEGAL
        return [refused if each.body == b"6" else next(statuses) for each in messages]

    monkeypatch.setattr(scene.parts.intake, "take", takes)
    scene.advance(1_000)
    monkeypatch.setattr(scene.parts.intake, "take", take)
    assert scene.back() == ["5", "8"]
    scene.advance(REPUT_S[0] * 1_000)
    offsets, then = scene.others.take()
    assert offsets == [6]
    then(fetched(6))
    scene.advance(1_000)
    assert scene.back() == ["5", "8", "6"]


def test_messages_of_topics_that_are_not_here_are_done_with(scene: Sent) -> None:
    scene.popped()
    scene.parts.topics.delete("T")
    scene.is_due()
    assert scene.others.asked == []
    assert not scene.parts.pop.revive
    assert scene.revived() == 1


def test_few_are_fetched_at_once(scene: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FETCHES", 2)
    for number in range(5):
        scene.popped(number % 2, 100 * number)
    scene.is_due()
    for left in (5, 3, 1):
        assert len(scene.others.asked) == min(left, 2)
        for point, _, then in scene.others.asked:
            at = point.start_offset
            then(fetched(at, at + 1, at + 3))
        scene.others.asked.clear()
        scene.advance(1_000)
    assert len(scene.back()) == 15
    assert scene.revived() == len(scene.records())


def test_so_many_are_taken_that_there_is_room_for_own_ones(
    scene: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_OTHERS", 2)
    key = scene.popped(0, 100)
    scene.popped(0, 200)
    scene.tick()
    with pytest.raises(ResponseError, match="while there is room"):
        scene.popped(0, 300)
    for offset in (100, 101, 103):
        scene.acked(key, offset)
    scene.tick()
    scene.popped(0, 300)
    scene.tick()
    assert len(scene.parts.pop.revive) == 2


def test_own_check_points_do_not_wait_for_them(scene: Sent) -> None:
    scene.popped()
    scene.parts.put("T", body=b"own")
    assert scene.bodies() == ["own"]
    scene.advance(INVISIBLE_MS)
    scene.advance(INVISIBLE_MS)
    assert scene.back() == ["own"]
    assert len(scene.others.asked) == 1


def test_own_records_of_another_name_are_own_ones(scene: Sent) -> None:
    """A broker may have got another name since."""
    point = check_point(scene.key()._replace(queue_id=0, start_offset=0), INVISIBLE_MS, (0,))
    record = scene.parts.pop.revive_topic.check_point(point, 0, scene.parts.now_ms)
    scene.parts.put("T", body=b"own")
    assert scene.parts.intake.take([record], scene.parts.now_ms) == [PutStatus.PUT_OK]
    scene.is_due()
    assert scene.others.asked == []
    assert scene.back() == ["own"]


def test_a_batch_that_was_popped_elsewhere_is_taken_apart(
    scene: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An original broker pops records, which may be batches. It is looked through in steps, and
    some of its messages are put at once.
    """
    monkeypatch.setattr(module, "MAX_BATCH", 100)
    monkeypatch.setattr(messages, "AT_ONCE", 2)
    bodies = [b"%d" % number for number in range(300)]
    text = encode_batch([Message("T", body) for body in bodies])
    record = encode_message(
        MessageExt(
            topic="T", queue_id=2, queue_offset=5, body=text, sys_flag=FLAGS,
            properties={"INNER_NUM": "300"},
        )
    )  # fmt: skip
    scene.popped()
    scene.is_due()
    for number in range(4):
        assert len(scene.back()) == 100 * number
        _, then = scene.others.take()
        then(Fetched({5: memoryview(record)}, 305))
        for _ in range(4):  # the batch is looked through
            scene.advance(1_000)
    assert scene.back() == [each.decode() for each in bodies]
    assert not scene.parts.pop.revive
    assert scene.revived() == 1


def test_a_slave_sends_on_what_it_has_fetched(scene: Sent) -> None:
    scene.popped()
    scene.restart()
    scene.parts.set(broker_role="SLAVE")
    other, revive, acts = Elsewhere(), scene.parts.pop.revive, [True]
    revive.escape, revive.escapes = other, lambda: acts[0]
    scene.is_due()
    _, then = scene.others.take()
    then(None)
    scene.advance(1_000)
    assert len(scene.records()) == 1, "nothing is written here"
    scene.advance(RETRY_MS)
    offsets, then = scene.others.take()
    assert offsets == [5, 6, 8]
    then(fetched(5, 6))
    scene.advance(1_000)
    bodies, arrived = other.asked.pop()
    assert bodies == [b"5", b"6"]
    arrived([False, True])
    scene.advance(RETRY_MS + 1_000)
    offsets, then = scene.others.take()
    assert offsets == [5, 8]
    acts[0] = False
    scene.advance(1_000)
    then(fetched(5, 8))
    scene.advance(1_000)
    assert other.asked == [], "it acts no more"
    assert not revive
