# SPDX-License-Identifier: Apache-2.0
"""What brokers ask and tell producers."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from twisted.internet.task import Clock as ReactorClock

from tests.client.fakes import result_of
from txrocketmq.client.base.errors import ClientClosed, RequestTimedOut
from txrocketmq.client.core.producer_requests import Replies, ToldProducers
from txrocketmq.remoting.call import Request
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import MessageExt, encode_message
from txrocketmq.remoting.protocol.send import ReplyMessageRequestHeader
from txrocketmq.remoting.protocol.transaction import CheckTransactionStateRequestHeader


class Client:
    """What ToldProducers needs."""

    def __init__(self) -> None:
        self.time = ReactorClock()
        self.replies = Replies(Clock(self.time))
        self.asked: list[tuple[str, MessageExt]] = []

    def producer_of(self, group: str) -> Any:
        return self if group == "g" else None

    def without_namespace(self, name: str) -> str:
        return name.removeprefix("ns%")

    def check_transaction(self, address: str, message: MessageExt, header: Any) -> None:
        self.asked.append((address, message))


class From:
    remote_address = "10.0.0.1:10911"


def request(header: Any, body: bytes) -> Request[Any]:
    return Request(header, RemotingCommand(0, None, body), From(), 77, 0)  # type: ignore[arg-type]


CHECK = CheckTransactionStateRequestHeader(tran_state_table_offset=1, commit_log_offset=2)


def test_a_producer_of_the_group_is_asked() -> None:
    client = Client()
    half = MessageExt("ns%T", b"x", properties={"PGROUP": "g", "UNIQ_KEY": "K"})
    ToldProducers(client).check_transaction_state(request(CHECK, encode_message(half)))
    ((address, message),) = client.asked
    assert (address, message.topic, message.transaction_id) == (From.remote_address, "T", "K")


def test_questions_that_nobody_here_can_answer() -> None:
    client = Client()
    told = ToldProducers(client)
    told.check_transaction_state(request(CHECK, b"no record"))
    told.check_transaction_state(
        request(CHECK, encode_message(MessageExt("T", b"x", properties={"PGROUP": "h"})))
    )
    assert client.asked == []


def reply_header(sys_flag: int = 0, properties: str = "CORRELATION_ID\x01C\x02") -> Any:
    return ReplyMessageRequestHeader(
        producer_group="g", topic="ns%R", default_topic="", default_topic_queue_nums=1, queue_id=2,
        sys_flag=sys_flag, born_timestamp=1, flag=3, properties=properties, born_host="",
        store_host="", store_timestamp=4,
    )  # fmt: skip


def test_a_reply_reaches_who_waits_for_it() -> None:
    client = Client()
    waiting = client.replies.expect("C", 1_000, "T")
    body = zlib.compress(b"answer")
    flag = MessageSysFlag.COMPRESSED | MessageSysFlag.COMPRESSION_ZLIB
    ToldProducers(client).push_reply(request(reply_header(flag), body))
    message = result_of(waiting)
    assert (message.body, message.topic, message.flag) == (b"answer", "R", 3)
    assert message.properties["ARRIVE_TIME"] == "77"
    assert client.time.getDelayedCalls() == []


def test_a_reply_that_nobody_waits_for_or_can_be_read() -> None:
    client = Client()
    assert ToldProducers(client).push_reply(request(reply_header(), b"x")).code == 0
    bad = ToldProducers(client).push_reply(request(reply_header(MessageSysFlag.COMPRESSED), b"x"))
    assert bad.code == 1


def test_no_reply_in_time() -> None:
    client = Client()
    waiting = client.replies.expect("C", 1_000, "T")
    client.time.advance(1)
    with pytest.raises(RequestTimedOut, match="topic T in 1000 ms"):
        result_of(waiting)
    assert not client.replies.came("C", MessageExt("T"))


def test_the_end_of_the_client_ends_the_waiting() -> None:
    client = Client()
    waiting = client.replies.expect("C", 1_000, "T")
    client.replies.fail_all(ClientClosed("over"))
    with pytest.raises(ClientClosed):
        result_of(waiting)
