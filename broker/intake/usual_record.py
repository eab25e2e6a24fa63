# SPDX-License-Identifier: Apache-2.0
"""Cuts the message that is to be delivered from the record in which it has waited.

Most waiting messages (delayed, timers, half messages) are delivered as they are, so no MessageExt
is needed: the record is only cut by its lengths. If a record is in any way unusual, or a transform
of the intake touches such a message, the caller decodes it instead, and it passes the intake like
any other message.

Java: MessageDecoder.decode, as it is used by ScheduleMessageService and EndTransactionProcessor.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from operator import methodcaller
from typing import Any, Final, NamedTuple

from txrocketmq.broker.intake.inner_message import Way
from txrocketmq.broker.intake.transform import NotTaken, Transforms
from txrocketmq.broker.intake.transforms.record_limits import check_topic
from txrocketmq.broker.store.log.encode import IPV4_LAYOUT
from txrocketmq.remoting.message import record as records
from txrocketmq.remoting.message.flags import MessageSysFlag

_IPV6_HOSTS: Final = MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6
_LENGTHS_BYTES: Final = records.TOPIC_LENGTH_V1.sizeof() + records.PROPERTIES_LENGTH.sizeof()
_split: Final[Callable[[str], Any]] = methodcaller("split", "\x01")
_MAX_DIGITS: Final = 9
"""A number of at most this many digits certainly fits into an int."""


class UsualRecord(NamedTuple):
    """A stored message of the usual form. Hosts are packed as in records.

    `encoded` is the text of its properties, with 0x02 after each pair, and `properties` has the
    same pairs.
    """

    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_host: bytes
    reconsume_times: int
    body: bytes
    encoded: bytes
    properties: dict[str, str]


# Every waiting message passes here, so no call is made that can be avoided.
def usual_record(record: memoryview) -> UsualRecord | None:
    """Cuts the record into its parts; returns None when anything about it is unusual."""
    try:
        (
            size, magic, _, queue_id, flag, queue_offset, physical_offset, sys_flag, born_ms,
            born_host, _, store_host, reconsume_times, _, body_bytes,
        ) = IPV4_LAYOUT.unpack_from(record)  # fmt: skip
        if magic != records.MAGIC_V1 or sys_flag & _IPV6_HOSTS or body_bytes < 0:
            return None
        body_at = IPV4_LAYOUT.size
        body_end = body_at + body_bytes
        properties_at = body_end + _LENGTHS_BYTES + record[body_end]
        encoded = bytes(record[properties_at:])
        properties_bytes = record[properties_at - 2] << 8 | record[properties_at - 1]
        if size != len(record) or properties_bytes != len(encoded):
            return None
        topic = str(record[body_end + 1 : properties_at - 2], "utf-8")
        pairs = str(encoded, "utf-8").split("\x02")
        if pairs[-1]:
            encoded += b"\x02"
        else:
            pairs.pop()
        properties = dict(map(_split, pairs))
    except (struct.error, ValueError, IndexError):
        return None
    if len(properties) != len(pairs) or "" in properties or "" in properties.values():
        return None
    return tuple.__new__(UsualRecord, (
        topic, queue_id, queue_offset, physical_offset, flag, sys_flag, born_ms, born_host,
        store_host, reconsume_times, bytes(record[body_at:body_end]), encoded, properties,
    ))  # fmt: skip


def destination(properties: dict[str, str]) -> tuple[str, int] | None:
    """Returns the topic and queue that a waiting message is for; None when it names none."""
    topic, queue_id = properties.get("REAL_TOPIC"), properties.get("REAL_QID", "")
    if not topic or not (queue_id.isascii() and queue_id.isdigit()) or len(queue_id) > _MAX_DIGITS:
        return None
    return topic, int(queue_id)


def is_plain_place(transforms: Transforms, way: Way, topic: str, sys_flag: int) -> bool:
    """Whether messages to a topic may skip the intake when they come this way."""
    return _is_storable(topic) and not transforms.touches_topic(way, topic, sys_flag)


@lru_cache(maxsize=1024)
def _is_storable(topic: str) -> bool:
    try:
        check_topic(topic)
    except NotTaken:
        return False
    return True
