# SPDX-License-Identifier: Apache-2.0
"""Frozen keyword dataclasses that are cheap to declare: constructors are compiled at first use.

There are some two hundred headers and bodies, and a process makes values of twenty. The standard
library compiles three functions for each frozen dataclass, which took a third of the time in which
a server starts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, dataclass_transform

V = TypeVar("V", bound="Value")
T = TypeVar("T")


class Value:
    """The base class for `value_class`: attributes cannot be changed once a value is made."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    eq_default=False,
    field_specifiers=(dataclasses.field,),
)
def value_class(cls: type[V]) -> type[V]:
    """Returns a dataclass of this declaration: slots, keywords only, frozen, without comparison."""
    made: type[V] = dataclasses.dataclass(
        init=False, slots=True, kw_only=True, repr=False, eq=False
    )(cls)
    made.__init__ = _first_init  # type: ignore[method-assign]
    return made


def maker(cls: type[T]) -> Callable[..., T]:
    """Returns a function that makes values of a frozen dataclass with slots.

    It takes all fields in their order. The dataclass's own constructor, which is made for values
    that must not be set twice, takes three times as long.
    """
    names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    scope: dict[str, Any] = {f"set_{name}": vars(cls)[name].__set__ for name in names}
    scope |= {"cls": cls, "new": object.__new__}
    lines = [f"def made({', '.join(names)}):", " self = new(cls)"]
    lines += [f" set_{name}(self, {name})" for name in names]
    exec("\n".join([*lines, " return self"]), scope)  # noqa: S102 - of a declaration only
    made: Callable[..., T] = scope["made"]
    return made


def _first_init(self: Any, **values: Any) -> None:
    """Compiles the constructor of the class, and makes the first value with it."""
    cls = type(self)
    cls.__init__ = _compile_init(cls)
    cls.__init__(self, **values)


def _compile_init(cls: Any) -> Any:
    """Compiles a constructor that fills the slots directly, without `__setattr__`."""
    scope: dict[str, Any] = {"factory": object()}
    arguments, lines = [], []
    for field in dataclasses.fields(cls):
        name = field.name
        scope[f"set_{name}"] = getattr(cls, name).__set__
        if field.default_factory is not dataclasses.MISSING:
            scope[f"make_{name}"] = field.default_factory
            arguments.append(f"{name}=factory")
            lines.append(f" if {name} is factory: {name} = make_{name}()")
        elif field.default is not dataclasses.MISSING:
            scope[f"default_{name}"] = field.default
            arguments.append(f"{name}=default_{name}")
        else:
            arguments.append(name)
        lines.append(f" set_{name}(self, {name})")
    head = ", ".join(["self", *(["*", *arguments] if arguments else [])])
    source = "\n".join([f"def __init__({head}):", *lines, " return None"])
    exec(source, scope)  # noqa: S102 - generated from declarations only, as dataclasses do
    init = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init
