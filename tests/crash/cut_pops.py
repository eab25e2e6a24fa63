# SPDX-License-Identifier: Apache-2.0
"""A broker with consumers that pop in one process, on a disk that may lose power.

Its store, on that disk, and its JSON files are kept. The latter are whole whenever the power goes,
since they are synced and then renamed. A message counts as sent if the log was durable up to it
when the power went. Two groups pop: one in any order, the other one in order.

What was sent, popped and acknowledged within one life, with the log durable and the offsets written
afterwards, is settled. It never comes again, with one exception that `Debts.is_settled` explains.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.broker.conftest import Parts
from tests.broker.pop.scene import Message, Scene
from tests.broker.store.batches import batched, plain
from tests.crash.judge import RuleBroken
from tests.crash.life import TINY
from tests.crash.pops import Owed
from tests.disk import MemoryFiles
from txrocketmq.broker import parts
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.message.properties import FIRST_POP_TIME

IN_ORDER: Final = "in-order"
INVISIBLE_MS: Final = 20_000
STORE: Final[dict[str, Any]] = {**TINY, "file_reserved_time": 72}
SETTINGS: Final[dict[str, Any]] = {
    "pop_ck_stay_buffer_time": 3_000,
    "pop_ck_stay_buffer_time_out": 1_000,
    "revive_queue_num": 3,
}
_MOST_ROUNDS: Final = 4_000


class Debts:
    """What each of the two groups must still get."""

    def __init__(self) -> None:
        self.any = Owed()
        self.in_order = Owed()
        self.settled: set[int] = set()
        """Numbers of messages that may not come again."""
        self._ends: dict[int, int] = {}
        self._sent_ms: dict[int, int] = {}

    def body(self) -> bytes:
        """Returns the body of the next message."""
        return b"%d" % self.any.next_number

    def put(self, end_offset: int, now_ms: int) -> None:
        """Notes that the next message was stored; its record ends there."""
        self._ends[self.any.next_number] = end_offset
        self._sent_ms[self.any.next_number] = now_ms
        for owed in (self.any, self.in_order):
            owed.sent.add(owed.next_number)
            owed.next_number += 1

    def is_settled(self, number: int, properties: Mapping[str, str]) -> bool:
        """Returns whether a message that was popped may not come again.

        It may come again if a power cut has removed another message from its place in the queue but
        left the check point of that one: then it seems to have been popped before it was sent.
        """
        popped_ms = int(properties.get(FIRST_POP_TIME, self._sent_ms[number]))
        return number in self.settled and popped_ms >= self._sent_ms[number]

    def lose_power(self, durable_offset: int) -> None:
        """Notes that messages that were not durable may be lost."""
        lost = {number for number, end in self._ends.items() if end > durable_offset}
        for owed in (self.any, self.in_order):
            owed.sent -= lost
        self._ends.clear()


class BatchParts(Parts):
    """Parts whose topic has queues of batches, even before its JSON files are read."""

    def kind_of(self, topic: str) -> bool | None:
        return topic == "T"


class CutBroker(Scene):
    """One life of a broker."""

    def __init__(
        self,
        folder: Path,
        disk: MemoryFiles,
        debts: Debts,
        now_ms: int,
        flush: str,
        random: Random,
        monkeypatch: pytest.MonkeyPatch,
        *,
        has_batches: bool = False,
        **settings: Any,
    ) -> None:
        self._has_batches = has_batches
        self._disk, self._flush_type, self._monkeypatch = disk, flush, monkeypatch
        self._begins_ms = now_ms
        self.debts = debts
        self._first_number = debts.any.next_number
        self._fresh: set[int] = set()
        """Numbers of messages that were acknowledged in this life."""
        attributes = {"queue_type": "BatchCQ"} if has_batches else {}
        super().__init__(folder, attributes, **SETTINGS, **settings)
        self.parts.pop.queues._chance = random.randrange
        self.parts.topic("T", 2)
        self.parts.lost_files.restore(after_crash=True)

    def made(self, now_ms: int) -> Parts:
        with self._monkeypatch.context() as patched:
            patched.setattr(parts, "OsFiles", lambda: self._disk)
            settings = {**STORE, "flush_disk_type": self._flush_type}
            kind = BatchParts if self._has_batches else Parts
            return kind(self.folder, now_ms=self._begins_ms, store_settings=settings)

    def step(self, random: Random) -> None:
        """Does something random."""
        what = random.random()
        if what < 0.3:
            for _ in range(random.randrange(1, 6)):
                self.send(random)
        elif what < 0.6:
            self.pop_any(random, random.choice((0.0, 0.5, 1.0)))
        elif what < 0.7:
            self.pop_in_order(random, random.choice((0.0, 0.5, 1.0)))
        elif what < 0.8:
            self.parts.store.flush.flush_all()
        elif what < 0.93:
            self.pass_time(random.choice((10, 1_000, 3_000, INVISIBLE_MS + 3_000)))
        elif what < 0.97:
            self.save()
        else:
            self.settle()

    def send(self, random: Random) -> None:
        """Sends a message, or several in one record; they count once they are durable."""
        store, now_ms = self.parts.store, self.parts.now_ms
        count = random.choice((1, 2, 3, 5, 20)) if self._has_batches else 1
        if count == 1:
            self.parts.put("T", random.randrange(2), body=self.debts.body())
        else:
            first = int(self.debts.body())
            bodies = [b"%d" % each for each in range(first, first + count)]
            message = plain("T")._replace(queue_id=random.randrange(2))
            (appended,) = store.put([batched(message, bodies)], now_ms)
            assert appended.status is PutStatus.PUT_OK
        for _ in range(count):
            self.debts.put(store.max_physical_offset, now_ms)

    def pop_any(self, random: Random, chance: float) -> set[int]:
        """Pops from any queue; acknowledges each message, or hides it for longer, at random."""
        owed = self.debts.any
        found: set[int] = set()
        popped = self.pop(max_msg_nums=random.randrange(1, 17), invisible_time=INVISIBLE_MS)
        for message in popped:
            number = owed.taken(message.stored.body)
            if self.debts.is_settled(number, message.stored.properties):
                raise RuleBroken(f"{number} was settled, and comes again", 0, 1)
            found.add(number)
            if random.random() < chance / 4:
                self.hide(message, random.choice((5_000, 2 * INVISIBLE_MS)))
            if random.random() < chance:
                self._acked(owed, number, message)
                if number >= self._first_number and not message.stored.reconsume_times:
                    self._fresh.add(number)
        return found

    def pop_in_order(self, random: Random, chance: float) -> set[int]:
        """Pops in order."""
        owed = self.debts.in_order
        popped = self.pop(
            consumer_group=IN_ORDER, order=True, max_msg_nums=random.randrange(1, 9),
            invisible_time=INVISIBLE_MS,
        )  # fmt: skip
        offsets = [(each.stored.queue_id, each.stored.queue_offset) for each in popped]
        by_queue = [[at for queue, at in offsets if queue == each] for each in range(2)]
        if any(its != sorted(its) for its in by_queue):
            raise RuleBroken(f"out of order: {offsets}", 0, 1)
        found = {owed.taken(each.stored.body) for each in popped}
        for message in popped:
            if random.random() < chance:
                number = owed.taken(message.stored.body)
                self._acked(owed, number, message, consumer_group=IN_ORDER)
        return found

    def _acked(self, owed: Owed, number: int, message: Message, **other: Any) -> None:
        owed.consumed.add(number)
        self.ack(message, **other)

    def pass_time(self, ms: int) -> None:
        """Advances the time; this makes nothing durable."""
        self.parts.now_ms += ms
        now_ms = self.parts.now_ms
        self.parts.pop.tick(now_ms, now_ms)
        self.parts.pop.revive.tick(now_ms, now_ms)
        self.parts.pop.settle()
        self.turn()

    def settle(self) -> None:
        """Makes all durable and writes offsets: what is acknowledged now must stay away."""
        self.parts.store.flush.flush_all()
        self.pass_time(100)
        self.save()
        if not self.parts.pop.check_points.uncommitted:
            self.debts.settled |= self._fresh

    def judge(self, random: Random) -> int:
        """Pops until each group has what it is owed. Raises RuleBroken if that does not come."""
        found: set[int] = set()
        found_in_order: set[int] = set()
        for _ in range(_MOST_ROUNDS):
            found |= self.pop_any(random, 1.0)
            found_in_order |= self.pop_in_order(random, 1.0)
            self.parts.store.flush.flush_all()
            self.pass_time(1_000)
            try:
                self.debts.any.judge(found)
                self.debts.in_order.judge(found_in_order)
            except RuleBroken as broken:
                if broken.wrong:
                    raise
            else:
                return len(found) + len(found_in_order)
        self.debts.any.judge(found)
        self.debts.in_order.judge(found_in_order)
        raise AssertionError("it was judged well at last")
