# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq dead-letters` with a client among fakes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.administered import Administered
from tests.cli.stored import Stored
from tests.client.fakes import BROKER_A, NAME_SERVER, a_route
from txrocketmq.cli.admin import dead_letters
from txrocketmq.cli.admin.dead_letters import main
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.message.message import MessageQueue, encode_message
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.protocol import heartbeat, query, send, topic
from txrocketmq.remoting.protocol.body.stats import TopicOffset, TopicStatsTable
from txrocketmq.remoting.protocol.body.topic import TopicList
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.query import QueryMessageResponseHeader
from txrocketmq.remoting.protocol.send import SendMessageResponseHeader

DLQ = "%DLQ%g"
IDS = [f"7F0000010F11A69F0C9081C37F8E000{n}" for n in range(3)]


class Letters(Administered):
    """The group g has three dead letters, which were stored at 1, 2 and 3 s."""


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Letters:
    made = Letters(monkeypatch, capsys)
    cluster = made.cluster
    stored = Stored(cluster)
    stored.topic(DLQ, 1)
    for n, msg_id in enumerate(IDS):
        own = {"RETRY_TOPIC": "Orders", "UNIQ_KEY": msg_id, "TAGS": "t", "KEYS": f"k{n}", "x": "1"}
        stored.put(DLQ, 0, b"letter %d" % n, (n + 1) * 1_000_000_000_000, **own)
    cluster.routes["%RETRY%g"] = cluster.routes["Orders"] = a_route({"broker-a": 1})
    cluster.know("g")

    def found(_: str, header: Any, __: bytes) -> Reply[Any]:
        found = [each for each in stored.queues[DLQ, 0] if each.unique_key == header.key]
        answer = QueryMessageResponseHeader(
            index_last_update_timestamp=0, index_last_update_phyoffset=0
        )
        return Reply(answer, b"".join(map(encode_message, found)))

    def stats(_: str, header: Any, __: bytes) -> Reply[Any]:
        table = {
            MessageQueue(header.topic, "broker-a", 0): TopicOffset(
                min_offset=0, max_offset=3, last_update_timestamp=3_000_000_000_000
            )
        }
        return Reply(body=TopicStatsTable(offset_table=table).encode())

    on = cluster.connections.on
    names = TopicList(topic_list=("Orders", DLQ))
    on(NAME_SERVER, topic.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, Reply(body=names.encode()))
    on(BROKER_A, admin.GET_TOPIC_STATS_INFO, stats)
    on(BROKER_A, query.QUERY_MESSAGE, found)
    result = SendMessageResponseHeader(msg_id="O", queue_id=0, queue_offset=7)
    on(BROKER_A, send.SEND_MESSAGE_V2, Reply(result))
    on(BROKER_A, heartbeat.UNREGISTER_CLIENT, Reply())
    return made


def sent(letters: Letters) -> list[tuple[str, dict[str, str], bytes]]:
    return [
        (header.topic, decode_properties(header.properties), body)
        for _, call, header, body, _ in letters.cluster.connections.asked
        if call is send.SEND_MESSAGE_V2
    ]


def test_which_groups_have_any(letters: Letters) -> None:
    assert letters.run(main, "list") == 0
    assert letters.lines[1][:2] == ["g", "3"]


def test_the_dead_letters_of_a_group(letters: Letters) -> None:
    assert letters.run(main, "list", "g") == 0
    lines = letters.out.splitlines()
    assert len(lines) == 3
    assert lines[0].endswith(f" Orders {IDS[0]} [t] {{keys=k0, x=1}} letter 0")
    letters.run(main, "list", "g", "--from", "2000000000000", "--to", "2500000000000", "--json")
    assert json.loads(letters.out)["body"] == "letter 1"


def test_a_list_that_stops_says_so(letters: Letters) -> None:
    assert letters.run(main, "list", "g", "--count", "2") == 0
    assert len(letters.out.splitlines()) == 2
    assert "list: stopped after 2 messages, and there are more" in letters.err
    letters.run(main, "list", "g", "--count", "2", "--all")
    assert (len(letters.out.splitlines()), letters.err) == (3, "")


def test_a_group_without_any_and_one_that_nobody_knows(letters: Letters) -> None:
    letters.cluster.know("h")
    assert letters.run(main, "list", "h") == 0
    assert letters.out == ""
    assert letters.run(main, "list", "nobody") == 1
    assert "no broker has the group nobody" in letters.out


def test_all_are_delivered_again_to_the_group_alone(letters: Letters) -> None:
    assert letters.run(main, "resend", "g", "--all", "--yes") == 0
    assert [(topic, body) for topic, _, body in sent(letters)] == [
        ("%RETRY%g", b"letter %d" % n) for n in range(3)
    ]
    own = sent(letters)[0][1]
    assert (own["RETRY_TOPIC"], own["ORIGIN_MESSAGE_ID"]) == ("Orders", IDS[0])
    assert (own["TAGS"], own["KEYS"], own["x"]) == ("t", "k0", "1")
    assert len(letters.out.splitlines()) == 3


def test_those_with_an_id_or_of_a_time(letters: Letters) -> None:
    assert letters.run(main, "resend", "g", IDS[2], IDS[0], "-y") == 0
    assert [body for _, _, body in sent(letters)] == [b"letter 2", b"letter 0"]
    letters.run(main, "resend", "g", "--from", "3000000000000", "-y")
    assert sent(letters)[-1][2] == b"letter 2"
    assert len(sent(letters)) == 3


def test_an_unknown_id_sends_nothing(letters: Letters) -> None:
    assert letters.run(main, "resend", "g", IDS[0], "7" * 32, "-y") == 1
    assert "has a message with the id 777" in letters.out
    assert sent(letters) == []


def test_to_a_topic_they_are_new_messages(letters: Letters) -> None:
    assert letters.run(main, "resend", "g", "--all", "-y", "--to-topic", "Orders") == 0
    topic_name, own, _ = sent(letters)[0]
    assert topic_name == "Orders"
    assert "RETRY_TOPIC" not in own


def test_it_asks_first(letters: Letters) -> None:
    assert letters.run(main, "resend", "g", "--all") == 1
    assert "Send all these dead letters of group g to group g again?" in letters.err
    assert sent(letters) == []


def test_where_there_are_none_it_says_so(letters: Letters) -> None:
    letters.cluster.know("h")
    assert letters.run(main, "resend", "h", "--all", "-y") == 0
    assert (letters.out, letters.err) == ("", "there are no such dead letters\n")
    assert letters.run(main, "list", "h") == 0
    assert (letters.out, letters.err) == ("", "group h has no dead letters\n")
    assert letters.run(main, "list", "h", "--from", "2026-11-21T08:00:00") == 0
    assert (letters.out, letters.err) == ("", "group h has no such dead letters\n")
    assert letters.run(main, "list", "h", "--json") == 0
    assert (letters.out, letters.err) == ("", "")


def test_where_no_group_has_any_it_says_so(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(_: object) -> list[dict[str, object]]:
        return []

    monkeypatch.setattr(dead_letters, "letters_by_group", none)
    assert letters.run(main, "list") == 0
    assert (letters.out, letters.err) == ("", "no group has dead letters\n")


@pytest.mark.parametrize("words", [["g"], ["g", IDS[0], "--all"], ["g", IDS[0], "--from", "1"], []])
def test_wrong_usage(letters: Letters, words: list[str]) -> None:
    assert letters.run(main, "resend", *words, "-y") == 2
