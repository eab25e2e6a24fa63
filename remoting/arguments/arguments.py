# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments where they enter, derived from what functions and settings declare.

The types that a function declares are looked at once, when it is called first. After that, a call
whose arguments are of these very types costs one look at each of them; only other arguments are
examined, and refused with one sentence that names the argument, what came and what is valid.

`checked` is for functions, `checked_class` for the constructor and all public methods of a class,
`checked_methods` for these without the constructor, `checked_settings` for dataclasses. The classes
of the client's three forms check by `Arguments` themselves, before they pass a call on.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import sys
import types
from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

from txrocketmq.remoting.arguments.kinds import Kind, kind_of

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
Given = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of a call: those by position and those by name."""
Conversion = Callable[[tuple[Any, ...], dict[str, Any]], Given]
"""Makes arguments that a function takes of others that are allowed instead."""

_CONVERSION: Final = "_converted_by"
_FUNCTIONS: Final = frozenset(
    {types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial}
)
_REQUIRED: Final = inspect.Parameter.empty


def evaluated(annotation: Any, space: dict[str, Any]) -> Any:
    """An annotation that is kept as text, as a type; the text if it has names for checkers only."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, space)  # noqa: S307 - an annotation of our own
    except NameError:
        return annotation


def converted_by(conversion: Conversion, **of: Collection[type]) -> Callable[[F], F]:
    """Marks a function whose arguments have to be converted if these are of these types."""

    def mark(function: F) -> F:
        setattr(function, _CONVERSION, (conversion, of))
        return function

    return mark


class Arguments:
    """The arguments that a function declares.

    `called` names it in errors. What is in `hidden` is not the caller's, as `self`. With `is_hot`,
    functions among the arguments may take anything: they are other ones for each call.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        called: str,
        *,
        hidden: Collection[str] = ("self", "cls"),
        is_hot: bool = False,
    ) -> None:
        self._function = function
        self._called = called
        self._hidden = hidden
        self._is_hot = is_hot
        self._conversion: Conversion | None = None
        self._kinds: dict[str, Kind] = {}
        self._positional: list[str] = []
        self._required: list[str] = []
        self._takes_any = False
        self._takes_more = False
        self._exact_positional: list[frozenset[type]] = []
        self._exact_named: dict[str, frozenset[type]] = {}
        self._optional: list[str] = []
        """Those of the positional ones that have defaults."""
        self._least = self._most = 0
        self._is_examined = False

    def _examine_function(self) -> None:
        """Looks at what the function declares; done late, as most are never called."""
        self._is_examined = True
        function = self._function
        exact: dict[str, frozenset[type]] = {}
        space = inspect.unwrap(function).__globals__
        for name, each in inspect.signature(function).parameters.items():
            if name in self._hidden:
                continue
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                self._takes_more |= each.kind is each.VAR_POSITIONAL
                self._takes_any |= each.kind is each.VAR_KEYWORD
                continue
            kind = self._kinds[name] = kind_of(evaluated(each.annotation, space))
            exact[name] = kind.exact
            if self._is_hot and type(kind) is not Kind and kind.fits(kind_of):  # or any function
                exact[name] = kind.exact | _FUNCTIONS
            if each.kind is not each.KEYWORD_ONLY:
                self._positional.append(name)
            if each.default is _REQUIRED:
                self._required.append(name)
        self._conversion, converted = getattr(function, _CONVERSION, (None, {}))
        for name, of in converted.items():
            exact[name] -= frozenset(of)
        self._exact_positional = [exact[name] for name in self._positional]
        needed = [name for name in self._positional if name in self._required]
        self._exact_named = {name: exact[name] for name in exact.keys() - set(needed)}
        self._optional = self._positional[len(needed) :]
        self._least, self._most = len(self._required), len(self._positional)

    @property
    def first(self) -> frozenset[type]:
        """The types of which a single argument needs no call of `taken`."""
        if not self._is_examined:
            self._examine_function()
        is_enough = self._required == self._positional[:1] != []
        return self._exact_positional[0] if is_enough else frozenset()

    def taken(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Given:
        """Returns the arguments to use. Raises TypeError and ValueError."""
        if not self._is_examined:
            self._examine_function()
        if self._least <= len(arguments) <= self._most:
            for value, exact in zip(arguments, self._exact_positional):  # noqa: B905 - no time
                if type(value) not in exact:
                    return self._examined(arguments, named)
            for name, value in named.items():
                if name not in self._exact_named or type(value) not in self._exact_named[name]:
                    return self._examined(arguments, named)
            more = len(arguments) + len(self._optional) - self._most
            if named and more > 0 and not named.keys().isdisjoint(self._optional[:more]):
                return self._examined(arguments, named)  # one of them is given twice
            return arguments, named
        return self._examined(arguments, named)

    def _examined(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Given:
        if len(arguments) > len(self._positional) and not self._takes_more:
            many, given = len(self._positional), len(arguments)
            known = f" ({', '.join(self._positional)})" if many else ""
            raise TypeError(
                f"{self._called}() takes {many} argument{'s' * (many != 1)}{known} by position, not"
                f" {given}: give the others by name"
            )
        if self._conversion is not None:
            arguments, named = self._conversion(arguments, named)
        by_position = self._positional[: len(arguments)]
        for name in named:
            if name in by_position:
                raise TypeError(f"{self._called}() is given {name} twice")
            if name not in self._kinds and not self._takes_any:
                near = difflib.get_close_matches(name, self._kinds, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise TypeError(f"{self._called}() has no argument {name!r}{hint}")
        for name in self._required:
            if name not in by_position and name not in named:
                raise TypeError(f"{self._called}() needs the argument {name}")
        taken = tuple(
            self._kinds[name].take(name, value)
            for name, value in zip(by_position, arguments, strict=False)
        )
        return taken + arguments[len(taken) :], {
            name: self._kinds[name].take(name, value) if name in self._kinds else value
            for name, value in named.items()
        }


def _called(function: Callable[..., Any], of: type | None) -> str:
    """Returns how a function is called: a method by the class of the object that has it."""
    if of is None:
        return function.__qualname__
    return of.__name__ if function.__name__ == "__init__" else f"{of.__name__}.{function.__name__}"


def checked(function: F) -> F:
    """Checks the arguments of a function, a method or a coroutine function."""

    @functools.cache
    def declared(of: type | None) -> Arguments:
        return Arguments(function, _called(function, of))

    is_method = next(iter(inspect.signature(function).parameters), "") in ("self", "cls")
    own = 1 if is_method else 0

    def taken(arguments: tuple[Any, ...], named: dict[str, Any]) -> Given:
        of = None
        if own and arguments:
            of = arguments[0] if isinstance(arguments[0], type) else type(arguments[0])
        given, by_name = declared(of).taken(arguments[own:], named)
        return arguments[:own] + given, by_name

    async def waiting(*arguments: Any, **named: Any) -> Any:
        arguments, named = taken(arguments, named)
        return await function(*arguments, **named)

    def call(*arguments: Any, **named: Any) -> Any:
        arguments, named = taken(arguments, named)
        return function(*arguments, **named)

    made: Any = waiting if inspect.iscoroutinefunction(function) else call
    functools.update_wrapper(made, function)
    return made  # type: ignore[no-any-return]


def checked_class(cls: C) -> C:
    """Checks the arguments of the constructor and of all public methods of a class."""
    if "__init__" in vars(cls):
        cls.__init__ = checked(cls.__init__)  # type: ignore[misc]
    return checked_methods(cls)


def checked_methods(cls: C) -> C:
    """Checks the arguments of all public methods of a class that programs do not make."""
    for name, value in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if inspect.isfunction(value):
            setattr(cls, name, checked(value))
        elif isinstance(value, classmethod):
            setattr(cls, name, classmethod(checked(value.__func__)))
    return cls


def checked_settings(cls: C) -> C:
    """Checks the fields of a dataclass when it is made.

    None means that a text was not given, so that its default counts, and a path may be a Path.
    """
    make = cls.__init__  # type: ignore[misc]
    kinds = functools.cache(lambda: setting_kinds(cls))
    texts = {field.name for field in dataclasses.fields(cls) if str(field.type).startswith("str")}

    @functools.wraps(make)
    def checked_init(self: Any, **given: Any) -> None:
        known = kinds()
        make(
            self,
            **{
                name: known[name].take(name, value) if name in known else value
                for name, value in given.items()
                if value is not None or name not in texts
            },
        )

    cls.__init__ = checked_init  # type: ignore[misc]
    return cls


def within(**ranges: tuple[int, int]) -> Callable[[C], C]:
    """Checks that settings of a dataclass are within their ranges, both ends included."""

    def mark(cls: C) -> C:
        make = cls.__init__  # type: ignore[misc]

        @functools.wraps(make)
        def ranged_init(self: Any, **given: Any) -> None:
            make(self, **given)
            for name in given.keys() & ranges.keys():
                (least, most), value = ranges[name], getattr(self, name)
                if not least <= value <= most:
                    raise ValueError(f"{name} must be from {least} to {most}, not {value!r:.40}")

        cls.__init__ = ranged_init  # type: ignore[misc]
        return cls

    return mark


def setting_kinds(cls: type) -> dict[str, Kind]:
    """What the fields of a dataclass accept, by their names."""
    space = vars(sys.modules[cls.__module__])
    fields = dataclasses.fields(cls)
    return {field.name: kind_of(evaluated(field.type, space)) for field in fields}
