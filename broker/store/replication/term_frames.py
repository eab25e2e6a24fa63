# SPDX-License-Identifier: Apache-2.0
"""What master and slave send each other on the port for replication if they have a controller.

Each item begins with a state. A slave greets the master with its id, and the master answers with
its epochs. From then on the slave reports where its log ends, and the master sends frames: the
bytes of its log, with the epoch that they belong to, which they never cross, and with the offset
up to which the log is confirmed. A frame without bytes is a heartbeat.

No decoder holds more than one unfinished item, and all take bytes that are cut anywhere.

Java: AutoSwitchHAConnection, AutoSwitchHAClient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from construct import Int16sb, Int32sb, Int64sb, Struct

from txrocketmq.broker.store.replication.epochs import MOST_EPOCHS, Epoch, EpochsError, checked
from txrocketmq.broker.store.replication.frames import HaPeerError
from txrocketmq.remoting.primitives.packing import fixed

HANDSHAKE: Final = 1
TRANSFER: Final = 2

GREETING = Struct(
    "state" / Int32sb * "HANDSHAKE",
    "sync_from_last_file" / Int16sb * "1: an empty slave gets only the last file of the log",
    "is_learner" / Int16sb * "1: the slave never counts as in sync",
    "broker_id" / Int64sb * "of the slave, as the controller has given it",
)
"""What a slave sends first."""
STATED_REPORT = Struct(
    "state" / Int32sb * "TRANSFER",
    "offset" / Int64sb * "at which the log of the slave ends",
)
"""What a slave sends then."""
WELCOME_HEAD = Struct(
    "state" / Int32sb * "HANDSHAKE",
    "size" / Int32sb * "of the epochs that follow",
    "end" / Int64sb * "of the master's log",
    "epoch" / Int32sb * "the last one",
)
"""What stands before the epochs that a master answers a greeting with."""
WELCOME_EPOCH = Struct("number" / Int32sb, "start" / Int64sb * "in the log")
"""One of them."""
STATED_HEAD = Struct(
    "state" / Int32sb * "TRANSFER",
    "size" / Int32sb * "of the bytes that follow; 0 in a heartbeat",
    "offset" / Int64sb * "of the first byte in the log; of the next one, if there are none",
    "epoch" / Int32sb * "of these bytes",
    "epoch_start" / Int64sb * "where that epoch begins in the log",
    "confirmed" / Int64sb * "up to where the log is confirmed",
)
"""What stands before the bytes that a master sends."""

GREETING_CODEC: Final = fixed(GREETING).struct
STATED_REPORT_CODEC: Final = fixed(STATED_REPORT).struct
WELCOME_CODEC: Final = fixed(WELCOME_HEAD).struct
EPOCH_CODEC: Final = fixed(WELCOME_EPOCH).struct
STATED_HEAD_CODEC: Final = fixed(STATED_HEAD).struct
MAX_STATED_BYTES: Final = 4 * 1024 * 1024 - STATED_HEAD_CODEC.size
"""How many bytes of the log a frame has at most: a Java slave has a buffer of 4 MiB for it all."""
_STATE: Final = fixed(Struct("state" / Int32sb)).struct


class Greeting(NamedTuple):
    """Who a slave is."""

    broker_id: int
    from_last_file: bool
    is_learner: bool


class Welcome(NamedTuple):
    """What a master answers: where its log ends, and its epochs."""

    end: int
    epochs: list[Epoch]


class StatedFrame(NamedTuple):
    """A part of a master's log."""

    offset: int
    epoch: Epoch
    confirmed: int
    body: memoryview


def welcome(end: int, epochs: list[Epoch]) -> bytes:
    """The answer to a greeting."""
    told = epochs[-MOST_EPOCHS:]
    body = b"".join(EPOCH_CODEC.pack(*each) for each in told)
    last = told[-1].number if told else -1
    return WELCOME_CODEC.pack(HANDSHAKE, len(body), end, last) + body


class SlaveDecoder:
    """Finds greetings and reports in the bytes of a slave."""

    def __init__(self) -> None:
        self._rest = b""

    def items(self, data: bytes) -> Iterator[Greeting | int]:
        """Yields what is complete with these bytes; a report is an offset.

        Raises HaPeerError for a state that no slave has.
        """
        data = self._rest + data
        at = 0
        while len(data) - at >= _STATE.size:
            state = _STATE.unpack_from(data, at)[0]
            if state not in (HANDSHAKE, TRANSFER):
                raise HaPeerError(
                    f"it begins an item with {state}, which is no state of a slave that has a"
                    " controller: it needs enableControllerMode=true"
                )
            codec = GREETING_CODEC if state == HANDSHAKE else STATED_REPORT_CODEC
            if len(data) - at < codec.size:
                break
            values = codec.unpack_from(data, at)
            at += codec.size
            if state == TRANSFER:
                yield values[1]
            else:
                yield Greeting(values[3], values[1] == 1, values[2] == 1)
        self._rest = data[at:]


class MasterDecoder:
    """Finds welcomes and frames in the bytes of a master."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def items(self, data: bytes) -> Iterator[Welcome | StatedFrame]:
        """Yields what is complete with these bytes; raises HaPeerError for what no master sends."""
        whole: bytes | bytearray = data
        if self._rest:
            self._rest += data
            size = _size(memoryview(self._rest), 0)
            whole = self._rest if size and len(self._rest) >= size else b""
        view = memoryview(whole)
        at = 0
        while (size := _size(view, at)) and at + size <= len(view):
            yield _item(view[at : at + size])
            at += size
        if whole:
            self._rest = bytearray(view[at:])


def _size(view: memoryview, at: int) -> int:
    """How many bytes the item has that begins here; 0 while that cannot be known."""
    left = len(view) - at
    if left < _STATE.size:
        return 0
    state = _STATE.unpack_from(view, at)[0]
    if state not in (HANDSHAKE, TRANSFER):
        raise HaPeerError(
            f"it begins a frame with {state}, which is no state of a master that has a controller:"
            " it needs enableControllerMode=true"
        )
    codec = WELCOME_CODEC if state == HANDSHAKE else STATED_HEAD_CODEC
    if left < codec.size:
        return 0
    size = int(codec.unpack_from(view, at)[1])
    most = MOST_EPOCHS * EPOCH_CODEC.size if state == HANDSHAKE else MAX_STATED_BYTES
    if not 0 <= size <= most or (state == HANDSHAKE and size % EPOCH_CODEC.size):
        raise HaPeerError(f"a frame of {size} bytes cannot be: a master sends at most {most}")
    return codec.size + size


def _item(view: memoryview) -> Welcome | StatedFrame:
    if _STATE.unpack_from(view)[0] == HANDSHAKE:
        _, _, end, _ = WELCOME_CODEC.unpack_from(view)
        found = EPOCH_CODEC.iter_unpack(view[WELCOME_CODEC.size :])
        try:
            return Welcome(end, checked(Epoch(*each) for each in found))
        except EpochsError as error:
            raise HaPeerError(f"its table of epochs cannot be right: {error}") from None
    _, _, offset, number, start, confirmed = STATED_HEAD_CODEC.unpack_from(view)
    return StatedFrame(offset, Epoch(number, start), confirmed, view[STATED_HEAD_CODEC.size :])
