# SPDX-License-Identifier: Apache-2.0
"""Op messages: the offsets of ended half messages in the queue with the same id.

One is written for each half message, with the offset as its text: both generations of the original
read that. 5.x itself collects offsets for some seconds and writes them separated by commas; 4.9
does not read that, and a crash loses them. Both forms are read here.

Java: TransactionalMessageBridge.makeOpMessageInner,
TransactionalMessageServiceImpl.fillOpRemoveMap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from txrocketmq.broker.store.formats.put_message import PutMessage
from txrocketmq.broker.store.log.encode import IPV4_LAYOUT
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.message import MessageDecodeError, decode_message
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.tags import tags_code
from txrocketmq.remoting.message.topics import TRANS_OP_TOPIC

ENDED: Final = "d"
"""The tag of an op message (REMOVE_TAG)."""
ENDED_CODE: Final = tags_code(ENDED)
_PROPERTIES: Final = encode_properties({"TAGS": ENDED, "WAIT": "true"}).encode()
_IPV6_HOSTS: Final = MessageSysFlag.BORN_HOST_V6 | MessageSysFlag.STORE_HOST_V6
_MAX_DIGITS: Final = 18
"""A number of at most this many digits certainly fits into a long."""


def op_messages(halves: Sequence[tuple[int, int]], host: bytes, now_ms: int) -> list[PutMessage]:
    """Makes the op messages for ended half messages, which are given by their queues and offsets;
    `host` is the broker's own, as in records.
    """
    sys_flag, make = _IPV6_HOSTS if len(host) > 8 else 0, tuple.__new__
    return [
        make(PutMessage, (
            TRANS_OP_TOPIC, queue_id, b"%d" % half_offset, _PROPERTIES, ENDED_CODE, now_ms, host,
            host, None, None, ENDED, 0, sys_flag, 0, 0,
        ))
        for queue_id, half_offset in halves
    ]  # fmt: skip


def half_offsets(record: memoryview, code: int) -> list[int]:
    """The half messages that an op message names as ended; `code` is the tag hash in its unit.

    Text that is not an offset is ignored, and so is a record of another kind.
    """
    if code != ENDED_CODE:
        return []
    fields = IPV4_LAYOUT.unpack_from(record)
    sys_flag, body_bytes = fields[7], fields[-1]
    if sys_flag & _IPV6_HOSTS:
        try:
            body = decode_message(record, decompress_body=False)[0].body
        except MessageDecodeError:
            return []
    else:
        body = bytes(record[IPV4_LAYOUT.size : IPV4_LAYOUT.size + max(body_bytes, 0)])
    return [int(each) for each in body.split(b",") if each.isdigit() and len(each) <= _MAX_DIGITS]
