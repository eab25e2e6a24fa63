# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.arrow.errors import SparkSourceError
from txrocketmq.spark.log.log_position import LogPosition, of_offset, to_offset

_OFFSETS = st.integers(0, 1 << 62)
_POSITIONS = st.builds(
    LogPosition,
    log=_OFFSETS,
    fingerprint=st.text(max_size=8),
    begin=st.none() | _OFFSETS,
    since_ms=st.none() | _OFFSETS,
    first=st.dictionaries(st.tuples(st.text(max_size=5), st.integers(0, 1000)), _OFFSETS),
    until=_OFFSETS,
)


@given(st.dictionaries(st.text(max_size=5), _POSITIONS, max_size=4))
def test_positions_survive_a_checkpoint(positions: dict[str, LogPosition]) -> None:
    needed = {
        name: each if each.first and each.log < each.until else replace(each, first={}, until=0)
        for name, each in positions.items()
    }
    assert of_offset(json.loads(json.dumps(to_offset(positions)))) == needed


def test_a_plain_position_is_a_byte_and_a_fingerprint() -> None:
    assert to_offset({"a": LogPosition(log=5, fingerprint="0a")}) == {
        "v": 1,
        "brokers": {"a": {"log": 5, "fp": "0a"}},
    }


@pytest.mark.parametrize(
    ("offset", "reason"),
    [
        ({"v": 2, "brokers": {}}, "is of version 2, this program reads version 1"),
        ({"brokers": {}}, "is of version None"),
        ({"v": 1, "topics": {"T": {}}}, "not a position in stores: .* new checkpointLocation"),
        ({"v": 1, "brokers": {"a": 5}}, "not a position in stores"),
        ({"v": 1, "brokers": {"a": {"log": 5}}}, "not a position in stores"),
        ({"v": 1, "brokers": {"a": {"log": "x", "fp": ""}}}, "not a position in stores"),
    ],
)
def test_what_is_no_position_is_an_error_that_says_what_to_do(
    offset: dict[str, Any], reason: str
) -> None:
    with pytest.raises(SparkSourceError, match=reason):
        of_offset(offset)
