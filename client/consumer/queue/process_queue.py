# SPDX-License-Identifier: Apache-2.0
"""Messages of a queue that were pulled and are not consumed yet.

Messages are consumed in any order, but an offset says that everything before it is consumed.
Therefore the offset of the oldest message that is still here is committed, or the one after the
newest that ever was. In order, messages are taken from the front instead; what was taken is
committed, or put back, as a whole. A queue that the group takes away is `dropped`: whoever still
consumes its messages does so in vain, and commits nothing.

Java: ProcessQueue.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.protocol.body.client import ProcessQueueInfo

PULL_MAX_IDLE_MS = 120_000
"""How long without a pull until a queue is begun anew: its pull is lost (pullMaxIdleTime)."""
LOCK_MAX_LIVE_MS = 30_000
"""For how long a lock counts that the broker does not confirm again (lockMaxLiveTime)."""
_MEBIBYTE = 1024 * 1024


class ProcessQueue:
    """The messages of a queue, with `size_bytes` of their bodies; times are of the steady clock.

    `locked` and `last_lock_ms` say whether the broker has locked the queue for this client, and
    when it last said so. `consuming` is set while the queue is consumed in order, and `listening`
    while the listener has messages of it.
    """

    def __init__(self, queue: MessageQueue, steady_ms: int) -> None:
        self.queue = queue
        self.dropped = False
        self.locked = False
        self.consuming = False
        self.listening = False
        self.last_lock_ms = steady_ms
        self.last_pull_ms = steady_ms
        self.last_consume_ms = steady_ms
        self.try_unlock_times = 0
        self.size_bytes = 0
        self._messages: OrderedDict[int, MessageExt] = OrderedDict()
        self._taken: dict[int, MessageExt] = {}
        """The messages that are being consumed in order (consumingMsgOrderlyTreeMap)."""
        self._begun_ms: dict[int, int] = {}
        """When messages were given to the listener, by offset."""
        self._next_offset = -1

    @property
    def count(self) -> int:
        """The number of messages at hand, including those that were taken."""
        return len(self._messages) + len(self._taken)

    @property
    def waiting(self) -> int:
        """The number of messages that were not taken."""
        return len(self._messages)

    @property
    def span(self) -> int:
        """How far apart the offsets of the oldest and the newest untaken message are."""
        if not self._messages:
            return 0
        return next(reversed(self._messages)) - next(iter(self._messages))

    def put(self, messages: Iterable[MessageExt]) -> list[MessageExt]:
        """Adds messages that were pulled, in their order; returns those that are new."""
        new = []
        for message in messages:
            offset = message.queue_offset
            if offset < self._next_offset:
                if offset in self._messages or offset in self._taken:
                    continue
                self._insert(offset, message)
            else:
                self._messages[offset] = message
                self._next_offset = offset + 1
            self.size_bytes += len(message.body)
            new.append(message)
        return new

    def remove(self, messages: Sequence[MessageExt]) -> int:
        """Removes consumed messages; returns the offset to commit, or -1 if there is none."""
        for message in messages:
            found = self._messages.pop(message.queue_offset, None)
            if found is not None:
                self.size_bytes -= len(found.body)
            self._begun_ms.pop(message.queue_offset, None)
        if self._messages:
            return next(iter(self._messages))
        return self._next_offset

    def clear(self) -> None:
        """Forgets all messages, because the group continues elsewhere in the queue."""
        self._messages.clear()
        self._taken.clear()
        self._begun_ms.clear()
        self.size_bytes = 0
        self._next_offset = -1

    # --------------------------------------------------------------- in order

    def take(self, count: int) -> list[MessageExt]:
        """Takes the oldest messages, at most `count`, until `commit`, `rollback` or `put_back`."""
        taken: list[MessageExt] = []
        while self._messages and len(taken) < count:
            offset, message = self._messages.popitem(last=False)
            self._taken[offset] = message
            taken.append(message)
        return taken

    def commit(self) -> int:
        """Removes what was taken; returns the offset to commit, or -1 if nothing was taken."""
        if not self._taken:
            return -1
        offset = max(self._taken) + 1
        for message in self._taken.values():
            self.size_bytes -= len(message.body)
        self._taken.clear()
        return offset

    def rollback(self) -> None:
        """Puts back all messages that were taken."""
        self.put_back(list(self._taken.values()))

    def put_back(self, messages: Sequence[MessageExt]) -> None:
        """Puts back some of the messages that were taken (makeMessageToConsumeAgain)."""
        for message in sorted(messages, key=lambda each: each.queue_offset, reverse=True):
            offset = message.queue_offset
            if self._taken.pop(offset, None) is None:
                continue
            is_first = not self._messages or offset < next(iter(self._messages))
            self._messages[offset] = message
            if is_first:
                self._messages.move_to_end(offset, last=False)
            else:
                self._sort()

    def is_locked(self, steady_ms: int) -> bool:
        """Whether this client can rely on its lock of the queue."""
        return self.locked and steady_ms - self.last_lock_ms <= LOCK_MAX_LIVE_MS

    # ------------------------------------------------------------------ times

    def begin(self, messages: Iterable[MessageExt], steady_ms: int) -> bool:
        """Notes that the listener gets these messages now; may be called in its thread.

        Returns False, and notes nothing, if they no longer belong to this client.
        """
        if self.dropped:
            return False
        self.last_consume_ms = steady_ms
        for message in messages:
            self._begun_ms[message.queue_offset] = steady_ms
        return True

    def begun_before(self, steady_ms: int, count: int) -> list[MessageExt]:
        """Returns up to `count` oldest messages that the listener got before `steady_ms`."""
        found: list[MessageExt] = []
        for offset, message in self._messages.items():
            if len(found) == count or self._begun_ms.get(offset, steady_ms) >= steady_ms:
                break
            found.append(message)
        return found

    def is_pull_expired(self, steady_ms: int) -> bool:
        """Whether the pull of the queue seems to have been lost."""
        return steady_ms - self.last_pull_ms > PULL_MAX_IDLE_MS

    def describe(self, commit_offset: int, ahead_ms: int) -> ProcessQueueInfo:
        """Its description for administrators; `ahead_ms` is how far the wall clock is ahead."""
        return ProcessQueueInfo(
            commit_offset=commit_offset,
            cached_msg_min_offset=next(iter(self._messages), 0),
            cached_msg_max_offset=next(reversed(self._messages), 0),
            cached_msg_count=len(self._messages),
            cached_msg_size_in_mib=self.size_bytes // _MEBIBYTE,
            transaction_msg_min_offset=min(self._taken, default=0),
            transaction_msg_max_offset=max(self._taken, default=0),
            transaction_msg_count=len(self._taken),
            locked=self.locked,
            try_unlock_times=self.try_unlock_times,
            last_lock_timestamp=self.last_lock_ms + ahead_ms,
            droped=self.dropped,
            last_pull_timestamp=self.last_pull_ms + ahead_ms,
            last_consume_timestamp=self.last_consume_ms + ahead_ms,
        )

    def _insert(self, offset: int, message: MessageExt) -> None:
        """Adds a message whose offset is not the newest, for example after a reset."""
        self._messages[offset] = message
        self._sort()

    def _sort(self) -> None:
        for each in sorted(self._messages):
            self._messages.move_to_end(each)
