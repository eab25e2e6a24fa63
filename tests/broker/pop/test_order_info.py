# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.broker.pop.order_info import NOT_FOUND, OTHER_POP, OrderInfos
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.work.json_file import JsonFile, JsonFileError

NOW_MS = 1_700_000_000_001
GOLDEN = """{
	"orderedConsumptionLevel":"QUEUE",
	"table":{
		"T2@g":{
			0:{
				"cm":0,
				"i":60000,
				"l":1700000000001,
				"o":[5],
				"popTime":1700000000001
			}
		},
		"T@g":{
			0:{
				"cm":1,
				"i":60000,
				"l":1700000000001,
				"o":[5,1,4,5],
				"oc":{
					5:1,
					6:1,
					9:1
				},
				"ot":{
					6:1700000099999
				},
				"popTime":1700000000001
			}
		}
	}
}"""
"""As the original writes it, but for the time at which it did."""


class Orders(OrderInfos):
    """With a clock, and topics of 8 queues."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.now_ms = NOW_MS
        self.path = folder / "consumerOrderInfo.json"
        self.queues: int | None = 8
        super().__init__(
            BrokerConfig(**settings),
            JsonFile(self.path),
            lambda: self.now_ms,
            lambda _, __: self.queues,
        )
        self.freed: list[tuple[str, str, int]] = []
        self.on_free.append(lambda *told: self.freed.append(told))

    def pop(self, *offsets: int, attempt: str | None = None, topic: str = "T") -> list[str]:
        return self.popped(attempt, topic, "g", 0, self.now_ms, 60_000, offsets)

    def blocks(self, attempt: str | None = None) -> bool:
        return self.is_blocked(attempt, "T", "g", 0, 60_000)


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def test_a_queue_is_closed_and_opened(orders: Orders) -> None:
    assert not orders.blocks()
    assert orders.pop(5, 7) == ["0 0 0"]
    assert orders.blocks()
    assert orders.acked("T", "g", 0, 7, NOW_MS) == 5
    assert orders.blocks()
    assert orders.acked("T", "g", 0, 5, NOW_MS) == 8
    assert not orders.blocks()


def test_time_opens_it(orders: Orders) -> None:
    orders.pop(5)
    orders.now_ms += 59_999
    orders.tick()
    assert orders.blocks()
    assert not orders.freed
    orders.now_ms += 1
    orders.tick()
    assert not orders.blocks()
    assert orders.freed == [("T", "g", 0)]


def test_what_is_not_acknowledged_is_counted(orders: Orders) -> None:
    orders.pop(5, 7)
    orders.now_ms += 60_000
    assert orders.pop(5, 7, 9) == ["0 qo0%5 1", "0 qo0%7 1", "0 0 0"]
    orders.now_ms += 60_000
    assert orders.pop(5, 7, 9) == ["0 qo0%5 2", "0 qo0%7 2", "0 qo0%9 1", "0 0 1"]
    assert orders.pop(11) == ["0 0 0"]


def test_one_attempt_may_ask_again(orders: Orders) -> None:
    orders.pop(5, attempt="one")
    assert not orders.blocks("one")
    assert orders.blocks("two")
    assert orders.blocks(None)
    assert orders.pop(5, attempt="one") == ["0 0 0"]


def test_acks_that_count_for_nothing(orders: Orders) -> None:
    assert orders.acked("T", "g", 0, 5, NOW_MS) == 6  # nothing is known of the queue
    orders.pop(5)
    assert orders.acked("T", "g", 0, 4, NOW_MS) == NOT_FOUND
    assert orders.acked("T", "g", 0, 5, NOW_MS - 1) == OTHER_POP
    assert orders.blocks()


def test_another_time_for_a_message(orders: Orders) -> None:
    orders.pop(5, 6)
    orders.set_visible("T", "g", 0, 5, NOW_MS, NOW_MS + 100)
    orders.set_visible("T", "g", 0, 6, NOW_MS, NOW_MS + 90_000)
    orders.set_visible("T", "g", 0, 7, NOW_MS, NOW_MS + 10**9)  # never popped
    orders.set_visible("T", "g", 0, 6, NOW_MS + 1, NOW_MS + 10**9)  # not then
    orders.set_visible("T", "g", 1, 6, NOW_MS, NOW_MS + 10**9)  # not there
    orders.now_ms += 60_000
    assert orders.blocks()
    orders.tick()
    assert not orders.freed
    orders.now_ms += 30_000
    orders.tick()
    assert not orders.blocks()
    assert orders.freed


def test_nobody_is_told_where_that_is_not_wanted(tmp_path: Path) -> None:
    orders = Orders(tmp_path, enable_notify_after_pop_order_lock_release=False)
    orders.pop(5)
    orders.now_ms += 60_000
    orders.tick()
    assert not orders.freed


def test_the_file_is_the_original_s(orders: Orders, tmp_path: Path) -> None:
    orders.popped("att", "T", "g", 0, NOW_MS - 1, 60_000, [5, 6, 9])
    orders.pop(5, 6, 9, 10)
    orders.set_visible("T", "g", 0, 6, NOW_MS, 1_700_000_099_999)
    orders.acked("T", "g", 0, 5, NOW_MS)
    orders.pop(5, topic="T2")
    orders.saving.write_now()
    assert orders.path.read_text() == GOLDEN
    again = Orders(tmp_path)
    again.load()
    kept, known = again.get("T", "g", 0), orders.get("T", "g", 0)
    assert kept is not None
    assert known is not None
    assert kept.to_json() == known.to_json()
    assert again.blocks()
    again.now_ms += 100_000
    again.tick()
    assert again.freed == [("T2", "g", 0), ("T", "g", 0)]


@pytest.mark.parametrize(
    "content", ["[]", '{"table":{"T@g":{"x":{}}}}', '{"table":{"T@g":{"0":{"o":"x"}}}}']
)
def test_a_file_of_something_else(orders: Orders, content: str) -> None:
    orders.path.write_text(content)
    with pytest.raises(JsonFileError):
        orders.load()


def test_odd_entries(orders: Orders) -> None:
    """Which are taken, and close nothing."""
    entry = {"o": [], "popTime": NOW_MS}
    orders.path.write_text(json.dumps({"table": {"T@g": {"0": entry}}}))
    orders.load()
    assert not orders.blocks()
    assert orders.acked("T", "g", 0, 5, NOW_MS) == NOT_FOUND
    entry = {"o": [5], "popTime": NOW_MS}  # without an invisible time: that of the next pop
    orders.path.write_text(json.dumps({"table": {"T@g": {"0": entry}}}))
    orders.load()
    assert orders.blocks()


def test_a_step_looks_at_one_topic_and_group(orders: Orders) -> None:
    queues = [(f"T{each}", "g", 0) for each in range(5)]
    for topic, group, queue_id in queues:
        orders.popped(None, topic, group, queue_id, orders.now_ms, 1_000, [5])
    orders.queues = None
    left = [len(queues)]
    for _ in orders.clean():
        left.append(sum(orders.get(*queue) is not None for queue in queues))
        orders.clear("T3", "g", 0)
    assert left == [5, 4, 2, 1, 1, 0]


def test_what_is_of_no_use_is_forgotten(orders: Orders) -> None:
    orders.pop(5)
    finished(orders.clean())
    assert orders.get("T", "g", 0) is not None
    orders.now_ms += 25 * 3_600_000
    finished(orders.clean())
    assert orders.get("T", "g", 0) is None
    for queues in (0, None):
        orders.pop(5)
        orders.queues = queues
        finished(orders.clean())
        assert orders.get("T", "g", 0) is None
    orders.saving.write_now()
    assert json.loads(orders.path.read_text())["table"] == {}


def test_many_pops_of_a_queue_are_one_look(orders: Orders) -> None:
    for number in range(100):
        orders.pop(number)
        orders.acked("T", "g", 0, number, orders.now_ms)
        orders.now_ms += 10
    assert len(orders._free) == 1
    orders.pop(100)
    orders.now_ms += 59_500
    orders.tick()
    assert (len(orders._free), orders.freed) == (1, [])
    orders.now_ms += 500
    orders.tick()
    assert orders.freed == [("T", "g", 0)]
    assert not orders._looks
