# SPDX-License-Identifier: Apache-2.0
"""Plain sends, told by the bytes of their headers and taken apart without a JSON parser.

A Java producer writes the header of an ordinary SEND_MESSAGE_V2 always in the same form: the same
members in the same order, of which five or six vary. One regular expression checks that form and
cuts out what varies, which costs less than half of parsing the header, checking its members and
parsing the properties within. What is written in any other form, by whatever client, is no match
and is decoded as any command.

The texts are kept as the bytes that came: those of the place (topic, queue id and what decides
about them) are the same for thousands of messages and are looked up as a whole; opaque and unique
key are put into the answer as they are.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.serialize.json import decode_header

PlainSend: TypeAlias = tuple[
    bytes, bytes, bytes | None, bytes, bytes | None, bytes, bytes, int, int
]
"""Place, born timestamp, keys, unique key, tags, opaque; then the body, and where in the read the
header starts and ends. A plain tuple, since one is made for each message."""

MAX_HEADER_BYTES: Final = 4096
"""Longer headers are no match, so that what is made of them is surely not too long."""

_TEXT: Final = rb'[^"\\\x00-\x1f]'
_INT: Final = rb"(?:0|[1-9][0-9]{0,8}|1[0-9]{9}|20[0-9]{8})"
_PLAIN: Final = re.compile(
    rb'\{"code":%(code)d,"extFields":\{"a":"%(text)b*+",'
    rb'"b":"(%(text)b++","c":"%(text)b*+","d":"%(text)b*+","e":"%(text)b*+","f":"%(text)b*+)",'
    rb'"g":"([1-9][0-9]{0,14}+)","h":"0","i":"(?:KEYS\\u0001(%(text)b++)\\u0002)?+'
    rb"UNIQ_KEY\\u0001([0-9A-Za-z]++)\\u0002WAIT\\u0001true"
    rb'(?:\\u0002TAGS\\u0001(%(text)b++))?+(?:\\u0002)?+","j":"0","k":"(?:false|true)",'
    rb'(?:"l":"0",)?+"m":"false"(?:,"n":"%(text)b*+")?+\},"flag":0,"language":"JAVA",'
    rb'"opaque":(%(int)b),"serializeTypeCurrentRPC":"JSON","version":[1-9][0-9]{0,4}+\}'
    % {b"code": RequestCode.SEND_MESSAGE_V2, b"text": _TEXT, b"int": _INT}
)
match_header: Final = _PLAIN.fullmatch
"""Takes the read and where a header starts and ends; the groups are the start of a PlainSend."""


class PlainSends:
    """Frames of one read, one after the other, that are plain sends; none of them is one-way.

    `code` and `flag` are those of each.
    """

    __slots__ = ("data", "sends")

    code: Final = int(RequestCode.SEND_MESSAGE_V2)
    flag: Final = 0

    def __init__(self, data: bytes, sends: list[PlainSend]) -> None:
        self.data = data
        self.sends = sends

    def command(self, send: PlainSend) -> RemotingCommand:
        """One of them as the command that it is."""
        command = decode_header(self.data[send[7] : send[8]])
        command.body = send[6]
        return command

    def commands(self) -> list[RemotingCommand]:
        """All of them as commands, for whoever does not know this form."""
        return [self.command(send) for send in self.sends]


Received: TypeAlias = RemotingCommand | PlainSends
"""What comes out of a read."""
