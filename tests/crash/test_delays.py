# SPDX-License-Identifier: Apache-2.0
"""Delayed messages: brokers that live for seconds, and logs that lose what still waits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.broker.conftest import STORE_HOST, Parts
from tests.crash.life import TINY
from tests.crash.rounds import Round
from tests.disk import NOW_MS, MemoryFiles
from txrocketmq.broker import parts as module
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.work import saving
from txrocketmq.broker.work.saving import SOON_MS
from txrocketmq.remoting.message.message import decode_messages

TICK_MS = 100
LIVES = 10
SAVED_WITHIN_MS = 2 * SOON_MS + 4 * TICK_MS
"""How long after a delivery its progress is in the file, where each sync takes a tick, and a write
no time: a pause before the sync, and another one before the write."""


class DelayBroker:
    """One life of a broker with delayed messages, whose bodies are their numbers."""

    def __init__(
        self, folder: Path, disk: MemoryFiles, now_ms: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(module, "OsFiles", lambda: disk)
            self.parts = Parts(folder, now_ms=now_ms, store_settings=TINY)
        self.parts.topic("T")
        self.store, self.schedule = self.parts.store, self.parts.schedule
        self.schedule.offsets.load()
        self.schedule.offsets.correct()
        self.wants_sync = False
        self.schedule.offsets.on_wanted.append(self._wanted)
        self.steady_ms = 0
        self.came: dict[int, int] = {}
        """By number: when the message came last in this life."""
        self._seen = self.store.max_offset("T", 0)

    def _wanted(self) -> None:
        self.wants_sync = True

    def put(self, number: int) -> bool:
        made = InnerMessage("T", 0, b"%d" % number, 0, STORE_HOST, STORE_HOST, {})
        made.delay(1, self.parts.delay_levels.deliver_ms(1, self.parts.now_ms))
        (appended,) = self.store.put([made.to_put()], self.parts.now_ms)
        return appended.status is PutStatus.PUT_OK

    def tick(self) -> None:
        self.parts.now_ms += TICK_MS
        self.steady_ms += TICK_MS
        if self.wants_sync:
            self.wants_sync = False
            self.store.flush.flush_all()
        self.schedule.tick(self.parts.now_ms, self.steady_ms)
        for number in self.served(self._seen):
            self.came[number] = self.steady_ms
        self._seen = self.store.max_offset("T", 0)

    def served(self, offset: int = 0) -> list[int]:
        found: list[int] = []
        offset = max(offset, self.store.min_offset("T", 0))
        while offset < self.store.max_offset("T", 0):
            got = self.store.get("T", 0, offset, 32, 1 << 20)
            for buffer in got.buffers:
                found += [int(message.body) for message in decode_messages(buffer)]
            offset = got.next_begin_offset
        return found


@pytest.mark.share(0.2)
def test_short_lives_multiply_nothing(
    crash_round: Round, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message comes, and more than once only if a kill came shortly after it."""
    monkeypatch.setattr(saving, "perf_counter", lambda: 0.0)
    random, disk, now_ms = crash_round.random, MemoryFiles(), NOW_MS
    allowed: Counter[int] = Counter()
    sent = 0
    for _ in range(LIVES):
        broker = DelayBroker(tmp_path, disk, now_ms, monkeypatch)
        for _ in range(random.randrange(3, 40)):
            for _ in range(random.randrange(4)):
                sent += broker.put(sent)
            broker.tick()
        late_ms = broker.steady_ms - SAVED_WITHIN_MS
        allowed.update(number for number, at_ms in broker.came.items() if at_ms >= late_ms)
        now_ms, disk = broker.parts.now_ms, disk.after_kill()
    broker = DelayBroker(tmp_path, disk, now_ms, monkeypatch)
    for _ in range(30):
        broker.tick()
    counts = Counter(broker.served())
    assert sorted(counts) == list(range(sent))
    for number, count in counts.items():
        assert count <= 1 + allowed[number], f"message {number} came {count} times"
    crash_round.figures["acknowledged"] += sent
    crash_round.figures["served"] += len(counts)


@pytest.mark.share(0.2)
def test_what_the_log_loses_is_told(
    crash_round: Round, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message that waits is delivered, or is among those that the level says it missed."""
    random: Random = crash_round.random
    broker = DelayBroker(tmp_path, MemoryFiles(), NOW_MS, monkeypatch)
    told: list[int] = []
    broker.store.jumps.listeners.append(lambda jump, _: told.append(jump.number))
    broker.schedule.on_unreadable.append(lambda found: told.append(found.number))
    sent = 0
    for _ in range(random.randrange(20, 120)):
        sent += broker.put(sent)
        broker.parts.put("T", 1, body=bytes(random.randrange(4_000)))
        if random.random() < 0.1:
            broker.store.delete_expired(broker.parts.now_ms, broker.steady_ms)
        if random.random() < 0.3:
            broker.store.flush.flush_all()
            broker.store.tick(broker.parts.now_ms, broker.steady_ms)
            for _ in broker.store.follow_log() or ():
                pass
        broker.schedule.tick(broker.parts.now_ms, broker.steady_ms)
    came: set[int] = set()
    for _ in range(30):
        broker.tick()
        came.update(broker.came)
        broker.store.jumps.tick()
    missed = sum(told)
    assert len(came) + missed == sent
    crash_round.figures["acknowledged"] += sent
    crash_round.figures["served"] += len(came)
    crash_round.figures["expired"] += missed
