# SPDX-License-Identifier: Apache-2.0
"""No journey of broker, name server, client and proxy becomes longer unnoticed.

Operations of the interpreter and calls are counted, which come out the same however busy the
machine is. A journey that needs more than its limit has become slower: `python -m
benchmarks.journeys --where NAME` says by which functions, and the same in a checkout of before,
what they needed there. A limit is raised only for something that each request is worth.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from benchmarks.counted_journeys import JOURNEYS
from benchmarks.operations import COUNTED, Call, Counting, cost_of
from txrocketmq.broker.store.disk.descriptors import mappings

LIMITS: Final = {
    "send, JSON": (2424, 45.0),
    "send, JSON, of 32": (942, 4.9),
    "send, JSON, 3 properties": (2424, 45.0),
    "send, JSON, 3 properties, of 32": (942, 4.9),
    "send, binary": (2472, 47.5),
    "send, binary, of 32": (1003, 8.0),
    "send, one-way": (2223, 41.0),
    "send, one-way, of 32": (848, 4.8),
    "batch, of 32": (528, 3.9),
    "batch, 3 properties, of 32": (526, 3.8),
    "half message": (3415, 75.8),
    "half message, of 32": (1933, 36.3),
    "commit": (3580, 90.5),
    "commit, of 32": (1890, 40.8),
    "rollback": (1930, 53.4),
    "rollback, of 32": (1318, 27.1),
    "acknowledgement": (3550, 97.2),
    "acknowledgement, of 32": (2129, 60.6),
    "op message, of 32": (331, 1.3),
    "check of an ended transaction": (475, 17.9),
    "check of an open transaction": (3904, 113),
    "delayed message, delivery": (1030, 22.0),
    "message given back": (4380, 128),
    "pull of 32": (4470, 69.5),
    "pull of 32 by tag": (7480, 75.5),
    "pull of 1": (2640, 69.7),
    "pull that waits": (1300, 39.4),
    "send that wakes a pull": (4840, 119),
    "pop of 32": (29553, 707),
    "other invisible time": (4596, 128),
    "heartbeat": (3325, 119),
    "progress of a consumer": (759, 18.4),
    "question for progress": (992, 26.6),
    "confirmed send": (3952, 133),
    "confirmed send, of 32": (992, 7.8),
    "slave: message": (1846, 78.8),
    "slave: message, of 32": (310, 3.7),
    "name server: route": (2972, 110),
    "name server: registration": (11579, 322),
    "name server: registration, new": (12385, 336),
    "client: send": (2000, 71.4),
    "client: pulled message, of 32": (617, 14.4),
    "client: polled message, of 32": (412, 4.85),
    "proxy: send": (4545, 142),
    "proxy: send, of 16": (3882, 110),
    "proxy: received message, of 32": (1691, 42.7),
    "proxy: acknowledgement": (4326, 145),
    "proxy: acknowledgement, of 16": (3648, 113),
}
"""By journey: how many operations and calls one of its requests or messages may need."""
LEAST: Final = 0.9
"""Which part of its limit a journey needs at least: else the limit would not notice much."""

of_this_version = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the limits are in operations of CPython 3.11"
)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without this, stores would give up mappings because of those that other tests have left."""
    monkeypatch.setattr(mappings, "count", 0)


def test_every_journey_has_a_limit() -> None:
    assert list(LIMITS) == list(JOURNEYS)


@of_this_version
@pytest.mark.parametrize("name", LIMITS)
def test_a_journey_costs_no_more_than_its_limit(name: str, tmp_path: Path) -> None:
    cost, counting = JOURNEYS[name](tmp_path)
    most_operations, most_calls = LIMITS[name]
    functions = "\n".join(
        f"{count:>8} {function}" for function, count in counting.by_function().most_common(30)
    )
    assert cost.operations <= most_operations, f"{cost}\n{functions}"
    assert cost.calls <= most_calls, f"{cost}\n{functions}"
    assert cost.operations >= LEAST * most_operations, f"lower the limit: {cost}"


def test_the_same_journey_costs_the_same(tmp_path: Path) -> None:
    first, _ = JOURNEYS["pop of 32"](tmp_path / "first")
    second, _ = JOURNEYS["pop of 32"](tmp_path / "second")
    assert first == second


def _work(times: int) -> int:
    return sum(_step(each) for each in range(times))


def _step(each: int) -> int:
    return each + 1


def _calls(times: int) -> Iterator[Call]:
    yield partial(_work, times)
    yield partial(_work, times)


def test_only_what_is_yielded_counts() -> None:
    made: list[int] = []

    def journey(times: int) -> Iterator[Call]:
        made.append(_work(100))  # is no part of it
        yield from _calls(times)

    few, many = Counting(), Counting()
    cost = cost_of(partial(journey, 3), 1, few)
    assert cost_of(partial(journey, 4), 1, many).operations > cost.operations
    assert [count for code, count in few.calls.items() if code is _step.__code__] == [6 * COUNTED]
    assert cost.files == 1
    assert len(made) > COUNTED
    (name,) = [name for name in few.by_function() if name.endswith(": _step")]
    assert name == "tests/benchmarks/test_journeys.py: _step"


def test_one_of_several_requests_is_told() -> None:
    one = cost_of(partial(_calls, 5), 1, Counting())
    assert cost_of(partial(_calls, 5), 4, Counting()).operations == one.operations / 4
