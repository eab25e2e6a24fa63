# SPDX-License-Identifier: Apache-2.0
"""What was found when a store was opened, in numbers and in sentences for its operator.

Java: has no counterpart; the original logs each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Recovered:
    """The results of opening a store; offsets are log offsets in bytes."""

    was_closed: bool
    """Whether the last user closed the store in order."""
    min_offset: int = 0
    max_offset: int = 0
    checked_messages: int = 0
    dispatched_messages: int = 0
    """Messages that a queue lacked."""
    indexed_messages: int = 0
    """Messages that were read for the index."""
    damaged_messages: int = 0
    """Messages in damaged parts of the log that queues refer to."""
    damaged_from: int | None = None
    """Where the first damaged part of the log begins that was found; None without any."""
    lost_messages: int = 0
    """Messages behind the end of the log that queues pointed to."""
    unknown_messages: int = 0
    """Messages that got no queue, since their topics are unknown."""
    cut_at: int | None = None
    """Where the log was cut because that had been ordered; None if it had not."""
    was_cut: bool = False
    """Whether there was more in the log behind the last sound record."""
    last_store_timestamp_ms: int = 0
    """The store timestamp of the newest message, in ms; 0 when there is none."""
    warnings: list[str] = field(default_factory=list)
    """Whole sentences that the operator should see."""

    def __str__(self) -> str:
        if self.max_offset == 0 and not self.warnings:
            return "The store is new, or empty."
        how = "was closed in order" if self.was_closed else "was not closed in order"
        text = (
            f"The store {how}. Its log runs from {self.min_offset} to {self.max_offset};"
            f" {messages(self.checked_messages)} of it"
            f" {'was' if self.checked_messages == 1 else 'were'} checked."
        )
        if self.dispatched_messages:
            verb = "was" if self.dispatched_messages == 1 else "were"
            text += f" {messages(self.dispatched_messages)} {verb} put into their queues again."
        if self.was_cut:
            text += f" What was damaged from {self.max_offset} on was cut off."
        return text


def messages(count: int) -> str:
    """A number of messages in words."""
    return "1 message" if count == 1 else f"{count:,} messages"
