# SPDX-License-Identifier: Apache-2.0
"""Which life of a queue an offset belongs to, told by the message before it.

When a topic is deleted and made again, its queues begin at offset 0, and nothing in the answers of
a broker says so. An offset that was kept from before then skips messages of the new queue, in
silence as soon as that one has become long enough. So a position keeps, with each offset, when the
message before it was stored: in another life of the queue another message is there. The same holds
if a broker has lost the end of its log and written another one.

A message keeps its store time when it is replicated to slaves or moved to other storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from txrocketmq.remoting.codes import PULLED
from txrocketmq.remoting.message.message import MessageDecodeError, MessageQueue, decode_message
from txrocketmq.remoting.protocol.pull import PULL_MESSAGE, TOOLS_GROUP
from txrocketmq.remoting.routing.queue_requests import pull_header
from txrocketmq.spark.arrow.errors import ClusterError
from txrocketmq.spark.live.wire.cluster import Cluster, Pulled, header_of

EXPIRED: Final = -1
"""In place of a time: the message before the offset had been deleted already."""

Times = Mapping[MessageQueue, int]
"""When the message before an offset of each queue was stored, in ms, or EXPIRED.

Queues are left out of which nothing is known.
"""


def stored_before(
    cluster: Cluster,
    offsets: Mapping[MessageQueue, int],
    *,
    group: str | None = None,
    attempts: int | None = None,
) -> dict[MessageQueue, int]:
    """Returns the times for these offsets; asks only masters, if any.

    Raises Refused, Unreachable, and ClusterError for an answer that cannot be read.
    """
    headers = {
        queue: pull_header(queue, offset - 1, 1, group=group or TOOLS_GROUP)
        for queue, offset in offsets.items()
        if offset > 0
    }
    replies = cluster.ask_each(PULL_MESSAGE, headers, PULLED, master_only=True, attempts=attempts)
    found = {queue: _time(queue, offsets[queue], reply) for queue, reply in replies.items()}
    return {queue: time for queue, time in found.items() if time is not None}


def _time(queue: MessageQueue, offset: int, pulled: Pulled) -> int | None:
    if not pulled.body_bytes:
        return EXPIRED if header_of(pulled).min_offset >= offset else None
    try:
        message, _ = decode_message(pulled.body_bytes, decompress_body=False)
    except MessageDecodeError as error:
        raise ClusterError(f"{queue}, offset {offset - 1}: {error}") from error
    # A batch begins before its last message. Where there is a hole, the answer begins after it.
    return message.store_timestamp if message.queue_offset < offset else None


def is_other(before: int | None, now: int | None) -> bool:
    """Returns whether these two times of an offset are of two lives of its queue.

    A message that had expired does not come back. One that has expired since tells nothing.
    """
    if before is None or now is None or now == EXPIRED:
        return False
    return before != now
