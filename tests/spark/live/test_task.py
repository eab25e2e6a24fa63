# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.live.fakes import (
    BORN_MS,
    NAME_SERVER,
    FakeBroker,
    FakeQueue,
    World,
    message,
    queue,
)
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import Message, encode_batch, encode_message
from txrocketmq.remoting.protocol.pull import PULL_MESSAGE, PullMessageResponseHeader
from txrocketmq.remoting.protocol.topic import GET_TOPIC_CONFIG
from txrocketmq.spark.arrow.errors import BadRecordError, ClusterError, DataLossError
from txrocketmq.spark.arrow.records import Records
from txrocketmq.spark.columns.decode import BadRecord
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.live import task
from txrocketmq.spark.live.pull import Gone, QueueRange
from txrocketmq.spark.live.task import ROUTE_S, LiveScan, check_expression, joined, records_of
from txrocketmq.spark.options.options import SourceOptions

MakeWorld = Callable[..., World]
QUEUE = queue("t", "a", 0)


@pytest.fixture
def read(world: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pa.Table]:
    def make(
        broker: FakeBroker, start: int, end: int, answers: Any = None, **given: str
    ) -> pa.Table:
        made = world(broker)
        made.fail = answers or made.fail
        monkeypatch.setattr(task, "_known_cluster", lambda *_: made.cluster())
        options = SourceOptions.of({"nameServer": NAME_SERVER, "topic": "t", **given})
        output = Output.of(options)
        batches = LiveScan.of(options, output).read(QueueRange(QUEUE, start, end))
        return pa.Table.from_batches(batches, output.schema)

    return make


Read = Callable[..., pa.Table]


def filled(*messages: Any, first: int = 0) -> FakeBroker:
    return FakeBroker("a", {("t", 0): FakeQueue(list(messages), first)})


def some(count: int, **more: Any) -> FakeBroker:
    return filled(*(message("t", 0, at) for at in range(count)))


def test_rows(read: Read) -> None:
    table = read(some(100), 10, 90, columns="queueOffset,body,brokerName,cluster,topic,uniqKey")
    assert table["queueOffset"].to_pylist() == list(range(10, 90))
    assert table.slice(3, 1).to_pylist() == [
        {
            "queueOffset": 13,
            "body": b"body 0/13",
            "brokerName": "a",
            "cluster": "C",
            "topic": "t",
            "uniqKey": "t-0-13",
        }
    ]


def test_a_worker_does_not_go_by_an_old_route(
    world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that one broker gives up may be another one's next, who answers without error."""
    ours, other = FakeBroker("a"), FakeBroker("b")
    ours.fill("t", [5])
    other.fill("t", [9], first=2)
    made = world(ours, other)
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(task, "Cluster", lambda *_, **more: made.cluster(**more))
    task._known_cluster.cache_clear()
    options = SourceOptions.of({"nameServer": NAME_SERVER, "topic": "t", "columns": "uniqKey"})
    scan = LiveScan.of(options, Output.of(options))

    def bodies() -> list[int]:
        return [len(batch) for batch in scan.read(QueueRange(QUEUE, 0, 5))]

    assert bodies() == bodies() == [5]
    assert made.asked[NAME_SERVER, "GET_ROUTEINFO_BY_TOPIC"] == 1, "not for each task"
    other.addresses, ours.addresses = ours.addresses, {0: "10.0.1.9:10911"}
    now[0] += ROUTE_S
    assert bodies() == [5]


def test_all_columns_come_as_declared(read: Read) -> None:
    (row,) = read(some(3), 1, 2).to_pylist()
    assert dict(row["properties"]) == {"TAGS": "A", "UNIQ_KEY": "t-0-1"}
    assert row["bornHost"] == row["storeHost"] == "10.0.1.1:10911"
    assert row["physicalOffset"] == 1000
    assert row["storeTimestamp"].timestamp() * 1000 == BORN_MS + 1000


def test_tags_are_compared_as_texts(read: Read) -> None:
    """Aa and BB have the same hash, by which alone brokers filter."""
    messages = [message("t", 0, at, tags=("Aa", "BB", "C")[at % 3]) for at in range(60)]
    table = read(filled(*messages), 0, 50, subExpression="Aa||C", columns="queueOffset,flag")
    assert table["queueOffset"].to_pylist() == [at for at in range(50) if at % 3 != 1]
    assert table.column_names == ["queueOffset", "flag"]


def test_brokers_filter_by_an_expression(read: Read) -> None:
    """What they leave out is not taken for lost."""
    messages = [message("t", 0, at, tags="AB"[at % 2]) for at in range(60)]
    table = read(filled(*messages), 0, 50, sqlExpression="TAGS = 'B'", columns="queueOffset")
    assert table["queueOffset"].to_pylist() == list(range(1, 50, 2))


def test_an_expression_that_a_broker_refuses(read: Read) -> None:
    broker = filled(*[message("t", 0, at) for at in range(5)])
    broker.checked = Reply(code=ResponseCode.SUBSCRIPTION_PARSE_FAILED, remark="no")
    with pytest.raises(ClusterError, match="option sqlExpression: broker a cannot read it: no"):
        read(broker, 0, 5, sqlExpression="a >")


def test_messages_of_inner_batches_have_their_own_offsets(read: Read) -> None:
    """Whatever part of a record with five messages a task has to read."""
    flags = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
    body = encode_batch([Message("t", b"%d" % at) for at in range(5)])
    found = PullMessageResponseHeader(
        suggest_which_broker_id=0, next_begin_offset=5, min_offset=0, max_offset=5
    )
    answer = Reply(found, encode_message(message("t", 0, 0, body=body, sys_flag=flags)))

    def answers(_address: str, call: Call[Any, Any], _header: Any) -> Reply[Any] | None:
        return answer if call is PULL_MESSAGE else None

    for start, end in ((0, 5), (2, 4), (4, 5)):
        table = read(some(0), start, end, answers=answers, columns="queueOffset,body")
        assert table.to_pydict() == {
            "queueOffset": list(range(start, end)),
            "body": [b"%d" % at for at in range(start, end)],
        }


def test_what_an_answer_leaves_out_between_batches_is_told(read: Read) -> None:
    """They say how many messages they have, and so what lies between them."""
    flags = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
    body = encode_batch([Message("t", b"%d" % at) for at in range(3)])
    found = PullMessageResponseHeader(
        suggest_which_broker_id=0, next_begin_offset=9, min_offset=0, max_offset=9
    )
    batches = [
        encode_message(
            message("t", 0, at, body=body, sys_flag=flags, properties={"INNER_NUM": "3"})
        )
        for at in (0, 3, 6)
    ]

    def answering(*bodies: bytes) -> Any:
        answer = Reply(found, b"".join(bodies))
        return lambda _address, call, _header: answer if call is PULL_MESSAGE else None

    assert len(read(some(0), 1, 9, answers=answering(*batches), columns="queueOffset")) == 8
    with pytest.raises(DataLossError, match="messages 3 to 5 of queue 0 of topic t"):
        read(some(0), 0, 9, answers=answering(batches[0], batches[2]))
    with pytest.raises(DataLossError, match="messages 6 to 8 of queue 0 of topic t"):
        read(some(0), 0, 9, answers=answering(*batches[:2]))


def test_what_is_gone(read: Read, caplog: pytest.LogCaptureFixture) -> None:
    broker = filled(*(message("t", 0, at) for at in range(10, 20)), first=10)
    text = "messages 5 to 9 of queue 0 of topic t on a are gone: the queue begins at 10"
    with pytest.raises(DataLossError, match=text):
        read(broker, 5, 15)
    table = read(broker, 5, 15, failOnDataLoss="false", columns="queueOffset")
    assert table["queueOffset"].to_pylist() == [10, 11, 12, 13, 14]
    assert text in caplog.text


@pytest.mark.parametrize(
    ("deleted", "text"),
    [
        ({0, 1, 2}, "messages 0 to 2 of"),
        ({5, 40}, "messages 5 to 5 of"),
        ({48, 49}, "messages 48 to 49 of"),
        (range(50), "messages 0 to 49 of"),
    ],
)
def test_what_answers_leave_out_is_gone(
    read: Read, caplog: pytest.LogCaptureFixture, deleted: Iterable[int], text: str
) -> None:
    """A broker gives what is left of what it was asked for, and says that it has found it."""
    broker = some(50)
    broker.queues["t", 0].deleted = frozenset(deleted)
    with pytest.raises(DataLossError, match=text):
        read(broker, 0, 50)
    table = read(broker, 0, 50, failOnDataLoss="false", columns="queueOffset")
    assert table["queueOffset"].to_pylist() == [at for at in range(50) if at not in deleted]
    assert text in caplog.text


def refusing(what: Call[Any, Any], refusal: Reply[Any]) -> Callable[..., Reply[Any] | None]:
    return lambda _, call, __: refusal if call is what else None


def test_a_topic_that_keeps_the_last_of_each_key_has_holes(read: Read) -> None:
    broker = some(20)
    broker.attributes = {"cleanup.policy": "COMPACTION"}
    broker.queues["t", 0].deleted = frozenset({0, 7, 8, 19})
    table = read(broker, 0, 20, columns="queueOffset")
    assert table.num_rows == 16


def test_holes_of_a_broker_that_tells_nothing_of_topics_are_losses(read: Read) -> None:
    broker = some(20)
    broker.queues["t", 0].deleted = frozenset({7})
    for code in (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, ResponseCode.NO_PERMISSION):
        answers = refusing(GET_TOPIC_CONFIG, Reply(code=code, remark="no"))
        with pytest.raises(DataLossError, match="messages 7 to 7"):
            read(broker, 0, 20, answers)


def test_where_answers_are_damaged_nothing_is_called_gone(read: Read) -> None:
    records = [encode_message(message("t", 0, at)) for at in range(6)]
    found = PullMessageResponseHeader(
        suggest_which_broker_id=0, next_begin_offset=6, min_offset=0, max_offset=6
    )
    answer = Reply(found, b"".join(records[:2]) + records[2][:50])

    def answers(_address: str, call: Call[Any, Any], _header: Any) -> Reply[Any] | None:
        return answer if call is PULL_MESSAGE else None

    table = read(some(6), 0, 6, answers, badRecords="skip", columns="queueOffset")
    assert table["queueOffset"].to_pylist() == [0, 1]


def test_what_is_left_out_before_what_is_gone() -> None:
    records = [encode_message(message("t", 0, at)) for at in (0, 1, 2, 8, 9)]
    gone = Gone(QUEUE, 5, 8, "")
    found = task._followed(QueueRange(QUEUE, 0, 12), [records[:2], records[2:3], gone, records[3:]])
    holes = [each[1:3] for each in found if isinstance(each, Gone)]
    assert holes == [(3, 5), (5, 8), (10, 12)]


def test_a_body_that_does_not_decompress(read: Read, caplog: pytest.LogCaptureFixture) -> None:
    bad = message("t", 0, 1, body=b"no zlib", sys_flag=MessageSysFlag.COMPRESSED)
    broker = filled(message("t", 0, 0), bad, message("t", 0, 2))
    with pytest.raises(
        BadRecordError, match="in the log behind messages 0 to 2 of queue 0 of topic t on a at"
    ):
        read(broker, 0, 3)
    table = read(broker, 0, 3, badRecords="skip", columns="queueOffset,body")
    assert table["queueOffset"].to_pylist() == [0, 2]
    assert "damaged records of queue 0 of topic t on a left out: 1 decompress" in caplog.text
    raw = read(broker, 0, 3, decompress="false", columns="body")
    assert raw["body"].to_pylist()[1] == b"no zlib"


def test_answers_are_joined() -> None:
    gone = Gone(QUEUE, 0, 1, "")

    def answers() -> Iterator[bytes | Gone]:
        yield from (b"aa", b"bb", b"cc", gone, b"dd", b"ee")

    assert list(joined(answers(), 4)) == [[b"aa", b"bb"], [b"cc"], gone, [b"dd", b"ee"]]
    assert list(joined([], 4)) == []


def split(found: list[Records | BadRecord]) -> tuple[list[int], list[BadRecord]]:
    """Queue offsets of what is sound, and what is not."""
    sound = [at for each in found if isinstance(each, Records) for at in each.queue_offset.tolist()]
    return sound, [each for each in found if isinstance(each, BadRecord)]


def test_records_of_answers() -> None:
    bodies = [encode_message(message("t", 0, at)) for at in range(6)]
    assert split(list(records_of([bodies[0] + bodies[1], bodies[2]]))) == ([0, 1, 2], [])


def test_lengths_that_do_not_add_up() -> None:
    records = [encode_message(message("t", 0, at)) for at in range(4)]
    at = records[1].index(b"body") - 1
    broken = records[1][:at] + bytes([records[1][at] ^ 1]) + records[1][at + 1 :]
    sound, (bad,) = split(list(records_of([records[0] + broken + records[2], records[3]])))
    assert sound == [0, 2, 3]
    assert (bad.physical_offset, bad.length, bad.data) == (1000, len(broken), broken)
    assert bad.reason == "chain"


@pytest.mark.parametrize("cut", [1, 40, 100])
def test_only_the_rest_of_one_answer_is_damaged_by_a_wrong_size(cut: int) -> None:
    records = [encode_message(message("t", 0, at)) for at in range(6)]
    bodies = [records[0] + records[1][:cut], records[2], records[3] + records[4], records[5]]
    sound, (bad,) = split(list(records_of(bodies)))
    assert sound == [0, 2, 3, 4, 5]
    assert bad.data == records[1][:cut]
    assert bad.physical_offset == (1000 if cut == 100 else -1)


def check_sql(world: MakeWorld, answer: Reply[Any] | None = None) -> None:
    broker = FakeBroker("a", {("t", 0): FakeQueue([])}, checked=answer)
    cluster = world(broker).cluster()
    cluster.route("t")
    check_expression(cluster, queue("t", "a", 0), "a > 5", "g")


def test_a_broker_that_filters_by_sql(world: MakeWorld) -> None:
    check_sql(world)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (ResponseCode.SYSTEM_ERROR, "broker a does not filter by it .enablePropertyFilter.*: why"),
        (ResponseCode.SUBSCRIPTION_PARSE_FAILED, "broker a cannot read it: why"),
    ],
)
def test_a_broker_that_does_not_filter_by_sql(world: MakeWorld, code: int, why: str) -> None:
    with pytest.raises(ClusterError, match=f"option sqlExpression: {why}"):
        check_sql(world, Reply(code=code, remark="why"))
