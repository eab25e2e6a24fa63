# SPDX-License-Identifier: Apache-2.0
"""How far each delay level is delivered: delayOffset.json.

Only what is durable is saved (progress.py). Java: the offset table of ScheduleMessageService.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.work.config_table import VersionedTable, no_listeners
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.progress import DurableProgress
from txrocketmq.broker.work.saving import SOON_MS
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.serialize.json import encode_pretty


class DelayOffsets(VersionedTable[dict[int, int]]):
    """By level: the offset of the next message to deliver."""

    def __init__(self, file: JsonFile, now_ms: Callable[[], int], store: MessageStore) -> None:
        super().__init__(file, now_ms)
        self._store = store
        self._offsets: dict[int, int] = {}
        self._durable: dict[int, int] = {}
        """The progress up to which everything delivered is durable; only this is saved."""
        self._awaited = DurableProgress[dict[int, int]](store)
        """Progress by level that becomes durable with the log."""
        self._want_from_ms = 0
        """The steady time from which another sync may be wanted."""
        self.on_wanted: list[Callable[[], object]] = []
        """Called when a sync of the log is wanted, since something was delivered."""

    def get(self, level: int) -> int | None:
        """Returns the offset of a level; None if it was never used."""
        return self._offsets.get(level)

    def set(self, level: int, offset: int) -> None:
        """Notes how far a level is delivered."""
        self._offsets[level] = offset

    def decode(self, content: Mapping[str, Any]) -> dict[int, int]:
        """Reads the offsets by level."""
        offsets = (content.get("offsetTable") or {}).items()
        return {int(level): int(offset) for level, offset in offsets}

    def _hold(self, held: dict[int, int]) -> Steps[None]:
        self._offsets, self._durable = held, dict(held)
        self._awaited.forget()
        return no_listeners()

    def correct(self) -> None:
        """Takes back progress beyond the end of a level; to be called before messages come.

        A crash may have cost the log its last messages, but not this file (correctDelayOffset).
        """
        for level, offset in self._offsets.items():
            self._offsets[level] = min(offset, self._store.max_offset(SCHEDULE_TOPIC, level - 1))
        self._durable = dict(self._offsets)

    def _snapshot(self) -> Callable[[], bytes]:
        table = self._table(self._durable)
        return lambda: encode_pretty(table)

    def settle(self) -> None:
        """Notes for delayOffset.json which progress is durable by now."""
        durable = self._awaited.latest(lambda: dict(self._offsets))
        if durable is not None:
            self._file.is_stale |= durable != self._durable
            self._durable = durable

    def save_soon(self, steady_ms: int) -> None:
        """Has progress made durable and written, a few times a second at most."""
        self.settle()
        self.saving.begin_soon(steady_ms, self._store.config.flush_delay_offset_interval)
        if self._offsets != self._durable and steady_ms >= self._want_from_ms:
            self._want_from_ms = steady_ms + SOON_MS
            for heard in self.on_wanted:
                heard()

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
