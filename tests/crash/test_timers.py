# SPDX-License-Identifier: Apache-2.0
"""Brokers that are killed, or lose their power, while timer messages wait; the next one goes on."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.crash.judge import RuleBroken, judge_in_the_end
from tests.crash.ledger import HOST, Ledger, Shape
from tests.crash.rounds import Round
from tests.crash.test_wire import SETTINGS
from tests.crash.timers import Promises, TimerWire
from tests.disk import NOW_MS, MemoryFiles
from tests.process.conftest import Standalone
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.intake.intake import Intake
from txrocketmq.broker.intake.transform import no_transforms
from txrocketmq.broker.intake.transforms.timer import Timer
from txrocketmq.broker.store.formats.config import ASYNC_FLUSH, SYNC_FLUSH, StoreConfig
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.store.get.jumps import TIMERS
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.timers import timer_wheel
from txrocketmq.broker.tables.stats import BrokerStats
from txrocketmq.broker.timer.metrics import TimerMetrics
from txrocketmq.broker.timer.timers import Timers
from txrocketmq.broker.work.in_thread import Done, InThread, Work, at_once
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.broker.work.patience import Patience
from txrocketmq.remoting.message.message import MessageExt, decode_message
from txrocketmq.remoting.message.topics import TIMER_TOPIC

SMALL = """
mappedFileSizeTimerLog=4096
timerFlushIntervalMs=300
"""
LIVES: Final = 3
SLOTS: Final = 4_096


@pytest.mark.share(0.04)
def test_brokers_are_killed_while_messages_wait(
    crash_round: Round, tmp_path: Path, standalone: Callable[..., Standalone]
) -> None:
    random = crash_round.random
    conf = tmp_path / "broker.conf"
    flush = random.choice((SYNC_FLUSH, ASYNC_FLUSH))
    precision = f"timerPrecisionMs={random.choice((100, 1000))}\n"
    window = f"timerRollWindowSlot={random.choice((2, 20, 172_800))}\n"
    conf.write_text(SETTINGS.format(flush=flush, ext="false") + SMALL + precision + window)
    seed = crash_round.seed
    promises = Promises(seed, Ledger(Shape(seed, delayed=False)))
    for life in range(LIVES):
        server = standalone("-c", str(conf))
        wire = TimerWire(server.broker, promises)
        if life:
            promises.judge(wire.served())
        wanted = len(promises.acknowledged) + random.randrange(20, 600)
        with suppress(OSError):
            while len(promises.acknowledged) < wanted:
                for _ in range(random.randrange(1, 20)):
                    wire.begin()
                while wire.is_waiting:
                    wire.hear()
            server.command.signal(signal.SIGKILL)
            while wire.is_waiting:
                wire.hear()
        wire.close()
        server.command.end()
    server = standalone("-c", str(conf))
    wire = TimerWire(server.broker, promises)
    judge_in_the_end(lambda: promises.judge(wire.served(), is_settled=True))
    crash_round.figures["served"] += len(wire.served())
    crash_round.figures["acknowledged"] += len(promises.acknowledged)
    wire.close()


class Life:
    """A store on a disk in memory with its timers, and the time."""

    def __init__(
        self, disk: MemoryFiles, folder: Path, now_ms: int, random: Random, **settings: Any
    ) -> None:
        config = StoreConfig(
            store_path_root_dir="/store",
            mapped_file_size_commit_log=65_536,
            mapped_file_size_consume_queue=2_000,
            max_hash_slot_num=100,
            max_index_num=400,
            mapped_file_size_timer_log=4_096,
            timer_roll_window_slot=random.choice((2, 20, 172_800)),
            **settings,
        )
        self.now_ms = now_ms
        self.store = MessageStore(config, files=disk)
        self.store.load(now_ms)
        stats = BrokerStats("c", lambda _: False, 0)
        intake = Intake(self.store, stats, no_transforms([Timer(config, lambda _: None)]))
        metrics = TimerMetrics(JsonFile(folder / "timermetrics"), lambda: self.now_ms)
        self._intake = intake
        # What syncs in a thread does so here and now, or when the machine has lost its power.
        self._threads: list[tuple[Work, Done]] = []
        self._random = random
        in_thread: InThread = lambda *work: self._threads.append(work)  # noqa: E731
        self.timers = Timers(disk, intake, metrics, in_thread, Patience(in_thread))
        self.skipped = 0
        """How many messages the log has lost before they were put into the wheel."""
        self.unread: list[tuple[int, int]] = []
        self.said = self.timers.open(now_ms)
        self.timers.on_warning.append(self.said.append)
        # Records that are gone, though the queue knows of them, were not durable: that may be said.
        self.timers.on_unreadable.append(
            lambda found: self.unread.append((found.number, found.offset))
        )

    def send(self, number: int, delay_ms: int) -> None:
        message = InnerMessage(
            "T", 0, b"%d" % number, self.now_ms, HOST, HOST,
            {"UNIQ_KEY": f"U{number}", "TIMER_DELAY_MS": str(delay_ms)},
        )  # fmt: skip
        assert self._intake.take([message], self.now_ms) == [PutStatus.PUT_OK]

    def tick(self, after_ms: int) -> None:
        self.now_ms += after_ms
        self.store.tick(self.now_ms)
        self.timers.tick(self.now_ms, self.now_ms)
        while self._threads and self._random.random() < 0.7:
            at_once(*self._threads.pop(0))

    def flush(self) -> None:
        self.store.flush.flush_all()

    def lose(self) -> None:
        """Makes the log lose all its files but the last one."""
        read = max(self.timers.wheelwork.queue_offset, self.store.min_offset(TIMER_TOPIC, 0))
        self.flush()
        self.store.delete_expired(self.now_ms)
        self.store.tick(self.now_ms)
        for _ in self.store.follow_log() or ():
            pass
        job = self.store.removals.begin()
        if job is not None:
            job.run()
            self.store.removals.finish(job)
        self.skipped += max(self.store.min_offset(TIMER_TOPIC, 0) - read, 0)

    def told(self) -> int:
        """How many messages this life has said to be lost."""
        left = [each for each in self.said if "have left the store" in each]
        counts = [int(each.split(" ")[0].replace(",", "")) for each in left]
        counts += [count for count, _ in self.unread]
        return sum(counts) + self.store.jumps.messages[TIMERS]

    def served(self, first: int = 0) -> list[int]:
        """Numbers of what consumers see, from an offset on."""
        found: list[int] = []
        first = max(first, self.store.min_offset("T", 0))
        for at, size, _ in self.store.queue_units("T", 0, first, 1 << 20):
            record = self.store.message_at(at, size)
            if record is not None:  # else a part of the log is gone that was not durable
                found.append(int(decode_message(record)[0].body))
        return found


def test_power_is_cut_while_messages_wait(
    crash_round: Round, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was durable is delivered, whatever the cut has left of the files of timers."""
    monkeypatch.setattr(timer_wheel, "SLOTS", SLOTS)
    monkeypatch.setattr(timer_wheel, "FILE_BYTES", SLOTS * 32)
    random = crash_round.random
    disk, number, now_ms = MemoryFiles(), 0, NOW_MS
    durable: set[int] = set()
    sent: set[int] = set()
    is_kept = False
    for _ in range(random.randrange(2, 6)):
        life = Life(disk, tmp_path, now_ms, random)
        for _ in range(random.randrange(5, 60)):
            for _ in range(random.randrange(6)):
                life.send(number, random.randrange(60_000))
                sent.add(number)
                number += 1
            life.tick(random.choice((100, 100, 900, 5_000)))
            if random.random() < 0.3:
                life.flush()
                durable |= sent
        now_ms = life.now_ms + random.randrange(20_000)
        disk.now_ms = now_ms
        # Before the first sync of it, a cut may leave nothing of it, and that is told.
        is_kept = any(disk.durable.get("/store/config/timercheck", b""))
        if random.random() < 0.3:
            disk = disk.after_kill()
        else:
            disk = disk.after_power_cut(random)
            sent.clear()
    life = Life(disk, tmp_path, now_ms, random)
    for _ in range(100):
        life.tick(1_000)
    served = life.served()
    crash_round.figures["served"] += len(served)
    crash_round.figures["acknowledged"] += number
    lost = durable - set(served)
    crash_round.figures["lost"] += len(lost)
    assert not lost, life.said
    assert set(served) <= set(range(number))
    assert not (is_kept and life.said)


@pytest.mark.share(0.2)
def test_what_the_log_loses_is_told(
    crash_round: Round, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each message is delivered, or is among those that are said to be lost, also after kills."""
    monkeypatch.setattr(timer_wheel, "SLOTS", SLOTS)
    monkeypatch.setattr(timer_wheel, "FILE_BYTES", SLOTS * 32)
    random = crash_round.random
    disk, number, now_ms, told, seen = MemoryFiles(), 0, NOW_MS, 0, 0
    came: set[int] = set()
    skipped = jumped = 0
    for _ in range(random.randrange(2, 5)):
        life = Life(disk, tmp_path, now_ms, random, file_reserved_time=0)
        stands_still = False
        for _ in range(random.randrange(5, 60)):
            for _ in range(random.randrange(20)):
                life.send(number, random.randrange(60_000))
                number += 1
            stands_still = random.random() < (0.9 if stands_still else 0.2)
            if random.random() < 0.1:
                life.lose()
            if not stands_still:
                life.tick(random.choice((100, 100, 900, 5_000)))
            came.update(life.served(seen))
            seen = life.store.max_offset("T", 0)
        told += life.told()
        skipped, jumped = skipped + life.skipped, jumped + life.store.jumps.messages[TIMERS]
        now_ms, disk = life.now_ms + random.randrange(20_000), disk.after_kill()
    life = Life(disk, tmp_path, now_ms, random, file_reserved_time=0)
    for _ in range(100):
        life.tick(1_000)
    came.update(life.served(seen))
    told += life.told()
    jumped += life.store.jumps.messages[TIMERS]
    lost = set(range(number)) - came
    assert len(lost) <= told
    assert skipped <= jumped
    crash_round.figures["acknowledged"] += number
    crash_round.figures["served"] += len(came)
    crash_round.figures["expired"] += len(lost)


def test_the_rule_finds_what_is_lost_and_what_is_wrong() -> None:
    ledger = Ledger(Shape(1, delayed=False))
    promises = Promises(1, ledger)
    drawn = ledger.draw(3, 0)
    promises.acknowledged |= {0, 1}

    def served(*numbers: int, early_ms: int = 0, body: bytes | None = None) -> list[MessageExt]:
        return [
            MessageExt(
                topic="T",
                body=drawn[number].body if body is None else body,
                born_timestamp=1_000,
                store_timestamp=1_000 + promises.delay_ms(number) - early_ms,
            )
            for number in numbers
        ]

    promises.judge(served(0))
    promises.judge(served(0, 1, 1, 2), is_settled=True)
    for wrong in (served(0, early_ms=1), served(0, body=b"0;"), served(0, body=b"7:")):
        with pytest.raises(RuleBroken):
            promises.judge(wrong)
    with pytest.raises(RuleBroken):
        promises.judge(served(0), is_settled=True)
