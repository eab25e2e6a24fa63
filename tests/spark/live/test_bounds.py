# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spark.live.fakes import BORN_MS, NAME_SERVER, FakeBroker, World, queue
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.spark.arrow.errors import ClusterError, DataLossError, OptionError
from txrocketmq.spark.live.bounds import (
    cluster_of,
    cut,
    ends,
    present_queues,
    queues_of,
    starts,
)
from txrocketmq.spark.live.pull import QueueRange
from txrocketmq.spark.options.offsets import EARLIEST, LATEST
from txrocketmq.spark.options.option import Use
from txrocketmq.spark.options.options import SourceOptions

MakeWorld = Callable[..., World]
A0, A1, B0 = queue("t", "a", 0), queue("t", "a", 1), queue("t", "b", 0)


def some(world: MakeWorld) -> World:
    a, b = FakeBroker("a"), FakeBroker("b")
    a.fill("t", [10, 4], first=3)
    b.fill("t", [5])
    b.fill("%RETRY%g", [1])
    b.fill("t2", [1])
    b.fill("rmq_sys_REVIVE_LOG_C", [1])
    return world(a, b)


def options(**given: str) -> SourceOptions:
    parsed = SourceOptions.of({"nameServer": NAME_SERVER, **given})
    parsed.check(Use.LIVE_BATCH)
    return parsed


def names(queues: list[MessageQueue]) -> list[str]:
    return [f"{each.topic}/{each.broker_name}/{each.queue_id}" for each in queues]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"topic": "t"}, ["t/a/0", "t/a/1", "t/b/0"]),
        ({"topic": "t2,t"}, ["t2/b/0", "t/a/0", "t/a/1", "t/b/0"]),
        ({"topicPattern": "t.*"}, ["t/a/0", "t/a/1", "t/b/0", "t2/b/0"]),
        ({"topicPattern": ".*g|.*LOG.*"}, ["%RETRY%g/b/0"]),
        ({"topicPattern": "none"}, []),
        ({"topic": "rmq_sys_REVIVE_LOG_C"}, ["rmq_sys_REVIVE_LOG_C/b/0"]),
        ({"assign": '{"t": {"a": [1]}}'}, ["t/a/1"]),
        ({"assign": '{"t": [0], "t2": [0, 9]}'}, ["t/a/0", "t/b/0", "t2/b/0"]),
    ],
)
def test_which_queues(world: MakeWorld, given: dict[str, str], expected: list[str]) -> None:
    assert names(queues_of(some(world).cluster(), options(**given))) == expected


@pytest.mark.parametrize(
    "given", [{"topic": "t,gone"}, {"assign": '{"t": {"c": [0]}}'}, {"assign": '{"gone": [0]}'}]
)
def test_what_is_named_and_missing(world: MakeWorld, given: dict[str, str]) -> None:
    cluster = some(world).cluster()
    with pytest.raises(ClusterError, match="topic (gone|t) is not known at 10"):
        queues_of(cluster, options(**given))
    present_queues(cluster, options(**given))


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
def test_offsets_of_queues_that_are_missing(world: MakeWorld, option: str) -> None:
    given = {"topic": "t", option: '{"t": {"a": {"7": 3}}}'}
    with pytest.raises(OptionError, match=f"option {option}: queue 7 of t on a is not there"):
        queues_of(some(world).cluster(), options(**given))


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsetsByTimestamp"])
def test_a_queue_that_is_on_no_broker(world: MakeWorld, option: str) -> None:
    given = {"topic": "t", option: '{"t": {"7": 3}}'}
    with pytest.raises(OptionError, match=f"option {option}: queue 7 of t on any broker is not"):
        queues_of(some(world).cluster(), options(**given))


def bounds(made: World, where: Any, **given: str) -> list[int]:
    cluster = made.cluster()
    parsed = options(topic="t", **given)
    queues = queues_of(cluster, parsed)
    found = where(cluster, queues, parsed)
    return [found[each] for each in (A0, A1, B0)]


def test_where_a_read_begins(world: MakeWorld) -> None:
    made = some(world)

    def earliest(*args: Any) -> Any:
        return starts(*args, default=EARLIEST)

    def latest(*args: Any) -> Any:
        return starts(*args, default=LATEST)

    assert bounds(made, earliest) == [3, 3, 0]
    assert bounds(made, latest) == [13, 7, 5]
    assert bounds(made, latest, startingOffsets="earliest") == [3, 3, 0]
    assert bounds(made, earliest, startingOffsets="latest") == [13, 7, 5]
    some_named = '{"t": {"a": {"0": 5, "1": -1}}}'
    assert bounds(made, latest, startingOffsets=some_named) == [5, 7, 0]
    moment = str(BORN_MS + 4500)
    assert bounds(made, latest, startingTimestamp=moment, startingOffsets=some_named) == [5, 5, 5]


def test_queues_that_begin_and_end_at_times_of_their_own(world: MakeWorld) -> None:
    made = some(world)

    def latest(*args: Any) -> Any:
        return starts(*args, default=LATEST)

    times = f'{{"t": {{"a": {{"0": {BORN_MS + 4500}}}, "b": {{"0": {BORN_MS + 99_000}}}}}}}'
    own = {"startingOffsetsByTimestamp": times}
    assert bounds(made, latest, **own) == [5, 7, 5], "at the end where there is nothing so young"
    assert bounds(made, latest, **own, startingOffsets="earliest") == [5, 3, 5]
    assert bounds(made, latest, **own, startingTimestamp=str(BORN_MS + 4000)) == [4, 4, 4]
    assert bounds(made, ends, endingOffsetsByTimestamp=times) == [5, 7, 5]


def test_where_a_read_ends(world: MakeWorld) -> None:
    made = some(world)
    assert bounds(made, ends) == [13, 7, 5]
    some_named = '{"t": {"a": {"0": 5, "1": -1}}}'
    assert bounds(made, ends, endingOffsets=some_named) == [5, 7, 5]
    moment = str(BORN_MS + 4000)
    assert bounds(made, ends, endingTimestamp=moment, endingOffsets=some_named) == [4, 4, 4]


@pytest.mark.parametrize(("offset", "nearest"), [(2, 3), (14, 13)])
def test_offsets_that_the_queue_does_not_have(
    world: MakeWorld, offset: int, nearest: int, caplog: pytest.LogCaptureFixture
) -> None:
    made = some(world)
    given = {"endingOffsets": f'{{"t": {{"a": {{"0": {offset}}}}}}}'}
    text = f"offset {offset} of queue 0 of topic t on a is asked for, which has 3 to 13"
    with pytest.raises(DataLossError, match=text):
        bounds(made, ends, **given)
    assert bounds(made, ends, failOnDataLoss="false", **given) == [nearest, 7, 5]
    assert text in caplog.text


def test_only_what_is_needed_is_asked(world: MakeWorld) -> None:
    made = some(world)
    bounds(made, ends)
    asked = {call for _, call in made.asked}
    assert "GET_MIN_OFFSET" not in asked


def test_the_cluster_of_the_options() -> None:
    cluster = cluster_of(SourceOptions.of({"nameServer": "h:1;g:2", "pullTimeoutMs": "70"}))
    assert (cluster.name_servers, cluster.timeout_ms) == (("h:1", "g:2"), 70)


def test_parts() -> None:
    ranges = {A0: (0, 10), A1: (5, 5), B0: (7, 8)}
    assert cut(ranges) == [(QueueRange(A0, 0, 10), QueueRange(B0, 7, 8))]
    assert cut(ranges, min_partitions=3) == [
        (QueueRange(A0, 0, 2),), (QueueRange(A0, 2, 5),), (QueueRange(A0, 5, 7),),
        (QueueRange(A0, 7, 10),), (QueueRange(B0, 7, 8),),
    ]  # fmt: skip
    assert cut(ranges, max_records=5)[:2] == [(QueueRange(A0, 0, 5),), (QueueRange(A0, 5, 10),)]
    assert cut({}, min_partitions=3, max_records=1) == []


def test_tasks_follow_the_amount_of_messages() -> None:
    queues = [queue("t", "a", number) for number in range(20_000)]
    few = cut(dict.fromkeys(queues, (7, 8)))
    assert sum(map(len, few)) == 20_000
    assert len(few) == -(-20_000 // 128), "a range costs at least one pull of 32 messages"
    assert len(cut({A0: (0, 10_000_000)})) == 10, "one queue does not mean one task"
    assert len(cut({A0: (0, 4000), B0: (0, 4000)})) == 2


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(-5, 200)), max_size=6),
    st.none() | st.integers(1, 50),
    st.none() | st.integers(1, 50),
)
def test_parts_are_even_and_complete(
    sizes: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    ranges = {queue("t", "a", at): (start, start + size) for at, (start, size) in enumerate(sizes)}
    parts = cut(ranges, min_partitions=min_partitions, max_records=max_records)
    for each, (start, end) in ranges.items():
        its = [some for part in parts for some in part if some.queue == each]
        assert [at for part in its for at in range(part.start, part.end)] == list(range(start, end))
        lengths = {part.end - part.start for part in its}
        assert max(lengths, default=0) - min(lengths, default=0) <= 1
        assert max(lengths, default=0) <= (max_records or max(lengths, default=0))
    total = sum(max(size, 0) for _, size in sizes)
    assert len(parts) >= min(min_partitions or 0, total)
