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
from typing import Any, Self

from txrocketmq.remoting.arguments.arguments import checked_methods
from txrocketmq.testing.aio import AioServer
from txrocketmq.testing.calls import ServerCalls
from txrocketmq.testing.process import Paused, ServerError, ServerProcess

__all__ = ["Server", "ServerError", "running"]


@checked_methods
class Server(ServerCalls):
    """A running server: `start` starts one, and `stop` ends it."""

    def __init__(self, process: ServerProcess) -> None:
        super().__init__(process.credentials)
        self._process = process
        self.namesrv_addr = process.namesrv_addr
        """Address of the name server, "host:port"."""
        self.broker_addr = process.broker_addr
        """Address of the broker."""
        self.grpc_endpoint = process.grpc_endpoint
        """Address for clients of RocketMQ 5.x that speak gRPC, "host:port"; it is empty unless the
        packages of txrocketmq[grpc] are installed."""
        self.store = process.store
        """Folder of the store."""
        self.log_path = process.log_path
        """The log of name server and broker."""

    @classmethod
    def start(cls, **settings: object) -> Self:
        """Starts a server; the arguments are settings of the broker, as named in broker.conf.

        With `accounts=True`, its clients need an account; see `create_account`. Returns when
        clients can find the broker. Raises ServerError, and ValueError for a setting that does not
        exist or has a wrong value.
        """
        return cls(ServerProcess.start(**settings))

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    @cached_property
    def aio(self) -> AioServer:
        """The same methods for asyncio: those that wait are coroutines."""
        return AioServer(self)

    def ask(self, name: str, *arguments: Any) -> Any:
        return self._process.ask(name, *arguments)

    def advance(self, ms: int) -> None:
        self._process.advance(ms)

    def restart(self) -> None:
        self._process.restart()

    def kill(self) -> None:
        self._process.kill()

    def pause(self) -> Paused:
        return self._process.pause()

    def resume(self) -> None:
        self._process.resume()

    def reset(self) -> None:
        self.shut_down_clients()
        self._process.reset()

    def stop(self) -> None:
        """Shuts down the clients that it has created, stops the server and removes its store."""
        try:
            if self.has_clients and self._process.is_paused:
                self.resume()
            self.shut_down_clients()
        finally:
            self._process.stop()


@contextmanager
def running(**settings: object) -> Iterator[Server]:
    """Runs a server for the time of a `with` block; the arguments are settings of its broker.

    With `accounts=True`, its clients need an account.

    Raises ServerError, and ValueError for a setting that does not exist.
    """
    server = Server.start(**settings)
    try:
        yield server
    finally:
        server.stop()
