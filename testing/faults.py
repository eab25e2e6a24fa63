# SPDX-License-Identifier: Apache-2.0
"""Faults on request: refusals, late answers, dropped connections.

A guard sees each request before it is served, and an outlet stands before each connection. While
there are no faults, both pass everything on.
"""

from __future__ import annotations

import difflib
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from txrocketmq.broker.service import Broker
from txrocketmq.remoting.arguments.arguments import checked_methods
from txrocketmq.remoting.call import Buffer, Peer
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.transport.outlet import Outlet

KINDS: Final[dict[str, frozenset[int] | None]] = {
    "all": None,
    "send": frozenset(
        {
            RequestCode.SEND_MESSAGE,
            RequestCode.SEND_MESSAGE_V2,
            RequestCode.SEND_BATCH_MESSAGE,
        }
    ),
    "pull": frozenset(
        {RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE, RequestCode.POP_MESSAGE}
    ),
}
"""The request codes of the words that stand for several; None means all. Any single request code
can be named as well."""
MAX_DELAY_MS: Final = 60_000
_TOPIC_FIELDS: Final = ("topic", "b")
"""The topic's name in request headers, spelled out and in the short form of sends."""


@dataclass(slots=True)
class Refusal:
    """A refusal of requests. `left` is how many more are refused; None means without a limit."""

    code: int
    remark: str
    requests: frozenset[int] | None
    topic: str | None
    left: int | None
    count: int = 0

    def refuses(self, command: RemotingCommand) -> bool:
        """Returns whether a request is to be refused."""
        if self.left == 0 or (self.requests is not None and command.code not in self.requests):
            return False
        if self.topic is None:
            return True
        fields = command.ext_fields or {}
        return any(fields.get(name) == self.topic for name in _TOPIC_FIELDS)


@checked_methods
class Faults:
    """The faults of one broker, created before it starts. Raises ValueError for wrong values."""

    def __init__(self, broker: Broker, clock: Clock) -> None:
        self._broker = broker
        self._clock = clock
        self._numbers = itertools.count(1)
        self._refusals: dict[int, Refusal] = {}
        self._delays: dict[int, int] = {}
        broker.guards.append(self._guard)
        self._choose = broker.server.choose
        broker.server.choose = self._outlet

    def refuse(
        self,
        code: int | str,
        of: str = "send",
        topic: str | None = None,
        times: int | None = None,
        remark: str | None = None,
    ) -> int:
        """Answers requests with a response code, `times` times; returns the number of the fault."""
        if times is not None and times < 1:
            raise ValueError(f"times is how many requests are refused, 1 or more, not {times}")
        number = next(self._numbers)
        why = remark or f"refused by the test: {_code_of(code).name}"
        self._refusals[number] = Refusal(_code_of(code), why, _requests_of(of), topic, times)
        return number

    def delay(self, ms: int) -> int:
        """Delays everything that the broker sends; returns the number of the fault."""
        if not 0 <= ms <= MAX_DELAY_MS:
            raise ValueError(f"an answer can be late by 0 to {MAX_DELAY_MS} ms, not {ms}")
        number = next(self._numbers)
        self._delays[number] = ms
        return number

    def drop_connections(self) -> int:
        """Closes all connections of clients at once; returns how many there were."""
        peers = list(self._broker.server.peers)
        for peer in peers:
            peer.abort()
        return len(peers)

    def count(self, number: int) -> int:
        """Returns how many requests this fault has refused."""
        refusal = self._refusals.get(number)
        return 0 if refusal is None else refusal.count

    def end(self, number: int) -> None:
        """Ends a fault; one that is over already stays so."""
        refusal = self._refusals.get(number)
        if refusal is not None:
            refusal.left = 0
        self._delays.pop(number, None)

    def _guard(self, peer: Peer, command: RemotingCommand) -> None:
        for refusal in self._refusals.values():
            if refusal.refuses(command):
                refusal.count += 1
                if refusal.left is not None:
                    refusal.left -= 1
                raise ResponseError(refusal.code, refusal.remark)

    def _outlet(self, plain: Outlet, first: bytes) -> Outlet:
        return LateOutlet(self._choose(plain, first), self._clock, self._delay_ms)

    def _delay_ms(self) -> int:
        return max(self._delays.values(), default=0)


class LateOutlet:
    """An outlet that delays its bytes by the `delay_ms` of that moment, and keeps their order."""

    def __init__(self, inner: Outlet, clock: Clock, delay_ms: Callable[[], int]) -> None:
        self._inner = inner
        self._clock = clock
        self._delay_ms = delay_ms
        self._waiting: deque[list[bytes]] = deque()
        self._waiting_bytes = 0
        self._due_ms = 0

    def write(self, buffers: Sequence[Buffer]) -> bool:
        """Sends the buffers when their time has come, and never before earlier ones."""
        delay_ms = self._delay_ms()
        if not delay_ms and not self._waiting:
            return self._inner.write(buffers)
        kept = [bytes(each) for each in buffers]  # slices of mapped files do not last
        self._waiting.append(kept)
        self._waiting_bytes += sum(map(len, kept))
        steady_ms = self._clock.steady_ms()
        self._due_ms = max(self._due_ms, steady_ms + delay_ms)
        self._clock.later(self._due_ms - steady_ms, self._send)
        return False

    def _send(self) -> None:
        kept = self._waiting.popleft()
        self._waiting_bytes -= sum(map(len, kept))
        self._inner.write(kept)

    @property
    def state_bytes(self) -> int:
        """How much memory the outlet behind takes for itself."""
        return self._inner.state_bytes

    def pause(self) -> None:
        """Pauses the outlet behind."""
        self._inner.pause()

    def resume(self) -> bool:
        """Resumes the outlet behind; returns what it returns."""
        return self._inner.resume()

    def end(self) -> None:
        """Ends the outlet behind."""
        self._inner.end()

    def unsent_bytes(self) -> int:
        """Returns the bytes that wait, including those that are delayed here."""
        return self._inner.unsent_bytes() + self._waiting_bytes

    def take(self, data: bytes) -> bytes:
        """Returns what the outlet behind makes of the bytes."""
        return self._inner.take(data)


def _code_of(code: int | str) -> ResponseCode:
    try:
        return ResponseCode[code] if isinstance(code, str) else ResponseCode(code)
    except (KeyError, ValueError):
        raise ValueError(
            f"{code!r} is not a response code{_hint(str(code), [c.name for c in ResponseCode])}"
        ) from None


def _requests_of(name: str) -> frozenset[int] | None:
    if name in KINDS:
        return KINDS[name]
    try:
        return frozenset({RequestCode[name]})
    except KeyError:
        kinds = ", ".join(KINDS)
        hint = _hint(name, [*KINDS, *(code.name for code in RequestCode)])
        raise ValueError(
            f"{name!r} names no requests{hint}: give {kinds}, or the name of a request code"
        ) from None


def _hint(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.upper(), known, 1)
    return f" (did you mean {near[0]}?)" if near else ""
