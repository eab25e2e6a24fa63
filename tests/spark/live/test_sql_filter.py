# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.spark.live.fakes import FakeBroker, FakeQueue, World, queue
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.spark.errors import ClusterError
from txrocketmq.spark.live.sql_filter import check_expression

MakeWorld = Callable[..., World]


def check(world: MakeWorld, answer: Reply[Any] | None = None) -> None:
    broker = FakeBroker("a", {("t", 0): FakeQueue([])}, checked=answer)
    cluster = world(broker).cluster()
    cluster.route("t")
    check_expression(cluster, queue("t", "a", 0), "a > 5", "g")


def test_a_broker_that_filters(world: MakeWorld) -> None:
    check(world)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (ResponseCode.SYSTEM_ERROR, "broker a does not filter by it .enablePropertyFilter.*: why"),
        (ResponseCode.SUBSCRIPTION_PARSE_FAILED, "broker a cannot read it: why"),
    ],
)
def test_a_broker_that_does_not(world: MakeWorld, code: int, why: str) -> None:
    with pytest.raises(ClusterError, match=f"option sqlExpression: {why}"):
        check(world, Reply(code=code, remark="why"))
