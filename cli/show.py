# SPDX-License-Identifier: Apache-2.0
"""Prints results and messages as lines for people, or as JSON for programs.

A line for people has no control characters, whatever the message holds: it may go to a terminal.
"""

from __future__ import annotations

import base64
import time
from typing import Any, Final

import orjson

from txrocketmq.client.producer.send_result import SendResult
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.properties import KEYS, SYSTEM_PROPERTIES, TAGS
from txrocketmq.remoting.primitives.plain_text import plain, plain_json

MAX_BINARY_BYTES: Final = 32
"""How many bytes are shown of a body that is not text."""


def sent_line(result: SendResult) -> str:
    """Returns a line about the result of a send."""
    queue = result.queue
    ids = result.msg_id.split(",")
    what = ids[0] if len(ids) == 1 else f"{len(ids)} messages"
    return (
        f"{result.status.value} {plain(queue.broker_name)}/{queue.queue_id}@{result.queue_offset}"
        f" {plain(what)}"
    )


def sent_json(result: SendResult) -> str:
    """Returns the same as a JSON object."""
    queue = result.queue
    return _json(
        {
            "status": result.status.value,
            "topic": queue.topic,
            "broker": queue.broker_name,
            "queueId": queue.queue_id,
            "queueOffset": result.queue_offset,
            "msgId": result.msg_id,
            "offsetMsgId": result.offset_msg_id,
        }
    )


def message_line(message: MessageExt) -> str:
    """Returns a message as a line: when and where it was stored, tag, keys, properties, body."""
    return f"{heading(message, place_text(message))} {body_text(message.body)}"


def place_text(message: MessageExt) -> str:
    """Returns where a message is: its broker, its queue, and its offset in the queue."""
    return f"{plain(message.broker_name or '')}/{message.queue_id}@{message.queue_offset}"


def heading(message: MessageExt, place: str) -> str:
    """Returns all of `message_line` but the body; `place` says where the message is."""
    seconds, millis = divmod(message.store_timestamp, 1000)
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    parts = [
        f"{stamp}.{millis:03d}",
        place,
    ]
    if message.tags:
        parts.append(f"[{plain(message.tags)}]")
    shown = {"keys": message.properties.get(KEYS), **_own_properties(message)}
    pairs = [f"{plain(name)}={plain(value)}" for name, value in shown.items() if value]
    if pairs:
        parts.append("{" + ", ".join(pairs) + "}")
    return " ".join(parts)


def message_json(message: MessageExt) -> str:
    """Returns a message with all its fields; a body that is no UTF-8 is in `bodyBase64`."""
    fields = message_fields(message)
    try:
        fields["body"] = message.body.decode("utf-8")
    except UnicodeDecodeError:
        fields["bodyBase64"] = base64.b64encode(message.body).decode("ascii")
    return _json(fields)


def message_fields(message: MessageExt) -> dict[str, Any]:
    """Returns the fields of a message, without its body."""
    return {
        "topic": message.topic,
        "broker": message.broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "msgId": message.msg_id,
        "offsetMsgId": message.offset_msg_id,
        "tags": message.tags,
        "keys": message.keys,
        "properties": message.properties,
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "reconsumeTimes": message.reconsume_times,
        "bornTimestamp": message.born_timestamp,
        "bornHost": str(message.born_host),
        "storeTimestamp": message.store_timestamp,
        "storeHost": str(message.store_host),
    }


def _own_properties(message: MessageExt) -> dict[str, str]:
    """Returns the properties that the user has set."""
    return {
        name: value
        for name, value in message.properties.items()
        if name not in SYSTEM_PROPERTIES and name != TAGS
    }


def body_text(body: bytes) -> str:
    """Returns a body as text on one line; of one that is not UTF-8, its first bytes."""
    try:
        return plain(body.decode("utf-8"))
    except UnicodeDecodeError:
        rest = "..." if len(body) > MAX_BINARY_BYTES else ""
        return f"<{len(body)} bytes: {body[:MAX_BINARY_BYTES].hex()}{rest}>"


def _json(value: dict[str, Any]) -> str:
    return plain_json(orjson.dumps(value).decode("utf-8"))
