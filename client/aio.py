# SPDX-License-Identifier: Apache-2.0
"""The face of the client for asyncio: what waits is a coroutine.

It works under any running loop and installs no reactor; the client's own runs in a thread. A
function of the program, plain or a coroutine function, runs in the loop in which the object was
started. A coroutine that is cancelled cancels what it waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Never, Self

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from txrocketmq.client.admin import admin
from txrocketmq.client.consumer import lite_pull, pop, push
from txrocketmq.client.faces import names
from txrocketmq.client.faces.descriptions import Form
from txrocketmq.client.faces.faces import (
    Member,
    adapted,
    functions_of_program,
    is_started,
    make_face,
    make_iterable,
    other_statement,
)
from txrocketmq.client.faces.names import *  # noqa: F403 - the same in all faces
from txrocketmq.client.faces.threaded_face import ThreadedFace
from txrocketmq.client.producer import producer, transaction
from txrocketmq.client.thread.executor import Elsewhere, Ended
from txrocketmq.client.thread.handover import Handover
from txrocketmq.client.thread.loop_executor import LoopCrew
from txrocketmq.client.thread.pending_calls import Begin, Started, room_of
from txrocketmq.client.thread.reactor_thread import begin_work, settle_deferred
from txrocketmq.client.thread.thread_call import ThreadCall
from txrocketmq.remoting.host.clock import Clock

FORM: Final = Form("txrocketmq.client.aio", "asyncio.Future[{}]", "{}")


class AioFace(ThreadedFace):
    """Base of the classes for asyncio; each wraps a class of the core."""

    _loop: asyncio.AbstractEventLoop | None = None
    _to_loop: tuple[asyncio.AbstractEventLoop, Handover] | None = None

    async def start(self) -> Self:
        """Starts the object and returns it."""
        if self._has_left:
            self._life.check()
        self._loop = asyncio.get_running_loop()
        self._begin_life()
        try:
            await self._wait(self._life.start)
        except BaseException:
            self._end_life()
            raise
        return self

    async def shutdown(self) -> None:
        """Shuts the object down in order. Calling it again does nothing."""
        if self._has_left or self._is_of_parent():
            return
        try:
            await self._wait(self._life.shutdown)
        finally:
            self._end_life()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()

    def __enter__(self) -> Never:
        raise other_statement(self, "async with", "with", "txrocketmq.client")

    def __exit__(self, *_: object) -> None:
        """Is there because `with` looks for it first."""

    def _future(self, begin: Begin, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Begins a call in the client's thread; returns a future, which may be cancelled."""
        future, call = self._hand_over(begin, arguments, named)
        future.add_done_callback(lambda done: call.cancel() if done.cancelled() else None)
        return future

    def _hand_over(
        self, begin: Begin, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[asyncio.Future[Any], ThreadCall]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        to_loop = self._to_loop
        if to_loop is None or to_loop[0] is not loop:
            self._to_loop = to_loop = loop, Handover(loop.call_soon_threadsafe)
        settle = partial(_tell, to_loop[1], future)
        return future, self._thread.hand_over(begin, settle, arguments, named)

    async def _wait(self, work: Callable[[], Any]) -> Any:
        future, call = self._hand_over(begin_work, (work,), {})
        try:
            return await future
        except asyncio.CancelledError:
            call.cancel()
            raise

    def _adapt(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Deferred[Any]:
            result: Deferred[Any] = Deferred()
            loop = self._loop_of_program()
            running = asyncio.run_coroutine_threadsafe(_called(function, arguments), loop)
            running.add_done_callback(
                lambda future: self._thread.call_there(settle_deferred, result, future)
            )
            return result

        def crew(most: int, ended: Ended, clock: Clock) -> LoopCrew:
            loop_of = self._loop_of_program
            to_loop = Handover(lambda call: loop_of().call_soon_threadsafe(call))
            return LoopCrew(function, most, to_loop, self._thread.outbox(ended), clock.steady_ms)

        return Elsewhere(call, crew)

    def _loop_of_program(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise RuntimeError("a function of the program is called before the start")
        return self._loop


async def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    result = function(*arguments)
    return await result if hasattr(result, "__await__") else result


def _tell(to_loop: Handover, future: asyncio.Future[Any], outcome: Any) -> None:
    """Passes a result from the client's thread to the event loop."""
    try:
        to_loop.call(_settle, future, outcome)
    except RuntimeError:  # the loop is closed: nobody waits
        return


def _settle(future: asyncio.Future[Any], outcome: Any) -> None:
    if future.done():
        return
    if isinstance(outcome, Failure):
        future.set_exception(outcome.value or RuntimeError("a failure without an error"))
    else:
        future.set_result(outcome)


def _wrap(member: Member) -> Any:
    function, begun = member.function, member.begun
    takes = functions_of_program(function)
    gives_future = is_started(function)
    its_room = room_of(function)
    taken = member.arguments.taken
    quick = frozenset() if begun is None else member.arguments.first

    async def waiting(self: AioFace, *arguments: Any, **named: Any) -> Any:
        life = self._life
        life.check()
        if named or len(arguments) != 1 or type(arguments[0]) not in quick:
            arguments, named = taken(arguments, named)
        if begun is not None and (begin := begun(life.core)) is not None:
            if gives_future:
                if self._thread.is_behind:
                    await self._wait(_nothing)
                if its_room is not None and (room := its_room(life.core)).is_behind:
                    await self._wait(room.caught_up)
                return self._future(begin, arguments, named)
            future, call = self._hand_over(begin, arguments, named)
            try:
                return await future
            except asyncio.CancelledError:
                call.cancel()
                raise
        arguments, named = adapted(function, arguments, named, self._adapt, takes)
        result = await self._wait(lambda: function(life.core, *arguments, **named))
        if isinstance(result, Started):
            return self._future(begin_work, (lambda: result.result,), {})
        return result

    def plain(self: AioFace, *arguments: Any, **named: Any) -> Any:
        if self._has_left:
            self._life.check()
        arguments, named = taken(arguments, named)
        arguments, named = adapted(function, arguments, named, self._adapt, takes)
        core = self._life.core
        return self._thread.ask(lambda: function(core, *arguments, **named))

    return waiting if member.waits else plain


def _nothing() -> None:
    """Does nothing: once it has run, all calls that were call over before have begun."""


def aio(core: type) -> type:
    """Makes the class for asyncio from a class of the core."""
    face = make_face(core, AioFace, _wrap, FORM)
    if hasattr(core, "__anext__"):

        async def following(self: AioFace) -> Any:
            if self._life.has_left:
                raise StopAsyncIteration
            self._life.check()
            return await self._wait(self._life.core.__anext__)

        make_iterable(face, FORM, ("__aiter__", "__anext__"), following)
    return face


__all__ = [  # noqa: PLE0604
    *names.__all__,
    "Admin",
    "LitePullConsumer",
    "PopConsumer",
    "Producer",
    "PushConsumer",
    "TransactionProducer",
]

Admin = aio(admin.Admin)
Producer = aio(producer.Producer)
TransactionProducer = aio(transaction.TransactionProducer)
PushConsumer = aio(push.PushConsumer)
LitePullConsumer = aio(lite_pull.LitePullConsumer)
PopConsumer = aio(pop.PopConsumer)


def __dir__() -> list[str]:
    """What is public: for completion, and for those who look around."""
    return sorted(__all__)
