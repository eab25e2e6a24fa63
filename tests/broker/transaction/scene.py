# SPDX-License-Identifier: Apache-2.0
"""Producers of transactions and their broker: half messages, ends, checks, and time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.broker.conftest import STORE_HOST, Parts
from tests.broker.processors.sends import Writing
from tests.fakes import FakePeer
from txrocketmq.broker.tables.clients import Client
from txrocketmq.broker.transaction.check import TransactionCheck
from txrocketmq.broker.transaction.question import Questions
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.message.ids import decode_message_id
from txrocketmq.remoting.message.message import MessageExt, decode_message
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.topics import TRANS_HALF_TOPIC, TRANS_OP_TOPIC
from txrocketmq.remoting.protocol import send, transaction
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader, SendMessageResponseHeader
from txrocketmq.remoting.protocol.transaction import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
)

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
INTERVAL_MS = 30_000


class Scene:
    """A broker and its producers; `check` runs a round of the check."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.parts = Parts(folder, **settings)
        self.parts.topic("T")
        writing = Writing(self.parts)
        self.processor = writing.ends
        self.failures: list[Exception] = []
        clock = self.parts.clock
        self.dispatcher = Dispatcher(
            writing.registry, clock, clock, lambda _, __, error: self.failures.append(error)
        )
        self.peer = FakePeer()
        self.steady_ms = 0
        self.parts.transaction_check.tick(self.parts.now_ms, 0)
        self._number = 0

    def close(self) -> None:
        self.parts.store.stop(self.parts.now_ms)

    # ------------------------------------------------------------------ the producer

    def joins(self, group: str = "p", client_id: str = "c") -> FakePeer:
        """Registers a producer of the group; returns its connection."""
        peer = FakePeer(50_000 + sum(map(ord, client_id)))
        client = Client(peer, client_id, "JAVA", 493, self.parts.now_ms)
        self.parts.producers.register(group, client)
        return peer

    def serve(self, *commands: RemotingCommand) -> list[RemotingCommand]:
        """Returns the answers to the commands of one read."""
        self.dispatcher.serve(self.peer, list(commands))
        found = FrameDecoder().receive(b"".join(map(bytes, self.peer.written)))
        self.peer.written.clear()
        return found

    def command(self, code: int, header: Header, body: bytes = b"") -> RemotingCommand:
        self._number += 1
        return RemotingCommand(code, header.encode(), body, opaque=self._number, version=493)

    def begin(self, body: bytes = b"body", group: str = "p", **properties: str) -> MessageExt:
        """Sends a half message; returns it as it is stored."""
        (answer,) = self.serve(self.begin_command(body, group, **properties))
        assert answer.code == 0, answer.remark
        told = SendMessageResponseHeader.decode(answer.ext_fields)
        half = self.at(decode_message_id(told.msg_id).commit_log_offset)
        assert (told.queue_id, told.transaction_id) == (2, half.properties["UNIQ_KEY"])
        assert half.queue_offset == told.queue_offset
        return half

    def begin_command(
        self, body: bytes = b"body", group: str = "p", **properties: str
    ) -> RemotingCommand:
        """Returns the command that sends a half message."""
        self._number += 1
        properties = {
            "TRAN_MSG": "true",
            "PGROUP": group,
            "UNIQ_KEY": f"U{self._number}",
            **properties,
        }
        header = SendMessageRequestHeader(
            producer_group=group, topic="T", default_topic="TBW102", default_topic_queue_nums=4,
            queue_id=2, sys_flag=4, born_timestamp=self.parts.now_ms, flag=5,
            properties=encode_properties(properties),
        )  # fmt: skip
        return self.command(send.SEND_MESSAGE.code, header, body)

    def end_command(self, half: MessageExt, how: int, **fields: Any) -> RemotingCommand:
        header = EndTransactionRequestHeader(
            **{
                "producer_group": half.properties.get("PGROUP", "p"),
                "tran_state_table_offset": half.queue_offset,
                "commit_log_offset": half.commit_log_offset,
                "commit_or_rollback": how,
                "msg_id": half.properties.get("UNIQ_KEY", ""),
                **fields,
            }
        )
        return self.command(transaction.END_TRANSACTION.code, header)

    def end(self, half: MessageExt, how: int, **fields: Any) -> list[tuple[int, str | None]]:
        """Ends a transaction; returns code and remark of the answer, if there is one."""
        answers = self.serve(self.end_command(half, how, **fields))
        return [(answer.code, answer.remark) for answer in answers]

    # ------------------------------------------------------------------ the broker

    def at(self, offset: int) -> MessageExt:
        record = self.parts.store.message_at(offset)
        assert record is not None
        return decode_message(record, decompress_body=False)[0]

    def queue(self, topic: str, queue_id: int = 0) -> list[MessageExt]:
        """Returns all messages of a queue."""
        units = self.parts.store.queue_units(topic, queue_id, 0, 100_000)
        return [self.at(unit.physical_offset) for unit in units]

    def seen(self) -> list[bytes]:
        """Returns the bodies that consumers see."""
        return [each.body for each in self.queue("T", 2)]

    def half(self) -> list[MessageExt]:
        return self.queue(TRANS_HALF_TOPIC)

    def make_durable(self) -> None:
        """Makes everything durable, with the op messages that wait for that."""
        self.parts.store.flush.flush_all()

    def ops(self) -> list[bytes]:
        """Returns the bodies of op messages, once all is durable."""
        self.make_durable()
        return [each.body for each in self.queue(TRANS_OP_TOPIC)]

    def check(self, after_ms: int = INTERVAL_MS) -> None:
        """Advances the time and runs a round of the check."""
        self.parts.now_ms += after_ms
        self.steady_ms += after_ms
        self.parts.transaction_check.tick(self.parts.now_ms, self.steady_ms)
        assert not self.parts.transaction_check.is_behind

    def sync(self) -> tuple[int, int]:
        """Makes the log durable and keeps the progress; returns offsets of half and op queue."""
        self.make_durable()
        self.parts.transaction_check.settle()
        query = self.parts.offsets.query
        group = "CID_RMQ_SYS_TRANS"
        return query(group, TRANS_HALF_TOPIC, 0), query(group, TRANS_OP_TOPIC, 0)

    @staticmethod
    def asked(peer: FakePeer) -> list[tuple[CheckTransactionStateRequestHeader, MessageExt]]:
        """Returns the checks that a producer was sent since the last call."""
        told, peer.told = peer.told, []
        found = []
        for call, header, body in told:
            assert call is transaction.CHECK_TRANSACTION_STATE
            assert isinstance(header, CheckTransactionStateRequestHeader)
            found.append((header, decode_message(body)[0]))
        return found

    def answer(
        self, question: CheckTransactionStateRequestHeader, half: MessageExt, how: int
    ) -> list[tuple[int, str | None]]:
        """Sends the producer's answer to a check, as official clients do."""
        return self.end(
            half,
            how,
            tran_state_table_offset=question.tran_state_table_offset,
            commit_log_offset=question.commit_log_offset,
            from_transaction_check=True,
        )


def restarted(scene: Scene) -> None:
    """Only what is kept is known, as after a start."""
    killed(scene)
    scene.parts.transaction_check.tick(scene.parts.now_ms, scene.steady_ms)


def killed(scene: Scene) -> None:
    """As restarted, before the new broker has done anything."""
    parts = scene.parts
    parts.transaction_check = scene.processor._check = TransactionCheck(
        parts.config, parts.intake, parts.topics, parts.offsets,
        Questions(parts.producers, "b"), parts.transaction_metrics, parts.after_durable,
        lambda: STORE_HOST, parts.patience,
    )  # fmt: skip
