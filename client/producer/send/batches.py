# SPDX-License-Identifier: Apache-2.0
"""Messages in batches of bounded size, since a batch is one request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from txrocketmq.remoting.arguments.arguments import checked
from txrocketmq.remoting.message.message import Message
from txrocketmq.remoting.message.properties import encode_properties

MAX_MESSAGES: Final = 1_024
MAX_BYTES: Final = 1_024 * 1_024
"""RocketMQ recommends batches of at most 1 MiB."""
_ENTRY_BYTES: Final = 72
"""What a message costs beside its body and its properties: lengths, and the unique key."""


@checked
def split_batches(
    messages: Iterable[Message], *, max_bytes: int = MAX_BYTES, max_messages: int = MAX_MESSAGES
) -> Iterator[list[Message]]:
    """Divides messages into lists that `send_batch` accepts, in their order.

    Each list has one topic. A message that is longer than `max_bytes` by itself is a list of its
    own.
    """
    batch: list[Message] = []
    size_bytes = 0
    for message in messages:
        properties = encode_properties(message.properties).encode("utf-8", "replace")
        each_bytes = len(message.body) + len(properties) + _ENTRY_BYTES
        full = len(batch) >= max_messages or size_bytes + each_bytes > max_bytes
        if batch and (full or batch[0].topic != message.topic):
            yield batch
            batch, size_bytes = [], 0
        batch.append(message)
        size_bytes += each_bytes
    if batch:
        yield batch
