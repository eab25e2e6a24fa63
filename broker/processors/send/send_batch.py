# SPDX-License-Identifier: Apache-2.0
"""Takes a batch apart: each of its entries becomes a message of its own.

Entries are stored with the properties that they came with, byte for byte, as 5.4 stores them. Their
properties are read for the index, and for transforms that act on entries. The size, magic and CRC
of an entry are ignored: clients fill them in as they like.

Java: MessageExtEncoder.encode(MessageExtBatch).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import Transforms
from txrocketmq.broker.store.message_store import PutMessage
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.remoting.message.record import BATCH_ENTRY_HEAD, PROPERTIES_LENGTH
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.primitives.packing import fixed

_HEAD: Final = fixed(BATCH_ENTRY_HEAD).struct
_LENGTH: Final = fixed(PROPERTIES_LENGTH).struct


# Every message passes here, so no call is made that can be avoided.
def entries_of(
    batch: InnerMessage,
    transforms: Transforms,
    admit: Callable[[InnerMessage], None],
    at: int,
    most: int,
) -> tuple[list[PutMessage], int]:
    """Makes the messages of a batch from a place in its body on; returns them and where they end.

    There are no more than `most`. `admit` is called for those that a transform touches. Raises
    ResponseError for an invalid body, and what `admit` raises.
    """
    made: list[PutMessage] = []
    plain, touched = transforms.plain(Way.ENTRY).of, transforms.properties(Way.ENTRY)
    touches_all = transforms.touches_topic(Way.ENTRY, batch.topic, batch.sys_flag)
    head, length, head_bytes = _HEAD.unpack_from, _LENGTH.unpack_from, _HEAD.size
    topic, queue_id, sys_flag = batch.topic, batch.queue_id, batch.sys_flag
    born_timestamp_ms = batch.born_timestamp_ms
    born_host, store_host = batch.born_host, batch.store_host
    reconsume_times = batch.reconsume_times
    body, end = batch.body, len(batch.body)
    for _ in range(most):
        if at >= end:
            break
        try:
            _, _, _, flag, body_bytes = head(body, at)
            body_at = at + head_bytes
            body_end = body_at + body_bytes
            if body_bytes < 0:
                raise _broken(at, f"a body of {body_bytes} bytes does not fit")
            (properties_bytes,) = length(body, body_end)
        except struct.error:
            raise _broken(at, f"cut short: {end - at} bytes") from None
        text_at = body_end + 2
        at = text_at + properties_bytes
        if properties_bytes < 0 or at > end:
            raise _broken(body_end, f"{properties_bytes} bytes of properties do not fit")
        properties = body[text_at:at]
        text = properties.decode("utf-8", "replace")
        found = plain(text)
        if found is None or touches_all:
            pairs = decode_properties(text)
            if touches_all or not touched.isdisjoint(pairs):
                entry = body[body_at:body_end]
                made.append(_admitted(batch, entry, flag, pairs, properties, admit))
                continue
            get = pairs.get
            found = get(names.UNIQ_KEY), get(names.KEYS), get(names.TAGS), None
        uniq_key, keys, tags, _ = found
        put: Any = (
            topic, queue_id, body[body_at:body_end], properties, tags_code(tags) if tags else 0,
            born_timestamp_ms, born_host, store_host, uniq_key, keys, tags, flag, sys_flag,
            reconsume_times, 0,
        )  # fmt: skip
        made.append(put)
    return made, at


def _admitted(
    batch: InnerMessage,
    body: bytes,
    flag: int,
    properties: dict[str, str],
    encoded: bytes,
    admit: Callable[[InnerMessage], None],
) -> PutMessage:
    """Admits an entry that a transform touches; its properties are encoded anew if they changed."""
    message = replace(batch, body=body, flag=flag, properties=dict(properties), way=Way.ENTRY)
    admit(message)
    return message.to_put(encoded if message.properties == properties else None)


def _broken(at: int, reason: str) -> ResponseError:
    return ResponseError(
        ResponseCode.MESSAGE_ILLEGAL, f"the batch is broken: no message at offset {at}: {reason}"
    )
