# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.remoting.protocol.conftest import original_bodies
from txrocketmq.remoting.protocol.body import pop
from txrocketmq.remoting.protocol.body.base import BodyError
from txrocketmq.remoting.protocol.body.pop import BatchAck, encode_bit_set

LEAST, MOST = -(2**63), 2**63 - 1


def offsets(ack: BatchAck, least: int = LEAST, most: int = MOST) -> list[int]:
    return ack.offsets(ack.within(least, most))


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(pop)


def test_bit_set_is_the_originals() -> None:
    # Bits 1 and the number of the field are set in the sample; it starts at 10000000004.
    ack = BatchAck.decode(original_bodies("5.4.0", "filled")["BatchAck"].encode())
    assert offsets(ack) == [10000000004 + 1, 10000000004 + 9]
    assert encode_bit_set([9, 1]) == ack.bit_set


@given(st.sets(st.integers(0, 500)), st.integers(0, 2**40))
def test_bit_set_round_trip(distances: set[int], start: int) -> None:
    ack = BatchAck(start_offset=start, bit_set=encode_bit_set(distances))
    assert offsets(ack) == [start + distance for distance in sorted(distances)]


@given(
    st.sets(st.integers(0, 100)),
    st.integers(-200, 200),
    st.integers(-200, 200),
    st.integers(-200, 200),
)
def test_offsets_within_bounds(distances: set[int], start: int, least: int, most: int) -> None:
    ack = BatchAck(start_offset=start, bit_set=encode_bit_set(distances))
    wanted = [each for each in offsets(ack) if least <= each <= most]
    assert offsets(ack, least, most) == wanted
    assert ack.within(least, most).bit_count() == len(wanted)


@pytest.mark.parametrize("start", [LEAST, MOST])
def test_a_start_far_away_costs_nothing(start: int) -> None:
    ack = BatchAck(start_offset=start, bit_set=encode_bit_set(range(100)))
    assert ack.within(0, 10) == 0


def test_no_bit_set_acknowledges_nothing() -> None:
    assert offsets(BatchAck(start_offset=5)) == []


@pytest.mark.parametrize("text", ["?", "AgI", "Ag I=", "é"])
def test_what_is_no_base64(text: str) -> None:
    with pytest.raises(BodyError, match="is not base64"):
        offsets(BatchAck(bit_set=text))


def test_too_long_a_bit_set_is_refused() -> None:
    longest = base64.b64encode(b"\xff" * pop.MAX_BIT_SET_BYTES).decode()
    assert len(offsets(BatchAck(bit_set=longest))) == 8 * pop.MAX_BIT_SET_BYTES
    with pytest.raises(BodyError, match="4097 bytes are more than 4096"):
        offsets(BatchAck(bit_set=base64.b64encode(b"\0" * 4097).decode()))
