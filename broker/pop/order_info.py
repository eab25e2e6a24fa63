# SPDX-License-Identifier: Apache-2.0
"""What groups have popped in order and not acknowledged yet: consumerOrderInfo.json.

A queue that was popped in order is closed to its group until all messages of that pop are
acknowledged, or their invisible time is over; what was not acknowledged is then popped again, and
is counted. There is one entry for each queue of a topic and group. Counterpart of
ConsumerOrderInfoManager, QueueLevelConsumerManager and QueueLevelConsumerOrderInfoLockManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, Final

from txrocketmq.broker.pop.in_flight import QueueKey
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import Steps
from txrocketmq.broker.work.config_table import ConfigTable, no_listeners
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.life import EXPIRE_MS, OFTEN_MS, Life, Tick, WalkBeat
from txrocketmq.remoting.message.pop import offset_order_count_info, order_count_info
from txrocketmq.remoting.protocol.body.base import Body, body, member
from txrocketmq.remoting.serialize.json import encode_pretty

NOT_FOUND: Final = -1
"""The acknowledged message is none of those that were popped."""
OTHER_POP: Final = -2
"""The acknowledged message belongs to an earlier pop; the queue has been popped again since."""
MAX_MESSAGES: Final = 63
"""How many messages of a pop have a bit in a long."""
_UNUSED_MS: Final = 24 * 3_600_000


@body("org.apache.rocketmq.broker.pop.orderly.QueueLevelConsumerManager$OrderInfo")
class OrderInfo(Body):
    """One pop in order. Times are in ms.

    `offsets` are the first offset, and the distances of the others from it; `acked` has a bit for
    each message. `visible` has the times of messages that were given a time of their own, `counts`
    tells how often messages were popped before.
    """

    attempt_id: str | None = member(wire="a", default=None)
    acked: int = member(wire="cm", default=0)
    invisible_time: int | None = member(wire="i", default=None)
    last_timestamp: int = member(wire="l", default=0)
    offsets: Sequence[int] = member(wire="o", default=())
    counts: Mapping[int, int] | None = member(wire="oc", default=None)
    visible: Mapping[int, int] | None = member(wire="ot", default=None)
    pop_time: int = 0

    def queue_offsets(self) -> list[int]:
        """The offsets of the popped messages."""
        offsets = self.offsets[:MAX_MESSAGES]
        return [offsets[0], *(offsets[0] + each for each in offsets[1:])] if offsets else []

    def free_ms(self) -> int:
        """When all messages not acknowledged may be popped again; 0 if there are none."""
        visible = self.visible or {}
        hidden_ms = self.pop_time + (self.invisible_time or 0)
        return max(
            (
                visible.get(offset, hidden_ms)
                for at, offset in enumerate(self.queue_offsets())
                if not self.acked >> at & 1
            ),
            default=0,
        )

    def next_offset(self) -> int:
        """The offset of the first message not acknowledged, or the one after the last message."""
        offsets = self.queue_offsets()
        for at, offset in enumerate(offsets):
            if not self.acked >> at & 1:
                return offset
        return offsets[-1] + 1


Orders = dict[str, dict[int, OrderInfo]]


class OrderInfos(ConfigTable[Orders]):
    """The pops in order. `read_queues_of` returns a topic's number of read queues, or None."""

    def __init__(
        self,
        config: BrokerConfig,
        file: JsonFile,
        now_ms: Callable[[], int],
        read_queues_of: Callable[[str, str], int | None],
    ) -> None:
        super().__init__(file)
        self._config = config
        self._now_ms = now_ms
        self._read_queues_of = read_queues_of
        self._table: Orders = {}
        self._free: list[tuple[int, QueueKey]] = []
        """A heap of the times at which to look whether queues may be popped again."""
        self._looks: dict[QueueKey, int] = {}
        """The time of the next look at these queues; the heap's other entries are skipped."""
        self.on_free: list[Callable[[str, str, int], None]] = []
        """Called with topic, group and queue id when the time has come to pop a queue again."""

    def decode(self, content: Mapping[str, Any]) -> Orders:
        """Reads the last pops by topic and group, and by queue."""
        return {
            key: {int(queue_id): OrderInfo.from_json(value) for queue_id, value in queues.items()}
            for key, queues in (content.get("table") or {}).items()
            if queues
        }

    def _hold(self, held: Orders) -> Steps[None]:
        self._table = held
        for key, queues in held.items():
            topic, _, group = key.partition("@")
            for queue_id, info in queues.items():
                self._note_free((topic, group, queue_id), info)
        return no_listeners()

    def _snapshot(self) -> Callable[[], bytes]:
        table = {key: dict(queues) for key, queues in self._table.items()}
        now_ms = self._now_ms()

        def encode() -> bytes:
            kept: dict[str, dict[int, dict[str, Any]]] = {}
            for key, queues in sorted(table.items()):
                used = {
                    queue_id: info.to_json()
                    for queue_id, info in sorted(queues.items())
                    if now_ms - info.last_timestamp <= _UNUSED_MS
                }
                if used:
                    kept[key] = used
            return encode_pretty({"orderedConsumptionLevel": "QUEUE", "table": kept})

        return encode

    def get(self, topic: str, group: str, queue_id: int) -> OrderInfo | None:
        """The last pop of a queue; None if there is none."""
        queues = self._table.get(f"{topic}@{group}")
        return None if queues is None else queues.get(queue_id)

    def is_blocked(
        self, attempt_id: str | None, topic: str, group: str, queue_id: int, invisible_ms: int
    ) -> bool:
        """Whether a queue is closed to this attempt, and not by it (checkBlock)."""
        info = self.get(topic, group, queue_id)
        if info is None or not info.offsets:
            return False
        if info.attempt_id is not None and info.attempt_id == attempt_id:
            return False
        if not info.invisible_time or info.invisible_time <= 0:
            info = self._replace((topic, group, queue_id), info, invisible_time=invisible_ms)
        return self._now_ms() < info.free_ms()

    def popped(
        self,
        attempt_id: str | None,
        topic: str,
        group: str,
        queue_id: int,
        pop_time: int,
        invisible_ms: int,
        offsets: Sequence[int],
    ) -> list[str]:
        """Notes a pop of a queue; returns counts of earlier pops (orderCountInfo)."""
        before = self.get(topic, group, queue_id)
        counts: dict[int, int] = {}
        if before is not None:
            counts = dict(before.counts or {})
            if attempt_id is None or before.attempt_id != attempt_id:
                again = set(before.queue_offsets())
                counts = {each: counts.get(each, 0) + 1 for each in offsets if each in again}
        info = OrderInfo(
            attempt_id=attempt_id,
            invisible_time=invisible_ms,
            last_timestamp=self._now_ms(),
            offsets=[offsets[0], *(each - offsets[0] for each in offsets[1:])],
            counts=None if before is None else counts,
            pop_time=pop_time,
        )
        self._put((topic, group, queue_id), info)
        said = [
            offset_order_count_info(topic, queue_id, offset, times)
            for offset, times in counts.items()
        ]
        least = min(counts.values()) if counts and len(counts) == len(offsets) else 0
        return [*said, order_count_info(topic, queue_id, least)]

    def acked(self, topic: str, group: str, queue_id: int, offset: int, pop_time: int) -> int:
        """Acknowledges a message; returns how far the queue is consumed (commitAndNext).

        Returns NOT_FOUND or OTHER_POP if the acknowledgement has no effect.
        """
        info = self.get(topic, group, queue_id)
        if info is None:
            return offset + 1
        if not info.offsets:
            return NOT_FOUND
        if pop_time != info.pop_time:
            return OTHER_POP
        offsets = info.queue_offsets()
        if offset not in offsets:
            return NOT_FOUND
        bits = info.acked | 1 << offsets.index(offset)
        return self._replace((topic, group, queue_id), info, acked=bits).next_offset()

    def set_visible(
        self, topic: str, group: str, queue_id: int, offset: int, pop_time: int, visible_ms: int
    ) -> None:
        """Sets the time at which a message may be popped again (updateNextVisibleTime).

        A message that was not popped, or not by this pop, is ignored.
        """
        info = self.get(topic, group, queue_id)
        if info is None or pop_time != info.pop_time or offset not in info.queue_offsets():
            return
        visible = {**(info.visible or {}), offset: visible_ms}
        self._replace((topic, group, queue_id), info, visible=visible)

    def clear(self, topic: str, group: str, queue_id: int) -> None:
        """Opens a queue, since its offset was set (clearBlock)."""
        key = f"{topic}@{group}"
        queues = self._table.get(key)
        if queues is not None and queues.pop(queue_id, None) is not None:
            self._file.is_stale = True
            if not queues:
                del self._table[key]

    def tick(self) -> None:
        """Announces queues that may be popped again; to be called about every 100 ms."""
        free, now_ms = self._free, self._now_ms()
        while free and free[0][0] <= now_ms:
            look_ms, key = heappop(free)
            if self._looks.get(key) != look_ms:
                continue
            del self._looks[key]
            topic, group, queue_id = key
            info = self.get(topic, group, queue_id)
            if info is None:
                continue
            if info.free_ms() > now_ms:
                self._note_free(key, info)
            elif self._config.enable_notify_after_pop_order_lock_release:
                for heard in self.on_free:
                    heard(topic, group, queue_id)

    def clean(self) -> Steps[None]:
        """Forgets what is no longer needed; to be done before each saving (autoClean)."""
        now_ms = self._now_ms()
        for key in list(self._table):
            topic, _, group = key.partition("@")
            nums = self._read_queues_of(topic, group)
            for queue_id, info in list(self._table.get(key, {}).items()):
                is_old = now_ms - info.last_timestamp > _UNUSED_MS
                if nums is None or queue_id >= nums or is_old:
                    self.clear(topic, group, queue_id)
            yield

    def life(self) -> Life:
        """The order is kept in consumerOrderInfo.json."""

        def save(_: int, steady_ms: int) -> None:
            self.saving.begin_soon(steady_ms, self._config.flush_consumer_offset_interval)

        walk = WalkBeat(EXPIRE_MS, "writing consumerOrderInfo.json", lambda *_: self.save())
        return Life("pops in order", table=self, beats=(walk, Tick(OFTEN_MS, save)))

    def save(self) -> Steps[None]:
        """Begins to save the file, without entries that are no longer needed."""
        yield from self.clean()
        self.saving.begin()

    # ------------------------------------------------------------------ parts

    def _replace(self, key: QueueKey, info: OrderInfo, **changes: Any) -> OrderInfo:
        changed = replace(info, **changes)
        self._put(key, changed)
        return changed

    def _put(self, key: QueueKey, info: OrderInfo) -> None:
        topic, group, queue_id = key
        self._table.setdefault(f"{topic}@{group}", {})[queue_id] = info
        self._file.is_stale = True
        self._note_free(key, info)

    def _note_free(self, key: QueueKey, info: OrderInfo) -> None:
        free_ms = info.free_ms()
        if self._now_ms() < free_ms < self._looks.get(key, free_ms + 1):
            self._looks[key] = free_ms
            heappush(self._free, (free_ms, key))
