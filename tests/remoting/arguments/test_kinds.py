# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pytest

from txrocketmq.remoting.arguments.kinds import kind_of, shown


class Colour(enum.Enum):
    """An enum with words of another system."""

    RED = "is-red"
    BLUE = "is-blue"

    @classmethod
    def _missing_(cls, value: object) -> Colour | None:
        return cls.RED if value == "rot" else None


class Code(enum.IntEnum):
    """An enum of numbers."""

    OK = 0


class Hook(Protocol):
    """A protocol."""

    def before(self) -> None: ...

    def after(self) -> None: ...


class Hooked:
    """Has the methods of Hook."""

    def before(self) -> None:
        """Nothing."""

    def after(self) -> None:
        """Nothing."""


F = TypeVar("F", bound=Callable[..., Any])
Two = Callable[[list[int], Colour], "int | None"]


def two(_: Any, __: Any) -> None:
    """Takes two arguments."""


@pytest.mark.parametrize(
    ("hint", "value", "taken"),
    [
        (int, 5, 5),
        (int, np.int64(5), 5),
        (float, 5, 5),
        (str, "a", "a"),
        (bool, False, False),
        (str | None, None, None),
        (bytes, bytearray(b"x"), bytearray(b"x")),
        (Path, "a/b", Path("a/b")),
        (str | PathLike[str], Path("a/b"), Path("a/b")),
        (Colour, Colour.BLUE, Colour.BLUE),
        (Colour, "blue", Colour.BLUE),
        (Colour, "is-blue", Colour.BLUE),
        (Colour, "rot", Colour.RED),
        (Code, 0, Code.OK),
        (tuple[str, ...], ["a"], ("a",)),
        (frozenset[int], [1, 1], frozenset({1})),
        (Sequence[int], iter([1, 2]), [1, 2]),
        (Collection[str], {"a"}, {"a"}),
        (Mapping[str, int | None], {"a": None}, {"a": None}),
        (Hook, hooked := Hooked(), hooked),
        (Two, two, two),
        (Two, print, print),
        (F, len, len),
        (Any, 5, 5),
    ],
)
def test_what_is_accepted(hint: Any, value: Any, taken: Any) -> None:
    result = kind_of(hint).take("name", value)
    assert result == taken
    assert type(result) is type(taken)


@pytest.mark.parametrize(
    ("hint", "value", "said"),
    [
        (int, True, "must be int, not True (bool)"),
        (int, "3000", "must be int, not '3000' (str)"),
        (float, "1", "must be int or float, not '1' (str)"),
        (str, None, "must be str, not None"),
        (bytes, 5, "must be bytes, not 5 (int)"),
        (str | PathLike[str], 5, "must be str or Path, not 5 (int)"),
        (Path, 5, "must be a path, as str or Path, not 5 (int)"),
        (Colour, 5, "must be Colour (RED or BLUE) or its name, not 5 (int)"),
        (Colour, "green", "must be Colour (RED or BLUE) or its name, not 'green' (str)"),
        (Code, 7, "must be Code (OK) or its name, not 7 (int)"),
        (tuple[str, ...], "Tour", "must be a list of str, not 'Tour' (str)"),
        (Iterable[str], {"a": 1}, "must be a list of str, not {'a': 1} (dict)"),
        (Iterable[str], ["a", 5], "name[1] must be str, not 5 (int)"),
        (Mapping[str, int], "Tour", "must be a dict of str to int, not 'Tour' (str)"),
        (Mapping[str, int], {"a": "b"}, "name['a'] must be int, not 'b' (str)"),
        (Mapping[str, int], {5: 5}, "each key of name must be str, not 5 (int)"),
        (Hook, Hooked, "must be an object with the methods before and after, not <class"),
        (Hook, 5, "must be an object with the methods before and after, not 5 (int)"),
        (Two, 5, "must be a function that is called with (list[int], Colour), not 5 (int)"),
        (Two | None, 5, "a function that is called with (list[int], Colour) or None, not 5 (int)"),
        (Two, lambda one: one, "(list[int], Colour), but <lambda> takes (one)"),
        (F, 5, "must be a function, not 5 (int)"),
        (list[Any], 5, "must be a list, not 5 (int)"),
    ],
)
def test_what_is_refused(hint: Any, value: Any, said: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        kind_of(hint).take("name", value)
    assert said in str(raised.value)
    assert "name" in str(raised.value)


def test_a_function_with_too_few_parameters_is_shown() -> None:
    def listen(messages: Any) -> None:
        """Takes one."""

    with pytest.raises(TypeError, match=r"but .*listen takes \(messages: 'Any'\) -> 'None'"):
        kind_of(Two).take("listener", listen)


class Hidden:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise OSError("no")


def test_what_is_shown_of_values() -> None:
    assert shown("secret_key", "hush") == "str"
    assert shown("name", "x" * 200) == f"'{'x' * 79}... (str)"
    assert shown("name", Hidden()) == "Hidden"


def test_types_that_need_no_look() -> None:
    assert kind_of(int | None).exact == {int, type(None)}
    assert object in kind_of(Any).exact
    assert object in kind_of(str | Any).exact
    assert kind_of(Sequence[int]).exact == frozenset()
    assert bool not in kind_of(int).exact
