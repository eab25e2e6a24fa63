# SPDX-License-Identifier: Apache-2.0
"""The messages of a pop, decoded some at a time, so that others have their turns meanwhile.

A pop may have 16 MiB, and each body may become 64 MiB when it is decompressed. So records are
decoded in portions, and bodies are decompressed only when they are written, one after another: what
would take long in a thread. The original passes compressed bodies on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from txrocketmq.client.consumer.popping.pop_result import Popped, all_messages, with_handles
from txrocketmq.proxy.sends.message_in import gunzipped
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.compression import (
    DEFAULT_MAX_BYTES,
    CompressionError,
    PlainRoom,
    decompress,
)
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import MessageExt
from txrocketmq.remoting.message.tags import SubscriptionData

PORTION_BYTES: Final = 64 * 1024
"""How many bytes of records are decoded in one turn, but one record at least."""
MOST_INFLATED_HERE: Final = 1024 * 1024
"""How many bytes a body may become in a turn; a longer one is decompressed in a thread."""
MOST_BATCHES_INFLATED: Final = 16 * 1024 * 1024
"""How many bytes the inner batches of a pop may become together, which are taken apart at once."""
_SIZE_BYTES: Final = 4
"""A record begins with its size."""


def portions(body: bytes) -> Iterator[memoryview]:
    """Cuts the body of a pop between records. What is no record is in the last portion."""
    view, end = memoryview(body), len(body)
    begin = at = 0
    while at < end:
        size = int.from_bytes(view[at : at + _SIZE_BYTES], "big", signed=True)
        if size <= 0 or size > end - at:
            break
        if at > begin and at + size - begin > PORTION_BYTES:
            yield view[begin:at]
            begin = at
        at += size
    if begin < end:
        yield view[begin:]


async def popped_in_turns(
    clock: Clock,
    header: Any,
    body: bytes,
    broker_name: str,
    subscription: SubscriptionData,
    *,
    is_orderly: bool,
) -> Popped:
    """Decodes the messages of a pop, which keep their bodies as they are compressed.

    Raises MessageDecodeError.
    """
    messages: list[MessageExt] = []
    room = PlainRoom(MOST_BATCHES_INFLATED)
    for portion in portions(body):
        if messages:
            await clock.pause(0)
        some = all_messages(
            portion, broker_name, subscription.topic, room=room, decompress_bodies=False
        )
        for each in some:
            _ = each.properties  # they are decoded now
        messages += some
    return with_handles(header, messages, broker_name, subscription, is_orderly=is_orderly)


async def plain_body(clock: Clock, message: MessageExt) -> bytes | None:
    """Returns the body of a message without its compression; None if it is damaged or too long."""
    if not message.sys_flag & MessageSysFlag.COMPRESSED:
        return message.body
    plain = _inflated(message, MOST_INFLATED_HERE)
    if plain is None:
        try:
            plain = await clock.in_thread(lambda: _inflated(message, DEFAULT_MAX_BYTES))
        except RuntimeError:  # no thread can be had
            return None
    return plain


def _inflated(message: MessageExt, most_bytes: int) -> bytes | None:
    try:
        return decompress(message.body, message.sys_flag, most_bytes)
    except CompressionError:  # some clients call gzip what other clients call zlib
        return gunzipped(message.body, most_bytes)
