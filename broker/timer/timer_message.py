# SPDX-License-Identifier: Apache-2.0
"""The contents of a record of the timer topic: its time, its topic, and what to do with it.

Java: TimerMessageStore.enqueue, doEnqueue.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message import record as records
from txrocketmq.remoting.message.message import record_properties
from txrocketmq.remoting.message.properties import pick_properties
from txrocketmq.remoting.primitives.packing import fixed

_NAMES: Final = (
    names.TIMER_OUT_MS, names.REAL_TOPIC, names.UNIQ_KEY, names.TIMER_DEL_UNIQKEY,
)  # fmt: skip
_BORN: Final = fixed(records.RECORD_FIXED).codec_of("born_timestamp")
_BORN_AT: Final = fixed(records.RECORD_FIXED).offset_of("born_timestamp")
"""The offset is the same in all forms of a record, since it is before the hosts."""
_QUEUE_OFFSET: Final = fixed(records.RECORD_FIXED).codec_of("queue_offset")
_QUEUE_OFFSET_AT: Final = fixed(records.RECORD_FIXED).offset_of("queue_offset")
_MAX_DIGITS: Final = 18
"""A number of at most this many digits certainly fits into a long."""


class TimerMessage(NamedTuple):
    """A waiting message; missing texts are empty."""

    out_ms: int
    """When it is due, in ms; 0 when it does not say, as when it was sent to the topic by hand."""
    real_topic: str
    uniq_key: str
    takes_back: str
    """The key of the message that this one withdraws."""

    def delete_key(self, *, with_topic: bool) -> str:
        """The key by which this message can be withdrawn (TimerMessageStore.buildDeleteKey)."""
        return f"{self.real_topic}+{self.uniq_key}" if with_topic else self.uniq_key


def waiting_of(record: memoryview) -> TimerMessage:
    """Reads a record."""
    found = pick_properties(record_properties(record), _NAMES)
    out_ms = found.get(names.TIMER_OUT_MS, "")
    is_time = out_ms.isascii() and out_ms.isdigit() and len(out_ms) <= _MAX_DIGITS
    return TimerMessage(
        int(out_ms) if is_time else 0,
        found.get(names.REAL_TOPIC, ""),
        found.get(names.UNIQ_KEY, ""),
        found.get(names.TIMER_DEL_UNIQKEY, ""),
    )


def queue_offset(record: memoryview) -> int:
    """Where a message is in the queue of the timer topic."""
    return int(_QUEUE_OFFSET.unpack_from(record, _QUEUE_OFFSET_AT)[0])


def born_ms(record: memoryview) -> int:
    """When a message was sent, in ms by its producer's clock."""
    return int(_BORN.unpack_from(record, _BORN_AT)[0])
