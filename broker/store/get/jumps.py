# SPDX-License-Identifier: Apache-2.0
"""Jumps: readers that had to go on behind messages which the log has lost.

The log loses its oldest files when they expire, when its disk is full, or because somebody removes
them, whoever still wanted to read them. Every reader of a queue that finds the queue beginning
later than its own offset says so here: groups that pull and pop, delay levels, timers, the check of
transactions, the revival of popped messages. Each jump is reported once, and the messages are
counted for each kind of reader. The original continues without a word.

A group that is new to a queue begins where the queue begins, and misses nothing. The broker's own
readers, and a group's reader of its retry topic, are never new: all that is in their queues is for
them. Without a saved progress they begin at the first message that there ever was.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from txrocketmq.broker.store.formats.reports import Reports

DELAYS: Final = "delay_level"
HALF_MESSAGES: Final = "half_messages"
OP_MESSAGES: Final = "op_messages"
REVIVAL: Final = "pop_revival"
POPPED: Final = "popped"
GROUP: Final = "group"
TIMERS: Final = "timers"
KINDS: Final = (DELAYS, GROUP, HALF_MESSAGES, OP_MESSAGES, POPPED, REVIVAL, TIMERS)


class Jump(NamedTuple):
    """A reader of one of these kinds went from one offset of a queue to another.

    `number` is how many messages it has not read. `group` is the consumer group, for GROUP and
    POPPED. `is_known` tells whether the progress of the reader was known; if it was not, the reader
    may have read some of the messages in a former life of the broker.
    """

    kind: str
    topic: str
    queue_id: int
    from_offset: int
    to_offset: int
    number: int
    group: str = ""
    is_known: bool = True


class Jumps(Reports[Jump]):
    """Counts and reports jumps."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: Counter[str] = Counter()
        """By kind of reader: how many messages were jumped over since the store was opened."""

    def found(self, finding: Jump) -> bool:
        """Notes a jump; returns False for one that is known already, or over nothing."""
        is_new = finding.number > 0 and super().found(finding)
        if is_new:
            self.messages[finding.kind] += finding.number
        return is_new
