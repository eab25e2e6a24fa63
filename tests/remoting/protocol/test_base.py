# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.remoting.header import Header, Int, header
from txrocketmq.remoting.protocol.base import RpcRequestHeader, TopicRequestHeader


@header("example.Example")
class Example(TopicRequestHeader):
    queue_id: Int


def test_shared_fields_come_last_and_are_optional() -> None:
    assert [field.wire for field in Example.fields] == [
        "queueId",
        "lo",
        "ns",
        "nsd",
        "bname",
        "oway",
    ]
    assert [field.name for field in Example.fields if field.mandatory] == ["queue_id"]
    assert Example.decode({"queueId": "1"}) == Example(queue_id=1)
    assert Example.decode({"queueId": "1", "nsd": "true", "bname": "b"}) == (
        Example(queue_id=1, nsd=True, bname="b")
    )


def test_bases_are_headers_themselves() -> None:
    assert issubclass(TopicRequestHeader, RpcRequestHeader)
    assert issubclass(RpcRequestHeader, Header)
    assert RpcRequestHeader.decode({"ns": "n"}).encode() == {"ns": "n"}
