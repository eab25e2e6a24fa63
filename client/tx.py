# SPDX-License-Identifier: Apache-2.0
"""The face of the client for Twisted: what waits gives a Deferred.

Everything runs in the reactor, functions of the program as well; what these give may be a Deferred
or a coroutine.
"""

from __future__ import annotations

from typing import Any, Final, Never, Self

from twisted.internet.defer import Deferred, fail

from txrocketmq.client.admin import admin
from txrocketmq.client.consumer import lite_pull, pop, push
from txrocketmq.client.faces import names
from txrocketmq.client.faces.descriptions import Form
from txrocketmq.client.faces.faces import (
    Life,
    Member,
    make_face,
    make_iterable,
    other_statement,
    remember,
)
from txrocketmq.client.faces.names import *  # noqa: F403 - the same in all faces
from txrocketmq.client.producer import producer, transaction
from txrocketmq.client.thread import leftovers as forgotten
from txrocketmq.client.thread import python_log
from txrocketmq.client.thread.instances import instances_of
from txrocketmq.client.thread.pending_calls import Started, begun
from txrocketmq.remoting.host.clock import Clock

FORM: Final = Form("txrocketmq.client.tx", "Deferred[{}]", "Deferred[{}]")


class TxFace:
    """Base of the classes for Twisted."""

    _core_class: type

    def __init__(self, *arguments: Any, reactor: Any = None, **settings: Any) -> None:
        """`reactor` is the global one unless it is given."""
        python_log.begin(in_thread=False)
        reactor = reactor or Clock().reactor
        self._life = Life(
            self._core_class, instances_of(reactor), arguments, settings, lambda function: function
        )

    def __del__(self) -> None:
        life = getattr(self, "_life", None)
        if life is not None and not life.is_started:
            life.abandon()

    def start(self) -> Deferred[Self]:
        """Starts the object and fires with it."""
        remember(self, self._life, lambda: None)
        started = Deferred.fromCoroutine(self._life.start())

        def failed(failure: Any) -> Any:
            forgotten.closed(self)
            return failure

        started.addErrback(failed)
        return started.addCallback(lambda _: self)

    def shutdown(self) -> Deferred[None]:
        """Shuts the object down in order. Calling it again does nothing."""
        forgotten.closed(self)
        return Deferred.fromCoroutine(self._life.shutdown())

    def __aenter__(self) -> Deferred[Self]:
        return self.start()

    def __aexit__(self, *_: object) -> Deferred[None]:
        return self.shutdown()

    def __enter__(self) -> Never:
        raise other_statement(self, "async with", "with", "txrocketmq.client")

    def __exit__(self, *_: object) -> None:
        """Is there because `with` looks for it first."""


def _wrap(member: Member) -> Any:
    function, its_begun = member.function, member.begun
    taken = member.arguments.taken
    quick = frozenset() if its_begun is None else member.arguments.first

    def waiting(self: TxFace, *arguments: Any, **named: Any) -> Deferred[Any]:
        life = self._life
        if its_begun is not None and (begin := its_begun(life.core)) is not None:
            try:
                life.check()
                if named or len(arguments) != 1 or type(arguments[0]) not in quick:
                    arguments, named = taken(arguments, named)
                return begun(begin, *arguments, **named)
            except Exception:  # noqa: BLE001 - what waits fails by its Deferred
                return fail()
        return Deferred.fromCoroutine(_checked(life, member, arguments, named))

    def plain(self: TxFace, *arguments: Any, **named: Any) -> Any:
        arguments, named = taken(arguments, named)
        return function(self._life.core, *arguments, **named)

    return waiting if member.waits else plain


async def _checked(
    life: Life, member: Member, arguments: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    life.check()
    arguments, named = member.arguments.taken(arguments, named)
    result = await member.function(life.core, *arguments, **named)
    return await result.result if isinstance(result, Started) else result


async def _following(life: Life) -> Any:
    if life.has_left:
        raise StopAsyncIteration
    life.check()
    return await life.core.__anext__()


def tx(core: type) -> type:
    """Makes the class for Twisted from a class of the core."""
    face = make_face(core, TxFace, _wrap, FORM)
    if hasattr(core, "__anext__"):

        def following(self: TxFace) -> Deferred[Any]:
            return Deferred.fromCoroutine(_following(self._life))

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

Admin = tx(admin.Admin)
Producer = tx(producer.Producer)
TransactionProducer = tx(transaction.TransactionProducer)
PushConsumer = tx(push.PushConsumer)
LitePullConsumer = tx(lite_pull.LitePullConsumer)
PopConsumer = tx(pop.PopConsumer)


def __dir__() -> list[str]:
    """What is public: for completion, and for those who look around."""
    return sorted(__all__)
