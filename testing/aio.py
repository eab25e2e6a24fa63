# SPDX-License-Identifier: Apache-2.0
"""The methods of a test server for asyncio: `rocketmq.aio` has the names of `rocketmq`.

Its methods are coroutines; its producers and consumers are those of `txrocketmq.client.aio`, which
`async with` starts and shuts down in the loop of the test.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, overload

from txrocketmq.client import MessageExt, SendResult, aio
from txrocketmq.client.consumer.listening.listener import Listener, OrderlyListener
from txrocketmq.remoting.arguments.arguments import checked_methods
from txrocketmq.testing import calls as blocking
from txrocketmq.testing.calls import Fault, ServerCalls

__all__ = ["AioServer"]

T = TypeVar("T")


@checked_methods
class AioServer:
    """A test server for asyncio; its methods do what those of `ServerCalls` do."""

    def __init__(self, server: ServerCalls) -> None:
        self._server = server
        self.namesrv_addr = server.namesrv_addr
        """Address of the name server, "host:port"."""
        self.broker_addr = server.broker_addr
        """Address of the broker."""
        self.grpc_endpoint = server.grpc_endpoint
        """Address for clients of RocketMQ 5.x that speak gRPC; empty without txrocketmq[grpc]."""

    def producer(self, group: str = blocking.GROUP, **settings: Any) -> aio.Producer:
        """A producer, which `async with` starts."""
        return aio.Producer(group, **self._server.client_settings(settings))

    @overload
    async def consumer(
        self, topic: str, listener: None = None, *, group: str = ..., expression: Any = ...,
        **settings: Any,
    ) -> aio.LitePullConsumer: ...  # fmt: skip

    @overload
    async def consumer(
        self, topic: str, listener: Listener | OrderlyListener, *, group: str = ...,
        expression: Any = ..., **settings: Any,
    ) -> aio.PushConsumer: ...  # fmt: skip

    async def consumer(
        self,
        topic: str,
        listener: Listener | OrderlyListener | None = None,
        *,
        group: str = blocking.GROUP,
        expression: Any = "*",
        **settings: Any,
    ) -> Any:
        """A consumer, which `async with` starts: with a listener, a PushConsumer."""
        await self._do(self._server.ask, "ensure_topic", topic)
        settings = self._server.consumer_settings(settings)
        if listener is None:
            return aio.LitePullConsumer(group, {topic: expression}, **settings)
        watched = self._server.listener_errors.watched(group, listener)
        return aio.PushConsumer(group, {topic: expression}, watched, **settings)

    async def send(self, topic: str, body: bytes | str = b"", **message: Any) -> SendResult:
        """Sends a message."""
        return await self._do(self._server.send, topic, body, **message)

    async def create_topic(
        self, topic: str, queues: int = 4, message_type: str | None = None
    ) -> None:
        """Creates a topic, or changes its number of queues and its type if one is given."""
        await self._do(self._server.create_topic, topic, queues, message_type)

    async def create_account(
        self, name: str, secret: str, policies: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, str]:
        """Creates an account with the actions that it may do; returns its clients' settings."""
        return await self._do(self._server.create_account, name, secret, policies)

    async def topics(self) -> list[str]:
        """Returns the topics that clients have created."""
        return await self._do(self._server.topics)

    async def groups(self) -> list[str]:
        """Returns the consumer groups of the broker."""
        return await self._do(self._server.groups)

    async def messages(self, topic: str) -> list[MessageExt]:
        """Returns all messages of a topic, in the order in which they were stored."""
        return await self._do(self._server.messages, topic)

    async def lag(self, group: str, topic: str | None = None) -> int:
        """Returns how many messages a group has yet to consume."""
        return await self._do(self._server.lag, group, topic)

    async def wait_consumed(
        self,
        group: str,
        topic: str | None = None,
        *,
        timeout_s: float = blocking.WAIT_S,
        ignore_errors: bool = False,
    ) -> None:
        """Waits until a group has consumed everything; TimeoutError says what is left.

        It ends with the error of a listener that was given to `consumer`, once, unless
        `ignore_errors` is set.
        """
        deadline_s = time.monotonic() + timeout_s
        look = partial(self._server.why_not_consumed, ignore_errors=ignore_errors)
        while (why := await self._do(look, group, topic)) is not None:
            if time.monotonic() >= deadline_s:
                raise TimeoutError(f"after {timeout_s:g} s {why}")
            await asyncio.sleep(blocking.LOOK_S)

    async def refuse(self, code: int | str = "SYSTEM_BUSY", **which: Any) -> Fault:
        """Makes the broker answer requests with a response code."""
        return await self._do(self._server.refuse, code, **which)

    async def delay_ms(self, ms: int) -> Fault:
        """Delays everything that the broker sends."""
        return await self._do(self._server.delay_ms, ms)

    async def drop_connections(self) -> int:
        """Closes all connections of clients to the broker."""
        return await self._do(self._server.drop_connections)

    async def advance(self, ms: int) -> None:
        """Moves the broker's clock forward."""
        await self._do(self._server.advance, ms)

    async def restart(self) -> None:
        """Stops the server in order, if it runs, and starts it with its store."""
        await self._do(self._server.restart)

    async def kill(self) -> None:
        """Kills the server, as a crash would."""
        await self._do(self._server.kill)

    async def reset(self) -> None:
        """Empties the store and ends all faults."""
        await self._do(self._server.reset)

    async def pause(self) -> None:
        """Stops the server from answering until `resume`."""
        self._server.pause()

    async def resume(self) -> None:
        """Lets the server answer again after `pause`."""
        self._server.resume()

    async def _do(self, work: Callable[..., T], *arguments: Any, **named: Any) -> T:
        return await asyncio.to_thread(work, *arguments, **named)
