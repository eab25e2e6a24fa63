# SPDX-License-Identifier: Apache-2.0
"""The ids of transactions, which say where their half messages are.

A client hands its id back when it ends a transaction, to whichever proxy it is connected with then.
The original's ids say nothing, so that only the proxy that took the message can end it, and only
for 30 seconds. Whoever makes up an id ends no other transaction by it: a broker compares the topic,
and the place, with the half message.
"""

from __future__ import annotations

from typing import NamedTuple

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.primitives.java_numbers import NumberFormatError, long


class TransactionId(NamedTuple):
    """The place of a half message: its offsets in its queue and in the log."""

    message_id: str
    broker_name: str
    queue_offset: int
    commit_log_offset: int

    def __str__(self) -> str:
        return " ".join(map(str, self))

    @classmethod
    def parse(cls, text: str) -> TransactionId:
        """Returns the id that a text means. Raises Refused."""
        try:
            message_id, broker_name, queue_offset, commit_log_offset = text.rsplit(" ", 3)
            return cls(message_id, broker_name, long(queue_offset), long(commit_log_offset))
        except (ValueError, NumberFormatError):
            raise Refused(
                Code.INVALID_TRANSACTION_ID,
                f"this is no id of a transaction that was begun here: {text!r:.100}",
            ) from None
