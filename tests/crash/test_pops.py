# SPDX-License-Identifier: Apache-2.0
"""Brokers that are killed while messages are popped; the next one goes on with them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.crash.cut_pops import CutBroker, Debts
from tests.crash.judge import RuleBroken, judge_in_the_end
from tests.crash.pops import Owed, PopWire
from tests.crash.rounds import Round
from tests.crash.test_wire import SETTINGS
from tests.disk import NOW_MS, MemoryFiles
from tests.process.conftest import Standalone
from txrocketmq.broker.store.formats.config import ASYNC_FLUSH, SYNC_FLUSH

POPS = """
enablePopBufferMerge={merge}
popCkStayBufferTime=1000
popCkStayBufferTimeOut=200
reviveInterval=200
flushConsumerOffsetInterval={offsets_ms}
"""
LIVES = 3
CUTS = 4


@pytest.mark.share(0.02)
def test_brokers_are_killed_while_messages_are_popped(
    crash_round: Round, tmp_path: Path, standalone: Callable[..., Standalone]
) -> None:
    random = crash_round.random
    conf = tmp_path / "broker.conf"
    flush = random.choice((SYNC_FLUSH, ASYNC_FLUSH))
    merge, offsets_ms = random.choice(("true", "false")), random.choice((100, 1_000))
    text = SETTINGS.format(flush=flush, ext="false")
    conf.write_text(text + POPS.format(merge=merge, offsets_ms=offsets_ms))
    owed = Owed()
    for _ in range(LIVES):
        server = standalone("-c", str(conf))
        wire = PopWire(server.broker, owed, random)
        wanted = len(owed.sent) + random.randrange(20, 150)
        with suppress(OSError):
            while len(owed.sent) < wanted:
                for _ in range(random.randrange(1, 20)):
                    wire.put()
                for _ in range(random.randrange(1, 4)):
                    wire.pop(random.choice((0.0, 0.5, 1.0)))
            server.command.signal(signal.SIGKILL)
            while True:
                wire.pop(0.5)
        wire.close()
        server.command.end()
    server = standalone("-c", str(conf))
    wire = PopWire(server.broker, owed, random)
    handed_out: set[int] = set()

    def judge() -> None:
        handed_out.update(wire.pop(0.0))
        owed.judge(handed_out)

    judge_in_the_end(judge)
    crash_round.figures["served"] += len(handed_out)
    crash_round.figures["acknowledged"] += len(owed.sent)
    wire.close()


@pytest.mark.share(0.05)
@pytest.mark.parametrize("flush", [SYNC_FLUSH, ASYNC_FLUSH])
@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("has_batches", [False, True], ids=["single", "batches"])
def test_power_fails_while_messages_are_popped(
    crash_round: Round,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flush: str,
    *,
    merge: bool,
    has_batches: bool,
) -> None:
    """What was durable and is not acknowledged comes, in order too; what is settled stays away."""
    random = crash_round.random
    debts = Debts()
    disk, now_ms = MemoryFiles(), NOW_MS
    settings = {"enable_pop_buffer_merge": merge, "enable_retry_topic_v2": random.random() < 0.5}
    for life in range(CUTS + 1):
        broker = CutBroker(
            tmp_path, disk, debts, now_ms, flush, random, monkeypatch, has_batches=has_batches,
            **settings,
        )  # fmt: skip
        if life == CUTS:
            break
        for _ in range(random.randrange(20, 150)):
            broker.step(random)
        if random.random() < 0.3:
            disk = disk.after_kill()
        else:
            debts.lose_power(broker.parts.store.flush.flushed_offset)
            disk = disk.after_power_cut(random)
        now_ms = broker.parts.now_ms + 5_000
    crash_round.figures["served"] += broker.judge(random)
    crash_round.figures["acknowledged"] += len(debts.any.sent)


def test_the_rule_finds_what_is_lost_and_what_is_wrong() -> None:
    owed = Owed()
    owed.next_number = 3
    owed.sent |= {0, 1, 2}
    owed.consumed.add(0)
    owed.judge({1, 2})
    with pytest.raises(RuleBroken, match=r"lost \[2\]"):
        owed.judge({0, 1})
    assert owed.taken(b"2") == 2
    owed.judge({1, 2})
    for body in (b"3", b"x"):
        owed.taken(body)
    with pytest.raises(RuleBroken, match="wrong"):
        owed.judge({1, 2})
