# SPDX-License-Identifier: Apache-2.0
"""A class as those of the core are, for tests of the faces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.thread.pending_calls import Cancellable, Started, begun, begun_by

Function = Callable[[int], "int | Awaitable[int]"]
Plain = Callable[[int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreConfig:
    """Its settings."""

    size: int = 3
    message_model: str = "CLUSTERING"


class CoreRoom:
    """Has caught up when nobody says any more that it is behind."""

    def __init__(self, core: Core) -> None:
        self.is_behind = False
        self._core = core

    async def caught_up(self) -> None:
        """Waits, and notes that."""
        while self.is_behind:
            await self._core._instance.clock.pause(1)
        self._core.said.append("caught up")


class Core:
    """A class of the core."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        listener: Function | None = None,
        *,
        config: CoreConfig | None = None,
    ) -> None:
        if group == "none":
            raise RuntimeError("there is no group")
        self.group = group
        self.config = config or CoreConfig()
        self.said: list[str] = []
        self.cancelled = False
        self.room = CoreRoom(self)
        self._instance = instance
        self._listener = listener
        self._left = 2

    async def start(self) -> None:
        """Starts."""
        if self.group == "bad":
            raise MQClientError("it cannot start")
        self.said.append("start")
        if self.group == "never":
            await Deferred[None]()

    async def shutdown(self) -> None:
        """Ends."""
        if self.group == "never":
            await self._instance.clock.pause(50)
        self.said.append("shutdown")

    def group_changed(self) -> None:
        """For the instance alone."""

    @property
    def size(self) -> int:
        """How large it is."""
        return self.config.size

    def double(self, number: int) -> int:
        """Twice as much, at once."""
        return 2 * number

    async def later(self, number: int) -> int:
        """The same number, later. Raises ValueError for negative ones."""
        await self._instance.clock.pause(1)
        if number < 0:
            raise ValueError("negative")
        return number

    async def never(self) -> None:
        """Waits for ever."""
        waiting: Deferred[None] = Deferred()
        try:
            await waiting
        finally:
            self.cancelled = True

    async def begin(self, number: int) -> Started[int]:
        """Begins to answer later."""
        return Started(Deferred.fromCoroutine(self.later(number)))

    @begun_by("_begin_quickly")
    async def quickly(self, number: int) -> int:
        """As `later`, and without a coroutine where somebody can be called back."""
        result: int = await begun(self._begin_quickly, number)
        return result

    @begun_by(
        "_begin_quickly",
        unless=lambda core: core.size > 3,
        room=lambda core: core.room,
    )
    async def begin_quickly(self, number: int) -> Started[int]:
        """As `begin`; a large one waits first."""
        self.said.append("waited")
        return Started(begun(self._begin_quickly, number))

    def _begin_quickly(self, settle: Callable[[Any], None], number: int) -> Cancellable:
        self.said.append("quickly")
        if number < 0:
            raise ValueError("negative")
        waiting = self._instance.clock.pause(1 if number else 60_000)
        waiting.addCallbacks(lambda _: number, self._was_cancelled)
        return waiting.addBoth(settle)

    def _was_cancelled(self, failure: Failure) -> Failure:
        self.cancelled = True
        return failure

    async def call(self, function: Function, number: int) -> int:
        """Calls a function of the program."""
        answer: Any = function(number)
        return int(await answer if hasattr(answer, "__await__") else answer)

    async def listen(self, number: int) -> Any:
        """Calls the listener."""
        assert self._listener is not None
        answer: Any = self._listener(number)
        return await answer if hasattr(answer, "__await__") else answer

    async def here(self, function: Plain, number: int) -> int:
        """Calls a function where it is."""
        return function(number)

    async def __anext__(self) -> int:
        self._left -= 1
        if self._left < 0:
            raise StopAsyncIteration
        return await self.later(self._left)
