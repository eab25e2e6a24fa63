# SPDX-License-Identifier: Apache-2.0
"""The strategies of clients: each member gets what the original's gives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from txrocketmq.client.consumer.group.allocation import (
    by_config,
    by_machine_room,
    nearby_machine_room,
)
from txrocketmq.remoting.message.allocation import STRATEGIES, Strategy, averagely
from txrocketmq.remoting.message.message import MessageQueue

GOLDEN = Path(__file__).parents[3] / "golden" / "allocation" / "allocations.txt"


def room(name: str) -> str:
    return name.partition("@")[0]


ALL: dict[str, Strategy] = {
    **STRATEGIES,
    "MACHINE_ROOM": by_machine_room(["east", "north"]),
    "MACHINE_ROOM_NEARBY-AVG": nearby_machine_room(
        averagely, lambda queue: room(queue.broker_name), room
    ),
}


def queues_of(text: str) -> list[MessageQueue]:
    pairs = (each.split(":") for each in text.split(",") if each)
    return [MessageQueue("Topic", name, int(number)) for name, number in pairs]


@pytest.mark.parametrize("name", ALL)
def test_each_member_gets_what_it_gets_in_java(name: str) -> None:
    lines = [line.split("\t") for line in GOLDEN.read_text().splitlines()]
    mine = [line for line in lines if line[0] == name]
    assert len(mine) > 50
    for _, queues, members, member, share in mine:
        given_here = ALL[name](member, queues_of(queues), members.split(","))
        assert given_here == queues_of(share), (queues, members, member)


@pytest.mark.parametrize("name", ALL)
def test_who_is_no_member_gets_nothing(name: str) -> None:
    queues = [MessageQueue("T", "east@a", 0)]
    assert ALL[name]("east@stranger", queues, ["east@1"]) == []


def test_configured_queues_are_always_the_same() -> None:
    queues = [MessageQueue("T", "a", 3)]
    assert by_config(queues)("anybody", [], ["somebody"]) == queues


def test_a_machine_room_that_nobody_can_tell_is_an_error() -> None:
    nearby = nearby_machine_room(averagely, lambda _: "", room)
    with pytest.raises(ValueError, match="has no machine room"):
        nearby("east@1", [MessageQueue("T", "a", 0)], ["east@1"])
