# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.spark.sink.conftest import StoringWorld
from txrocketmq.remoting.message.message import Message
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.sink.rows import Outgoing
from txrocketmq.spark.sink.targets import Lane, Targets


def outgoing(
    sharding_key: str | None = None, broker_name: str | None = None, queue_id: int | None = None
) -> Outgoing:
    return Outgoing(0, Message("T", b"x"), sharding_key, broker_name, queue_id)


def places(targets: Targets, lane: Lane) -> list[tuple[str, int]]:
    return [(queue.broker_name, queue.queue_id) for queue in targets.queues(lane)]


def test_a_row_that_names_nothing_may_go_to_all_queues(world: StoringWorld) -> None:
    targets = Targets(world.cluster())
    lane = targets.lane(outgoing())
    assert not lane.is_one_queue
    assert places(targets, lane) == [(name, number) for name in "ab" for number in range(4)]


def test_a_row_goes_where_it_says(world: StoringWorld) -> None:
    targets = Targets(world.cluster())
    of_queue = targets.lane(outgoing(queue_id=2))
    assert places(targets, of_queue) == [("a", 2), ("b", 2)]
    assert len(places(targets, targets.lane(outgoing(broker_name="b")))) == 4
    both = targets.lane(outgoing(broker_name="b", queue_id=3))
    assert both.is_one_queue
    assert places(targets, both) == [("b", 3)]
    assert targets.lane(outgoing("some key", "b", 3)) == both


def test_a_sharding_key_has_the_queue_that_java_gives_it(world: StoringWorld) -> None:
    targets = Targets(world.cluster())
    assert targets.lane(outgoing("ab")) == Lane("T", "a", (97 * 31 + 98) % 8)
    assert targets.lane(outgoing("G")) == Lane("T", "b", 71 % 8 - 4)
    smallest = "polygenelubricants"  # its hash is Integer.MIN_VALUE
    assert targets.lane(outgoing(smallest)) == Lane("T", "a", 0)
    assert targets.lane(outgoing("ab", queue_id=1)) == Lane("T", "b", 1)


def test_a_queue_that_is_not_there_is_named_with_those_that_are(world: StoringWorld) -> None:
    targets = Targets(world.cluster())
    with pytest.raises(ClusterError, match="T has no queue 9 at broker a .* a 0, a 1, a 2, a 3, b"):
        targets.queues(Lane("T", "a", 9))
    with pytest.raises(ClusterError, match="topic Other is not known"):
        targets.queues(Lane("Other"))


def test_routes_are_looked_up_again_only_when_told_to(world: StoringWorld) -> None:
    cluster = world.cluster()
    targets = Targets(cluster)
    targets.queues(Lane("T"))
    del world.brokers["b"]
    cluster.route("T", again=True)
    assert len(targets.queues(Lane("T"))) == 8
    targets.forget("T")
    assert places(targets, Lane("T")) == [("a", number) for number in range(4)]
