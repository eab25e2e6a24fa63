# SPDX-License-Identifier: Apache-2.0
"""Records of the revive topic: what was popped, and which of it was acknowledged.

A check point stands for the messages of one queue that one pop has handed out; an ack, or a batch
of acks, names it by its first offset and its time. Their bodies are JSON with names of one or two
letters, and the tag tells the kind. Java: PopCheckPoint, AckMsg, BatchAckMsg,
PopMessageProcessor.buildCkMsg and genCkUniqueId.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.usual_record import usual_record
from txrocketmq.broker.store.queues.batch_queue import MAX_BATCH_MESSAGES
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageDecodeError, decode_message
from txrocketmq.remoting.message.pop import REVIVE_PREFIX
from txrocketmq.remoting.protocol.body.base import Body, BodyError, body, member
from txrocketmq.remoting.serialize.json import decode_body

CHECK_POINT_TAG: Final = "ck"
ACK_TAG: Final = "ack"
BATCH_ACK_TAG: Final = "bAck"
ACK_INTERVAL_MS: Final = 1_000
"""How long before its time a check point is due in the original, which reads acks after it."""
MAX_MESSAGES: Final = 32
"""How many messages a check point stands for at most: one for each bit of an int."""
MOST_SENT_BYTES: Final = 2_048
"""How long a record that is sent here may be: no broker makes longer ones, and those that wait are
kept in memory."""
_MAX_SPAN: Final = 2**31 - 1
_MIN_SPAN: Final = -MAX_BATCH_MESSAGES
_MAX_REPUTS: Final = 127
_LONG_MAX: Final = 2**63 - 1


class MergeKey(NamedTuple):
    """The parts of a check point's name, its mergeKey."""

    topic: str
    group: str
    queue_id: int
    start_offset: int
    pop_time: int
    broker_name: str


@body("org.apache.rocketmq.store.pop.PopCheckPoint")
class PopCheckPoint(Body):
    """What was popped. `diffs` are distances of messages from `start_offset`. Times are in ms.

    For a queue of batches, an original broker writes the distances of records, the first of which
    may be negative. Where `is_by_message` is set they are those of messages, as for other queues;
    an original broker ignores this, and check points of other queues do not have it. With `suspend`
    (5.5), what comes back was not attempted in vain.
    """

    bit_map: int = member(wire="bm", default=0)
    broker_name: str | None = member(wire="bn", default=None)
    group: str | None = member(wire="c", default=None)
    diffs: Sequence[int] | None = member(wire="d", default=None)
    invisible_time: int = member(wire="it", default=0)
    is_by_message: bool | None = member(wire="m", default=None)
    count: int = member(wire="n", default=0)
    pop_time: int = member(wire="pt", default=0)
    queue_id: int = member(wire="q", default=0)
    revive_time: int = 0
    revive_offset: int = member(wire="ro", default=0)
    reput_times: str | None = member(wire="rp", default=None)
    start_offset: int = member(wire="so", default=0)
    suspend: bool | None = member(wire="sp", default=None)
    topic: str | None = member(wire="t", default=None)

    @property
    def key(self) -> MergeKey:
        """The name of the check point."""
        return MergeKey(
            self.topic or "", self.group or "", self.queue_id, self.start_offset, self.pop_time,
            self.broker_name or "",
        )  # fmt: skip

    def distances(self) -> list[int]:
        """The distances of messages from the first offset; older records list them singly."""
        count = min(max(self.count, 0), MAX_MESSAGES)
        if not self.diffs:
            return list(range(count))
        return [each for each in self.diffs[:count] if _MIN_SPAN <= each <= _MAX_SPAN]

    def times_put_again(self) -> int:
        """How often the check point was put at the queue's end again, as messages failed."""
        text = self.reput_times
        if text is None:
            return 0
        return int(text) if text.isascii() and text.isdigit() and len(text) < 4 else _MAX_REPUTS


def check_point(
    key: MergeKey,
    invisible_ms: int,
    distances: Sequence[int],
    *,
    has_batches: bool = False,
    suspend: bool = False,
) -> PopCheckPoint:
    """Makes a check point for messages at these distances from the key's offset.

    `has_batches` tells whether the queue is one of batches.
    """
    return PopCheckPoint(
        broker_name=key.broker_name,
        group=key.group,
        diffs=distances or None,
        invisible_time=invisible_ms,
        is_by_message=has_batches or None,
        count=len(distances),
        pop_time=key.pop_time,
        queue_id=key.queue_id,
        revive_time=key.pop_time + invisible_ms,
        start_offset=key.start_offset,
        suspend=suspend or None,
        topic=key.topic,
    )


@body("org.apache.rocketmq.store.pop.AckMsg")
class AckMsg(Body):
    """Says that one message of a check point is consumed."""

    ack_offset: int = member(wire="ao", default=0)
    broker_name: str | None = member(wire="bn", default=None)
    group: str | None = member(wire="c", default=None)
    pop_time: int = member(wire="pt", default=0)
    queue_id: int = member(wire="q", default=0)
    start_offset: int = member(wire="so", default=0)
    topic: str | None = member(wire="t", default=None)


_members_of_ack: Final = itemgetter(
    *(
        {each.name: each.wire for each in AckMsg.members}[name]
        for name in (
            "ack_offset", "broker_name", "group", "pop_time", "queue_id", "start_offset", "topic",
        )
    )
)  # fmt: skip


@body("org.apache.rocketmq.store.pop.BatchAckMsg")
class BatchAckMsg(Body):
    """Says that some messages of a check point are consumed."""

    ack_offset: int = member(wire="ao", default=-1)
    ack_offsets: Sequence[int] = member(wire="aol", default=())
    broker_name: str | None = member(wire="bn", default=None)
    group: str | None = member(wire="c", default=None)
    pop_time: int = member(wire="pt", default=0)
    queue_id: int = member(wire="q", default=0)
    start_offset: int = member(wire="so", default=0)
    topic: str | None = member(wire="t", default=None)


class Acks(NamedTuple):
    """An ack of either kind, as it is read: a check point's name, and offsets in its queue."""

    key: MergeKey
    offsets: Sequence[int]


class OtherCheckPoint(NamedTuple):
    """A check point whose messages another broker has, which has sent it."""

    point: PopCheckPoint

    @property
    def key(self) -> MergeKey:
        """The name of the check point."""
        return self.point.key


class ReviveTopic:
    """Makes and reads records of the revive topic of a cluster.

    `store_host` returns the broker's own address, as records contain it, once that is known.
    """

    def __init__(self, cluster: str, broker_name: str, store_host: Callable[[], bytes]) -> None:
        self.name = REVIVE_PREFIX + cluster
        self.store_host = store_host
        self.broker_name = broker_name
        self._cluster = cluster

    def check_point(self, point: PopCheckPoint, queue_id: int, now_ms: int) -> InnerMessage:
        """Makes the record of a check point."""
        unique = (
            f"{point.topic}@{point.queue_id}@{point.start_offset}@{point.group}"
            f"@{point.pop_time}@{point.broker_name}@{CHECK_POINT_TAG}"
        )
        due_ms = point.revive_time - ACK_INTERVAL_MS
        return self._record(queue_id, CHECK_POINT_TAG, point, unique, due_ms, now_ms)

    def other_check_point(self, point: PopCheckPoint, queue_id: int, now_ms: int) -> InnerMessage:
        """Makes the record of a check point whose messages another broker has."""
        made = self.check_point(point, queue_id, now_ms)
        made.properties[names.CLUSTER] = self._cluster
        return made

    def ack(
        self, key: MergeKey, offset: int, revive_ms: int, queue_id: int, now_ms: int
    ) -> InnerMessage:
        """Makes the record of an ack."""
        made = AckMsg(
            ack_offset=offset,
            broker_name=key.broker_name,
            group=key.group,
            pop_time=key.pop_time,
            queue_id=key.queue_id,
            start_offset=key.start_offset,
            topic=key.topic,
        )
        unique = (
            f"{key.topic}@{key.queue_id}@{offset}@{key.group}@{key.pop_time}@{key.broker_name}"
            f"@{ACK_TAG}"
        )
        return self._record(queue_id, ACK_TAG, made, unique, revive_ms, now_ms)

    def batch_ack(
        self, key: MergeKey, offsets: Sequence[int], revive_ms: int, queue_id: int, now_ms: int
    ) -> InnerMessage:
        """Makes the record of acks of several messages of one check point."""
        made = BatchAckMsg(
            ack_offsets=offsets,
            broker_name=key.broker_name,
            group=key.group,
            pop_time=key.pop_time,
            queue_id=key.queue_id,
            start_offset=key.start_offset,
            topic=key.topic,
        )
        listed = ", ".join(map(str, offsets))
        unique = f"{key.topic}@{key.queue_id}@[{listed}]@{key.group}@{key.pop_time}@{BATCH_ACK_TAG}"
        return self._record(queue_id, BATCH_ACK_TAG, made, unique, revive_ms, now_ms)

    def _record(
        self, queue_id: int, tag: str, content: Body, unique: str, deliver_ms: int, now_ms: int
    ) -> InnerMessage:
        properties = {
            names.TAGS: tag,
            names.TIMER_DELIVER_MS: str(deliver_ms),
            names.UNIQ_KEY: unique,
        }
        host = self.store_host()
        return InnerMessage(
            self.name, queue_id, content.encode(), now_ms, host, host, properties, way=Way.REVIVE
        )

    def read(self, record: memoryview) -> PopCheckPoint | OtherCheckPoint | Acks | None:
        """Reads a record of the topic; returns None for other kinds and incomplete ones.

        What was sent here has the cluster in its properties, as whatever was sent. What was not is
        this broker's own, also under a name that it had before.
        """
        try:
            message = usual_record(record) or decode_message(record, decompress_body=False)[0]
        except MessageDecodeError:
            return None
        found = self._content(message.properties.get(names.TAGS), message.body)
        if isinstance(found, PopCheckPoint) and names.CLUSTER in message.properties:
            name = found.broker_name
            return OtherCheckPoint(found) if name and name != self.broker_name else found
        return found

    def is_of_another(self, message: InnerMessage) -> bool:
        """Whether a message that was sent is a record of another broker, which is named in it."""
        if len(message.body) > MOST_SENT_BYTES:
            return False
        found = self._content(message.properties.get(names.TAGS), message.body)
        if isinstance(found, PopCheckPoint) and len(found.diffs or ()) > MAX_MESSAGES:
            return False
        return found is not None and found.key.broker_name not in {"", self.broker_name}

    def _content(self, tag: str | None, content: bytes) -> PopCheckPoint | Acks | None:
        try:
            if tag == ACK_TAG:
                found = _usual_ack(content)
                if found is not None:
                    return found
                ack = AckMsg.decode(content)
                return Acks(self._key_of(ack), (ack.ack_offset,))
            if tag == CHECK_POINT_TAG:
                point = PopCheckPoint.decode(content)
                return point if point.topic and point.group else None
            if tag == BATCH_ACK_TAG:
                batch = BatchAckMsg.decode(content)
                return Acks(self._key_of(batch), batch.ack_offsets)
        except (HeaderError, BodyError):
            pass
        return None

    def _key_of(self, ack: AckMsg | BatchAckMsg) -> MergeKey:
        return MergeKey(
            ack.topic or "", ack.group or "", ack.queue_id, ack.start_offset, ack.pop_time,
            ack.broker_name or self.broker_name,
        )  # fmt: skip


# Every acknowledgement that is read passes here.
def _usual_ack(content: bytes) -> Acks | None:
    """Reads an ack that has all its members, each of its usual type; None for any other."""
    try:
        offset, broker_name, group, pop_time, queue_id, start_offset, topic = _members_of_ack(
            decode_body(content)
        )
        numbers = offset, pop_time, queue_id, start_offset
        if (
            type(offset) is type(pop_time) is type(queue_id) is type(start_offset) is int
            and min(numbers) >= -_LONG_MAX
            and max(numbers) <= _LONG_MAX
            and type(broker_name) is type(group) is type(topic) is str
            and broker_name
        ):
            key = MergeKey(topic, group, queue_id, start_offset, pop_time, broker_name)
            return Acks(key, (offset,))
    except (KeyError, TypeError):
        pass
    return None
