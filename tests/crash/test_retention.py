# SPDX-License-Identifier: Apache-2.0
"""Logs that lose what readers still wait for: whatever a reader does not get is told, with a count.

Delay levels are in test_delays.py; here are groups that pull, the check of transactions, and the
revival of popped messages.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from tests.crash import cut_pops, cut_transactions
from tests.crash.cut_pops import Debts
from tests.crash.ledger import Ledger, Shape
from tests.crash.life import TINY
from tests.crash.rounds import Round
from tests.crash.transactions import COMMIT, Decisions
from tests.disk import NOW_MS, MemoryFiles
from tests.fakes import request
from txrocketmq.broker import parts as module
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.processors.pull.pull_message import PullMessageProcessor
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.store.formats.config import ASYNC_FLUSH
from txrocketmq.broker.store.get.jumps import GROUP, HALF_MESSAGES, POPPED, REVIVAL
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader

KEPT_HOURS = 72
MOST_OF_A_CHECK_POINT = 32
"""How many messages a record of the revive topic may stand for."""


def lose(parts: Parts) -> None:
    """Makes the log lose all its files but the last one.

    Usually they are kept, since the check gives up half messages that are older than files may be.
    """
    store = parts.store
    parts.set(file_reserved_time=0)
    store.flush.flush_all()
    store.delete_expired(parts.now_ms, parts.now_ms)
    store.tick(parts.now_ms, parts.now_ms)
    steps = store.follow_log()
    if steps is not None:
        finished(steps)
    job = store.removals.begin()
    if job is not None:
        job.run()
        store.removals.finish(job)
    parts.set(file_reserved_time=KEPT_HOURS)


def pull(processor: PullMessageProcessor, offset: int) -> tuple[list[int], int]:
    """Pulls and commits; returns the numbers of the messages, and the offset to go on at."""
    header = PullMessageRequestHeader(
        consumer_group="g", topic="T", queue_id=0, queue_offset=offset, max_msg_nums=32,
        sys_flag=5, commit_offset=offset, suspend_timeout_millis=0, subscription="*",
        sub_version=0,
    )  # fmt: skip
    reply = processor.pull(request(header))
    assert isinstance(reply, Reply)
    assert reply.header is not None
    messages = decode_messages(b"".join(map(bytes, reply.body)))
    return [int(each.body.partition(b" ")[0]) for each in messages], reply.header.next_begin_offset


@pytest.mark.share(0.2)
def test_a_group_gets_each_message_or_hears_of_it(
    crash_round: Round, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, disk = crash_round.random, MemoryFiles()
    sent, offset, told = 0, 0, 0
    came: Counter[int] = Counter()
    for life in range(4):
        with monkeypatch.context() as patched:
            patched.setattr(module, "OsFiles", lambda disk=disk: disk)
            parts = Parts(tmp_path, now_ms=NOW_MS + life * 1_000_000, store_settings=TINY)
        parts.topic("T", 1)
        (processor,) = (
            each for each in all_processors(parts) if isinstance(each, PullMessageProcessor)
        )
        parts.offsets.commit("g", "T", 0, offset)
        for _ in range(random.randrange(20, 80)):
            for _ in range(random.randrange(4)):
                parts.put("T", 0, body=b"%d %s" % (sent, bytes(random.randrange(3_000))))
                sent += 1
            if random.random() < 0.2:
                lose(parts)
            if random.random() < 0.3:
                numbers, offset = pull(processor, offset)
                came.update(numbers)
        told += parts.store.jumps.messages[GROUP]
        parts.store.flush.flush_all()
        disk = disk.after_kill()
    end = parts.store.max_offset("T", 0)
    before = parts.store.jumps.messages[GROUP]
    while offset < end:
        numbers, offset = pull(processor, offset)
        came.update(numbers)
    told += parts.store.jumps.messages[GROUP] - before
    assert set(came.values()) <= {1}, "once each"
    assert len(came) + told == sent
    crash_round.figures["acknowledged"] += sent
    crash_round.figures["served"] += len(came)
    crash_round.figures["expired"] += told


@pytest.mark.share(0.2)
def test_each_transaction_is_ended_or_told_to_be_lost(
    crash_round: Round, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half messages whose record is lost before they end are as many as the check says."""
    random, seed = crash_round.random, crash_round.seed
    decisions = Decisions(seed, Ledger(Shape(seed, delayed=False)))
    broker = cut_transactions.CutBroker(
        tmp_path, MemoryFiles(), decisions, NOW_MS, ASYNC_FLUSH, monkeypatch
    )
    broker.parts.topic("filler", 1)
    served: Counter[int] = Counter()
    seen = 0

    def look() -> None:
        nonlocal seen
        for number, _ in broker.served(seen):
            served[number] += 1
        seen = broker.store.max_offset("T", 2)

    for _ in range(random.randrange(40, 200)):
        broker.step(random)
        look()
        broker.parts.put("filler", 0, body=bytes(random.randrange(4_000)))
        if random.random() < 0.1:
            broker.lose(lose)
    broker.settle(random)
    look()
    jumps = broker.store.jumps.messages
    lost = {each for each in decisions.prepared if decisions.end_of(each) == COMMIT} - served.keys()
    assert all(decisions.end_of(number) == COMMIT for number in served)
    assert decisions.committed <= served.keys()
    assert len(lost) <= jumps[HALF_MESSAGES]
    assert jumps[HALF_MESSAGES] <= len(decisions.prepared)
    assert set(served.values()) <= {1}, "once each"
    crash_round.figures["acknowledged"] += len(decisions.prepared)
    crash_round.figures["served"] += len(served)
    crash_round.figures["expired"] += len(lost)


@pytest.mark.share(0.1)
@pytest.mark.parametrize("merge", [False, True])
def test_what_was_popped_comes_again_or_is_told_to_be_lost(
    crash_round: Round, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, merge: bool
) -> None:
    """A message that no group acknowledged comes again, or readers told that as many are gone."""
    random, debts = crash_round.random, Debts()
    broker = cut_pops.CutBroker(
        tmp_path, MemoryFiles(), debts, NOW_MS, ASYNC_FLUSH, random, monkeypatch,
        enable_pop_buffer_merge=merge,
    )  # fmt: skip
    broker.parts.topic("filler", 1)
    for _ in range(20):  # else a group may be new to a queue, and would miss nothing
        broker.send(random)
    broker.pop_any(random, 1.0)
    broker.pop_in_order(random, 1.0)
    for _ in range(random.randrange(20, 150)):
        broker.step(random)
        broker.parts.put("filler", 0, body=bytes(random.randrange(3_000)))
        if random.random() < 0.1:
            lose(broker.parts)
    jumps = broker.parts.store.jumps.messages
    found: set[int] = set()
    found_in_order: set[int] = set()
    for _ in range(200):
        found |= broker.pop_any(random, 1.0)
        found_in_order |= broker.pop_in_order(random, 1.0)
        broker.parts.store.flush.flush_all()
        broker.pass_time(1_000)
    missing = len(debts.any.sent - debts.any.consumed - found)
    missing += len(debts.in_order.sent - debts.in_order.consumed - found_in_order)
    assert not debts.any.wrong | debts.in_order.wrong
    assert missing <= jumps[GROUP] + jumps[POPPED] + MOST_OF_A_CHECK_POINT * jumps[REVIVAL]
    crash_round.figures["acknowledged"] += len(debts.any.sent)
    crash_round.figures["served"] += len(found) + len(found_in_order)
    crash_round.figures["expired"] += missing
