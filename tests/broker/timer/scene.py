# SPDX-License-Identifier: Apache-2.0
"""Producers of timer messages and their broker, whose time is advanced by the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.broker.conftest import STORE_HOST, Parts
from tests.broker.processors.sends import Writing
from tests.fakes import FakePeer
from txrocketmq.broker.processors.send.recall_message import RecallMessageProcessor
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.message.message import MessageExt, decode_message
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.topics import TIMER_TOPIC
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import (
    RecallMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
)

SECOND_MS = 1_000


class Scene:
    """A broker and its producers; with `now_ms` it goes on with an existing store at that time."""

    def __init__(self, folder: Path, now_ms: int | None = None, **store_settings: Any) -> None:
        self.folder = folder
        config = BrokerConfig(
            recall_message_enable=True,
            broker_name="b",
            enable_remote_escape=store_settings.get("broker_role") == "SLAVE",
        )
        more: dict[str, Any] = {} if now_ms is None else {"now_ms": now_ms}
        settings = {"mapped_file_size_timer_log": 4096, **store_settings}
        self.parts = Parts(folder, config, store_settings=settings, **more)
        self.parts.load()
        for heard in self.parts.timers.life(self.parts.topics).hears:
            heard.begin()
        self.timers = self.parts.timers
        self.said: list[str] = []
        self.timers.on_warning.append(self.said.append)
        self.unread: list[tuple[int, int]] = []
        self.timers.on_unreadable.append(
            lambda found: self.unread.append((found.number, found.offset))
        )
        self.steady_ms = 0
        self.parts.topic("T")
        self.said += self.timers.open(self.parts.now_ms)
        self.failures: list[Exception] = []
        registry = Registry(
            Writing(self.parts).writes,
            RecallMessageProcessor(
                self.parts.config, self.parts.topics, self.parts.intake, STORE_HOST
            ),
        )
        clock = self.parts.clock
        self.dispatcher = Dispatcher(
            registry, clock, clock, lambda _, __, error: self.failures.append(error)
        )
        self.peer = FakePeer()
        self._number = 0

    def close(self) -> None:
        """Stops the broker in order."""
        self.parts.store.flush.flush_all()
        self.timers.close(self.parts.now_ms)
        self.parts.timers.metrics.saving.write_now()
        self.parts.store.stop(self.parts.now_ms)

    def kill(self) -> None:
        """Ends the broker without writing anything."""
        self.parts.store._marks.unlock()

    def again(self, after_ms: int = 0, **store_settings: Any) -> Scene:
        """Returns a broker that goes on with the same store."""
        return Scene(self.folder, self.parts.now_ms + after_ms, **store_settings)

    # ------------------------------------------------------------------ the producer

    def serve(self, *commands: RemotingCommand) -> list[RemotingCommand]:
        """Returns the answers to the commands of one read."""
        self.dispatcher.serve(self.peer, list(commands))
        found = FrameDecoder().receive(b"".join(map(bytes, self.peer.written)))
        self.peer.written.clear()
        return found

    def command(self, code: int, header: Header, body: bytes = b"") -> RemotingCommand:
        self._number += 1
        return RemotingCommand(code, header.encode(), body, opaque=self._number, version=493)

    def answer(
        self, body: bytes = b"body", *, topic: str = "T", **properties: str
    ) -> RemotingCommand:
        """Sends a message; returns the answer."""
        key = f"U{self._number + 1}"
        header = SendMessageRequestHeader(
            producer_group="p", topic=topic, default_topic="TBW102", default_topic_queue_nums=4,
            queue_id=2, sys_flag=0, born_timestamp=self.parts.now_ms, flag=5,
            properties=encode_properties({"UNIQ_KEY": key, **properties}),
        )  # fmt: skip
        (answer,) = self.serve(self.command(send.SEND_MESSAGE_V2.code, header, body))
        return answer

    def send(self, body: bytes = b"body", **properties: str) -> SendMessageResponseHeader:
        """Sends a message that must be taken; returns the header of the answer."""
        answer = self.answer(body, **properties)
        assert answer.code == 0, answer.remark
        return SendMessageResponseHeader.decode(answer.ext_fields)

    def later(self, seconds: float, body: bytes = b"body", **properties: str) -> str:
        """Sends a message that is due in so many seconds; returns its handle."""
        told = self.send(body, TIMER_DELAY_MS=str(int(seconds * 1000)), **properties)
        assert told.recall_handle
        return told.recall_handle

    def recall(self, handle: str, topic: str = "T") -> tuple[int, str | None]:
        """Recalls a message; returns code and remark of the answer."""
        header = RecallMessageRequestHeader(producer_group="p", topic=topic, recall_handle=handle)
        (answer,) = self.serve(self.command(send.RECALL_MESSAGE.code, header))
        return answer.code, answer.remark

    # ------------------------------------------------------------------ the broker

    def tick(self, after_ms: int = 0) -> None:
        """Advances the time and does what is due."""
        self.parts.now_ms += after_ms
        self.steady_ms += after_ms
        self.timers.tick(self.parts.now_ms, self.steady_ms)
        assert not self.timers.is_behind

    def queue(self, topic: str = "T", queue_id: int = 2) -> list[MessageExt]:
        """Returns all messages of a queue."""
        found = []
        store = self.parts.store
        least = store.min_offset(topic, queue_id)
        for unit in store.queue_units(topic, queue_id, least, 100_000):
            record = store.message_at(unit.physical_offset, unit.size_bytes)
            assert record is not None
            found.append(decode_message(record, decompress_body=False)[0])
        return found

    def seen(self) -> list[bytes]:
        """Returns the bodies that consumers see."""
        return [each.body for each in self.queue()]

    def waiting(self) -> list[MessageExt]:
        """Returns all messages of the timer topic."""
        return self.queue(TIMER_TOPIC, 0)

    def keep(self) -> None:
        """Makes everything durable, and writes the progress."""
        for _ in range(2):
            self.parts.store.flush.flush_all()
            self.steady_ms += self.parts.store.config.timer_flush_interval_ms
            self.tick()
