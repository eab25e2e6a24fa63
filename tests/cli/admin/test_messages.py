# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq messages` with a client among fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.administered import Administered
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
    header: Any = messages.cluster.connections.questions(query.QUERY_MESSAGE)[0][1]
    assert header.max_num == 5
    assert messages.run(main, "query", "T", "--key", "zzz") == 0
    assert messages.out == ""


@pytest.mark.parametrize(
    "words", [["query", "T"], ["query", "T", "--key", "k", "--tag", "a"], ["view", "T"],
              ["query", "T", "--from", "yesterday"]]
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
