# SPDX-License-Identifier: Apache-2.0
"""A broker that takes sends: commands go in, answers and stored messages come out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.broker.conftest import STORE_HOST, Parts
from tests.fakes import FakePeer
from txrocketmq.broker.processors.send.batches import Batches
from txrocketmq.broker.processors.send.end_transaction import EndTransactionProcessor
from txrocketmq.broker.processors.send.send_answers import SendAnswers
from txrocketmq.broker.processors.send.send_checks import SendChecks
from txrocketmq.broker.processors.send.send_message import SendMessageProcessor
from txrocketmq.broker.processors.send.writes import Writes
from txrocketmq.broker.store.upkeep.flush import FlushJob
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry
from txrocketmq.remoting.frame.connection import Connection
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.message.ids import UniqueKeys
from txrocketmq.remoting.message.message import MessageExt, decode_message

IP = bytes([127, 0, 0, 1])


def ends_of(parts: Parts) -> EndTransactionProcessor:
    """Returns the processor of END_TRANSACTION for these parts."""
    return EndTransactionProcessor(
        parts.config,
        parts.intake,
        SendChecks(parts.config, parts.topics, parts.store),
        parts.transaction_check,
        parts.after_durable,
        parts.transaction_metrics,
        parts.clock,
        parts.patience,
    )


class Writing:
    """The processors of sends and of ends of transactions for these parts, which share runs."""

    def __init__(self, parts: Parts, serialize_type: int = SerializeType.JSON) -> None:
        checks = SendChecks(parts.config, parts.topics, parts.store)
        answers = SendAnswers(STORE_HOST, serialize_type)
        keys = UniqueKeys(IP, 1, 1)
        cluster = parts.config.broker_cluster_name
        batches = Batches(checks, parts.intake, parts.walks, answers, cluster, parts.clock)
        self.sends = SendMessageProcessor(
            parts.configuration, checks, parts.intake, answers, batches, STORE_HOST, keys
        )
        self.ends = ends_of(parts)
        self.writes = Writes(parts.intake, checks, answers, self.sends, self.ends, batches)
        self.registry = Registry(self.writes, self.ends)


class Sending:
    """Serves sends as a broker does."""

    def __init__(
        self, folder: Path, *, serialize_type: int = SerializeType.JSON, **store_settings: Any
    ) -> None:
        self.parts = Parts(folder, store_settings=store_settings)
        writing = Writing(self.parts, serialize_type)
        self.processor, self.writes = writing.sends, writing.writes
        self.connection = Connection()
        self.failures: list[Exception] = []
        self.dispatcher = Dispatcher(
            writing.registry,
            self.parts.clock,
            self.parts.clock,
            lambda _, __, error: self.failures.append(error),
            serialize_type,
        )
        self.peer = FakePeer()

    def serve(self, commands: Iterable[RemotingCommand]) -> list[RemotingCommand]:
        """Returns the answers to the commands of one read; see `answers` for later ones."""
        self.dispatcher.serve(self.peer, list(commands))
        return self.answers()

    def receive(self, data: bytes) -> list[RemotingCommand]:
        """Returns the answers to the frames of one read; see `answers` for later ones."""
        self.dispatcher.serve(self.peer, self.connection.receive(data))
        assert self.connection.error is None
        return self.answers()

    def answers(self) -> list[RemotingCommand]:
        """Returns answers that have come since they were last asked for."""
        decoder = FrameDecoder()
        found = decoder.receive(b"".join(map(bytes, self.peer.written)))
        assert decoder.error is None
        self.peer.written.clear()
        return found

    def stored(self) -> list[MessageExt]:
        """Returns all messages in the log, in order."""
        store, found = self.parts.store, []
        offset = store.min_physical_offset
        while offset < store.max_physical_offset:
            record = store.message_at(offset)
            if record is None:  # the rest of a file is blank
                size = store.config.mapped_file_size_commit_log
                offset = (offset // size + 1) * size
                continue
            message, end = decode_message(record, decompress_body=False)
            found.append(message)
            offset += end
        return found

    def flush(self) -> FlushJob:
        """Begins to make the log durable; see Flush."""
        job = self.parts.store.flush.begin()
        assert job is not None
        return job

    def close(self) -> None:
        """Closes the store."""
        self.parts.store.stop(self.parts.now_ms)
