# SPDX-License-Identifier: Apache-2.0
"""A name server and a broker for tests, in a process beside the test.

    with running(autoCreateTopicEnable=False) as rocketmq:
        rocketmq.create_topic("Orders")
        rocketmq.send("Orders", "one", tags="new")
        ...                         # the program under test, at rocketmq.namesrv_addr
        rocketmq.wait_consumed("stock")
        assert [message.body for message in rocketmq.messages("Orders")] == [b"one"]

`aio` has the same for asyncio.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from txrocketmq.testing.aio import AioServer
from txrocketmq.testing.calls import ServerCalls
from txrocketmq.testing.process import ServerError

__all__ = ["Server", "ServerError", "running"]


class Server(ServerCalls):
    """A running server: `start` starts one, and `stop` ends it."""

    @cached_property
    def aio(self) -> AioServer:
        """The same methods for asyncio: those that wait are coroutines."""
        return AioServer(self)


@contextmanager
def running(**settings: object) -> Iterator[Server]:
    """Runs a server for the time of a `with` block; the arguments are settings of its broker.

    Raises ServerError, and ValueError for a setting that does not exist.
    """
    server = Server.start(**settings)
    try:
        yield server
    finally:
        server.stop()
