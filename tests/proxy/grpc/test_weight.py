# SPDX-License-Identifier: Apache-2.0
"""What is in long messages besides bodies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.proxy.grpc.weight import MOST_FIELDS, MOST_OTHER_BYTES, Weight
from txrocketmq.proxy.schema.messages import message_type

BODIES = (1, 4)


def sends(*messages: dict[str, Any]) -> bytes:
    """A request to send, as bytes."""
    data: bytes = message_type("SendMessageRequest")(messages=messages).SerializeToString()
    return data


def test_bodies_weigh_nothing() -> None:
    one = {
        "topic": {"name": "T"},
        "user_properties": {str(n): "value" for n in range(128)},
        "system_properties": {"message_id": "x", "keys": ["a", "b"], "queue_id": 3},
        "body": bytes(4_000_000),
    }
    weight = Weight(BODIES)
    assert not weight.is_too_much(sends(*[one] * 8))
    assert weight.other_bytes < 8 * 4_000
    assert weight.fields == 8 * (1 + 1 + 128 + 1 + 1)


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x00" * (MOST_FIELDS + 1),
        sends({"user_properties": {str(n): "" for n in range(MOST_FIELDS + 1)}}),
        sends({"topic": {"name": "x" * (MOST_OTHER_BYTES + 1)}}),
        sends({"body": b"x" * 100})[:-1],
        b"\x0b\x0c",
        b"\x0a\xff\xff",
        b"\x08" + b"\xff" * 11,
        b"\x0d\x00",
    ],
)
def test_what_is_too_much(data: bytes) -> None:
    assert Weight(BODIES).is_too_much(data)


def test_numbers_of_all_kinds_are_passed_over() -> None:
    data = b"\x10\x96\x01" + b"\x19" + bytes(8) + b"\x25" + bytes(4)
    weight = Weight(BODIES)
    assert not weight.is_too_much(data)
    assert (weight.fields, weight.other_bytes) == (3, 2 + 8 + 4)


@given(st.binary(max_size=200))
def test_any_bytes_have_an_answer(data: bytes) -> None:
    Weight(BODIES).is_too_much(data)
