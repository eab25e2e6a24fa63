# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.spark.live.wire.share import share

BACKLOGS = st.dictionaries(st.text(max_size=3), st.integers(0, 1000), max_size=20)


def test_in_proportion() -> None:
    assert share(100, {"a": 600, "b": 300, "c": 100}, 0) == {"a": 60, "b": 30, "c": 10}


def test_all_when_there_is_enough() -> None:
    assert share(10, {"a": 4, "b": 0, "c": 6}, 0) == {"a": 4, "b": 0, "c": 6}
    assert share(10, {}, 0) == {}


def test_little_is_not_passed_over_for_much() -> None:
    assert share(10, {"a": 1_000_000, "b": 1, "c": 1}, 0) == {"a": 9, "b": 1, "c": 0} or share(
        10, {"a": 1_000_000, "b": 1, "c": 1}, 0
    ) == {"a": 9, "b": 0, "c": 1}


def test_with_less_than_one_for_each_all_have_their_turn() -> None:
    backlogs = dict.fromkeys("abcdefgh", 50)
    got: Counter[str] = Counter()
    for turn in range(0, 400, 2):
        got.update(share(2, backlogs, turn))
    assert min(got.values()) > 20


@given(st.integers(1, 3000), BACKLOGS, st.integers(0, 2**63))
def test_the_limit_is_kept_and_used(limit: int, backlogs: dict[str, int], turn: int) -> None:
    shares = share(limit, backlogs, turn)
    assert shares.keys() == backlogs.keys()
    assert sum(shares.values()) == min(limit, sum(backlogs.values()))
    total = sum(backlogs.values())
    for key, backlog in backlogs.items():
        assert 0 <= shares[key] <= backlog
        if total > limit:
            assert limit * backlog // total <= shares[key] <= limit * backlog // total + 1


@given(BACKLOGS, st.integers(1, 50))
def test_all_is_read_in_the_end(backlogs: dict[str, int], limit: int) -> None:
    left, read = dict(backlogs), 0
    while any(left.values()):
        shares = share(limit, left, read)
        assert sum(shares.values()) > 0
        left = {key: left[key] - shares[key] for key in left}
        read += sum(shares.values())
    assert read == sum(backlogs.values())


@given(BACKLOGS, st.integers(1, 50), st.integers(-500, -1))
def test_queues_that_have_shrunk_get_nothing(
    backlogs: dict[str, int], limit: int, shrunk: int
) -> None:
    assert share(limit, {**backlogs, "shrunk": shrunk}, 0)["shrunk"] == 0
