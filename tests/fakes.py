# SPDX-License-Identifier: Apache-2.0
"""Stand-ins: a peer without a connection, requests without bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from txrocketmq.remoting.call import WAITING_BYTES, Buffer, Call, PendingReply, Reply, Request
from txrocketmq.remoting.codes import MQVersion, RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.host.clock import Clock

NOW_MS = 1_700_000_000_000
H = TypeVar("H", bound=Header)


class FakePeer:
    """Remembers what it was told and asked; answers questions with `answer`.

    Without `answer` a question stays open, and is the last of `pending`.
    """

    def __init__(self, port: int = 50_000) -> None:
        self.remote_address = f"127.0.0.1:{port}"
        self.remote_host = bytes([127, 0, 0, 1]) + port.to_bytes(4, "big")
        self.local_address = "127.0.0.1:10911"
        self.local_host = bytes([127, 0, 0, 1]) + (10911).to_bytes(4, "big")
        self.allowed: dict[int, Any] = {}
        self.connected = True
        self.reads = True
        self.works = 0
        self.written: list[Buffer] = []
        self.asked: list[tuple[Call[Any, Any], Header, bytes, int]] = []
        self.told: list[tuple[Call[Any, Any], Header, bytes]] = []
        self.pending: list[PendingReply] = []
        self.answer: Reply[Any] | Exception | None = None
        self.waits = self.waiting_bytes = 0

    def write(self, buffers: Sequence[Buffer]) -> None:
        self.written += buffers

    def invoke(
        self, call: Call[Any, Any], header: Header, body: bytes = b"", *, timeout_ms: int
    ) -> PendingReply:
        self.asked.append((call, header, body, timeout_ms))
        pending = PendingReply()
        self.pending.append(pending)
        if self.answer is not None:
            pending.resolve(self.answer)
        return pending

    def invoke_oneway(self, call: Call[Any, Any], header: Header, body: bytes = b"") -> None:
        self.told.append((call, header, body))

    def begin_wait(self, size_bytes: int = WAITING_BYTES) -> None:
        self.waits += 1
        self.waiting_bytes += size_bytes

    def end_wait(self, size_bytes: int = WAITING_BYTES) -> None:
        self.waits -= 1
        self.waiting_bytes -= size_bytes

    def begin_work(self) -> None:
        self.works += 1

    def end_work(self) -> None:
        self.works -= 1

    def close(self) -> None:
        self.connected = False


class Asked:
    """A question to another server."""

    def __init__(self, address: str, call: Call[Any, Any], header: Header, body: bytes) -> None:
        self.address = address
        self.call = call
        self.header = header
        self.body = body
        self.pending = PendingReply()


class FakeConnections:
    """Stands for connections to other servers; keeps the questions, for the test to answer."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.timeouts_ms: list[int] = []
        self.told: list[Asked] = []
        self.is_closed = False

    def invoke_oneway(
        self, address: str, call: Call[Any, Any], header: Header, body: bytes = b""
    ) -> bool:
        self.told.append(Asked(address, call, header, body))
        return True

    def invoke(
        self,
        address: str,
        call: Call[Any, Any],
        header: Header,
        body: bytes = b"",
        *,
        timeout_ms: int,
    ) -> PendingReply:
        self.asked.append(Asked(address, call, header, body))
        self.timeouts_ms.append(timeout_ms)
        return self.asked[-1].pending

    def take(self) -> list[Asked]:
        """Returns the questions since the last call; `pending.resolve` answers one."""
        asked, self.asked = self.asked, []
        return asked

    def close(self) -> None:
        self.is_closed = True


class SetClock(Clock):
    """A test clock whose wall time can be set apart from its steady time, as by `date --set`."""

    def __init__(self, reactor: object) -> None:
        super().__init__(reactor)
        self.set_by_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.set_by_ms


def request(
    header: H,
    body: bytes = b"",
    *,
    code: int = RequestCode.HEART_BEAT,
    peer: FakePeer | None = None,
    version: int = MQVersion.V5_4_0,
    language: str = "JAVA",
    now_ms: int = NOW_MS,
    steady_ms: int | None = None,
) -> Request[H]:
    """Makes a request as handlers get it."""
    command = RemotingCommand(code, header.encode(), body, language=language, version=version)
    if steady_ms is None:
        steady_ms = now_ms
    return Request(header, command, peer or FakePeer(), now_ms, steady_ms)


@contextmanager
def refused(code: ResponseCode, remark: str = "") -> Iterator[None]:
    """Checks that the block is refused with this code, and a remark that contains this text."""
    with pytest.raises(ResponseError) as error:
        yield
    assert ResponseCode(error.value.code) is code
    assert remark in (error.value.remark or "")


def outcome_of(pending: Any) -> Any:
    """Returns the answer of a handler that may answer later; it must have come by now."""
    outcomes: list[Any] = []
    assert isinstance(pending, PendingReply)
    pending.then(outcomes.append)
    assert outcomes, "there is no answer yet"
    return outcomes[0]


def reply_of(answer: Any) -> Reply[Any]:
    """Returns the reply of a handler that may answer later, and has answered by now."""
    outcome = answer if isinstance(answer, Reply) else outcome_of(answer)
    assert isinstance(outcome, Reply)
    return outcome
