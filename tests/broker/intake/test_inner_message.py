# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.intake.inner_message import InnerMessage, packed
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.tags import tags_code

HOST = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")
HOST_V6 = bytes(15) + b"\1" + (10911).to_bytes(4, "big")


def message(**properties: str) -> InnerMessage:
    return InnerMessage("T", 3, b"body", 1000, HOST, HOST, properties)


def test_what_is_put() -> None:
    put = message(TAGS="a", KEYS="k1 k2", UNIQ_KEY="U").to_put()
    assert (put.topic, put.queue_id, put.body) == ("T", 3, b"body")
    assert put.properties == b"TAGS\x01a\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01U\x02"
    assert (put.tags_code, put.keys, put.uniq_key) == (tags_code("a"), "k1 k2", "U")
    assert put.sys_flag == 0


def test_ipv6_hosts_are_flagged() -> None:
    inner = message()
    inner.born_host = HOST_V6
    assert inner.to_put().sys_flag == MessageSysFlag.BORN_HOST_V6
    inner.store_host = HOST_V6
    assert inner.to_put().sys_flag == MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6


@pytest.mark.parametrize(("text", "level"), [("3", 3), ("0", 0), ("-1", -1), ("+3", 3), ("", 0)])
def test_the_delay_level(text: str, level: int) -> None:
    assert message(DELAY=text).delay_level == level
    assert message().delay_level == 0


def test_a_delayed_message_waits_in_the_schedule_topic() -> None:
    inner = message(TAGS="a", TIMER_DELAY_SEC="5")
    inner.delay(2, 6000)
    put = inner.to_put()
    assert (put.topic, put.queue_id, put.tags_code) == ("SCHEDULE_TOPIC_XXXX", 1, 6000)
    assert inner.properties == {"TAGS": "a", "DELAY": "2", "REAL_TOPIC": "T", "REAL_QID": "3"}


def test_a_copy_of_a_stored_message_has_hosts_of_its_own() -> None:
    stored = MessageExt(
        "T",
        b"body",
        7,
        {"TAGS": "a"},
        sys_flag=MessageSysFlag.COMPRESSED
        | MessageSysFlag.BORN_HOST_V6
        | MessageSysFlag.STORE_HOST_V6,
        born_timestamp=1000,
        born_host=Host("::1", 10911),
        store_host=Host("::1", 10911),
        reconsume_times=2,
    )
    copy = InnerMessage.of_stored(stored, "U", 5, HOST)
    put = copy.to_put()
    assert (put.topic, put.queue_id, put.flag, put.reconsume_times) == ("U", 5, 7, 2)
    assert put.sys_flag == MessageSysFlag.COMPRESSED | MessageSysFlag.BORN_HOST_V6
    assert (put.born_host, put.store_host) == (HOST_V6, HOST)
    copy.properties["TAGS"] = "b"
    assert stored.properties == {"TAGS": "a"}


def test_packed_hosts() -> None:
    assert packed(Host("127.0.0.1", 10911)) == HOST
    assert packed(Host("::1", 10911)) == HOST_V6
