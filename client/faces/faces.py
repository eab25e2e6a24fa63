# SPDX-License-Identifier: Apache-2.0
"""What the three faces of the client have in common, and how they are derived from the core.

The declaration is the core's own. An `async def` is what waits: blocking it is a call, for asyncio
a coroutine, for Twisted a Deferred. A coroutine that gives a `Started` begins something, and gives
each face's kind of future. A plain method does not wait. A parameter whose type is a function with
an answer that may be awaited takes a function of the program: it runs where the face's programs
run. Whatever is public in a class of the core, but for what only the client instance calls, is in
all faces.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from twisted.internet.defer import Deferred

from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import ClientClosed, MQClientError
from txrocketmq.client.consumer.listening.listener import is_orderly, orderly
from txrocketmq.client.core.instance import ClientInstance, RegisteredConsumer
from txrocketmq.client.core.producer_requests import RegisteredProducer
from txrocketmq.client.faces.descriptions import (
    HIDDEN,
    ClassDoc,
    ClassSignature,
    Form,
    config_class,
    method_signature,
    plain_signature,
)
from txrocketmq.client.faces.foreign_methods import missing
from txrocketmq.client.faces.foreign_settings import answer_for
from txrocketmq.client.thread import leftovers as forgotten
from txrocketmq.client.thread.instances import ClientInstances
from txrocketmq.client.thread.pending_calls import Started, WayToBegin, way_to_begin
from txrocketmq.remoting.arguments.arguments import Arguments, evaluated

LIFE: Final = frozenset({"start", "stop", "shutdown"})
_OF_THE_INSTANCE: Final = frozenset(
    name
    for protocol in (RegisteredProducer, RegisteredConsumer)
    for each in protocol.__mro__
    for name in vars(each)
)
"""Methods that only the client instance and brokers call; faces do not have them."""
_STARTS: Final = (
    "The result is the object itself. A `with` or `async with` statement starts it, too."
)
_ENDS: Final = "A second call does nothing, nor does one before the start."
Adapt = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes a function of the program one that the core can call and wait for."""


class Member(NamedTuple):
    """A public method or property of a class of the core."""

    name: str
    function: Callable[..., Any]
    waits: bool
    is_property: bool
    arguments: Arguments
    begun: WayToBegin | None = None
    """Another way to begin the method, without a coroutine."""


def members(core: type) -> Iterator[Member]:
    """The public methods and properties of a class, apart from those that start and end it."""
    is_of_group = "group" in inspect.signature(core).parameters
    hidden = LIFE | _OF_THE_INSTANCE if is_of_group else LIFE
    for name in sorted(dir(core)):
        if name.startswith("_") or name in hidden:
            continue
        value = inspect.getattr_static(core, name)
        if isinstance(value, property):
            assert value.fget is not None
            none = Arguments(value.fget, name)
            yield Member(name, value.fget, waits=False, is_property=True, arguments=none)
        elif inspect.isfunction(value):
            waits, begun = inspect.iscoroutinefunction(value), way_to_begin(value)
            takes = Arguments(value, f"{core.__name__}.{name}", is_hot=begun is not None)
            yield Member(name, value, waits, is_property=False, arguments=takes, begun=begun)


def is_started(function: Callable[..., Any]) -> bool:
    """Whether a function returns a `Started`."""
    annotation = inspect.signature(function).return_annotation
    return str(annotation).startswith(Started.__name__)


def functions_of_program(function: Callable[..., Any]) -> frozenset[str]:
    """Returns the names of the parameters that take a function of the program."""
    space = inspect.unwrap(function).__globals__
    return frozenset(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation is not inspect.Parameter.empty
        and "Awaitable" in repr(evaluated(parameter.annotation, space))
    )


def adapted(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    adapt: Adapt,
    takes: frozenset[str],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments of a call, with the functions of the program adapted for the core."""
    if not takes:
        return arguments, named
    bound = inspect.signature(function).bind(None, *arguments, **named)
    _adapt_bound(bound, takes, adapt)
    return bound.args[1:], bound.kwargs


def _adapt_bound(bound: inspect.BoundArguments, takes: frozenset[str], adapt: Adapt) -> None:
    for name in takes:
        function = bound.arguments.get(name)
        if callable(function):
            made = adapt(function)
            if made is not function:
                functools.update_wrapper(made, function, updated=())
                if is_orderly(function):
                    orderly(made)
            bound.arguments[name] = made


@functools.cache
def _arguments_of(core: type) -> Arguments:
    constructor = core.__init__  # type: ignore[misc]
    return Arguments(constructor, core.__name__, hidden=HIDDEN)


def _known_settings(core: type) -> tuple[set[str], set[str], set[str]]:
    """The settings of every client, those of a class, and the arguments of its constructor."""
    return (
        {field.name for field in dataclasses.fields(ClientConfig)},
        {field.name for field in dataclasses.fields(config_class(core))},
        set(inspect.signature(core).parameters) - HIDDEN,
    )


def _sorted_settings(core: type, settings: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    tables: tuple[dict[str, Any], ...] = ({}, {}, {})
    known = _known_settings(core)
    for name, value in settings.items():
        for table, names in zip(tables, known, strict=True):
            if name in names:
                table[name] = value
                break
        else:
            names = set().union(*known)
            if answer := answer_for(name, names):
                raise TypeError(f"{core.__name__} has no setting {name!r}: {answer}")
            near = difflib.get_close_matches(name, names, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise TypeError(f"{core.__name__} has no setting {name!r}{hint}")
    return tables


class Life:
    """A core object with its instance, from its start to its shutdown."""

    def __init__(
        self,
        core: type,
        instances: ClientInstances,
        arguments: tuple[Any, ...],
        settings: dict[str, Any],
        adapt: Adapt,
    ) -> None:
        if arguments and isinstance(arguments[0], Mapping):
            raise TypeError(
                f"{core.__name__} takes its settings by name, not in a dict, as in"
                f" {core.__name__}('group', namesrv_addr='127.0.0.1:9876')"
            )
        client, own, rest = _sorted_settings(core, settings)
        arguments, rest = _arguments_of(core).taken(arguments, rest)
        config = config_class(core)(**own)
        if str(getattr(config, "message_model", "")).endswith("BROADCASTING"):
            client.setdefault("keep_default_instance_name", True)
        constructor = core.__init__  # type: ignore[misc]
        bound = inspect.signature(constructor).bind(None, None, *arguments, **rest, config=config)
        _adapt_bound(bound, functions_of_program(constructor), adapt)
        self.is_started = False
        self.has_left = False
        self._instances = instances
        self.instance: ClientInstance = instances.take(ClientConfig(**client))
        try:
            self.core: Any = core(self.instance, *bound.args[2:], **bound.kwargs)
        except BaseException:
            self.abandon()
            raise

    @property
    def what(self) -> str:
        """Names the object, for error messages."""
        group = getattr(self.core, "group", None)
        name = type(self.core).__name__
        return f"{name} of group {group}" if group else name

    async def start(self) -> None:
        """Starts the instance and the core object."""
        if self.has_left:
            raise ClientClosed(f"{self.what} was shut down: create a new one")
        if self.is_started:
            raise MQClientError(f"{self.what} was started already")
        self.is_started = True
        try:
            await self._instances.begin(self.instance)
            await self.core.start()
        except BaseException:
            await self.shutdown()
            raise

    async def shutdown(self) -> None:
        """Ends the core object and gives the instance back; further calls do nothing."""
        if self.has_left:
            return
        self.has_left = True
        try:
            if self.is_started:
                end = getattr(self.core, "shutdown", None) or self.core.stop
                await end()
        finally:
            await self._instances.leave(self.instance)

    def abandon(self) -> None:
        """Gives the instance back of an object that was never started; nobody waits for it."""
        Deferred.fromCoroutine(self.shutdown())

    def check(self) -> None:
        """Raises ClientClosed after the shutdown, MQClientError before the start."""
        if self.has_left:
            raise ClientClosed(f"{self.what} was shut down")
        if not self.is_started:
            raise MQClientError(
                f"{self.what} is not started: call start(), or use it in a with statement"
            )


def remember(face: object, life: Life, end: Callable[[], None]) -> None:
    """Notes that the program has to shut the object down."""
    forgotten.opened(face, life.what, end)


def other_statement(face: object, statement: str, found: str, module: str) -> TypeError:
    """Returns what is raised when a face is used in a `found` statement, for that of `module`."""
    its = type(face)
    return TypeError(
        f"{its.__name__} of {its.__module__} needs {statement!r}: {found!r} is for the"
        f" {its.__name__} of {module}"
    )


def make_face(core: type, base: type, wrap: Callable[[Member], Any], form: Form) -> type:
    """Makes a class that has the public members of the core class, each as `wrap` makes it."""
    space: dict[str, Any] = {
        "_core_class": core,
        "__doc__": ClassDoc(core, base),
        "__signature__": ClassSignature(core, base),
        "__module__": form.module,
        "__getattr__": missing(lambda: set().union(*_known_settings(core))),
        "start": _of_life(core, base, "start", _STARTS),
        "shutdown": _of_life(core, base, "shutdown", _ENDS),
    }
    for member in members(core):
        if member.is_property:
            space[member.name] = property(
                attrgetter(f"_life.core.{member.name}"), doc=member.function.__doc__
            )
            continue
        made = wrap(member)
        made.__name__ = member.name
        made.__qualname__ = f"{core.__name__}.{member.name}"
        made.__doc__ = member.function.__doc__
        made.__module__ = form.module
        made.__signature__ = method_signature(member.function, form, waits=member.waits)
        space[member.name] = made
    return type(core.__name__, (base,), space)


def make_iterable(face: Any, form: Form, names: tuple[str, str], step: Callable[..., Any]) -> None:
    """Lets a class be iterated over: `names` are those of the methods, `step` gives the next."""
    its = face._core_class.__anext__  # noqa: SLF001 - what it is made of
    made: Any = step
    made.__name__, made.__qualname__ = names[1], f"{face.__name__}.{names[1]}"
    made.__doc__ = its.__doc__
    made.__signature__ = method_signature(its, form, waits=True)

    def itself(self: Any) -> Any:
        return self

    itself.__name__, itself.__qualname__ = names[0], f"{face.__name__}.{names[0]}"
    itself.__annotations__ = {}
    setattr(face, names[0], itself)
    setattr(face, names[1], made)


def _of_life(core: type, base: type, name: str, more: str) -> Any:
    """Makes a copy of `start` or `shutdown` that says what it does for this class."""
    function: Any = getattr(base, name)
    made: Any = types.FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    its = getattr(core, name, getattr(core, "stop", None))
    made.__doc__ = f"{inspect.getdoc(its)}\n\n{more}"
    made.__signature__ = plain_signature(function)
    made.__annotations__ = function.__annotations__
    made.__qualname__ = f"{core.__name__}.{name}"
    return made
