# SPDX-License-Identifier: Apache-2.0
"""Delay levels: messages wait in SCHEDULE_TOPIC_XXXX, a queue for each level, until they are due.

A queue unit of that topic holds the time of delivery in place of a tag hash, so nothing is read
from the log before its time. `tick` delivers what is due, at most MAX_BATCH a level and turn.
Progress is the offset of each level, in delayOffset.json; after a crash what was delivered since it
was written is delivered again, as by the original. A message that the store refuses holds up its
level, as in the original, until the store takes it. Counterpart of ScheduleMessageService.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from txrocketmq.broker.inner_message import InnerMessage, packed
from txrocketmq.broker.json_file import JsonFile
from txrocketmq.broker.store.message_store import MessageStore, PutStatus
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import MessageDecodeError, MessageExt, decode_message
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.protocol.body.route import DataVersion

DEFAULT_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
MAX_BATCH = 512
"""Messages of a level delivered in one turn, so that one level does not hold up the broker."""
RETRY_MS = 10_000
"""Pause of a level after a delivery that failed (DELAY_FOR_A_PERIOD)."""
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DelayLevels:
    """The delays of the levels, 1 to `max_level` (messageDelayLevel)."""

    def __init__(self, text: str = DEFAULT_LEVELS) -> None:
        self._delays_ms: list[int] = []
        for word in text.split():
            match = re.fullmatch(r"(\d{1,12})([smhd])", word)
            if match is None:
                raise ValueError(
                    f'messageDelayLevel: "{word}" is no delay; write numbers with s, m, h or d'
                )
            self._delays_ms.append(int(match.group(1)) * _UNIT_MS[match.group(2)])
        if not self._delays_ms:
            raise ValueError("messageDelayLevel names no level")

    @property
    def max_level(self) -> int:
        return len(self._delays_ms)

    def clamp(self, level: int) -> int:
        """The level that is meant: too high means the highest."""
        return min(level, self.max_level)

    def delay_ms(self, level: int) -> int:
        """How long a message of a level waits."""
        return self._delays_ms[level - 1]

    def deliver_ms(self, level: int, stored_ms: int) -> int:
        """When a message that is stored now is due."""
        return stored_ms + self._delays_ms[level - 1]


class Schedule:
    """Delivers due messages; `tick` wants to be called every 100 ms."""

    def __init__(
        self, levels: DelayLevels, store: MessageStore, file: JsonFile, now_ms: int
    ) -> None:
        self.levels = levels
        self._store = store
        self._file = file
        self._offsets: dict[int, int] = {}
        self._paused_until_ms: dict[int, int] = {}
        """Of the levels that the store refused a message of, and has taken none since."""
        self.on_refused: Callable[[int, str, str], None] = lambda *_: None
        """Called with level, topic and status when a level stands still for a while."""
        self._durable: dict[int, int] = {}
        """Progress of which all that was delivered is durable: that alone is saved."""
        self._awaited: tuple[int, dict[int, int]] | None = None
        """Progress that will be, once the log is durable up to an offset."""
        self.data_version = DataVersion(timestamp=now_ms)

    def load(self) -> None:
        """Takes what delayOffset.json holds; raises JsonFileError."""
        with self._file.content() as content:
            for level, offset in (content.get("offsetTable") or {}).items():
                self._offsets[int(level)] = int(offset)
            self._durable = dict(self._offsets)
            if content.get("dataVersion"):
                self.data_version = DataVersion.from_json(content["dataVersion"])

    def correct(self) -> None:
        """Takes back progress beyond the end of a level; to be called before messages come.

        A crash may have cost the log its last messages, but not the file (correctDelayOffset).
        """
        for level, offset in self._offsets.items():
            self._offsets[level] = min(offset, self._store.max_offset(SCHEDULE_TOPIC, level - 1))
        self._durable = dict(self._offsets)

    def changes(self, now_ms: int) -> Callable[[], None] | None:
        """What writes delayOffset.json, in any thread; None when nothing changed since."""
        self._look_what_is_durable()
        if not self._file.is_stale:
            return None
        self.data_version = self.data_version.next(now_ms)
        return self._file.saving(self._table(self._durable))

    def _look_what_is_durable(self) -> None:
        flushed, end = self._store.flush.flushed_offset, self._store.max_physical_offset
        if self._awaited is None or flushed >= end:
            self._awaited = end, dict(self._offsets)
        if flushed >= self._awaited[0]:
            self._file.is_stale |= self._awaited[1] != self._durable
            self._durable, self._awaited = self._awaited[1], None

    def table(self) -> dict[str, Any]:
        """The table as GET_ALL_DELAY_OFFSET sends it."""
        return self._table(self._offsets)

    def _table(self, offsets: dict[int, int]) -> dict[str, Any]:
        return {
            "dataVersion": self.data_version.to_json(),
            "offsetTable": dict(sorted(offsets.items())),
        }

    def progress(self) -> dict[int, tuple[int, int]]:
        """For each level that was used: offset delivered up to, and the end of its queue."""
        return {
            level: (offset, self._store.max_offset(SCHEDULE_TOPIC, level - 1))
            for level, offset in sorted(self._offsets.items())
        }

    def tick(self, now_ms: int) -> int:
        """Delivers what is due at `now_ms`; returns how many messages that were."""
        delivered = 0
        for level in range(1, self.levels.max_level + 1):
            if self._paused_until_ms.get(level, 0) <= now_ms:
                delivered += self._deliver_level(level, now_ms)
        self._look_what_is_durable()
        return delivered

    def _deliver_level(self, level: int, now_ms: int) -> int:
        queue_id = level - 1
        top = self._store.max_offset(SCHEDULE_TOPIC, queue_id)
        offset = self._offsets.get(level, 0)
        if offset == top:
            return 0
        offset = min(max(offset, self._store.min_offset(SCHEDULE_TOPIC, queue_id)), top)
        latest_ms = now_ms + self.levels.delay_ms(level)
        due: list[InnerMessage] = []
        offsets: list[int] = []
        # After a refusal one by one, so that nothing is delivered twice behind what is refused.
        count = 1 if level in self._paused_until_ms else MAX_BATCH
        for physical_offset, size, deliver_ms in self._store.queue_units(
            SCHEDULE_TOPIC, queue_id, offset, count
        ):
            if deliver_ms > now_ms and deliver_ms <= latest_ms:
                break  # a time beyond the level's delay is a clock that was set back: due now
            message = self._message(physical_offset, size)
            if message is not None:
                due.append(message)
                offsets.append(offset)
            offset += 1
        delivered = self._put(level, due, now_ms) if due else 0
        if delivered < len(due):
            offset = offsets[delivered]
        self._offsets[level] = offset
        return delivered

    def _put(self, level: int, due: list[InnerMessage], now_ms: int) -> int:
        """Delivers; how many from the first on. What is refused is tried again after a pause."""
        appended = self._store.put([message.to_put() for message in due], now_ms)
        for delivered, (message, one) in enumerate(zip(due, appended, strict=True)):
            if one.status is not PutStatus.PUT_OK:
                self._paused_until_ms[level] = now_ms + RETRY_MS
                self.on_refused(level, message.topic, one.status.name)
                return delivered
        self._paused_until_ms.pop(level, None)
        return len(due)

    def _message(self, physical_offset: int, size: int) -> InnerMessage | None:
        """The message as it is to be delivered; None when it cannot be (it is skipped)."""
        record = self._store.message_at(physical_offset, size)
        if record is None:
            return None
        try:
            stored, _ = decode_message(record, decompress_body=False)
        except MessageDecodeError:
            return None
        return restored(stored)


def restored(stored: MessageExt) -> InnerMessage | None:
    """A waiting message for the queue it was sent to; None when it does not say which.

    It keeps all its properties, DELAY and those of its destination too, as the original's do.
    """
    topic = stored.properties.get(names.REAL_TOPIC)
    queue_id = stored.properties.get(names.REAL_QID, "")
    if not topic or not (queue_id.isascii() and queue_id.isdigit()):
        return None
    return InnerMessage.of_stored(stored, topic, int(queue_id), packed(stored.store_host))
