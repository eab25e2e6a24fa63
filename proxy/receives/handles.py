# SPDX-License-Identifier: Apache-2.0
"""The handles of received messages: those of POP, and the offset in the log behind it.

A handle that is none, or that is over, is answered INVALID_RECEIPT_HANDLE: clients then stop trying
again, as they do not after INTERNAL_SERVER_ERROR, the original's answer to what it cannot parse.

Java: ReceiptHandle of common.consumer.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.message.pop import ReceiptHandle, ReceiptHandleError, real_topic
from txrocketmq.remoting.primitives.java_numbers import NumberFormatError, long

MAX_HANDLE: Final = 1_024
MOST_DISTANCE: Final = 4_096
"""How far from the start of its pop a message may be that is acknowledged with others, since that
takes a bit for each one between; handles come from clients."""
_LEAST_WORDS: Final = 8
_LOG_OFFSET: Final = 8


class Handle(NamedTuple):
    """A handle of POP, and where in the log of its broker the message is (-1: unknown)."""

    popped: ReceiptHandle
    log_offset: int

    def __str__(self) -> str:
        return f"{self.popped} {self.log_offset}"

    @property
    def visible_ms(self) -> int:
        """The time from which on the message is visible again, of the broker's clock."""
        return self.popped.pop_time + self.popped.invisible_time

    @property
    def may_be_together(self) -> bool:
        """Whether the message can be acknowledged with others (enable_batch_ack)."""
        return 0 <= self.popped.queue_offset - self.popped.start_offset < MOST_DISTANCE

    def topic(self, topic: str, group: str) -> str:
        """Returns the topic that the message was popped from: this one, or a retry topic of it."""
        return real_topic(topic, group, self.popped.retry)

    @classmethod
    def parse(cls, text: str, now_ms: int) -> Handle:
        """Returns the handle that a text means, if it is not over. Raises Refused."""
        words = text.split(" ") if len(text) <= MAX_HANDLE else []
        if len(words) < _LEAST_WORDS:
            raise _invalid(
                f"{text!r:.100} is no receipt handle: it has {_LEAST_WORDS} words or more"
            )
        try:
            handle = cls(
                ReceiptHandle.parse(text),
                long(words[_LOG_OFFSET]) if len(words) > _LOG_OFFSET else -1,
            )
            handle.topic("", "")
        except (ReceiptHandleError, NumberFormatError) as error:
            raise _invalid(f"{text!r:.100} is no receipt handle: {error}") from None
        if handle.visible_ms <= now_ms:
            raise _invalid("receipt handle is expired")
        return handle


def _invalid(text: str) -> Refused:
    return Refused(Code.INVALID_RECEIPT_HANDLE, text)
