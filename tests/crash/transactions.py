# SPDX-License-Identifier: Apache-2.0
"""A producer of transactions over raw frames, and what a broker that is killed owes it.

What becomes of a transaction follows from the number of its message, so every process of the same
producer answers the broker's questions alike. Some transactions are ended at once, others only when
the broker asks. The usual rule holds: the broker serves what it has acknowledged, and nothing else.
A commit is acknowledged by the answer to it. A half message is acknowledged, too: in the end the
broker asks for it, and after that it is either served or never.
"""

from __future__ import annotations

import time
from random import Random
from typing import Final

from tests.crash.judge import RuleBroken
from tests.crash.ledger import Ledger
from tests.crash.wire import WireStore
from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.message.ids import decode_message_id
from txrocketmq.remoting.message.message import decode_message, decode_messages
from txrocketmq.remoting.protocol import heartbeat, send, transaction
from txrocketmq.remoting.protocol.body.heartbeat import HeartbeatData, ProducerData
from txrocketmq.remoting.protocol.heartbeat import HeartbeatRequestHeader
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader, SendMessageResponseHeader
from txrocketmq.remoting.protocol.transaction import (
    CheckTransactionStateRequestHeader,
    EndTransactionRequestHeader,
)

GROUP: Final = "transactions"
TOPIC: Final = "T"
COMMIT: Final = 8
ROLLBACK: Final = 12


class Decisions:
    """The decision on each message, and what the broker has acknowledged."""

    def __init__(self, seed: int, ledger: Ledger) -> None:
        self.ledger = ledger
        self._seed = seed
        self.prepared: set[int] = set()
        """Numbers whose half messages are acknowledged."""
        self.committed: set[int] = set()
        """Numbers whose commits are acknowledged."""
        self.prepared_ends: dict[int, int] = {}
        """Where the records of half messages end in the log, if that is known."""
        self.committed_ends: dict[int, int] = {}
        """Where the log ended when messages were committed, if that is known."""

    def lose_power(self, durable_offset: int) -> None:
        """Forgets acknowledgements of what was not durable."""
        for numbers, ends in (
            (self.prepared, self.prepared_ends),
            (self.committed, self.committed_ends),
        ):
            lost = {number for number in numbers if ends[number] > durable_offset}
            numbers.difference_update(lost)
            for number in lost:
                del ends[number]

    def end_of(self, number: int) -> int:
        return Random(f"{self._seed} {number}").choice((COMMIT, ROLLBACK))

    def is_ended_at_once(self, number: int) -> bool:
        return Random(f"{number} {self._seed}").random() < 0.7

    def judge(self, served: list[tuple[int, bytes]], *, is_settled: bool = False) -> None:
        """Raises RuleBroken; with `is_settled` each half message must have been ended."""
        numbers = {number for number, _ in served}
        expected = self.committed
        if is_settled:
            expected = {each for each in self.prepared if self.end_of(each) == COMMIT}
        lost = expected - numbers
        wrong = {number for number in numbers if self.end_of(number) != COMMIT}
        for number, body in served:
            if number >= self.ledger.next_number or body != self.message(number).body:
                wrong.add(number)
        if lost or wrong:
            raise RuleBroken(f"lost {sorted(lost)}, wrong {sorted(wrong)}", len(lost), len(wrong))

    def message(self, number: int) -> PutMessage:
        return self.ledger.shape.message(number, 0)


class TransactionWire(WireStore):
    """The producer: a WireStore with messages that are sent in transactions."""

    def __init__(self, address: str, decisions: Decisions) -> None:
        super().__init__(address)
        self._decisions = decisions
        self._halves: dict[int, int] = {}
        """The number of each half message that was sent, by opaque."""
        self._ends: dict[int, int] = {}
        """The number of each message whose end was sent, by opaque."""
        data = HeartbeatData(client_id="c", producer_data_set=[ProducerData(group_name=GROUP)])
        self._tell(heartbeat.HEART_BEAT, HeartbeatRequestHeader(), data.encode())
        self.hear()

    def begin(self) -> None:
        """Sends a half message."""
        ledger = self._decisions.ledger
        ((number, message),) = ledger.draw(1, 0).items()
        text = message.properties.decode() + f"TRAN_MSG\x01true\x02PGROUP\x01{GROUP}\x02"
        header = SendMessageRequestHeader(
            producer_group=GROUP, topic=TOPIC, default_topic="TBW102", default_topic_queue_nums=1,
            queue_id=0, sys_flag=4, born_timestamp=int(time.time() * 1000), flag=0,
            properties=text,
        )  # fmt: skip
        self._halves[self._tell(send.SEND_MESSAGE_V2, header, message.body)] = number

    @property
    def is_waiting(self) -> bool:
        return bool(self._halves or self._ends)

    def hear(self) -> None:
        """Receives one answer or question, and does what follows from it."""
        command = super()._answer()
        if command.code == transaction.CHECK_TRANSACTION_STATE.code and not command.is_response:
            self._asked(command)
        elif command.opaque in self._halves:
            self._is_prepared(self._halves.pop(command.opaque), command)
        elif command.opaque in self._ends:
            number = self._ends.pop(command.opaque)
            is_commit = self._decisions.end_of(number) == COMMIT
            if is_commit and command.code == ResponseCode.SUCCESS:
                self._decisions.committed.add(number)

    def _is_prepared(self, number: int, answer: RemotingCommand) -> None:
        if answer.code != ResponseCode.SUCCESS:
            return
        self._decisions.prepared.add(number)
        if self._decisions.is_ended_at_once(number):
            told = SendMessageResponseHeader.decode(answer.ext_fields)
            offset = decode_message_id(told.msg_id).commit_log_offset
            self._end(number, told.queue_offset, offset)

    def _asked(self, question: RemotingCommand) -> None:
        header = CheckTransactionStateRequestHeader.decode(question.ext_fields)
        number = self._decisions.ledger.number_of(decode_message(question.body)[0].body)
        assert number is not None
        self._end(number, header.tran_state_table_offset, header.commit_log_offset, asked=True)

    def _end(self, number: int, queue_offset: int, log_offset: int, *, asked: bool = False) -> None:
        end = self._decisions.end_of(number)
        header = EndTransactionRequestHeader(
            producer_group=GROUP, tran_state_table_offset=queue_offset,
            commit_log_offset=log_offset, commit_or_rollback=end, msg_id=str(number),
            from_transaction_check=asked,
        )  # fmt: skip
        self._ends[self._tell(transaction.END_TRANSACTION, header)] = number

    def _answer(self) -> RemotingCommand:
        """Returns the answer to a request of a judge; answers questions of the broker meanwhile."""
        wanted = self._opaque
        while True:
            command = super()._answer()
            if command.is_response and command.opaque == wanted:
                return command
            self._answers.appendleft(command)
            self.hear()

    def served(self) -> list[tuple[int, bytes]]:
        """Returns what consumers see: numbers and bodies."""
        found: list[tuple[int, bytes]] = []
        offset = self.min_offset(TOPIC, 0)
        while offset < self.max_offset(TOPIC, 0):
            got = self.get(TOPIC, 0, offset, 32, 1 << 20)
            for buffer in got.buffers:
                for message in decode_messages(buffer):
                    number = self._decisions.ledger.number_of(message.body)
                    found.append((-1 if number is None else number, message.body))
            assert got.next_begin_offset > offset
            offset = got.next_begin_offset
        return found
