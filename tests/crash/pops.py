# SPDX-License-Identifier: Apache-2.0
"""A producer and a consumer that pops over raw frames, and what a broker that is killed owes them.

The rule: what was sent and acknowledged is handed out again and again until the consumer
acknowledges it. A crash may lose that acknowledgement, so a message may come once more. But no
message may be missing that was not acknowledged, and none may come that was never sent.
"""

from __future__ import annotations

import time
from random import Random
from typing import Final

from tests.crash.judge import RuleBroken
from tests.crash.wire import WireStore
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.message.pop import ReceiptHandle, real_topic
from txrocketmq.remoting.protocol import pop, send
from txrocketmq.remoting.protocol.pop import (
    AckMessageRequestHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader

GROUP: Final = "pops"
TOPIC: Final = "T"
QUEUES: Final = 3
BROKER: Final = "broker-a"
"""The name of the broker, which is part of handles."""
INVISIBLE_MS: Final = 3_000


class Owed:
    """What was sent, and what was acknowledged."""

    def __init__(self) -> None:
        self.next_number = 0
        self.sent: set[int] = set()
        """Numbers of messages that the broker has taken."""
        self.consumed: set[int] = set()
        """Numbers that the consumer has acknowledged, whether or not that was answered."""
        self.wrong: set[str] = set()

    def judge(self, handed_out: set[int]) -> None:
        """Raises RuleBroken for messages that did not come in the end, or that were never sent."""
        lost = self.sent - self.consumed - handed_out
        if lost or self.wrong:
            raise RuleBroken(
                f"lost {sorted(lost)}, wrong {sorted(self.wrong)}", len(lost), len(self.wrong)
            )

    def taken(self, body: bytes) -> int:
        """Returns the number of a message that was handed out."""
        text = body.decode("ascii", "replace")
        number = int(text) if text.isdigit() else -1
        if not 0 <= number < self.next_number:
            self.wrong.add(text)
        return number


class PopWire(WireStore):
    """The producer and the consumer, at one broker."""

    def __init__(self, address: str, owed: Owed, random: Random) -> None:
        super().__init__(address)
        self._owed = owed
        self._random = random

    def put(self) -> None:
        """Sends a message and waits for the answer."""
        number, self._owed.next_number = self._owed.next_number, self._owed.next_number + 1
        header = SendMessageRequestHeader(
            producer_group="p", topic=TOPIC, default_topic="TBW102",
            default_topic_queue_nums=QUEUES, queue_id=self._random.randrange(QUEUES), sys_flag=0,
            born_timestamp=1, flag=0, properties="",
        )  # fmt: skip
        self._tell(send.SEND_MESSAGE_V2, header, b"%d" % number)
        if self._answer().code == ResponseCode.SUCCESS:
            self._owed.sent.add(number)

    def pop(self, chance: float) -> set[int]:
        """Pops; returns the numbers of the messages, of which each is acknowledged at random."""
        header = PopMessageRequestHeader(
            consumer_group=GROUP, topic=TOPIC, queue_id=-1, max_msg_nums=16,
            invisible_time=INVISIBLE_MS, poll_time=0, born_time=int(time.time() * 1000),
            init_mode=0,
        )  # fmt: skip
        self._tell(pop.POP_MESSAGE, header)
        answer = self._answer()
        if answer.code != ResponseCode.SUCCESS:
            return set()
        told = PopMessageResponseHeader.decode(answer.ext_fields)
        words = [each.split(" ") for each in (told.start_offset_info or "").split(";")]
        starts = {(retry, queue_id): offset for retry, queue_id, offset in words}
        found: set[int] = set()
        for message in decode_messages(answer.body):
            number = self._owed.taken(message.body)
            found.add(number)
            handle = message.properties.get("POP_CK") or (
                f"{starts['0', str(message.queue_id)]} {told.pop_time} {told.invisible_time}"
                f" {told.revive_qid} 0 {BROKER} {message.queue_id} {message.queue_offset}"
            )
            if self._random.random() < chance:
                self._ack(number, message.queue_id, message.queue_offset, handle)
        return found

    def _ack(self, number: int, queue_id: int, offset: int, handle: str) -> None:
        retry = ReceiptHandle.parse(handle).retry
        header = AckMessageRequestHeader(
            consumer_group=GROUP, topic=real_topic(TOPIC, GROUP, retry), queue_id=queue_id,
            extra_info=handle, offset=offset,
        )  # fmt: skip
        self._owed.consumed.add(number)
        self._tell(pop.ACK_MESSAGE, header)
        answer = self._answer()
        assert answer.code == ResponseCode.SUCCESS, answer.remark
