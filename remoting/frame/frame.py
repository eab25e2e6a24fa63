# SPDX-License-Identifier: Apache-2.0
"""Frames: decodes bytes to commands, and encodes commands to buffers.

    int32 length of the rest | 1 byte serialize type, 3 bytes header length | header | body

Counterpart of NettyDecoder, NettyEncoder and RemotingCommand.decode. The body of an answer is kept
as the buffers it was given as, so that slices of a mapped file reach the socket uncopied.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from txrocketmq.remoting import formats
from txrocketmq.remoting.call import Buffer
from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.errors import FrameError, FrameTooLong, NotPlainJson
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.remoting.serialize import json, rocketmq

MAX_FRAME_BYTES = formats.MAX_FRAME_BYTES
MAX_HEADER_BYTES: Final = 256 * 1024
"""The longest header that is read of a peer, since a header is decoded at once, in up to 18 ms at
this length. The longest properties that a message may have make one of 200 KB."""

_MAX_CHUNKS = 1024
"""How many pieces of an unfinished frame are kept before they are joined. The longest frame takes
fewer reads than this, unless its peer sends it in tiny pieces."""
_MOST_SCANNED_BYTES: Final = 8 * 1024
"""A portion ends behind so many bytes of headers that are not plain JSON, as these take long."""
_PREFIX = fixed(formats.FRAME_PREFIX).struct
_opaque = fixed(formats.BINARY_HEAD).codec_of("opaque")
_code = fixed(formats.BINARY_HEAD).codec_of("code")
_JSON_CODE: Final = re.compile(rb'"code":([0-9]{1,9})[,}]')
_ROCKETMQ: Final = int(SerializeType.ROCKETMQ)
_OPAQUE: Final = 1_234_567_890
"""Stands for the opaque while an answer is prepared, and so marks the place of the real one."""
_ONE_BUFFER: Final = (bytes, bytearray, memoryview)
_HEADER_MASK = 0xFFFFFF
_PREFIX_BYTES: Final = _PREFIX.size
_unpack = _PREFIX.unpack_from
_DECODERS: Final[Mapping[int, Callable[[bytes], RemotingCommand]]] = {
    int(SerializeType.JSON): json.decode_plain_header,
    int(SerializeType.ROCKETMQ): rocketmq.decode_header,
}


HELD_COMMAND_BYTES: Final = 1024
"""How many bytes a decoded command counts for while it is held, in addition to its body."""


# Every read passes here, so no call is made that can be avoided.
def cut(
    data: bytes,
    at: int,
    stop: int,
    portion: Iterable[Any],
    max_frame_bytes: int,
    most_scanned_bytes: int = sys.maxsize,
) -> tuple[list[RemotingCommand], int, int | FrameError]:
    """Cuts commands out of bytes: the frames that begin at `at`, or behind it, and before `stop`.

    There are no more of them than there are things in `portion`, and those with headers that are
    not plain JSON end behind `most_scanned_bytes` of these. Returns the commands; where the
    first frame begins that is not among them; and how many bytes that has, if they are not all
    there yet, or what is wrong with it, if it is no frame, or 0, if it was not looked at.
    """
    commands: list[RemotingCommand] = []
    size, most_bytes = len(data), max_frame_bytes - 4
    for _ in portion:
        if at >= stop:
            break
        length, mark = _unpack(data, at)
        header_at, end = at + 8, at + 4 + length
        header_end = header_at + (mark & _HEADER_MASK)
        if header_end > end or length > most_bytes:
            return commands, at, FrameError(_what_is_wrong(length, mark, max_frame_bytes))
        if end > size:
            return commands, at, 4 + length
        try:
            decode = _DECODERS.get(mark >> 24) or _decoder(mark >> 24)
            command = decode(data[header_at:header_end])
        except NotPlainJson:
            try:
                command = json.scan_header(data[header_at:header_end])
            except FrameError as error:
                return commands, at, error
            most_scanned_bytes -= header_end - header_at
            if most_scanned_bytes < 0:
                stop = at
        except FrameError as error:
            return commands, at, error
        command.body = data[header_end:end]
        commands.append(command)
        at = end
    return commands, at, 0


class FrameDecoder:
    """Cuts a byte stream into commands, and owns whatever is left over from a read.

    Left over are, in the order of the stream: commands that were given back (`leave`), bytes that
    were not looked at, and the pieces of an unfinished frame.

    Once `error` is set the stream is beyond repair: the commands returned with it are good, and the
    connection is to be closed after them.

    With a portion, `receive` returns no more than so many commands, or the frames that begin in so
    many bytes; there are fewer where headers are not plain JSON. While `is_behind`, there may be
    more, which `receive` returns when it is called again, with or without further bytes.
    """

    def __init__(
        self,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        *,
        portion_commands: int = sys.maxsize,
        portion_bytes: int = sys.maxsize,
    ) -> None:
        self.error: FrameError | None = None
        self.is_behind = False
        self.held_bytes = 0
        """How many bytes are held: those of an unfinished frame, those that were not looked at yet,
        and what commands count for that were given back."""
        self._max_frame_bytes = max_frame_bytes
        self._portion_commands = range(portion_commands)
        self._portion_bytes = portion_bytes
        self._most_scanned_bytes = (
            _MOST_SCANNED_BYTES if portion_bytes < sys.maxsize else sys.maxsize
        )
        self._commands: list[RemotingCommand] = []
        self._commands_bytes = 0
        self._chunks: list[bytes] = []
        self._wanted_bytes = 8
        self._unfinished = self._unfinished_noted = 0
        """The number of the last frame that was unfinished, and of the one noted as such."""
        self._unfinished_since_ms = 0
        self._rest = b""
        self._rest_at = 0
        """While behind: bytes, and from where on they were not looked at yet."""

    def receive(self, data: bytes) -> list[RemotingCommand]:
        """Returns the commands that `data` completes; bad bytes do not raise, but set `error`.

        Commands that were given back come first, and alone.
        """
        at = 0
        if self.held_bytes:
            if self._commands:
                return self._given_back(data)
            data, at = self._joined(data)
        elif self.error is not None:
            return []
        elif len(data) > _PREFIX_BYTES:
            # Most reads are one frame; with anything unusual about it, it goes the way of all.
            length, mark = _unpack(data)
            header_end = _PREFIX_BYTES + (mark & _HEADER_MASK)
            if header_end <= length + 4 == len(data) <= self._max_frame_bytes:
                try:
                    command = _DECODERS[mark >> 24](data[_PREFIX_BYTES:header_end])
                except (NotPlainJson, FrameError, KeyError):
                    pass
                else:
                    command.body = data[header_end:]
                    return [command]
        stop = len(data) - 7
        if stop > self._portion_bytes:
            stop = min(stop, at + self._portion_bytes)
        commands, at, found = cut(
            data, at, stop, self._portion_commands, self._max_frame_bytes, self._most_scanned_bytes
        )
        if at != len(data):
            self._leave_over(data, at, found)
        return commands

    def _leave_over(self, data: bytes, at: int, found: int | FrameError) -> None:
        """Keeps what was not cut; `found` is what `cut` says of the frame there."""
        if found and not isinstance(found, FrameError):
            found = self._checked(data, at, found)
        if isinstance(found, FrameError):
            self.error = found
        elif found or at + 8 > len(data):
            self._hold(data, at, found or 8)
        else:
            self._keep_rest(data, at)

    def leave(self, commands: list[RemotingCommand]) -> None:
        """Takes commands back that were not served; the next `receive` returns them."""
        if commands:
            self._commands = commands
            self._commands_bytes = HELD_COMMAND_BYTES * len(commands)
            for command in commands:
                self._commands_bytes += len(command.body)
            self.held_bytes += self._commands_bytes
            self.is_behind = True

    def keep(self, data: bytes) -> None:
        """Keeps bytes that are not to be looked at yet; the next `receive` does."""
        if self.error is not None or not data:
            return
        if self._chunks:
            self._chunks.append(data)
            self.held_bytes += len(data)
            self.is_behind = bool(self._commands) or self.held_bytes >= self._wanted_bytes
        else:
            self._keep_rest(self._rest[self._rest_at :] + data if self._rest else data, 0)

    @property
    def has_commands(self) -> bool:
        """Whether there are commands that were given back: nothing comes before them."""
        return bool(self._commands)

    def take_held(self, data: bytes) -> bytes:
        """Returns all bytes that are held, and `data` behind them, from the beginning of a frame;
        none while it is unfinished. It is not to be called while there are commands.
        """
        data, at = self._joined(data)
        return data[at:] if at else data

    @property
    def missing_bytes(self) -> int:
        """How many bytes have to come before anything can be done; 0 if something can already."""
        return self._wanted_bytes - self.held_bytes if self._chunks and not self.is_behind else 0

    def unfinished_ms(self, steady_ms: int) -> int:
        """Returns for how long one frame has been unfinished, to within the time between calls."""
        if not self._chunks:
            return 0
        if self._unfinished_noted != self._unfinished:
            self._unfinished_noted, self._unfinished_since_ms = self._unfinished, steady_ms
        return steady_ms - self._unfinished_since_ms

    def forget_commands(self) -> None:
        """Forgets commands that were given back, which are not to be served any more."""
        self._given_back(b"")

    def drop(self) -> None:
        """Forgets what is left over; the stream cannot be read on."""
        self.is_behind, self._chunks, self._rest, self.held_bytes = False, [], b"", 0
        self._commands, self._commands_bytes = [], 0

    def _given_back(self, data: bytes) -> list[RemotingCommand]:
        """Returns the commands that were given back; `data` is kept behind them."""
        commands, self._commands = self._commands, []
        self.held_bytes -= self._commands_bytes
        self._commands_bytes = 0
        enough = bool(self._chunks) and self.held_bytes >= self._wanted_bytes
        self.is_behind = bool(self._rest) or enough
        self.keep(data)
        return commands

    def _joined(self, data: bytes) -> tuple[bytes, int]:
        """Returns what is to be looked at, and from where; nothing while a frame is unfinished."""
        self.is_behind = False
        if self._rest:
            rest, at = self._rest, self._rest_at
            self._rest, self.held_bytes = b"", 0
            return (rest[at:] + data, 0) if data else (rest, at)
        self._chunks.append(data)
        self.held_bytes += len(data)
        if self.held_bytes < self._wanted_bytes:
            # A long frame is joined once, not each time; but tiny pieces cost more than they hold.
            if len(self._chunks) > _MAX_CHUNKS:
                self._chunks = [b"".join(self._chunks)]
            return b"", 0
        data = b"".join(self._chunks)
        self._chunks, self.held_bytes = [], 0
        return data, 0

    def _checked(self, data: bytes, at: int, wanted_bytes: int) -> int | FrameError:
        """Returns how many bytes an unfinished frame has, unless its header is too long. Whole
        frames need not be asked: they came with one read, or a few.
        """
        header_bytes = _unpack(data, at)[1] & _HEADER_MASK
        if header_bytes > MAX_HEADER_BYTES and self._portion_bytes < sys.maxsize:
            return FrameError(
                f"header length {header_bytes} exceeds the limit of {MAX_HEADER_BYTES} bytes"
            )
        return wanted_bytes

    def _keep_rest(self, data: bytes, at: int) -> None:
        """Keeps what is behind a portion. What was looked at is cut off once it is the larger part,
        so that no byte is copied more than once on average.
        """
        if 2 * at > len(data):
            data, at = data[at:], 0
        self.is_behind, self._rest, self._rest_at = True, data, at
        self.held_bytes = self._commands_bytes + len(data)

    def _hold(self, data: bytes, at: int, wanted_bytes: int) -> None:
        """Keeps the beginning of a frame, of which at least `wanted_bytes` are needed to go on."""
        self._chunks = [data[at:] if at else data]
        self.held_bytes = len(data) - at
        self._wanted_bytes = wanted_bytes
        self._unfinished += 1


def begins_whole(data: bytes, at: int = 0) -> bool:
    """Returns whether the frame is all there that begins at a place."""
    left = len(data) - at
    return left >= _PREFIX.size and left >= 4 + _unpack(data, at)[0]


def first_code(data: bytes) -> int | None:
    """Returns the code of the frame that is there, without decoding it; None for one of which it
    cannot be told in this way.
    """
    _, mark = _unpack(data)
    at = _PREFIX_BYTES
    if mark >> 24 == _ROCKETMQ:
        code: int | None = None
        if len(data) >= at + _code.size:
            (code,) = _code.unpack(data[at : at + _code.size])
        return code
    found = _JSON_CODE.search(data, at, at + (mark & _HEADER_MASK))
    return None if found is None else int(found[1])


def _what_is_wrong(length: int, mark: int, max_frame_bytes: int) -> str:
    if length + 4 > max_frame_bytes:
        return f"frame length {length} exceeds the limit of {max_frame_bytes} bytes"
    if length < 4:
        return f"frame length {length} is too short for a command"
    return f"header length {mark & _HEADER_MASK} does not fit into a frame of {length} bytes"


def decode_header(serialize_type: int, header: bytes) -> RemotingCommand:
    """Returns a command without its body. Raises FrameError for bytes that are not a header."""
    try:
        return _decoder(serialize_type)(header)
    except NotPlainJson:
        return json.scan_header(header)


def _decoder(serialize_type: int) -> Callable[[bytes], RemotingCommand]:
    if serialize_type not in _DECODERS:
        raise FrameError(f"serialize type {serialize_type} is unknown")
    return _DECODERS[serialize_type]


def encode_frame(
    command: RemotingCommand, body: Buffer | Sequence[Buffer] | None = None
) -> list[Buffer]:
    """Returns the buffers of a command; `body` replaces its own and may be a list of buffers.

    Raises FrameTooLong, since no reader takes more than MAX_FRAME_BYTES.
    """
    serialize_type = command.serialize_type
    if serialize_type == SerializeType.ROCKETMQ:
        header = rocketmq.encode_header(command)
    else:
        header = json.encode_header(command)
    if body is None:
        body = command.body
    header_bytes = len(header)
    bodies: Sequence[Buffer] = (body,) if isinstance(body, _ONE_BUFFER) else body
    size = 4 + header_bytes + sum(map(len, bodies))
    if size > MAX_FRAME_BYTES - 4:
        raise FrameTooLong(
            f"it has {size + 4} bytes, but readers take at most {MAX_FRAME_BYTES} at once"
        )
    return [
        _PREFIX.pack(size, serialize_type << 24 | header_bytes) + header,
        *filter(bool, bodies),
    ]


def bare_answers(code: int, serialize_type: int) -> Callable[[int], bytes]:
    """Returns a function that encodes answers with nothing but `code`; it takes their opaque.

    Such answers differ in their opaque only, so everything else is encoded once.
    """
    command = RemotingCommand(
        code, flag=RESPONSE_FLAG, opaque=_OPAQUE, serialize_type=serialize_type
    )
    frame = b"".join(encode_frame(command))
    if serialize_type == SerializeType.ROCKETMQ:
        start, end = frame.split(_opaque.pack(_OPAQUE))
        return lambda opaque: start + _opaque.pack(opaque) + end
    before, after = frame[_PREFIX.size :].split(b"%d" % _OPAQUE)
    form = before.replace(b"%", b"%%") + b"%d" + after.replace(b"%", b"%%")
    pack, mark = _PREFIX.pack, serialize_type << 24

    def answer(opaque: int) -> bytes:
        header = form % opaque
        size = len(header)
        return pack(size + 4, mark | size) + header

    return answer
