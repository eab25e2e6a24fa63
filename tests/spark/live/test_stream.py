# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from tests.spark.live.fakes import NAME_SERVER, FakeBroker, World, queue
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol.offset import UPDATE_CONSUMER_OFFSET
from txrocketmq.remoting.protocol.pull import PULL_MESSAGE
from txrocketmq.spark.arrow.errors import ClusterError, DataLossError, OptionError
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.live import bounds, stream
from txrocketmq.spark.live.life import EXPIRED
from txrocketmq.spark.live.stream import LiveStreamReader
from txrocketmq.spark.live.wire.rpc import Unreachable
from txrocketmq.spark.options.option import Use
from txrocketmq.spark.options.options import SourceOptions

MakeWorld = Callable[..., World]
ALL = ReadAllAvailable()
B_MASTER = "10.0.1.2:10911"


def some(world: MakeWorld) -> World:
    a, b = FakeBroker("a"), FakeBroker("b")
    a.fill("t", [10, 0], first=3)
    b.fill("t", [5])
    return world(a, b)


@pytest.fixture
def reader(world: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LiveStreamReader]:
    def make(made: World, **given: str) -> LiveStreamReader:
        monkeypatch.setattr(bounds, "Cluster", lambda _, **more: made.cluster())
        options = SourceOptions.of({"nameServer": NAME_SERVER, "topic": "t", **given})
        options.check(Use.LIVE_STREAM)
        return LiveStreamReader(options, Output.of(options))

    return make


MakeReader = Callable[..., LiveStreamReader]


def at(position: dict[str, Any]) -> dict[str, int]:
    """Offsets by "broker/queue"."""
    return {
        f"{broker}/{number}": offset
        for broker, offsets in position["topics"]["t"].items()
        for number, offset in offsets.items()
    }


def through_json(position: dict[str, Any]) -> dict[str, Any]:
    """As it comes out of the checkpoint."""
    parsed: dict[str, Any] = json.loads(json.dumps(position))
    return parsed


def ranges(reader: LiveStreamReader, start: Any, end: Any) -> list[tuple[str, int, int]]:
    tasks = [each.value for each in reader.partitions(through_json(start), through_json(end))]
    parts = [part for task in tasks for part in task]
    return [(f"{p.queue.broker_name}/{p.queue.queue_id}", p.start, p.end) for p in parts]


def test_a_new_stream_begins_at_the_end(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    ours = reader(made)
    start = ours.initialOffset()
    assert at(start) == {"a/0": 13, "a/1": 3, "b/0": 5}
    assert ours.latestOffset(start, ALL) is start
    made.brokers["b"].add("t", 0, 2)
    end = ours.latestOffset(start, ALL)
    assert ranges(ours, start, end) == [("b/0", 5, 7)]
    assert ours.latestOffset(end, ALL) is end
    assert at(ours.reportLatestOffset() or {}) == {"a/0": 13, "a/1": 3, "b/0": 7}


def test_a_session_with_another_zone_than_the_times_is_told(
    world: MakeWorld, reader: MakeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = reader(some(world), startingTimestamp="2025-11-01T00:00:00")
    monkeypatch.setattr(ours, "_options", ours._options.in_zone("UTC"))
    monkeypatch.setattr("txrocketmq.spark.options.zones.zone_of_task", lambda: "Asia/Tokyo")
    with pytest.raises(OptionError, match="timeZone is Asia/Tokyo, but was UTC when register"):
        ours.read(InputPartition(()))


def test_or_where_it_is_told(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    assert at(reader(made, startingOffsets="earliest").initialOffset()) == {
        "a/0": 3, "a/1": 3, "b/0": 0,
    }  # fmt: skip
    with pytest.raises(ClusterError, match="topic u is not known"):
        reader(made, topic="u").initialOffset()


def test_a_limit_is_shared_out(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    ours = reader(made, startingOffsets="earliest", maxOffsetsPerTrigger="6")
    assert ours.getDefaultReadLimit() == ReadMaxRows(6)
    position = ours.initialOffset()
    batches = []
    while (end := ours.latestOffset(position, ReadMaxRows(6))) is not position:
        batches.append(ranges(ours, position, end))
        position = end
    assert batches == [[("a/0", 3, 7), ("b/0", 0, 2)], [("a/0", 7, 11), ("b/0", 2, 4)],
                       [("a/0", 11, 13), ("b/0", 4, 5)]]  # fmt: skip
    assert reader(made).getDefaultReadLimit() == ALL
    start = ours.initialOffset()
    everything = [("a/0", 3, 13), ("b/0", 0, 5)]
    assert ranges(ours, start, ours.latestOffset(start, ALL)) == everything, "as Once wants it"


def test_a_few_messages_wait_for_others_but_not_for_ever(
    world: MakeWorld, reader: MakeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(stream, "monotonic", lambda: now_s)
    made = some(world)
    ours = reader(made, minOffsetsPerTrigger="4", maxTriggerDelay="30s")
    start = ours.initialOffset()
    made.brokers["b"].add("t", 0, 3)
    assert ours.latestOffset(start, ALL) is start
    now_s += 29
    assert ours.latestOffset(start, ALL) is start
    now_s += 1
    first = ours.latestOffset(start, ALL)
    assert ranges(ours, start, first) == [("b/0", 5, 8)], "the delay is over"
    assert ours.latestOffset(first, ALL) is first
    made.brokers["b"].add("t", 0, 3)
    assert ours.latestOffset(first, ALL) is first, "the delay begins anew"
    made.brokers["a"].add("t", 0, 1)
    second = ours.latestOffset(first, ALL)
    assert ranges(ours, first, second) == [("a/0", 13, 14), ("b/0", 8, 11)], "there are enough"
    made.brokers["a"].add("t", 0, 1)
    ours.prepareForTriggerAvailableNow()
    assert ours.latestOffset(second, ALL) is not second, "all that is there now"


def test_available_now_ends_at_what_was_there(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    ours = reader(made, startingOffsets="earliest")
    start = ours.initialOffset()
    ours.prepareForTriggerAvailableNow()
    made.brokers["a"].add("t", 0, 100)
    made.brokers["a"].add("t", 2, 100)
    first = ours.latestOffset(start, ReadMaxRows(10))
    second = ours.latestOffset(first, ReadMaxRows(10))
    assert at(second) == {"a/0": 13, "a/1": 3, "b/0": 5}
    assert ours.latestOffset(second, ReadMaxRows(10)) is second


def test_new_queues_are_read_from_their_start(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    start = reader(made).initialOffset()
    c = FakeBroker("c", addresses={0: "10.0.1.3:10911"})
    c.fill("t", [4], first=20)
    made.brokers["c"] = c
    made.brokers["b"].add("t", 1)
    ours = reader(made)
    end = ours.latestOffset(start, ALL)
    expected = [("b/1", 0, 1), ("c/0", 20, 24)]
    assert ranges(ours, start, end) == expected
    c.queues["t", 0].first, c.queues["t", 0].messages = 23, c.queues["t", 0].messages[3:]
    assert ranges(reader(made), start, end) == expected, "the batch is done again as it was"
    assert ours.latestOffset(through_json(end), ALL) == end, "what has begun is not new any more"
    made.brokers["b"].add("t", 1)
    assert ranges(ours, end, ours.latestOffset(end, ALL)) == [("b/1", 1, 2)]


def test_a_broker_that_is_away_goes_on_where_it_was(
    world: MakeWorld, reader: MakeReader, caplog: pytest.LogCaptureFixture
) -> None:
    made = some(world)
    ours = reader(made)
    start = ours.initialOffset()
    made.brokers["a"].add("t", 0)
    made.brokers["b"].add("t", 0)
    made.down = {B_MASTER}
    first = ours.latestOffset(start, ALL)
    assert ranges(ours, start, first) == [("a/0", 13, 14)]
    assert "broker b is left out for the moment" in caplog.text
    away = made.brokers.pop("b")
    assert ours.latestOffset(first, ALL) is first
    made.brokers["b"] = away
    made.down.clear()
    assert ranges(ours, first, ours.latestOffset(first, ALL)) == [("b/0", 5, 6)]


def test_a_broker_that_is_busy_does_not_stop_the_stream(
    world: MakeWorld, reader: MakeReader, caplog: pytest.LogCaptureFixture
) -> None:
    made = some(world)
    ours = reader(made)
    start = ours.initialOffset()
    made.brokers["a"].add("t", 0)
    busy = refusal = Reply[Any](code=ResponseCode.SYSTEM_BUSY, remark="overloaded")
    made.fail = lambda address, *_: refusal if address == B_MASTER else None
    assert ranges(ours, start, ours.latestOffset(start, ALL)) == [("a/0", 13, 14)]
    assert "broker b is left out for the moment: 10.0.1.2:10911 refused" in caplog.text
    made.fail = lambda address, *_: busy if address != NAME_SERVER else None
    with pytest.raises(ClusterError, match="overloaded"):
        ours.latestOffset(start, ALL)
    made.fail = lambda address, *_: refusal if address == B_MASTER else None
    refusal = Reply(code=ResponseCode.NO_PERMISSION, remark="not for you")
    with pytest.raises(ClusterError, match="not for you"):
        ours.latestOffset(start, ALL)


def test_a_topic_that_is_away_is_told_once(
    world: MakeWorld, reader: MakeReader, caplog: pytest.LogCaptureFixture
) -> None:
    """It may come back; but it may also be a name that was changed at a restart."""
    made = some(world)
    start = reader(made).initialOffset()
    ours = reader(made, topic="u,t")
    for _ in range(2):
        assert ours.latestOffset(start, ALL) is start
    told = [record.getMessage() for record in caplog.records]
    assert told == ["topic u is not known at 10.0.0.1:9876: nothing of it is read for the moment"]
    made.brokers["a"].fill("u", [1])
    assert ours.latestOffset(start, ALL) is not start
    del made.brokers["a"].queues["u", 0]
    ours.latestOffset(start, ALL)
    assert len(caplog.records) == 2, "once more, since it was there"


def test_no_broker_at_all_is_an_error(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    ours = reader(made)
    start = ours.initialOffset()
    made.down = {B_MASTER, "10.0.1.1:10911"}
    with pytest.raises(ClusterError, match="no connection to"):
        ours.latestOffset(start, ALL)
    with pytest.raises(ClusterError, match="no connection to"):
        ours.prepareForTriggerAvailableNow()


LIFE_MS = 3_600_000


@pytest.mark.parametrize("count", [1, 2, 12, 13, 14, 20])
@pytest.mark.parametrize("limit", [ALL, ReadMaxRows(4)])
def test_a_topic_made_anew(
    world: MakeWorld,
    reader: MakeReader,
    caplog: pytest.LogCaptureFixture,
    count: int,
    limit: ReadLimit,
) -> None:
    """Whether it has become shorter than before, longer, or just as long."""
    made = some(world)
    start = through_json(reader(made).initialOffset())
    made.brokers["a"].fill("t", [count, 0], life_ms=LIFE_MS)
    text = "queue 0 of topic t on a .*, where the stream is: the topic was made anew"
    with pytest.raises(DataLossError, match=text):
        reader(made).latestOffset(start, limit)
    ours = reader(made, failOnDataLoss="false")
    read: list[int] = []
    position = start
    while (end := ours.latestOffset(position, limit)) is not position:
        read += [
            offset
            for place, first, after in ranges(ours, position, end)
            if place == "a/0"
            for offset in range(first, after)
        ]
        position = through_json(end)
    assert read == list(range(count)), "nothing of the new queue is missed, or read twice"
    assert len([each for each in caplog.records if "queue 0" in each.getMessage()]) == 1


def test_a_topic_made_anew_while_the_stream_runs(
    world: MakeWorld, reader: MakeReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr(stream, "monotonic", lambda: now_s)
    made = some(world)
    ours = reader(made, failOnDataLoss="false")
    start = ours.initialOffset()
    assert ours.latestOffset(start, ALL) is start
    asked = made.asked.copy()
    now_s += 59
    made.brokers["b"].fill("t", [5], life_ms=LIFE_MS)
    assert ours.latestOffset(start, ALL) is start, "it is just as long as before"
    assert (made.asked - asked)[B_MASTER, "PULL_MESSAGE"] == 0, "which costs nothing"
    now_s += 1
    end = ours.latestOffset(start, ALL)
    assert ranges(ours, start, end) == [("b/0", 0, 5)]
    made.brokers["b"].fill("t", [6], life_ms=2 * LIFE_MS)
    after = ours.latestOffset(end, ALL)
    assert ranges(ours, end, after) == [("b/0", 0, 6)], "what is longer is noticed at once"
    made.brokers["b"].add("t", 0)
    assert ranges(ours, after, ours.latestOffset(after, ALL)) == [("b/0", 6, 7)]


@pytest.mark.parametrize("moment", range(1, 4))
def test_a_topic_made_anew_while_it_is_planned(
    world: MakeWorld, reader: MakeReader, moment: int
) -> None:
    """At whatever question: the micro-batch is of one life, or the next one notices."""
    made = some(world)
    ours = reader(made, failOnDataLoss="false")
    start = ours.initialOffset()
    made.brokers["b"].add("t", 0, 3)
    asked = 0

    def anew(address: str, *_: Any) -> None:
        nonlocal asked
        asked += address == B_MASTER
        if asked == moment:
            made.brokers["b"].fill("t", [9], life_ms=LIFE_MS)

    made.fail = anew
    end = ours.latestOffset(start, ALL)
    made.brokers["b"].add("t", 0)
    read = ranges(ours, start, end)
    after = ours.latestOffset(end, ALL)
    if after is not end:
        read += ranges(ours, end, after)
    of_new = read[[first for _, first, _ in read].index(0) :]
    assert [first for _, first, _ in of_new] == [0, *(end for *_, end in of_new[:-1])]
    assert read[-1][2] == 10, "all of the new queue is read"


def test_a_micro_batch_of_a_topic_made_anew_is_not_repeated(
    world: MakeWorld, reader: MakeReader, caplog: pytest.LogCaptureFixture
) -> None:
    made = some(world)
    ours = reader(made)
    start = ours.initialOffset()
    made.brokers["b"].add("t", 0, 3)
    end = through_json(ours.latestOffset(start, ALL))
    assert ranges(reader(made), start, end) == [("b/0", 5, 8)]
    made.brokers["b"].fill("t", [9], life_ms=LIFE_MS)
    with pytest.raises(DataLossError, match="messages up to 8 of queue 0 of topic t on b are gone"):
        ranges(reader(made), start, end)
    ours = reader(made, failOnDataLoss="false")
    assert ranges(ours, start, end) == []
    assert ranges(ours, end, ours.latestOffset(end, ALL)) == [("b/0", 0, 9)]


def test_a_broker_that_lost_the_end_of_its_log(world: MakeWorld, reader: MakeReader) -> None:
    """What came since is read; what was read before is not read again."""
    made = some(world)
    start = reader(made).initialOffset()
    made.brokers["a"].fill("t", [7, 0], first=3)
    ours = reader(made, failOnDataLoss="false")
    end = ours.latestOffset(start, ALL)
    assert at(end) == {"a/0": 10, "a/1": 3, "b/0": 5}
    assert ranges(ours, start, end) == []
    late = made.brokers["a"].queues["t", 0]
    made.brokers["a"].fill("t", [13], first=0, life_ms=LIFE_MS)
    late.messages += made.brokers["a"].queues["t", 0].messages[10:]
    made.brokers["a"].queues["t", 0] = late
    ours = reader(made, failOnDataLoss="false")
    end = ours.latestOffset(start, ALL)
    assert ranges(ours, start, end) == [("a/0", 10, 13)]


def test_an_offset_whose_message_had_expired(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    start = reader(made).initialOffset()
    assert start["stored"]["t"]["a"]["1"] == EXPIRED
    ours = reader(made, failOnDataLoss="false")
    made.brokers["a"].fill("t", [2, 7], first=11)
    assert ranges(ours, start, ours.latestOffset(start, ALL)) == [("a/1", 3, 18)]
    made.brokers["a"].fill("t", [13, 9])
    end = ours.latestOffset(start, ALL)
    assert ranges(ours, start, end) == [("a/1", 0, 9)]
    made.brokers["a"].addresses = {1: "10.0.1.1:10921"}
    again = ours.latestOffset(start, ALL)
    assert ranges(ours, start, again) == [("a/1", 3, 9)], "a slave may keep messages for longer"


def test_a_checkpoint_without_times_gets_them(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    start = reader(made).initialOffset()
    times = start.pop("stored")
    made.brokers["b"].add("t", 0)
    end = reader(made).latestOffset(start, ALL)
    times["t"]["b"]["0"] += 1000
    assert end["stored"] == times
    start["topics"]["t"]["b"]["0"] = 9
    end = reader(made, failOnDataLoss="false").latestOffset(start, ALL)
    assert at(end)["b/0"] == 6
    assert end["new"] == {"t": {"b": {"0": 0}}}, "what nobody knows is read again"


def test_a_broker_that_goes_away_while_a_batch_is_planned(
    world: MakeWorld, reader: MakeReader, caplog: pytest.LogCaptureFixture
) -> None:
    made = some(world)
    ours = reader(made)
    start = ours.initialOffset()
    made.brokers["b"].add("t", 0)
    made.fail = lambda address, call, _: (
        Unreachable("it went away") if call is PULL_MESSAGE else None
    )
    assert ours.latestOffset(start, ALL) is start
    assert "nothing is read for the moment: it went away" in caplog.text
    ours.prepareForTriggerAvailableNow()
    with pytest.raises(ClusterError, match="it went away"):
        ours.latestOffset(start, ALL)


def test_a_slave_alone_may_be_behind(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    ours = reader(made)
    start = ours.initialOffset()
    made.brokers["a"].addresses = {1: "10.0.1.1:10921"}
    made.brokers["a"].fill("t", [2], first=3)
    assert ours.latestOffset(start, ALL) is start


def test_group_offsets_are_the_next_to_read(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    ours = reader(made, group="g", commitGroupOffsets="true", startingOffsets="earliest")
    start = ours.initialOffset()
    end = ours.latestOffset(start, ALL)
    assert made.brokers["a"].group_offsets == {("g", "t", 0): 3, ("g", "t", 1): 3}
    ours.commit(through_json(end))
    assert made.brokers["a"].group_offsets == {("g", "t", 0): 13, ("g", "t", 1): 3}
    assert made.brokers["b"].group_offsets == {("g", "t", 0): 5}
    commits = made.asked[B_MASTER, "UPDATE_CONSUMER_OFFSET"]
    ours.latestOffset(end, ALL)
    assert made.asked[B_MASTER, "UPDATE_CONSUMER_OFFSET"] == commits, "no news"


def test_without_the_option_nothing_is_told(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    ours = reader(made, group="g")
    ours.commit(ours.initialOffset())
    assert made.brokers["a"].group_offsets == {}


def test_a_broker_that_does_not_take_group_offsets_does_not_stop_the_stream(
    world: MakeWorld, reader: MakeReader, caplog: pytest.LogCaptureFixture
) -> None:
    made = some(world)
    made.fail = lambda address, call, _: (
        Reply(code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark="Group g not exist!")
        if call is UPDATE_CONSUMER_OFFSET and address == B_MASTER
        else None
    )
    ours = reader(made, group="g", commitGroupOffsets="true")
    ours.commit(ours.initialOffset())
    assert "offsets of g are not committed at b" in caplog.text
    assert "Group g not exist!" in caplog.text
    assert made.brokers["a"].group_offsets == {("g", "t", 0): 13, ("g", "t", 1): 3}


def test_group_offsets_that_were_not_told_are_told_with_the_next_ones(
    world: MakeWorld, reader: MakeReader
) -> None:
    made = some(world)
    ours = reader(made, group="g", commitGroupOffsets="true")
    start = ours.initialOffset()
    made.down = {B_MASTER}
    ours.commit(start)
    assert made.brokers["b"].group_offsets == {}
    tries = made.asked[B_MASTER, "UPDATE_CONSUMER_OFFSET"]
    ours.commit(start)
    assert made.asked[B_MASTER, "UPDATE_CONSUMER_OFFSET"] == tries, "no news"
    made.down.clear()
    made.brokers["a"].add("t", 0)
    ours.commit(ours.latestOffset(start, ALL))
    assert made.brokers["b"].group_offsets == {("g", "t", 0): 5}
    assert made.brokers["a"].group_offsets["g", "t", 0] == 14


def test_more_partitions(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    ours = reader(made, startingOffsets="earliest", minPartitions="6")
    start = ours.initialOffset()
    parts = ours.partitions(start, ours.latestOffset(start, ALL))
    assert len(parts) >= 6
    assert ours.partitions(start, start) == []
    ours.stop()


def test_a_pattern_takes_topics_that_come_later(world: MakeWorld, reader: MakeReader) -> None:
    made = some(world)
    options = SourceOptions.of({"nameServer": NAME_SERVER, "topicPattern": "[tu]"})
    reader(made)
    ours = LiveStreamReader(options, Output.of(options))
    start = ours.initialOffset()
    made.brokers["a"].fill("u", [2])
    parts = ours.partitions(start, ours.latestOffset(start, ALL))
    assert [each.value for each in parts] == [((queue("u", "a", 0), 0, 2),)]
