# SPDX-License-Identifier: Apache-2.0
"""Frames: bytes in, commands out; commands in, buffers out.

    int32 length of the rest | 1 byte serialize type, 3 bytes header length | header | body

Counterpart of NettyDecoder, NettyEncoder and RemotingCommand.decode. The body of an answer is kept
as the buffers it was given as, so that slices of a mapped file reach the socket uncopied.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import FrameError
from txrocketmq.remoting.serialize import json, rocketmq
from txrocketmq.remoting.serialize.plain_sends import (
    MAX_HEADER_BYTES,
    PlainSend,
    PlainSends,
    Received,
    match_header,
)

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Largest frame including its length word (com.rocketmq.remoting.frameMaxLength)."""

_MAX_CHUNKS = 1024
"""More than the reads that the longest frame takes, unless its peer sends it in tiny pieces."""
_PREFIX = struct.Struct(">iI")
_LENGTH = struct.Struct(">i")
_HEADER_MASK = 0xFFFFFF
_JSON = int(SerializeType.JSON)


class FrameDecoder:
    """Cuts a byte stream into commands.

    Once `error` is set the stream is beyond repair: the commands returned with it are good, and the
    connection is to be closed after them. With `plain_sends`, those come as PlainSends.
    """

    def __init__(
        self, max_frame_bytes: int = MAX_FRAME_BYTES, *, plain_sends: bool = False
    ) -> None:
        self.error: FrameError | None = None
        self._plain_bytes = MAX_HEADER_BYTES if plain_sends else -1
        self._max_frame_bytes = max_frame_bytes
        self._chunks: list[bytes] = []
        self._held_bytes = 0
        self._wanted_bytes = 8

    def receive(self, data: bytes) -> list[Any]:
        """The commands that `data` completes; never raises for bad bytes, see `error`.

        RemotingCommands; with `plain_sends` there may be PlainSends among them.
        """
        if self.error is not None:
            return []
        if self._chunks:
            self._chunks.append(data)
            self._held_bytes += len(data)
            if self._held_bytes < self._wanted_bytes:
                # A long frame is joined once, not each time; but tiny pieces cost more than they
                # hold.
                if len(self._chunks) > _MAX_CHUNKS:
                    self._chunks = [b"".join(self._chunks)]
                return []
            data = b"".join(self._chunks)
        commands: list[Received] = []
        used = self._cut(data, commands)
        self._held_bytes = len(data) - used
        self._chunks = [data[used:] if used else data] if self._held_bytes else []
        return commands

    def _cut(self, data: bytes, commands: list[Received]) -> int:
        size = len(data)
        at = 0
        unpack, decode_json = _PREFIX.unpack_from, json.decode_header
        longest, plain_bytes = self._max_frame_bytes - 4, self._plain_bytes
        sends: list[PlainSend] | None = None
        while size - at >= 8:
            length, mark = unpack(data, at)
            end = at + 4 + length
            header_end = at + 8 + (mark & _HEADER_MASK)
            if length < 4 or length > longest or header_end > end:
                self._fail(FrameError(_what_is_wrong(length, mark, self._max_frame_bytes)))
                return size
            if end > size:
                self._wanted_bytes = 4 + length
                return at
            if mark <= plain_bytes:  # which says that the header is JSON, too
                match = match_header(data, at + 8, header_end)
                if match is not None:
                    if sends is None:
                        sends = []
                        commands.append(PlainSends(data, sends))
                    sends.append((*match.groups(), data[header_end:end], at + 8, header_end))
                    at = end
                    continue
            sends = None
            try:
                if mark >> 24 == _JSON:
                    command = decode_json(data[at + 8 : header_end])
                else:
                    command = decode_header(mark >> 24, data[at + 8 : header_end])
            except FrameError as error:
                self._fail(error)
                return size
            command.body = data[header_end:end]
            commands.append(command)
            at = end
        self._wanted_bytes = 8
        return at

    def _fail(self, error: FrameError) -> None:
        self.error = error


def _what_is_wrong(length: int, mark: int, max_frame_bytes: int) -> str:
    if length + 4 > max_frame_bytes:
        return f"frame length {length} exceeds the limit of {max_frame_bytes} bytes"
    if length < 4:
        return f"frame length {length} is too short for a command"
    return f"header length {mark & _HEADER_MASK} does not fit into a frame of {length} bytes"


def decode_header(serialize_type: int, header: bytes) -> RemotingCommand:
    """A command without its body; raises FrameError for bytes that are no header."""
    if serialize_type == SerializeType.JSON:
        return json.decode_header(header)
    if serialize_type == SerializeType.ROCKETMQ:
        return rocketmq.decode_header(header)
    raise FrameError(f"serialize type {serialize_type} is unknown")


def encode_frame(
    command: RemotingCommand, body: Buffer | Sequence[Buffer] | None = None
) -> list[Buffer]:
    """A command as buffers; `body` stands in for the command's own and may be several buffers."""
    if command.serialize_type == SerializeType.ROCKETMQ:
        header = rocketmq.encode_header(command)
    else:
        header = json.encode_header(command)
    if body is None:
        body = command.body
    bodies: Sequence[Buffer] = (body,) if isinstance(body, (bytes, bytearray, memoryview)) else body
    size = 4 + len(header) + sum(len(part) for part in bodies)
    mark = command.serialize_type << 24 | len(header)
    return [_PREFIX.pack(size, mark) + header, *(part for part in bodies if len(part))]
