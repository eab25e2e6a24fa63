# SPDX-License-Identifier: Apache-2.0
"""The face of the client for programs that wait: each call returns when it is done.

Use it from any thread. A function of the program, such as a listener, runs in a thread of its own.
Ctrl-C while a call waits ends the waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final, Never, Self

from txrocketmq.client.admin import admin
from txrocketmq.client.consumer import lite_pull, pop, push
from txrocketmq.client.consumer.listening.listener import is_coroutine
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
from txrocketmq.client.thread.executor import Elsewhere
from txrocketmq.client.thread.pending_calls import Started, room_of
from txrocketmq.client.thread.reactor_thread import settle_future

FORM: Final = Form("txrocketmq.client", "Future[{}]", "{}")


class BlockingFace(ThreadedFace):
    """Base of the classes for blocking programs; each wraps a class of the core."""

    def start(self) -> Self:
        """Starts the object and returns it."""
        if self._has_left:
            self._life.check()
        self._begin_life()
        try:
            self._thread.ask(self._life.start)
        except BaseException:
            self._end_life()
            raise
        return self

    def shutdown(self) -> None:
        """Shuts the object down in order. Calling it again does nothing."""
        if self._has_left or self._is_of_parent():
            return
        try:
            self._thread.ask(self._life.shutdown)
        finally:
            self._end_life()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def __aenter__(self) -> Never:
        raise other_statement(self, "with", "async with", "txrocketmq.client.aio")

    def __aexit__(self, *_: object) -> None:
        """Is there because `async with` looks for it first."""

    def _adapt(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if is_coroutine(function):
            its = getattr(function, "__qualname__", type(function).__name__)
            raise TypeError(
                f"{its} is a coroutine function: txrocketmq.client.aio takes it, txrocketmq.client"
                " takes plain functions"
            )
        thread = self._thread
        return Elsewhere(partial(thread.call_beside, function), partial(thread.crew, function))


def _wrap(member: Member) -> Any:
    function, begun = member.function, member.begun
    takes = functions_of_program(function)
    gives_future = is_started(function)
    its_room = room_of(function)
    taken = member.arguments.taken
    quick = frozenset() if begun is None else member.arguments.first

    def method(self: BlockingFace, *arguments: Any, **named: Any) -> Any:
        life, thread = self._life, self._thread
        if member.waits or self._has_left:
            life.check()
        if named or len(arguments) != 1 or type(arguments[0]) not in quick:
            arguments, named = taken(arguments, named)
        if begun is not None and (begin := begun(life.core)) is not None:
            thread.check_other()
            if not gives_future:
                return thread.result_of(thread.hand_over(begin, None, arguments, named))
            future: Future[Any] = Future()
            thread.hand_over(begin, partial(settle_future, future), arguments, named)
            if thread.is_behind:
                thread.ask(_nothing)
            if its_room is not None and (room := its_room(life.core)).is_behind:
                thread.ask(room.caught_up)
            return future
        arguments, named = adapted(function, arguments, named, self._adapt, takes)
        result = thread.ask(lambda: function(life.core, *arguments, **named))
        if isinstance(result, Started):
            future = Future()
            thread.begin(lambda: result.result, partial(settle_future, future))
            return future
        return result

    return method


def _nothing() -> None:
    """Does nothing: once it has run, all calls that were handed over before have begun."""


def blocking(core: type) -> type:
    """Makes the class for blocking programs from a class of the core."""
    face = make_face(core, BlockingFace, _wrap, FORM)
    if hasattr(core, "__anext__"):

        def following(self: BlockingFace) -> Any:
            if self._life.has_left:
                raise StopIteration
            self._life.check()
            try:
                return self._thread.ask(self._life.core.__anext__)
            except StopAsyncIteration:
                raise StopIteration from None

        make_iterable(face, FORM, ("__iter__", "__next__"), following)
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

Admin = blocking(admin.Admin)
Producer = blocking(producer.Producer)
TransactionProducer = blocking(transaction.TransactionProducer)
PushConsumer = blocking(push.PushConsumer)
LitePullConsumer = blocking(lite_pull.LitePullConsumer)
PopConsumer = blocking(pop.PopConsumer)
