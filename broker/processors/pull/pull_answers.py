# SPDX-License-Identifier: Apache-2.0
"""Prepared heads of answers to pulls that found messages, which differ in three offsets and opaque.

A header is encoded once, with marks where answers differ, in the form that the server writes.
"""

from __future__ import annotations

import re
from typing import Final

from txrocketmq.broker.processors.send.send_answers import packed_fields, packed_name
from txrocketmq.broker.store.get.get_result import GetMessageStatus
from txrocketmq.remoting import formats
from txrocketmq.remoting.codes import ResponseCode, SerializeType
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.remoting.protocol.pull import PullMessageResponseHeader

_OPAQUE: Final = 1_234_567_890
_OFFSETS: Final = ("nextBeginOffset", "minOffset", "maxOffset")
_MARK: Final = "@@"
_PREFIX: Final = fixed(formats.FRAME_PREFIX).struct
_INT: Final = fixed(formats.BINARY_VALUE_LENGTH).struct
_MOST: Final = 256
"""How many heads are kept. There is one for each mixture of what topics and groups say of them."""


class PullAnswers:
    """The heads of a broker, in pieces around their own values, as PullAnswer takes them."""

    def __init__(self, serialize_type: int = SerializeType.JSON) -> None:
        self._make = _binary if serialize_type == SerializeType.ROCKETMQ else _json
        self._made: dict[tuple[int, int, int], list[bytes]] = {}

    def pieces(self, suggested: int, topic_sys_flag: int, group_sys_flag: int) -> list[bytes]:
        """Returns the pieces of answers that suggest a broker and have the flags of both."""
        key = suggested, topic_sys_flag, group_sys_flag
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= _MOST:
                self._made.clear()
            fields = PullMessageResponseHeader(
                suggest_which_broker_id=suggested,
                next_begin_offset=0,
                min_offset=0,
                max_offset=0,
                topic_sys_flag=topic_sys_flag,
                group_sys_flag=group_sys_flag,
            ).encode()
            found = self._made[key] = self._make(fields)
        return found


def _header(fields: dict[str, str], serialize_type: int) -> bytes:
    answer = RemotingCommand(
        ResponseCode.SUCCESS,
        fields,
        flag=RESPONSE_FLAG,
        opaque=_OPAQUE,
        remark=GetMessageStatus.FOUND.name,
        serialize_type=serialize_type,
    )
    return b"".join(encode_frame(answer))[_PREFIX.size :]


def _json(fields: dict[str, str]) -> list[bytes]:
    """The five pieces around the offsets and the opaque."""
    header = _header({**fields, **dict.fromkeys(_OFFSETS, _MARK)}, SerializeType.JSON)
    return re.split(b"%b|%d" % (_MARK.encode(), _OPAQUE), header)


def _binary(fields: dict[str, str]) -> list[bytes]:
    """Six pieces: before the opaque, between that and the length of the fields, what is before each
    of the offsets, and what is behind them.
    """
    header = _header(fields, SerializeType.ROCKETMQ)
    before, _, after = header.partition(_INT.pack(_OPAQUE))
    between = after[: len(after) - len(packed_fields(fields)) - _INT.size]
    pieces, ahead = [before, between], dict[str, str]()
    for name, value in fields.items():
        if name in _OFFSETS:
            pieces.append(packed_fields(ahead) + packed_name(name))
            ahead = {}
        else:
            ahead[name] = value
    return [*pieces, packed_fields(ahead)]
