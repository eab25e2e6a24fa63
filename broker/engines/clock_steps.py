# SPDX-License-Identifier: Apache-2.0
"""What a clock that is set back means for messages of a queue that were stored before.

A delayed message is due at a time of the wall clock: when it was stored, plus its delay. If that
clock is set back by an hour meanwhile, the message would wait an hour longer than it should. So for
each queue this remembers by how much the wall clock was ahead of the steady one when its messages
were stored, and from which offset on; a message is due when either clock says so. What was stored
before the process started counts as stored under the clock that it found.

The original waits; it only delivers at once what seems to be due later than its delay allows.
"""

from __future__ import annotations

from collections import deque

TOLERANCE_MS = 100
"""Differences in ms up to this are no steps, as the clocks are not read at once."""


class ClockSteps:
    """The steps of the wall clock that matter to one queue.

    `ahead_ms` is always the number of milliseconds by which the wall clock is ahead of the steady
    one.
    """

    def __init__(self) -> None:
        self._since: deque[tuple[int, int]] = deque()
        """Pairs of an offset and the `ahead_ms` at which the messages from there on were stored."""
        self.seen_offset = 0
        """Where the queue ended when it was last looked at."""

    @property
    def are_several(self) -> bool:
        """Whether messages that are waiting were stored before and after a step."""
        return len(self._since) > 1

    def is_step(self, ahead_ms: int) -> bool:
        """Whether the wall clock has been set since the last step was noted."""
        if not self._since:
            self._since.append((0, ahead_ms))
        return abs(ahead_ms - self._since[-1][1]) > TOLERANCE_MS

    def note(self, ahead_ms: int, offset: int) -> None:
        """Notes a step: messages from `offset` on are stored after the clock was set."""
        while self._since and self._since[-1][0] >= offset:  # nothing was stored under that one
            self._since.pop()
        self._since.append((offset if self._since else 0, ahead_ms))

    def set_back_ms(self, offset: int, ahead_ms: int) -> int:
        """Returns how many ms the clock was set back since the message at `offset` was stored.

        `offset` must not decrease from call to call.
        """
        since = self._since
        while len(since) > 1 and since[1][0] <= offset:
            since.popleft()
        return max(since[0][1] - ahead_ms, 0) if since else 0
