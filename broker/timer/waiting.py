# SPDX-License-Identifier: Apache-2.0
"""What a record of the timer topic says: its time, its topic, and what is to be done with it.

Java: TimerMessageStore.enqueue, doEnqueue.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message import record as records
from txrocketmq.remoting.message.message import record_properties
from txrocketmq.remoting.message.properties import pick_properties
from txrocketmq.remoting.packing import fixed

_NAMES: Final = (
    names.TIMER_OUT_MS, names.REAL_TOPIC, names.UNIQ_KEY, names.TIMER_DEL_UNIQKEY,
)  # fmt: skip
_BORN: Final = fixed(records.RECORD_FIXED).codec_of("born_timestamp")
_BORN_AT: Final = fixed(records.RECORD_FIXED).offset_of("born_timestamp")
"""Before the hosts, so all forms of a record have it there."""
_MAX_DIGITS: Final = 18
"""So many digits are surely a long."""


class Waiting(NamedTuple):
    """A waiting message; a text that is missing is empty."""

    out_ms: int
    """When it is due; 0 when it does not say, as for what was sent to the topic by hand."""
    real_topic: str
    uniq_key: str
    takes_back: str
    """The key of the message that this one takes back."""

    def delete_key(self, *, with_topic: bool) -> str:
        """What takes this message back (TimerMessageStore.buildDeleteKey)."""
        return f"{self.real_topic}+{self.uniq_key}" if with_topic else self.uniq_key


def waiting_of(record: memoryview) -> Waiting:
    """What a record says."""
    found = pick_properties(record_properties(record), _NAMES)
    out_ms = found.get(names.TIMER_OUT_MS, "")
    is_time = out_ms.isascii() and out_ms.isdigit() and len(out_ms) <= _MAX_DIGITS
    return Waiting(
        int(out_ms) if is_time else 0,
        found.get(names.REAL_TOPIC, ""),
        found.get(names.UNIQ_KEY, ""),
        found.get(names.TIMER_DEL_UNIQKEY, ""),
    )


def born_ms(record: memoryview) -> int:
    """When a message was sent, by the clock of its producer."""
    return int(_BORN.unpack_from(record, _BORN_AT)[0])
