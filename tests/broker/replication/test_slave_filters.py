# SPDX-License-Identifier: Apache-2.0
"""Readers of a slave that select messages by SQL: filters are not copied, as consumers tell them.

A consumer sends its subscriptions to all brokers of a name. What the slave has stored before that
has no bit of its group, and is read whole; see test_slave.py for the rest.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.broker.conftest import Parts
from tests.broker.processors.pull.test_pull_message import OWN, Pulling, bodies
from tests.broker.replication.wire import Open, Scene, master_of
from tests.fakes import FakePeer
from txrocketmq.broker.tables.clients import Client
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message.tags import SubscriptionData

WANTED = SubscriptionData("T", "a = 'x'", sub_version=1, expression_type="SQL92")


def has_heartbeat(parts: Parts, group: str, wanted: SubscriptionData) -> None:
    """A consumer says what it wants, as it does to each broker of the name."""
    client = Client(FakePeer(50_000), "c1", "JAVA", 407, parts.now_ms)
    how = "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET"
    parts.consumers.register(client, group, *how, [wanted])
    parts.filters.register(group, [wanted])


def arrives(scene: Scene, *values: str, ahead_ms: int) -> None:
    """Messages with these values come by way of a master whose clock is ahead."""
    for each in values:
        stored_ms = scene.parts.now_ms + ahead_ms
        master_of(scene).put(body=each.encode(), stored_ms=stored_ms, a=each[0])
    scene.pass_ms(100)
    scene.settle()


@pytest.mark.parametrize("ahead_ms", [-5_000, 0, 5_000])
@pytest.mark.parametrize("has_bitmaps", [False, True])
def test_a_reader_of_a_slave_gets_what_it_wants_and_nothing_else(
    opened: Open, has_bitmaps: bool, ahead_ms: int
) -> None:
    scene = opened(enable_consume_queue_ext=has_bitmaps)
    parts = scene.parts
    parts.set(slave_read_enable=True, enable_property_filter=True)
    parts.set(enable_calc_filter_bit_map=has_bitmaps)
    parts.topic("T")
    has_heartbeat(parts, "others", replace(WANTED, sub_string="a = 'z'"))
    reader = Pulling(parts)
    arrives(scene, "x1", "y1", ahead_ms=ahead_ms)

    def read() -> list[bytes]:
        found = reader.pull(
            sys_flag=0, sub_version=1, expression_type="SQL92", suspend_timeout_millis=0
        )
        return bodies(found)

    with pytest.raises(ResponseError) as refused:
        read()
    assert refused.value.code == ResponseCode.SUBSCRIPTION_NOT_EXIST, "it asks again"
    has_heartbeat(parts, "g", WANTED)
    arrives(scene, "x2", "y2", "x3", ahead_ms=ahead_ms)
    assert read() == [b"x1", b"x2", b"x3"]
    with_its_own = reader.pull(sys_flag=OWN, subscription="a = 'y'", expression_type="SQL92")
    assert bodies(with_its_own) == [b"y1", b"y2"]
