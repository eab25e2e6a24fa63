# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.proxy.receives.batch_acks import batch_acks, may_be_together
from txrocketmq.proxy.receives.handles import Handle
from txrocketmq.remoting.protocol.body.pop import encode_bit_set


def handle(broker: str, start: int, offset: int, pop_ms: int = 1_000) -> Handle:
    return Handle.parse(f"{start} {pop_ms} 60000 3 0 {broker} 7 {offset} 817", 0)


def test_messages_of_a_pop_are_one_acknowledgement() -> None:
    handles = [
        handle("a", 5, 5), handle("a", 5, 8), handle("a", 9, 9, 2_000), handle("b", 5, 6),
    ]  # fmt: skip
    found = batch_acks("G", "T", handles)
    assert {name: [each.bit_set for each in its.acks] for name, its in found.items()} == {
        "a": [encode_bit_set([0, 3]), encode_bit_set([0])],
        "b": [encode_bit_set([1])],
    }


@pytest.mark.parametrize(
    ("offset", "expected"), [(5, True), (4_100, True), (4_101, False), (4, False)]
)
def test_distances_are_bounded(offset: int, expected: bool) -> None:
    assert may_be_together(handle("a", 5, offset)) is expected
