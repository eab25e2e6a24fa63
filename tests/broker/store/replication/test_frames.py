# SPDX-License-Identifier: Apache-2.0
"""The bytes between master and slave, cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.store.replication.frames import (
    FRAME_HEAD,
    HEAD_CODEC,
    MAX_FRAME_BYTES,
    REPORT,
    HaPeerError,
    ReportDecoder,
    TransferDecoder,
)

FRAMES = [(0, b"a" * 30), (30, b""), (30, b"b"), (31, b"c" * 100), (1 << 40, b"")]
BYTES = b"".join(HEAD_CODEC.pack(offset, len(data)) + data for offset, data in FRAMES)


def test_the_bytes_are_those_of_the_original() -> None:
    assert REPORT.build({"offset": 5}) == bytes.fromhex("0000000000000005")
    head = FRAME_HEAD.build({"offset": 1 << 32, "size": 7})
    assert head == bytes.fromhex("000000010000000000000007")


@given(st.lists(st.integers(0, len(BYTES))))
def test_frames_are_cut_anywhere(cuts: list[int]) -> None:
    decoder = TransferDecoder()
    places = [0, *sorted(cuts), len(BYTES)]
    found = []
    for start, end in pairwise(places):
        found += [(at, bytes(data)) for at, data in decoder.frames(BYTES[start:end])]
    assert found == FRAMES


@pytest.mark.parametrize("size", [-1, -(1 << 31), MAX_FRAME_BYTES + 1, (1 << 31) - 1])
@pytest.mark.parametrize("first", [0, 5])
def test_a_size_that_cannot_be_is_refused_before_its_bytes_come(size: int, first: int) -> None:
    decoder = TransferDecoder()
    data = BYTES[:42] + HEAD_CODEC.pack(30, size)
    found = [bytes(each) for _, each in decoder.frames(data[:first])]
    with pytest.raises(HaPeerError, match=f"a frame of {size} bytes cannot be"):
        found += [bytes(each) for _, each in decoder.frames(data[first:])]


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1), st.data())
def test_the_last_complete_report_counts(offsets: list[int], data: st.DataObject) -> None:
    decoder = ReportDecoder()
    text = b"".join(REPORT.build({"offset": each}) for each in offsets)
    cut = data.draw(st.integers(0, len(text)))
    assert decoder.last(text[:cut]) == (offsets[cut // 8 - 1] if cut >= 8 else None)
    assert decoder.last(text[cut:]) == (offsets[-1] if len(text) - cut // 8 * 8 else None)
