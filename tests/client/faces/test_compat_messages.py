# SPDX-License-Identifier: Apache-2.0
"""Messages of rocketmq-client-python."""

from __future__ import annotations

import pytest

from txrocketmq.client import compat
from txrocketmq.remoting.message.message import MessageExt


def test_a_received_message() -> None:
    stored = MessageExt(
        "T", b"\xc3\xbc", properties={"TAGS": "t", "KEYS": "k", "UNIQ_KEY": "ID", "DELAY": "2"},
        queue_id=3, queue_offset=9, reconsume_times=1,
    )  # fmt: skip
    message = compat.ReceivedMessage(stored)
    assert (message.topic, message.tags, message.keys, message.id) == ("T", b"t", b"k", "ID")
    assert (message.queue_id, message.queue_offset, message.reconsume_times) == (3, 9, 1)
    assert (message.delay_time_level, str(message), bytes(message)) == (2, "\xfc", b"\xc3\xbc")
    assert (message["TAGS"], message.get_property("none")) == (b"t", None)
    assert repr(message) == "<ReceivedMessage topic='T' id='ID' body=b'\\xc3\\xbc'>"
    with pytest.raises(AttributeError):
        _ = message.no_such_thing


def test_a_message_to_send_is_made_anew_each_time() -> None:
    message = compat.Message(b"T")
    message.set_keys(b"k1 k2")
    message.set_body("\xfc")
    one, two = message.as_core(), message.as_core()
    assert (one.topic, one.body, one.properties["KEYS"]) == ("T", b"\xc3\xbc", "k1 k2")
    one.properties["own"] = "1"
    assert "own" not in two.properties
    with pytest.raises(ValueError, match="KEYS"):
        message.set_property("KEYS", "k")
