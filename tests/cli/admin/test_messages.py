# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq messages` with a client among fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.administered import Administered
from tests.cli.stored import Stored
from tests.client.admin.fake_cluster import CONNECTIONS, refused
from tests.client.admin.test_messages import FOUND, UNIQUE_KEY, a_message, records
from tests.client.fakes import BROKER_A, a_route
from txrocketmq.cli.admin.messages import main
from txrocketmq.client.base.config import TRACE_TOPIC
from txrocketmq.client.core.trace import Recall
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol import heartbeat, query, send, topic
from txrocketmq.remoting.protocol.body.client import ConsumeMessageDirectlyResult
from txrocketmq.remoting.protocol.body.topic import GroupList
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader


@pytest.fixture
def messages(administered: Administered) -> Administered:
    cluster = administered.cluster
    cluster.routes["T"] = cluster.routes[TRACE_TOPIC] = a_route({"broker-a": 1})
    record = Recall(
        timestamp_ms=1_000, region="R", group="g", topic="T", msg_id=UNIQUE_KEY, success=True
    )
    carrier = a_message(2, KEYS=UNIQUE_KEY)
    carrier.topic, carrier.body = TRACE_TOPIC, record.data.encode()

    def give(_: str, header: Any, __: bytes) -> Reply[Any]:
        body = records(carrier) if header.topic == TRACE_TOPIC else records(a_message(1))
        return Reply(FOUND, body=body)

    on = cluster.connections.on
    on(BROKER_A, query.QUERY_MESSAGE, give)
    groups = GroupList(group_list=("g",)).encode()
    on(BROKER_A, topic.QUERY_TOPIC_CONSUME_BY_WHO, Reply(body=groups))
    cluster.on_both(admin.GET_CONSUMER_CONNECTION_LIST, refused(ResponseCode.CONSUMER_NOT_ONLINE))
    sent = Reply(SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7))
    on(BROKER_A, send.SEND_MESSAGE_V2, sent)
    on(BROKER_A, heartbeat.UNREGISTER_CLIENT, Reply())
    result = ConsumeMessageDirectlyResult(consume_result="CR_SUCCESS", spent_time_mills=4)
    on(BROKER_A, admin.CONSUME_MESSAGE_DIRECTLY, Reply(body=result.encode()))
    return administered


def test_a_message_and_its_groups(messages: Administered) -> None:
    assert messages.run(main, "view", "T", UNIQUE_KEY) == 0
    assert messages.out.endswith("broker-a/0@1 [a] {keys=k1 k2} m1\n")
    messages.run(main, "view", "T", UNIQUE_KEY, "--groups")
    assert messages.lines[-1] == ["g", "NOT_ONLINE", "-"]
    messages.run(main, "view", "T", UNIQUE_KEY, "--json")
    assert json.loads(messages.out)["msgId"] == UNIQUE_KEY


def test_messages_by_key(messages: Administered) -> None:
    assert messages.run(main, "query", "T", "--key", "k1", "--count", "5") == 0
    assert messages.out.endswith("m1\n")
    assert messages.run(main, "query", "T", "--key", "zzz") == 0
    assert messages.out == ""


@pytest.fixture
def stored(administered: Administered) -> Stored:
    """A topic with ten messages in two queues; number n was stored at n s."""
    made = Stored(administered.cluster)
    made.topic("Many", 2)
    for n in range(10):
        made.put("Many", n % 2, b"m%d" % n, 1_000_000_000_000 + n * 1_000, TAGS="ab"[n % 2])
    return made


def bodies(administered: Administered) -> list[str]:
    return [line.rpartition(" ")[2] for line in administered.out.splitlines()]


def test_messages_by_time_come_in_the_order_of_storing(
    administered: Administered, stored: Stored
) -> None:
    words = ["--from", "1000000002000", "--to", "1000000006000"]
    assert administered.run(main, "query", "Many", *words) == 0
    assert bodies(administered) == ["m2", "m3", "m4", "m5", "m6"]
    administered.run(main, "query", "Many", *words, "--tag", "a")
    assert bodies(administered) == ["m2", "m4", "m6"]


def test_pages_follow_each_other_without_a_gap(administered: Administered, stored: Stored) -> None:
    words = ["--from", "1000000000000", "--count", "3"]
    seen = []
    for _ in range(4):
        assert administered.run(main, "query", "Many", *words) == 0
        seen += bodies(administered)
        _, is_more, after = administered.err.partition("continue with --after ")
        if not is_more:
            break
        words = ["--after", after.split(",")[0], "--count", "3"]
    assert seen == [f"m{n}" for n in range(10)]
    assert administered.err == ""


def test_messages_of_one_millisecond_are_in_one_page_each(
    administered: Administered, stored: Stored
) -> None:
    for n in range(10, 16):
        stored.put("Many", n % 2, b"m%d" % n, 1_000_000_009_000, TAGS="c")
    administered.run(main, "query", "Many", "--after", "broker-a/0@6", "--all")
    assert sorted(bodies(administered)) == ["m11", "m13", "m14", "m15", "m9"]


def test_a_query_that_stops_says_so(administered: Administered, stored: Stored) -> None:
    assert administered.run(main, "query", "Many", "--from", "0", "--count", "4", "--json") == 2
    words = ["--from", "1000000000000", "--count"]
    assert administered.run(main, "query", "Many", *words, "4", "--json") == 0
    assert len(administered.out.splitlines()) == 4
    assert administered.err == (
        "txrocketmq messages query: stopped after 4 messages, and there are more: continue with"
        " --after broker-a/1@1, or give --all\n"
    )
    administered.run(main, "query", "Many", *words, "10")
    assert administered.err == ""
    administered.run(main, "query", "Many", *words, "4", "--all")
    assert (len(bodies(administered)), administered.err) == (10, "")


def index_of(stored: Stored, at_once: int) -> Any:
    """Answers as an index does: the newest first, so many at once, with times in seconds."""

    def answer(_: str, header: Any, __: bytes) -> Reply[Any]:
        found = [
            message
            for queue in stored.queues.values()
            for message in queue
            if message.store_timestamp // 1_000 * 1_000 <= header.end_timestamp
            and message.store_timestamp >= header.begin_timestamp
        ]
        found.sort(key=lambda each: each.store_timestamp, reverse=True)
        return Reply(FOUND, records(*found[: min(at_once, header.max_num)]))

    return answer


def test_more_messages_with_a_key_than_a_broker_gives_at_once(
    administered: Administered, stored: Stored
) -> None:
    for queue in stored.queues.values():
        for message in queue:
            message.properties["KEYS"] = "k"
    administered.cluster.connections.on(BROKER_A, query.QUERY_MESSAGE, index_of(stored, 3))
    assert administered.run(main, "query", "Many", "--key", "k") == 0
    assert bodies(administered) == [f"m{n}" for n in range(10)]
    administered.run(main, "query", "Many", "--key", "k", "--count", "4")
    assert bodies(administered) == ["m6", "m7", "m8", "m9"], "the newest"
    assert "stopped after 4 messages, and there are more: continue with a" in administered.err


@pytest.mark.parametrize(
    "words", [["query", "T"], ["query", "T", "--key", "k", "--tag", "a"], ["view", "T"],
              ["query", "T", "--from", "yesterday"], ["query", "T", "--after", "x"],
              ["query", "T", "--key", "k", "--after", "b/0@1"],
              ["query", "T", "--from", "now", "--count", "0"]]
)  # fmt: skip
def test_wrong_usage(messages: Administered, words: list[str]) -> None:
    assert messages.run(main, *words) == 2


def test_a_trace(messages: Administered) -> None:
    assert messages.run(main, "trace", UNIQUE_KEY) == 0
    words = messages.lines[1]
    assert (words[0], words[3:]) == ("Recall", ["g", "yes", "-"])


def test_a_message_again(messages: Administered) -> None:
    assert messages.run(main, "resend", "T", UNIQUE_KEY) == 0
    assert messages.out.startswith("SEND_OK broker-a/0@7 ")


def test_a_message_for_one_consumer(messages: Administered) -> None:
    messages.cluster.on_both(admin.GET_CONSUMER_CONNECTION_LIST, Reply(body=CONNECTIONS))
    assert messages.run(main, "deliver", "T", UNIQUE_KEY, "g", "c1") == 0
    assert messages.lines[1] == ["CR_SUCCESS", "4", "-"]
