# SPDX-License-Identifier: Apache-2.0
"""A consumer that pops, and its broker, with a time that tests advance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.broker.conftest import Parts
from tests.fakes import NOW_MS, FakePeer, reply_of, request
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.processors.pop.ack_message import AckMessageProcessor
from txrocketmq.broker.processors.pop.pop_message import PopMessageProcessor
from txrocketmq.broker.processors.send.writes import Writes
from txrocketmq.remoting.call import Buffer, PendingReply, Reply
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Run
from txrocketmq.remoting.message.message import MessageExt, decode_messages
from txrocketmq.remoting.message.pop import REVIVE_GROUP, ReceiptHandle, real_topic
from txrocketmq.remoting.protocol.pop import (
    ACK_MESSAGE,
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)

GROUP = "g"
REVIVE_TOPIC = "rmq_sys_REVIVE_LOG_DefaultCluster"
INVISIBLE_MS = 60_000


class Message:
    """A message that was popped, with the handle that its client would make."""

    def __init__(self, stored: MessageExt, handle: str) -> None:
        self.stored = stored
        self.handle = ReceiptHandle.parse(handle)

    @property
    def body(self) -> str:
        return self.stored.body.decode()

    def topic(self) -> str:
        """The topic in which the message is, according to its handle."""
        return real_topic(self.stored.topic, GROUP, self.handle.retry)


def ack_of(message: Message, **other: Any) -> AckMessageRequestHeader:
    """Returns the acknowledgement of a message by its client."""
    return AckMessageRequestHeader(
        **{
            "consumer_group": GROUP,
            "topic": message.topic(),
            "queue_id": message.stored.queue_id,
            "extra_info": str(message.handle),
            "offset": message.stored.queue_offset,
            **other,
        }
    )


class Scene:
    """A consumer that pops, and its broker.

    `settings` are fields of the BrokerConfig, `attributes` those of the topic T.
    """

    def __init__(
        self, folder: Path, attributes: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.peer = FakePeer()
        self.open(None)
        self.parts.topic("T", 1, **(attributes or {}))

    def open(self, now_ms: int | None) -> None:
        self.parts = self.made(NOW_MS if now_ms is None else now_ms)
        self.parts.load()
        self.parts.set(**{"pop_from_retry_probability": 0, **self.settings})
        self.later: list[Callable[[], None]] = []
        for polling in (self.parts.pop.polling, self.parts.pop.notifications):
            polling._wake_soon = self.later.append
        for heard in self.parts.pop.life().hears:
            heard.begin()
        self.processors = {type(each): each for each in all_processors(self.parts)}

    def made(self, now_ms: int) -> Parts:
        """Returns the parts of a broker that have not read their files yet."""
        return Parts(self.folder, now_ms=now_ms)

    def close(self) -> None:
        self.parts.store.stop(self.parts.now_ms)

    def restart(self) -> None:
        """Stops and starts the broker in order, as its service does."""
        parts = self.parts
        parts.pop.check_points.write_all(parts.now_ms)
        parts.store.flush.flush_all()
        parts.pop.settle()
        self.save()
        self.close()
        self.open(parts.now_ms)

    def kill(self) -> None:
        """Starts the broker again as after a crash: only what was written is there."""
        self.close()
        self.open(self.parts.now_ms)

    def save(self) -> None:
        for part in (
            self.parts.offsets,
            self.parts.topics,
            self.parts.groups,
            self.parts.pop.orders,
        ):
            part.saving.write_now()

    # ------------------------------------------------------------------ the consumer

    def ask(self, **wanted: Any) -> PendingReply:
        """Pops; the answer may come later."""
        header = PopMessageRequestHeader(
            **{
                "consumer_group": GROUP,
                "topic": "T",
                "queue_id": -1,
                "max_msg_nums": 32,
                "invisible_time": INVISIBLE_MS,
                "poll_time": 0,
                "born_time": self.parts.now_ms,
                "init_mode": 0,
                **wanted,
            }
        )
        processor = self.processors[PopMessageProcessor]
        assert isinstance(processor, PopMessageProcessor)
        return processor.pop_message(request(header, peer=self.peer, now_ms=self.parts.now_ms))

    def reply(self, **wanted: Any) -> Reply[PopMessageResponseHeader]:
        return reply_of(self.ask(**wanted))

    def pop(self, **wanted: Any) -> list[Message]:
        return messages_of(self.reply(**wanted))

    def bodies(self, **wanted: Any) -> list[str]:
        return [each.body for each in self.pop(**wanted)]

    def acks(self) -> AckMessageProcessor:
        processor = self.processors[AckMessageProcessor]
        assert isinstance(processor, AckMessageProcessor)
        return processor

    def ack(self, message: Message, **other: Any) -> None:
        (outcome,) = self.serve_acks([ack_of(message, **other)])
        if isinstance(outcome, Exception):
            raise outcome

    def serve_acks(
        self, headers: Sequence[AckMessageRequestHeader]
    ) -> list[Reply[Any] | Exception]:
        """Returns the answers to acknowledgements in one read."""
        outcomes: list[Reply[Any] | Exception] = []

        def answer(_: Any, __: Any, outcome: Reply[Any] | Exception) -> Sequence[Buffer]:
            outcomes.append(outcome)
            return [b"answer"]

        commands = [RemotingCommand(ACK_MESSAGE.code, each.encode()) for each in headers]
        run = Run(FakePeer(), commands, self.parts.now_ms, answer)
        writes = self.processors[Writes]
        assert isinstance(writes, Writes)
        assert writes.serve(run) == [b"answer"] * len(commands)
        return outcomes

    def hide(
        self, message: Message, invisible_ms: int, **more: Any
    ) -> ChangeInvisibleTimeResponseHeader:
        """Changes the invisible time of a message, which gets the new handle."""
        header = ChangeInvisibleTimeRequestHeader(
            consumer_group=GROUP,
            topic=message.topic(),
            queue_id=message.stored.queue_id,
            extra_info=str(message.handle),
            offset=message.stored.queue_offset,
            invisible_time=invisible_ms,
            **more,
        )
        reply = self.acks().change_invisible_time(request(header, now_ms=self.parts.now_ms))
        assert reply.header is not None
        start = message.handle.start_offset
        if message.handle.revive_queue_id != 999:
            start = message.stored.queue_offset
        message.handle = message.handle._replace(
            start_offset=start,
            pop_time=reply.header.pop_time,
            invisible_time=reply.header.invisible_time,
        )
        return reply.header

    # ------------------------------------------------------------------ time

    def turn(self) -> None:
        """Makes the calls that were to be made soon."""
        while self.later:
            self.later.pop(0)()

    def advance(self, ms: int = 0) -> None:
        """Advances the time in a few steps; the log is flushed at each of them."""
        end_ms = self.parts.now_ms + ms
        while True:
            self.parts.now_ms = min(self.parts.now_ms + max(1_000, ms // 8), end_ms)
            self.tick()
            if self.parts.now_ms >= end_ms:
                return

    def tick(self) -> None:
        now_ms = self.parts.now_ms
        self.parts.store.flush.flush_all()
        self.parts.pop.tick(now_ms, now_ms)
        revive = self.parts.pop.revive
        revive.tick(now_ms, now_ms)
        while revive.is_behind:  # in later slices
            revive.tick(now_ms, now_ms)
        self.parts.store.flush.flush_all()
        self.parts.pop.settle()
        self.turn()

    # ------------------------------------------------------------------ the broker

    def records(self) -> list[tuple[str | None, str]]:
        """Returns tags and bodies of the records in the revive topic."""
        found = []
        store = self.parts.store
        for queue_id in store.queue_ids(REVIVE_TOPIC):
            for physical_offset, size, _ in store.queue_units(REVIVE_TOPIC, queue_id, 0, 1_000):
                record = store.message_at(physical_offset, size)
                assert record is not None
                (message,) = decode_messages(record)
                found.append((message.tags, message.body.decode()))
        return found

    def tags(self) -> list[str | None]:
        return [tag for tag, _ in self.records()]

    def offset(self, topic: str = "T", queue_id: int = 0) -> int:
        """Returns the offset that the group has consumed up to."""
        return self.parts.offsets.query(GROUP, topic, queue_id)

    def revived(self) -> int:
        """Returns how many records of the revive topic are done with, in all queues."""
        queues = range(self.parts.config.revive_queue_num)
        found = [self.parts.offsets.query(REVIVE_GROUP, REVIVE_TOPIC, each) for each in queues]
        return sum(each + 1 for each in found)


def messages_of(reply: Reply[PopMessageResponseHeader]) -> list[Message]:
    """Returns the messages of an answer, with handles as the official client makes them."""
    header = reply.header
    assert header is not None
    starts = dict(_words(header.start_offset_info))
    found = []
    for stored in decode_messages(reply.body_bytes):
        handle = stored.properties.get("POP_CK")
        if handle is None:
            start = starts["0", str(stored.queue_id)]
            handle = (
                f"{start} {header.pop_time} {header.invisible_time} {header.revive_qid} 0"
                f" DEFAULT_BROKER {stored.queue_id} {stored.queue_offset}"
            )
        found.append(Message(stored, handle))
    return found


def _words(text: str | None) -> list[tuple[tuple[str, str], str]]:
    found = [each.split(" ") for each in (text or "").split(";") if each]
    return [((retry, queue_id), value) for retry, queue_id, value in found]
