# SPDX-License-Identifier: Apache-2.0
"""What a declared type accepts as an argument, and how that is said to a person.

`kind_of` makes a kind of a type, as annotations name it. A kind accepts a value as it is, or makes
of it what the type says: the name of an enum's member becomes the member, a list a tuple. All else
is a TypeError, or a ValueError for a name that does not exist, whose text names the argument, what
came and what is valid.
"""

from __future__ import annotations

import collections.abc
import enum
import inspect
import operator
import os
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_SECRETS: Final = ("password", "secret", "token")
"""Arguments whose names contain one of these: their values do not belong into an error."""
_BYTES: Final = (bytes, bytearray, memoryview)
_MAX_SHOWN: Final = 80
_CALLED_WITH: Final = "a function that is called with "


class _AllTypes(frozenset[type]):
    """Contains every type."""

    def __contains__(self, _: object) -> bool:
        return True


class Kind:
    """Accepts anything, and is the base of what accepts less."""

    words = "anything"
    """What is accepted, to be read after "must be"."""
    exact: frozenset[type] = _AllTypes()
    """Types of which every value is accepted as it is."""

    def fits(self, value: Any) -> bool:
        """Whether the value may be meant; `take` may still refuse a part of it."""
        return True

    def take(self, name: str, value: Any) -> Any:
        """Returns the value to use for the argument `name`. Raises TypeError and ValueError."""
        if not self.fits(value):
            raise refused(name, self.words, value)
        return value


def refused(name: str, words: str, value: object) -> TypeError:
    """The error for a value of a wrong type."""
    return TypeError(f"{name} must be {words}, not {shown(name, value)}")


def shown(name: str, value: object) -> str:
    """A value and its type, for an error; of secrets only the type."""
    if value is None:
        return "None"
    kind = type(value).__name__
    if any(each in name for each in _SECRETS):
        return kind
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a class of the program; its name has to do
        return kind
    if len(text) > _MAX_SHOWN:
        text = f"{text[:_MAX_SHOWN]}..."
    return f"{text} ({kind})"


class Of(Kind):
    """Accepts the instances of a class."""

    def __init__(self, *classes: type, words: str = "") -> None:
        self._classes = classes
        self.words = words or " or ".join(each.__name__ for each in classes)
        self.exact = frozenset(classes)

    def fits(self, value: Any) -> bool:
        return isinstance(value, self._classes)


class Whole(Kind):
    """Accepts whole numbers, also those of numpy, but not True and False."""

    words = "int"
    exact = frozenset({int})

    def fits(self, value: Any) -> bool:
        return not isinstance(value, bool) and hasattr(type(value), "__index__")

    def take(self, name: str, value: Any) -> Any:
        super().take(name, value)
        return value if isinstance(value, int) else operator.index(value)


class Number(Kind):
    """Accepts int and float."""

    words = "int or float"
    exact = frozenset({int, float})

    def fits(self, value: Any) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool)


class PathOf(Of):
    """Accepts a path as text as well, and makes a Path of either."""

    def __init__(self) -> None:
        super().__init__(str, os.PathLike, words="a path, as str or Path")
        self.exact = frozenset()

    def take(self, name: str, value: Any) -> Any:
        return Path(super().take(name, value))


class Member(Kind):
    """Accepts the members of an enum, and their names and values."""

    def __init__(self, enumeration: type[enum.Enum]) -> None:
        self._enumeration = enumeration
        *others, last = [each.name for each in enumeration]
        named = f"{', '.join(others)} or {last}" if others else last
        self.words = f"{enumeration.__name__} ({named}) or its name"
        self.exact = frozenset({enumeration})

    def fits(self, value: Any) -> bool:
        return isinstance(value, (self._enumeration, str)) or (
            issubclass(self._enumeration, int) and Whole().fits(value)
        )

    def take(self, name: str, value: Any) -> Any:
        super().take(name, value)
        try:
            return self._enumeration(value)
        except ValueError:
            if isinstance(value, str) and value.upper() in self._enumeration.__members__:
                return self._enumeration[value.upper()]
        raise ValueError(f"{name} must be {self.words}, not {shown(name, value)}")


class Function(Kind):
    """Accepts functions that can be called with the declared arguments."""

    def __init__(self, arguments: Sequence[Any] | None) -> None:
        """None means that nothing is declared about the arguments."""
        self.exact = frozenset()
        self._count = None if arguments is None else len(arguments)
        self.words = "a function"
        if arguments is not None:
            given = ", ".join(type_name(each) for each in arguments)
            self.words = f"{_CALLED_WITH}({given})"

    def fits(self, value: Any) -> bool:
        return callable(value)

    def take(self, name: str, value: Any) -> Any:
        super().take(name, value)
        if self._count is None:
            return value
        try:
            signature = inspect.signature(value)
        except (TypeError, ValueError):  # of a function in C that does not say what it takes
            return value
        try:
            signature.bind(*[None] * self._count)
        except TypeError:
            its = getattr(value, "__qualname__", type(value).__name__)
            raise TypeError(f"{name} must be {self.words}, but {its} takes {signature}") from None
        return value


class Methods(Kind):
    """Accepts objects with the methods of a protocol."""

    def __init__(self, protocol: type) -> None:
        self.exact = frozenset()
        self._names = [
            name
            for each in protocol.__mro__
            if each not in (object, typing.Protocol, typing.Generic)
            for name in vars(each)
            if inspect.isfunction(vars(each)[name]) and not name.startswith("_")
        ]
        self.words = f"an object with the methods {' and '.join(self._names)}"

    def fits(self, value: Any) -> bool:
        return not inspect.isclass(value) and all(
            callable(getattr(value, name, None)) for name in self._names
        )


class Items(Kind):
    """Accepts anything with items of one kind, but no text, and makes the declared type of it."""

    def __init__(self, collection: type, item: Kind) -> None:
        self._collection = collection
        self._item = item
        self.words = f"a list of {item.words}" if item.words != Kind.words else "a list"
        self.exact = frozenset()

    def fits(self, value: Any) -> bool:
        return isinstance(value, Iterable) and not isinstance(value, (str, *_BYTES, Mapping))

    def take(self, name: str, value: Any) -> Any:
        super().take(name, value)
        exact, take = self._item.exact, self._item.take
        items = value if isinstance(value, Collection) else list(value)
        taken = [
            each if type(each) in exact else take(f"{name}[{at}]", each)
            for at, each in enumerate(items)
        ]
        if self._collection in (tuple, frozenset, set, list):
            return self._collection(taken)
        return items if taken == items or isinstance(items, (set, frozenset)) else taken


class MappingKind(Kind):
    """Accepts mappings with keys and values of one kind each."""

    def __init__(self, key: Kind, value: Kind) -> None:
        self.exact = frozenset()
        self._key = key
        self._value = value
        self.words = f"a dict of {key.words} to {value.words}"

    def fits(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def take(self, name: str, value: Any) -> Any:
        super().take(name, value)
        for key, each in value.items():
            self._key.take(f"each key of {name}", key)
            self._value.take(f"{name}[{key!r:.80}]", each)
        return value


class AnyOf(Kind):
    """Accepts what one of several kinds accepts."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = kinds
        words = dict.fromkeys(each.words for each in kinds)
        self.words = " or ".join(words).replace(f" or {_CALLED_WITH}", " or ")
        every = any(isinstance(each.exact, _AllTypes) for each in kinds)
        self.exact = Kind.exact if every else frozenset().union(*(each.exact for each in kinds))

    def fits(self, value: Any) -> bool:
        return any(each.fits(value) for each in self._kinds)

    def take(self, name: str, value: Any) -> Any:
        for each in self._kinds:
            if each.fits(value):
                return each.take(name, value)
        raise refused(name, self.words, value)


_SIMPLE: Final[dict[Any, Callable[[], Kind]]] = {
    Any: Kind,
    object: Kind,
    int: Whole,
    float: Number,
    Path: PathOf,
    bytes: lambda: Of(*_BYTES, words="bytes"),
    None: lambda: Of(types.NoneType, words="None"),
    types.NoneType: lambda: Of(types.NoneType, words="None"),
    os.PathLike: lambda: Of(os.PathLike, words="Path"),
}
_COLLECTIONS: Final = frozenset(
    {
        collections.abc.Collection,
        collections.abc.Iterable,
        collections.abc.Sequence,
        frozenset,
        list,
        set,
        tuple,
    }
)


def kind_of(hint: Any) -> Kind:
    """Makes the kind of a type; of one that says nothing at run time, a kind for anything."""
    if isinstance(hint, typing.TypeVar):
        return Kind() if hint.__bound__ is None else kind_of(hint.__bound__)
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in _SIMPLE:
        return _SIMPLE[origin]()
    if origin in (typing.Union, types.UnionType):
        return AnyOf([kind_of(each) for each in parts])
    if origin is collections.abc.Callable:
        return Function(parts[0] if parts and isinstance(parts[0], list) else None)
    if origin in _COLLECTIONS:
        return Items(origin, kind_of(parts[0]) if parts else Kind())
    if origin is collections.abc.Mapping or origin is dict:
        return (
            MappingKind(*(kind_of(each) for each in parts))
            if parts
            else MappingKind(Kind(), Kind())
        )
    if not inspect.isclass(origin):
        return Kind()
    if issubclass(origin, enum.Enum):
        return Member(origin)
    if getattr(origin, "_is_protocol", False):
        return Methods(origin)
    return Of(origin)


def type_name(hint: Any) -> str:
    """A type as it is written."""
    parts = typing.get_args(hint)
    name = getattr(typing.get_origin(hint) or hint, "__name__", str(hint))
    return f"{name}[{', '.join(map(type_name, parts))}]" if parts else name
