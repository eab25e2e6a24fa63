# SPDX-License-Identifier: Apache-2.0
"""A call as its method sees it."""

from __future__ import annotations

import pytest

from tests.proxy.grpc.texts import Text
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.status import GrpcError, GrpcStatus


class Sent:
    """Remembers what was sent."""

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.ends: list[GrpcError | None] = []
        self.held_bytes = 0

    def send(self, data: bytes) -> bool:
        """Has room for one message."""
        self.data.append(data)
        return len(self.data) < 2

    def end(self, error: GrpcError | None) -> None:
        """Remembers how the call ended."""
        self.ends.append(error)

    def hold(self, size_bytes: int) -> None:
        """Remembers how many bytes are held."""
        self.held_bytes += size_bytes


def a_call(sent: Sent) -> Call:
    """A call whose answers are remembered."""
    return Call("Talk", {"x-mq-client-id": "me"}, sent, lambda: 5, peer="1.2.3.4:5")


def test_messages_are_written_while_there_is_room() -> None:
    sent = Sent()
    call = a_call(sent)
    assert (call.peer, call.headers.get("x-mq-client-id", ""), call.steady_ms()) == (
        "1.2.3.4:5",
        "me",
        5,
    )
    assert call.write(Text("one"))
    assert not call.write(Text("two"))
    assert sent.data == [b"one", b"two"]


def test_it_ends_once() -> None:
    sent = Sent()
    call = a_call(sent)
    error = GrpcError(GrpcStatus.ABORTED, "enough")
    call.end(error)
    call.end()
    assert call.write(Text("late"))
    assert (sent.data, sent.ends) == ([], [error])


def test_bytes_are_held_until_it_ends() -> None:
    sent = Sent()
    call = a_call(sent)
    call.hold(5)
    call.end()
    call.hold(7)
    assert sent.held_bytes == 5


def test_all_listeners_hear_that_it_is_cancelled() -> None:
    call = a_call(Sent())
    heard: list[int] = []
    call.on_cancel += [lambda: heard.append(1), lambda: 1 / 0, lambda: heard.append(2)]
    with pytest.raises(ZeroDivisionError):
        call.cancel()
    call.cancel()
    assert heard == [1, 2]
    assert call.is_over
