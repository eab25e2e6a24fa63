# SPDX-License-Identifier: Apache-2.0
"""How far each group has consumed each queue, consumerOffset.json.

Counterpart of ConsumerOffsetManager. A commit is taken as it comes, forwards or backwards, except
while a reset waits to be told to the group's next pull.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txrocketmq.broker.json_file import JsonFile
from txrocketmq.remoting.protocol.body.route import DataVersion

NOT_FOUND = -1
_SEPARATOR = "@"


class ConsumerOffsets:
    """Offsets by topic, group and queue; each is the next message to consume."""

    def __init__(self, file: JsonFile, now_ms: Callable[[], int]) -> None:
        self._file = file
        self._now_ms = now_ms
        self._offsets: dict[str, dict[int, int]] = {}
        self._resets: dict[str, dict[int, int]] = {}
        self.data_version = DataVersion(timestamp=now_ms())

    def load(self) -> None:
        """Takes what consumerOffset.json holds, of either version; raises JsonFileError."""
        with self._file.content() as content:
            for key, queues in (content.get("offsetTable") or {}).items():
                self._offsets[key] = {int(queue): int(offset) for queue, offset in queues.items()}
            if content.get("dataVersion"):
                self.data_version = DataVersion.from_json(content["dataVersion"])

    def changes(self) -> Callable[[], None] | None:
        """What writes consumerOffset.json, in any thread; None when nothing changed since."""
        if not self._file.is_stale:
            return None
        self.data_version = self.data_version.next(self._now_ms())
        return self._file.saving(self.table())

    def table(self) -> dict[str, Any]:
        """The table as it is saved, and as GET_ALL_CONSUMER_OFFSET sends it."""
        return {
            "dataVersion": self.data_version.to_json(),
            "offsetTable": {key: dict(self._offsets[key]) for key in sorted(self._offsets)},
        }

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """The committed offset, or a pending reset's; NOT_FOUND without one."""
        key = topic + _SEPARATOR + group
        reset = self._resets.get(key)
        if reset is not None and queue_id in reset:
            return reset[queue_id]
        return self._offsets.get(key, {}).get(queue_id, NOT_FOUND)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Takes a group's offset; ignored while a reset of the queue is pending."""
        key = topic + _SEPARATOR + group
        if queue_id in self._resets.get(key, ()):
            return
        self._file.is_stale = True
        queues = self._offsets.get(key)
        if queues is None:
            self._offsets[key] = {queue_id: offset}
        else:
            queues[queue_id] = offset

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Sets an offset that the group's next pull of the queue is told."""
        pending = self._resets.setdefault(topic + _SEPARATOR + group, {})
        pending.pop(queue_id, None)
        self.commit(group, topic, queue_id, offset)
        pending[queue_id] = offset

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """The pending reset of a queue, which is done with it."""
        if not self._resets:
            return None
        key = topic + _SEPARATOR + group
        queues = self._resets.get(key)
        if queues is None:
            return None
        offset = queues.pop(queue_id, None)
        if not queues:
            del self._resets[key]
        return offset

    def of(self, group: str, topic: str) -> dict[int, int]:
        """Offsets of all queues of a topic."""
        return dict(self._offsets.get(topic + _SEPARATOR + group, {}))

    def topics_of(self, group: str) -> set[str]:
        """Topics a group has offsets of."""
        return {t for t, _, g in map(_split, self._offsets) if g == group}

    def groups_of(self, topic: str) -> set[str]:
        """Groups that have offsets of a topic."""
        return {g for t, _, g in map(_split, self._offsets) if t == topic}

    def clone(self, source: str, target: str, topic: str) -> None:
        """Gives a group the offsets another has of a topic (cloneOffset)."""
        self._offsets[topic + _SEPARATOR + target] = self.of(source, topic)
        self._file.is_stale = True

    def remove_group(self, group: str) -> None:
        """Forgets all offsets of a group."""
        self._remove(lambda _, its: its == group)

    def remove_topic(self, topic: str) -> None:
        """Forgets all offsets of a topic."""
        self._remove(lambda its, _: its == topic)

    def _remove(self, doomed: Callable[[str, str], bool]) -> None:
        for table in (self._offsets, self._resets):
            for key in list(table):
                topic, _, group = _split(key)
                if doomed(topic, group):
                    del table[key]
                    self._file.is_stale = True


def _split(key: str) -> tuple[str, str, str]:
    return key.partition(_SEPARATOR)
