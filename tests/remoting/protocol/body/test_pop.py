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


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(pop)


def test_bit_set_is_the_originals() -> None:
    # Bits 1 and the number of the field are set in the sample; it starts at 10000000004.
    ack = BatchAck.decode(original_bodies("5.4.0", "filled")["BatchAck"].encode())
    assert ack.offsets() == [10000000004 + 1, 10000000004 + 9]
    assert encode_bit_set([9, 1]) == ack.bit_set


@given(st.sets(st.integers(0, 500)), st.integers(0, 2**40))
def test_bit_set_round_trip(distances: set[int], start: int) -> None:
    ack = BatchAck(start_offset=start, bit_set=encode_bit_set(distances))
    assert ack.offsets() == [start + distance for distance in sorted(distances)]


def test_no_bit_set_acknowledges_nothing() -> None:
    assert BatchAck(start_offset=5).offsets() == []


@pytest.mark.parametrize("text", ["?", "AgI", "Ag I=", "é"])
def test_what_is_no_base64(text: str) -> None:
    with pytest.raises(BodyError, match="is not base64"):
        BatchAck(bit_set=text).offsets()


def test_too_long_a_bit_set_is_refused() -> None:
    longest = base64.b64encode(b"\xff" * pop.MAX_BIT_SET_BYTES).decode()
    assert len(BatchAck(bit_set=longest).offsets()) == 8 * pop.MAX_BIT_SET_BYTES
    with pytest.raises(BodyError, match="4097 bytes are more than 4096"):
        BatchAck(bit_set=base64.b64encode(b"\0" * 4097).decode()).offsets()
