# SPDX-License-Identifier: Apache-2.0
"""A producer of timer messages over raw frames, and what a broker that is killed owes it.

How long a message waits follows from its number. The rule: what the broker has acknowledged is
delivered in the end, unchanged, perhaps late or twice, but never before its time.
"""

from __future__ import annotations

import time
from random import Random
from typing import Final

from tests.crash.judge import RuleBroken
from tests.crash.ledger import Ledger
from tests.crash.wire import WireStore
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import MessageExt, decode_messages
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader

TOPIC: Final = "T"
MAX_DELAY_MS: Final = 4_000


class Promises:
    """What was sent, and what the broker has acknowledged."""

    def __init__(self, seed: int, ledger: Ledger) -> None:
        self.ledger = ledger
        self._seed = seed
        self.acknowledged: set[int] = set()

    def delay_ms(self, number: int) -> int:
        """Returns how long a message waits."""
        return Random(f"{self._seed} {number}").randrange(MAX_DELAY_MS)

    def judge(self, served: list[MessageExt], *, is_settled: bool = False) -> None:
        """Raises RuleBroken; with `is_settled` all acknowledged messages must have come."""
        numbers: set[int] = set()
        wrong: set[int] = set()
        for message in served:
            number = self.ledger.number_of(message.body)
            if number is None or number >= self.ledger.next_number:
                wrong.add(-1)
                continue
            numbers.add(number)
            is_early = message.store_timestamp < message.born_timestamp + self.delay_ms(number)
            if is_early or message.body != self.ledger.shape.message(number, 0).body:
                wrong.add(number)
        lost = self.acknowledged - numbers if is_settled else set()
        if lost or wrong:
            raise RuleBroken(f"lost {sorted(lost)}, wrong {sorted(wrong)}", len(lost), len(wrong))


class TimerWire(WireStore):
    """The producer: a WireStore with messages that have a time of their own."""

    def __init__(self, address: str, promises: Promises) -> None:
        super().__init__(address)
        self._promises = promises
        self._waiting: dict[int, int] = {}
        """The number of each message that was sent, by opaque."""

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def begin(self) -> None:
        """Sends a message."""
        ((number, message),) = self._promises.ledger.draw(1, 0).items()
        delay_ms = self._promises.delay_ms(number)
        text = message.properties.decode() + f"TIMER_DELAY_MS\x01{delay_ms}\x02"
        header = SendMessageRequestHeader(
            producer_group="p", topic=TOPIC, default_topic="TBW102", default_topic_queue_nums=1,
            queue_id=0, sys_flag=0, born_timestamp=int(time.time() * 1000), flag=0,
            properties=text,
        )  # fmt: skip
        self._waiting[self._tell(send.SEND_MESSAGE_V2, header, message.body)] = number

    def hear(self) -> None:
        """Receives one answer."""
        answer = self._answer()
        number = self._waiting.pop(answer.opaque)
        if answer.code == ResponseCode.SUCCESS:
            self._promises.acknowledged.add(number)

    def served(self) -> list[MessageExt]:
        """Returns what consumers see."""
        found: list[MessageExt] = []
        offset = self.min_offset(TOPIC, 0)
        while offset < self.max_offset(TOPIC, 0):
            got = self.get(TOPIC, 0, offset, 32, 1 << 20)
            for buffer in got.buffers:
                found += decode_messages(buffer)
            assert got.next_begin_offset > offset
            offset = got.next_begin_offset
        return found
