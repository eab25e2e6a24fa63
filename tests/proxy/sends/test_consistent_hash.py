# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.proxy.sends.consistent_hash import bucket_of, consistent_hash

BUCKETS = (1, 2, 3, 8, 16, 1_000)


@pytest.mark.parametrize(
    ("group", "expected"),
    [  # printed by Hashing.consistentHash(group.hashCode(), buckets) of Guava 31.0.1
        ("a", (0, 0, 0, 0, 0, 346)),
        ("b", (0, 0, 0, 5, 5, 184)),
        ("order-1", (0, 0, 0, 3, 3, 489)),
        ("order-2", (0, 0, 2, 2, 11, 184)),
        ("漢字", (0, 1, 1, 1, 1, 468)),
        ("", (0, 0, 0, 0, 0, 0)),
        ("zzzzzzzzzzzz", (0, 0, 0, 3, 3, 220)),
        ("polygenelubricants", (0, 1, 2, 2, 2, 185)),
        ("10000", (0, 0, 0, 7, 11, 966)),
    ],
)
def test_groups_have_the_queues_that_guava_gives_them(
    group: str, expected: tuple[int, ...]
) -> None:
    assert tuple(bucket_of(group, count) for count in BUCKETS) == expected


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 10_000))
def test_a_bucket_more_takes_from_the_others_and_moves_nothing_else(
    number: int, buckets: int
) -> None:
    before, after = consistent_hash(number, buckets), consistent_hash(number, buckets + 1)
    assert 0 <= before < buckets
    assert after in (before, buckets)
