# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.broker.replication.masters import (
    ADDRESS,
    ROUND_MS,
    TOPICS,
    FakeMaster,
    Slave,
    group,
    topic,
)
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.serialize.json import encode_body


def test_a_table_that_changes_between_its_pages_is_read_anew(of_5: Slave) -> None:
    master, left = of_5.master, [3]

    def change() -> None:
        if left[0]:
            left[0] -= 1
            master.topics["A"] = topic("A", queues=10 + left[0])
            master.topics[f"N{left[0]}"] = topic(f"N{left[0]}")
            master.versions[TOPICS] += 1

    master.between = change
    of_5.copies()
    assert of_5.wrong() == {}
    assert {"A", "B", "C", "N0", "N1", "N2"} <= of_5.parts.topics.all().keys()
    found = of_5.parts.topics.get("A")
    assert found is not None
    assert found.read_queue_nums == 10
    assert of_5.parts.topics.data_version.counter == 4


def test_a_table_that_changes_all_the_time_is_read_later(of_5: Slave) -> None:
    def change() -> None:
        of_5.master.versions[TOPICS] += 1

    of_5.master.between = change
    of_5.copies()
    assert of_5.wrong() == {
        "topics": f"the master {ADDRESS}: the topics have changed 10 times meanwhile"
    }
    assert of_5.parts.topics.get("A") is None
    assert of_5.parts.groups.get("g") is not None, "one failure stops no other copy"


def test_pages_that_never_end_end(of_5: Slave) -> None:
    of_5.master.topics = {}
    for total in (5, 2**31 - 1):
        header = type("Total", (), {"total_topic_num": total})()
        body = encode_body({"dataVersion": {"counter": 5}, "topicConfigTable": {}})
        of_5.master.instead[TOPICS] = Reply(header, body)
        of_5.copies(ROUND_MS)
        assert of_5.wrong() == {
            "topics": f"the master {ADDRESS}: it has sent 0 of {total} topics and sends no more"
        }
        full = encode_body({"dataVersion": {"counter": 5}, "topicConfigTable": {"A": topic("A")}})
        of_5.master.instead[TOPICS] = Reply(header, full)
        if total > 5:
            of_5.copies(ROUND_MS)
            assert of_5.wrong() == {
                "topics": f"the master {ADDRESS}: it has {total} topics; 1000000 are possible"
            }


@pytest.mark.parametrize("page", [0, 2_000])
def test_very_many_topics_are_copied_in_many_turns(tmp_path: Path, page: int) -> None:
    """However many they are, a turn has as many steps: ten topics, a few to be told."""
    number = 5_000
    master = FakeMaster(page)
    master.topics = {f"T{n}": topic(f"T{n}") for n in range(number)}
    master.groups = {f"g{n}": group(f"g{n}") for n in range(number)}
    master.offsets = {f"T{n}@g{n}": dict.fromkeys(range(8), n) for n in range(number)}
    slave = Slave(tmp_path, master)
    decoded: list[int] = []
    for table in (slave.parts.topics, slave.parts.groups, slave.parts.offsets):

        def decode(content: Any, decode: Any = table.decode) -> Any:
            decoded.append(max(map(len, content.values()), default=0))
            return decode(content)

        table.decode = decode  # type: ignore[method-assign]
    turns = slave.copies()
    assert slave.wrong() == {}
    assert max(decoded) <= 16
    assert slave.parts.topics.count > number
    assert slave.parts.offsets.of("g7", "T7") == dict.fromkeys(range(8), 7)
    steps = 3 * (number // 2 + number // 16) + number
    assert turns > steps / 10, "each step has a few of them"
    steps = number // 2 + number // 16 + 2 * number
    assert slave.copies(ROUND_MS) < 1.1 * steps / 10, "topics and groups are the same"
    slave.parts.store.stop(slave.parts.now_ms)
