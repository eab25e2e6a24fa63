# SPDX-License-Identifier: Apache-2.0
"""A slave whose master has other topics and groups all the time; the log: tests/crash."""

from __future__ import annotations

import gc

from tests.broker.replication.masters import (
    COUNTS,
    GROUPS,
    OFFSETS,
    ROUND_MS,
    TOPICS,
    Slave,
    group,
    mode,
    topic,
)

DAYS, ROUNDS, EACH = 7, 24, 10


def others(slave: Slave, number: int) -> None:
    """The master has other topics and groups; a message and a commit came for one of them."""
    master, parts = slave.master, slave.parts
    names = [f"T{number}-{each}" for each in range(EACH)]
    master.topics = {"A": topic("A"), **{each: topic(each) for each in names}}
    master.groups = {"g": group("g"), **{f"G{each}": group(f"G{each}") for each in names}}
    master.offsets = {f"{each}@G{each}": {0: 1, 1: 2} for each in names}
    master.modes = {each: {f"G{each}": mode(each, f"G{each}")} for each in names}
    master.counts = {each: {"count": 1, "timeStamp": 9} for each in names}
    for code in (TOPICS, GROUPS, OFFSETS, COUNTS):
        master.versions[code] += 1
    slave.copies(ROUND_MS)
    parts.put(names[0], stored_ms=parts.now_ms)
    parts.offsets.commit(f"G{names[0]}", names[0], 0, 3)
    parts.timers.metrics.left(names[0])
    parts.now_ms += ROUND_MS


def sizes(slave: Slave) -> list[int]:
    parts = slave.parts
    gc.collect()
    return [
        len(parts.topics.all()),
        len(parts.groups.all()),
        len(list(parts.offsets.entries())),
        len(list(parts.modes.entries())),
        len(parts.timers.metrics.counts()),
        len(parts.store.topics()),
        len(gc.get_objects()),
    ]


def test_a_week_of_other_topics_and_groups_leaves_nothing(of_5: Slave) -> None:
    for heard in of_5.parts.timers.life(of_5.parts.topics).hears:
        heard.begin()
    found = []
    for day in range(DAYS):
        for number in range(day * ROUNDS, (day + 1) * ROUNDS):
            others(of_5, number)
            for told in of_5.told.values():
                told.clear()
            of_5.master.asked.clear()
        assert of_5.wrong() == {}
        for _ in range(3):  # queues go when two copies in succession lack the topic
            of_5.copies(ROUND_MS)
        job = of_5.parts.store.removals.begin()
        if job is not None:
            job.run()
            of_5.parts.store.removals.finish(job)
        found.append(sizes(of_5))
    *tables, objects = map(list, zip(*found, strict=True))
    for table in tables:
        assert len(set(table[1:])) == 1, found
    assert max(objects[2:]) < objects[1] + 300, objects
