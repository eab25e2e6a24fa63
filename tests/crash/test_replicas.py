# SPDX-License-Identifier: Apache-2.0
"""A master and its slave: kills, power cuts, partitions, slow links, and roles that change.

What a SYNC_MASTER has acknowledged is on the survivor, whichever it is. A master that comes back
follows the new one only when its log is the beginning of the other's, and what is cut off for that
is kept.
"""

from __future__ import annotations

import gc
from random import Random

import pytest

from tests.crash.ledger import Ledger, Shape
from tests.crash.replicas import Node, Pair
from tests.crash.rounds import Round
from tests.crash.terms import TermPair
from tests.disk import NOW_MS
from txrocketmq.broker.store.disk.steps import finished

PARTS = 5
DAY_MS, STEP_MS = 24 * 3_600_000, 10 * 60_000


@pytest.mark.share(0.4)
@pytest.mark.parametrize("is_strict", [False, True], ids=["memory", "disk"])
def test_what_was_acknowledged_is_on_the_survivor(crash_round: Round, is_strict: bool) -> None:
    survive(crash_round, Pair, is_strict=is_strict)


def survive(crash_round: Round, kind: type[Pair], *, is_strict: bool) -> None:
    """Has a pair live and fail part after part, and judges what is left each time."""
    random = crash_round.random
    ledger = Ledger(Shape(crash_round.seed))
    pair = kind(ledger, random, NOW_MS, is_strict=is_strict)
    for _ in range(PARTS):
        live(pair, random)
        fail(pair, random)
        crash_round.judge(lambda: pair.judge(pair.master), pair.master.said)
        if pair.master.store.damaged_from is not None:
            # It was told, and cost nothing that was acknowledged; but slaves stop there as well.
            assert pair.master.said
            crash_round.acknowledged(ledger)
            return
        if is_strict:
            pair.master.flush()
        pair.rejoin()
    catch_up(pair)
    crash_round.judge(lambda: pair.judge(pair.slave), pair.slave.said)
    start = max(each.store.min_physical_offset for each in (pair.master, pair.slave))
    assert pair.master.log(start) == pair.slave.log(start)
    crash_round.acknowledged(ledger)


def live(pair: Pair, random: Random) -> None:
    """What goes on while nobody fails: messages come, and the link is good or bad."""
    for _ in range(random.randrange(20, 80)):
        chance = random.random()
        if chance < 0.3:
            pair.put(random.choice((1, 1, 3, 20)))
        elif chance < 0.7:
            pair.pass_bytes()
        elif chance < 0.8:
            random.choice((pair.master, pair.slave)).flush()
        elif chance < 0.88:
            pair.tick(random.choice((100, 1_000, 4_000)))
        elif chance < 0.92:
            pair.most_bytes = random.choice((20, 300, 5_000, 1 << 16))
        elif chance < 0.95:
            pair.is_partitioned = not pair.is_partitioned
        elif chance < 0.97:
            pair.disconnect()
        else:
            pair.lose_slave(loses_power=random.random() < 0.5)
    pair.is_partitioned = False
    pair.most_bytes = 1 << 16


def fail(pair: Pair, random: Random) -> None:
    """One side fails, or with disks that are believed, both at once."""
    loses_power = random.random() < 0.5
    if not pair.is_safe:
        if random.random() < 0.5:
            catch_up(pair)
        else:
            # The only copy of what was acknowledged: it may be killed, and goes on.
            pair.disconnect()
            pair.master.strike(random, loses_power=False)
            pair.master.start("SYNC_MASTER")
            return
    if random.random() < 0.3:
        for _ in range(random.randrange(6)):  # of this, the slave gets some, or nothing
            pair.put(random.randint(1, 10))
            pair.master.flush()
    pair.lose_master(loses_power=loses_power, both=pair.is_strict and random.random() < 0.4)


def catch_up(pair: Pair) -> None:
    """Waits until the slave has what the master has."""
    pair.is_partitioned, pair.most_bytes = False, 1 << 16
    pair.rejoin()
    for _ in range(1_000):
        pair.pass_bytes()
        pair.slave.flush()
        pair.master.flush()
        if pair.slave.store.durable_offset >= pair.master.end:
            return
        pair.tick(50)
    raise AssertionError(f"the slave stays at {pair.slave.end} of {pair.master.end}")


def test_a_week_of_churn_does_not_grow() -> None:
    """A slave is connected and left a thousand times, files expire, and it is killed daily."""
    random, ledger = Random(1), Ledger(Shape(1, delayed=False))
    pair = Pair(ledger, random, NOW_MS, is_strict=False)
    sizes: list[tuple[int, int]] = []
    for _ in range(7):
        for _ in range(DAY_MS // STEP_MS):
            pair.put(1)
            for _ in range(3):
                pair.pass_bytes()
            pair.master.flush()
            pair.slave.flush()
            pair.tick(STEP_MS)
            if random.random() < 0.5:
                pair.disconnect()
            for node in (pair.master, pair.slave):
                expire(node, pair)
        catch_up(pair)
        assert pair.slave.end == pair.master.end
        for table in (ledger.acknowledged, ledger.doubtful, ledger.gone):
            table.clear()
        gc.collect()
        sizes.append((len(gc.get_objects()), len(pair.slave.disk.maps)))
        pair.lose_slave(loses_power=False)
    objects, files = zip(*sizes, strict=True)
    assert max(objects[2:]) < objects[1] + 300
    assert max(files[3:]) <= max(files[:3]) + 2


def expire(node: Node, pair: Pair) -> None:
    """Removes old files of the log, and what follows from that."""
    store = node.store
    store.delete_expired(pair.now_ms, pair.steady_ms)
    store.tick(pair.now_ms, pair.steady_ms)
    job = store.removals.begin()
    if job is not None:
        job.run()
        store.removals.finish(job)
    steps = store.follow_log()
    if steps is not None:
        finished(steps)


@pytest.mark.share(0.3)
@pytest.mark.parametrize("is_strict", [False, True], ids=["memory", "disk"])
def test_what_was_confirmed_is_on_the_one_that_a_controller_chooses(
    crash_round: Round, is_strict: bool
) -> None:
    survive(crash_round, TermPair, is_strict=is_strict)
