# SPDX-License-Identifier: Apache-2.0
"""Pulls that a kernel takes from the bytes of a read, before commands are made of them.

The kernel has places: headers that were decoded here, and which it finds again by their bytes. All
rules for topics, groups, permissions and subscriptions are asked for each pull, as ever
(pull_message.py), so nothing of them is remembered. With accounts, only signed pulls are learned,
the kernel computes the signature of each, and all that was learned is forgotten when accounts
change. A pull that finds messages is answered by the kernel. One that begins where its queue ends
waits without becoming a request, and is answered in the same way when messages come; only if none
do, or anything has become unusual, is it made one then. Whatever else goes the way of all requests,
which serves it or says what is wrong: filters, messages that are not recent, resets of offsets,
members of broadcasting groups.

Java has no counterpart.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from txrocketmq.access.guard import AccessGuard
from txrocketmq.broker.kernel.chosen import Kernel
from txrocketmq.broker.kernel.pulls import MOST_PLACES
from txrocketmq.broker.processors.pull.pull_message import PullMessageProcessor
from txrocketmq.broker.processors.raw_signers import SignedBy, TableAccounts, signed_by
from txrocketmq.broker.tables.offset import ConsumerOffsets
from txrocketmq.remoting import formats
from txrocketmq.remoting.call import Buffer, Peer
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher
from txrocketmq.remoting.errors import FrameError, HeaderError
from txrocketmq.remoting.frame.frame import decode_header
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.primitives.packing import fixed
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader
from txrocketmq.remoting.rpc_times import RpcTimes

_MOST: Final = 32
_MOST_BYTES: Final = 128 * 1024
"""After so many pulls, or so many bytes of answers, these are written before others are made."""
_COMMIT_OFFSET: Final = int(PullSysFlag.COMMIT_OFFSET)
_SUCCESS: Final = int(ResponseCode.SUCCESS)
_PREFIX: Final = fixed(formats.FRAME_PREFIX).struct
_HEADER_MASK: Final = 0xFFFFFF


class RawPulls:
    """Serves pulls from their bytes."""

    request_codes = frozenset({int(RequestCode.PULL_MESSAGE), int(RequestCode.LITE_PULL_MESSAGE)})
    guard: AccessGuard | None = None

    def __init__(
        self,
        kernel: Kernel,
        pulls: PullMessageProcessor,
        offsets: ConsumerOffsets,
        steady_clock: Callable[[], int],
        dispatcher: Callable[[], Dispatcher],
    ) -> None:
        self._kernel = kernel
        self._pulls = pulls
        self._offsets = offsets
        self._steady_clock = steady_clock
        self._dispatcher = dispatcher
        self.taken = 0
        """How many requests were taken since the start."""
        self._table: Any = None
        self._forget()

    def with_guard(self, guard: AccessGuard) -> None:
        """Serves only pulls that the guard knows, where that is asked about requests."""
        self.guard = guard
        guard.known.on_clear.append(self._forget)

    def _forget(self) -> None:
        if self._table is not None:
            self._table.wipe()
        self._table = self._kernel.new_pulls()
        self._accounts = TableAccounts(self._table)
        self._places: list[tuple[PullMessageRequestHeader, int]] = []
        """By their numbers in the table: the first header, and the code."""

    # Every read of pulls passes here, so no call is made that can be avoided.
    def serve(self, peer: Peer, data: bytes, times: RpcTimes | None, origin: int) -> int:
        """Serves the pulls with which the bytes begin; returns how many bytes they have."""
        out: list[Buffer] = []
        at = out_bytes = count = 0
        take, size = self._table.take, len(data)
        while at < size:
            taken = take(data, at, origin)
            if taken is None:
                break
            place, end, opaque, queue_offset, commit_offset = taken
            header, code = self._places[place]
            started_ms = 0 if times is None else self._steady_clock()
            try:
                found = self._pulls.found(peer, header, code, queue_offset, opaque)
            except Exception:  # noqa: BLE001 - the way of all requests says what is wrong
                break
            if found is None or not (found or self._hold(peer, taken)):
                break
            if header.sys_flag & _COMMIT_OFFSET:
                self._offsets.commit(
                    header.consumer_group, header.topic, header.queue_id, commit_offset
                )
            if found and times is not None:
                times.add((code, _SUCCESS, False, False), self._steady_clock() - started_ms)
            at, count = end, count + 1
            if at == size and count == 1:  # as mostly
                out = found  # type: ignore[assignment]
                break
            out += found
            out_bytes += sum(map(len, found))
            if count >= _MOST or out_bytes > _MOST_BYTES:
                break
        self.taken += count
        if out:
            peer.write(out)
        return at

    def _hold(self, peer: Peer, taken: tuple[int, int, int, int, int]) -> bool:
        """Lets a pull wait that begins where its queue ends; returns False if too many wait."""
        place, _, opaque, queue_offset, _ = taken
        header, code = self._places[place]
        started_ms = self._steady_clock()
        resume = partial(self._resume, peer, header, code, queue_offset, opaque, started_ms)
        if not self._pulls.wait(peer, header, queue_offset, started_ms, resume):
            return False
        peer.begin_wait()
        return True

    def _resume(
        self, peer: Peer, header: PullMessageRequestHeader, code: int, queue_offset: int,
        opaque: int, started_ms: int,
    ) -> None:  # fmt: skip
        """Answers a pull that has waited, as others that a kernel answers if there are messages."""
        dispatcher = self._dispatcher()
        try:
            found = self._pulls.found(peer, header, code, queue_offset, opaque)
        except Exception:  # noqa: BLE001 - it is served once more, which says what is wrong
            found = None
        if found:
            if dispatcher.times is not None:
                elapsed_ms = self._steady_clock() - started_ms
                dispatcher.times.add((code, _SUCCESS, True, False), elapsed_ms)
            peer.write(found)
            peer.end_wait()
            return
        peer.end_wait()
        command = RemotingCommand(code, opaque=opaque)
        whole = replace(header, queue_offset=queue_offset)
        self._pulls.resume(*dispatcher.belated(peer, command, whole, started_ms))

    def learn(self, peer: Peer, data: bytes, origin: int) -> bool:
        """Learns the place of the first request; returns whether it may be taken now."""
        length, mark = _PREFIX.unpack_from(data)
        header_end = _PREFIX.size + (mark & _HEADER_MASK)
        if header_end != 4 + length:
            return False
        encoded = data[_PREFIX.size : header_end]
        try:
            command = decode_header(mark >> 24, encoded)
            if command.code not in self.request_codes or command.flag & (
                RESPONSE_FLAG | ONEWAY_FLAG
            ):
                return False
            by = signed_by(self.guard, peer, command, origin)
            if by is None:
                return False
            header = PullMessageRequestHeader.decode(command.ext_fields)
        except (FrameError, HeaderError, OverflowError, struct.error):
            return False  # the way of all requests says what is wrong
        if header.lite_topic:
            return False
        number = self._learned(mark >> 24, encoded, by)
        if number is None and len(self._places) >= MOST_PLACES:
            self._forget()
            number = self._learned(mark >> 24, encoded, by)
        if number is None:
            return False
        if number == len(self._places):
            self._places.append((header, command.code))
        return True

    def _learned(self, kind: int, encoded: bytes, by: SignedBy) -> int | None:
        number: int | None = self._table.learn(kind, encoded, by.origin, self._accounts.number(by))
        return number
