# SPDX-License-Identifier: Apache-2.0
"""Brokers that are killed between the phases of transactions; the next one goes on with them."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.crash.calls import ERRORS, FailingFiles
from tests.crash.cut_transactions import CutBroker
from tests.crash.judge import RuleBroken, judge_in_the_end
from tests.crash.ledger import Ledger, Shape
from tests.crash.rounds import Round
from tests.crash.test_wire import SETTINGS
from tests.crash.transactions import Decisions, TransactionWire
from tests.disk import NOW_MS, MemoryFiles
from tests.process.conftest import Standalone
from txrocketmq.broker.store.formats.config import ASYNC_FLUSH, SYNC_FLUSH

CHECKS = """
transactionCheckInterval=500
transactionTimeOut=1000
"""
LIVES = 3
SHORT_LIVES = 12
FAILING_LIVES = 4
FAILING = ("allocate", "map", "write", "remove", "make_directory", "hold", "filled", "sync")
"""Methods of the disk that fail; the last one is `sync`."""


@pytest.mark.share(0.02)
def test_brokers_are_killed_between_the_phases(
    crash_round: Round, tmp_path: Path, standalone: Callable[..., Standalone]
) -> None:
    random = crash_round.random
    conf = tmp_path / "broker.conf"
    flush = random.choice((SYNC_FLUSH, ASYNC_FLUSH))
    conf.write_text(SETTINGS.format(flush=flush, ext="false") + CHECKS)
    seed = crash_round.seed
    decisions = Decisions(seed, Ledger(Shape(seed, delayed=False)))
    for life in range(LIVES):
        server = standalone("-c", str(conf))
        wire = TransactionWire(server.broker, decisions)
        if life:
            decisions.judge(wire.served())
        wanted = len(decisions.prepared) + random.randrange(20, 200)
        with suppress(OSError):
            while len(decisions.prepared) < wanted:
                for _ in range(random.randrange(1, 8)):
                    wire.begin()
                for _ in range(random.randrange(1, 12)):
                    if wire.is_waiting:
                        wire.hear()
            server.command.signal(signal.SIGKILL)
            while wire.is_waiting:
                wire.hear()
        wire.close()
        server.command.end()
    server = standalone("-c", str(conf))
    wire = TransactionWire(server.broker, decisions)
    decisions.judge(wire.served())
    judge_in_the_end(lambda: decisions.judge(wire.served(), is_settled=True))
    crash_round.figures["served"] += len(wire.served())
    crash_round.figures["acknowledged"] += len(decisions.prepared)
    wire.close()


@pytest.mark.share(0.1)
@pytest.mark.parametrize("flush", [SYNC_FLUSH, ASYNC_FLUSH])
def test_power_fails_between_the_phases(
    crash_round: Round, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: str
) -> None:
    """What was durable is ended in the end, and nothing is served that was rolled back."""
    random, seed = crash_round.random, crash_round.seed
    decisions = Decisions(seed, Ledger(Shape(seed, delayed=False)))
    disk, now_ms = MemoryFiles(), NOW_MS
    for life in range(LIVES + 1):
        broker = CutBroker(tmp_path, disk, decisions, now_ms, flush, monkeypatch)
        decisions.judge(broker.served())
        if life == LIVES:
            break
        for _ in range(random.randrange(20, 120)):
            broker.step(random)
        if random.random() < 0.3:
            disk = disk.after_kill()
        else:
            decisions.lose_power(broker.store.flush.flushed_offset)
            disk = disk.after_power_cut(random)
        now_ms = broker.parts.now_ms + 5_000
    judge_at_the_end(crash_round, broker)


def judge_at_the_end(crash_round: Round, broker: CutBroker) -> list[int]:
    """Ends all transactions, and judges; returns the numbers of the messages that are served."""
    broker.settle(crash_round.random)
    served = broker.served()
    broker.decisions.judge(served, is_settled=True)
    crash_round.figures["served"] += len(served)
    crash_round.figures["acknowledged"] += len(broker.decisions.prepared)
    return [number for number, _ in served]


def judge_deliveries(crash_round: Round, broker: CutBroker, allowed: Counter[int]) -> None:
    """Judges at the end; each message may come once, and as often again as is allowed."""
    for number, count in Counter(judge_at_the_end(crash_round, broker)).items():
        assert count <= 1 + allowed[number], f"message {number} was delivered {count} times"


@pytest.mark.share(0.1)
def test_short_lives_multiply_nothing(
    crash_round: Round, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A committed message comes once, and once more for each kill before its end was durable.

    No life is long enough to save the progress of the check.
    """
    random, seed = crash_round.random, crash_round.seed
    decisions = Decisions(seed, Ledger(Shape(seed, delayed=False)))
    disk, now_ms = MemoryFiles(), NOW_MS
    allowed: Counter[int] = Counter()
    for _ in range(SHORT_LIVES):
        broker = CutBroker(tmp_path, disk, decisions, now_ms, ASYNC_FLUSH, monkeypatch)
        monkeypatch.setattr(broker.parts.offsets.saving, "write_now", broker.flush)
        safe = len(broker.served())
        for _ in range(random.randrange(5, 40)):
            broker.step(random)
            if not broker.parts.after_durable:
                safe = len(broker.served())
        allowed.update({number for number, _ in broker.served()[safe:]})
        now_ms = broker.parts.now_ms + 1_000
        disk = disk.after_kill()
    broker = CutBroker(tmp_path, disk, decisions, now_ms, ASYNC_FLUSH, monkeypatch)
    judge_deliveries(crash_round, broker, allowed)


@pytest.mark.share(0.2)
@pytest.mark.parametrize("flush", [SYNC_FLUSH, ASYNC_FLUSH])
def test_writes_fail_now_and_then(
    crash_round: Round, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flush: str
) -> None:
    """A committed message comes once, whatever the disk refuses, while the broker asks and is told.

    After a sync that failed a store takes no more messages, so the broker is started again; what
    was not durable by then may come once more.
    """
    random, seed = crash_round.random, crash_round.seed
    decisions = Decisions(seed, Ledger(Shape(seed, delayed=False)))
    disk, now_ms = MemoryFiles(), NOW_MS
    allowed: Counter[int] = Counter()
    for _ in range(FAILING_LIVES):
        files = FailingFiles(disk)
        broker = CutBroker(tmp_path, files, decisions, now_ms, flush, monkeypatch)
        broker.may_refuse = True
        safe = 0
        methods = random.choice((FAILING[:-1], FAILING))
        for _ in range(random.randrange(20, 120)):
            if random.random() < 0.3:
                files.plan(random.choice(methods), random.randrange(1, 4), ERRORS["EIO"]())
            broker.step(random)
            if not broker.parts.after_durable:
                safe = len(broker.commits)
        allowed.update(set(broker.commits[safe:]))
        crash_round.figures["warnings"] += files.has_failed
        now_ms = broker.parts.now_ms + 1_000
        disk = disk.after_kill()
    broker = CutBroker(tmp_path, disk, decisions, now_ms, flush, monkeypatch)
    judge_deliveries(crash_round, broker, allowed)


def test_the_rule_finds_what_is_lost_and_what_is_wrong() -> None:
    ledger = Ledger(Shape(1, delayed=False))
    ledger.draw(40, 0)
    decisions = Decisions(1, ledger)
    commits = [number for number in range(40) if decisions.end_of(number) == 8]
    others = [number for number in range(40) if decisions.end_of(number) == 12]
    body = decisions.message
    decisions.prepared |= set(range(40))
    decisions.committed.add(commits[0])
    first = [(commits[0], body(commits[0]).body)]
    decisions.judge(first)
    for served in ([], [*first, (others[0], body(others[0]).body)], [(commits[0], b"0:")]):
        with pytest.raises(RuleBroken):
            decisions.judge(served)
    with pytest.raises(RuleBroken):
        decisions.judge(first, is_settled=True)
    decisions.judge([(number, body(number).body) for number in commits], is_settled=True)
