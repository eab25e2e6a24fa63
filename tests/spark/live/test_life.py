# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.spark.live.fakes import BORN_MS, FakeBroker, World, message, queue
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import MessageQueue, encode_message
from txrocketmq.remoting.protocol.pull import PULL_MESSAGE, PullMessageResponseHeader
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.life import EXPIRED, is_other, stored_before

MakeWorld = Callable[..., World]


def test_times_of_the_messages_before(world: MakeWorld) -> None:
    a, b = FakeBroker("a"), FakeBroker("b")
    a.fill("t", [10, 0, 2], first=3)
    b.fill("t", [5])
    made = world(a, b)
    cluster = made.cluster()
    cluster.route("t")
    offsets = {
        queue("t", "a", 0): 13,
        queue("t", "a", 1): 3,
        queue("t", "a", 2): 9,
        queue("t", "b", 0): 0,
    }
    assert stored_before(cluster, offsets) == {
        queue("t", "a", 0): BORN_MS + 12_000,
        queue("t", "a", 1): EXPIRED,
    }, "a queue that ends before tells nothing, and nothing is before offset 0"
    assert stored_before(cluster, {queue("t", "a", 0): 4}) == {queue("t", "a", 0): BORN_MS + 3000}


def test_the_first_message_of_an_answer(world: MakeWorld) -> None:
    a = FakeBroker("a")
    a.fill("t", [1])
    made = world(a)
    cluster = made.cluster()
    cluster.route("t")
    place = queue("t", "a", 0)

    def answered(body: bytes) -> dict[MessageQueue, int]:
        found = PullMessageResponseHeader(
            suggest_which_broker_id=0, next_begin_offset=9, min_offset=0, max_offset=9
        )
        made.fail = lambda _, call, __: Reply(found, body) if call is PULL_MESSAGE else None
        return stored_before(cluster, {place: 8})

    batch = message("t", 0, 5, sys_flag=MessageSysFlag.INNER_BATCH)
    assert answered(encode_message(batch)) == {place: BORN_MS + 5000}, "a batch that has it"
    assert answered(encode_message(message("t", 0, 8))) == {}, "a compacted topic without it"
    with pytest.raises(ClusterError, match="offset 7"):
        answered(b"nothing")


@pytest.mark.parametrize(
    ("before", "now", "other"),
    [
        (5, 5, False), (5, 6, True), (5, 4, True), (5, EXPIRED, False), (5, None, False),
        (None, 5, False), (EXPIRED, 5, True), (EXPIRED, EXPIRED, False), (EXPIRED, None, False),
    ],
)  # fmt: skip
def test_two_lives(before: int | None, now: int | None, other: bool) -> None:
    assert is_other(before, now) is other
