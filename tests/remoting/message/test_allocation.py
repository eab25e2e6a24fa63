# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.message.allocation import (
    STRATEGIES,
    Strategy,
    averagely,
    averagely_by_circle,
    consistent_hash,
)
from txrocketmq.remoting.message.message import MessageQueue


def queues(count: int, broker: str = "b") -> list[MessageQueue]:
    return [MessageQueue("T", broker, queue_id) for queue_id in range(count)]


def ids_of(strategy: Strategy, count: int, clients: str) -> list[list[int]]:
    return [
        [queue.queue_id for queue in strategy(client, queues(count), list(clients))]
        for client in clients
    ]


def test_averagely() -> None:
    assert ids_of(averagely, 8, "ab") == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert ids_of(averagely, 8, "abc") == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert ids_of(averagely, 2, "abc") == [[0], [1], []]


def test_averagely_by_circle() -> None:
    assert ids_of(averagely_by_circle, 8, "abc") == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert ids_of(averagely_by_circle, 2, "abc") == [[0], [1], []]


def test_consistent_hash_as_the_original_does() -> None:
    clients = [f"192.168.1.{i}@1" for i in range(3)]
    given_out = {
        client: [queue.queue_id for queue in consistent_hash(client, queues(16), clients)]
        for client in clients
    }
    assert given_out == CONSISTENT_HASH_OF_THE_ORIGINAL


CONSISTENT_HASH_OF_THE_ORIGINAL = {
    "192.168.1.0@1": [4, 12, 13, 15],
    "192.168.1.1@1": [0, 2, 3, 7, 8, 9, 14],
    "192.168.1.2@1": [1, 5, 6, 10, 11],
}
"""Printed by AllocateMessageQueueConsistentHash of 5.4.0."""


def test_a_client_that_comes_takes_queues_but_moves_no_others() -> None:
    before = {
        queue: client
        for client in "ab"
        for queue in consistent_hash(client, queues(64), ["a", "b"])
    }
    after = {
        queue: client
        for client in "abc"
        for queue in consistent_hash(client, queues(64), ["a", "b", "c"])
    }
    moved = {queue for queue in before if before[queue] != after[queue]}
    assert {after[queue] for queue in moved} == {"c"}


@pytest.mark.parametrize("strategy", STRATEGIES.values())
def test_a_client_that_is_no_member_gets_nothing(strategy: Strategy) -> None:
    assert strategy("x", queues(4), ["a", "b"]) == []


@given(
    st.sampled_from(list(STRATEGIES.values())),
    st.integers(0, 40),
    st.sets(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=12),
)
def test_every_queue_has_one_owner(strategy: Strategy, count: int, clients: set[str]) -> None:
    members = sorted(clients)
    given_out = [queue for client in members for queue in strategy(client, queues(count), members)]
    assert sorted(given_out) == queues(count)
