# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import pytest

from txrocketmq.remoting.arguments import arguments
from txrocketmq.remoting.arguments.arguments import (
    Arguments,
    checked,
    checked_class,
    checked_settings,
    converted_by,
    evaluated,
    within,
)


def send(topic: str, count: int = 1, *, choose: Callable[[int], int] | None = None) -> Any:
    return topic, count, choose


def test_good_arguments_are_passed_on_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    takes = Arguments(send, "send")
    assert takes.first == {str}
    monkeypatch.delattr(Arguments, "_examined")  # so that nothing is looked at closely
    given, named = ("T", 2), {"choose": None}
    taken = takes.taken(given, named)
    assert taken[0] is given
    assert taken[1] is named
    by_name = {"count": 2}
    assert takes.taken(("T",), by_name)[1] is by_name, "what may be left out may be given by name"


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        ((5,), {}, "topic must be str, not 5 (int)"),
        (("T", "2"), {}, "count must be int, not '2' (str)"),
        (("T",), {"choose": 5}, "choose must be a function that is called with (int) or None"),
        (("T",), {"choose": lambda: 1}, "choose must be a function that is called with (int), but"),
        ((), {}, "send() needs the argument topic"),
        (("T", 1, None), {}, "send() takes 2 arguments (topic, count) by position, not 3: give"),
        (("T",), {"topic": "T"}, "send() is given topic twice"),
        (("T", 1), {"count": 2}, "send() is given count twice"),
        (("T", 1), {"topic": "T", "choose": None}, "send() is given topic twice"),
        (("T",), {"count": "2"}, "count must be int, not '2' (str)"),
        (("T",), {"cuont": 2}, "send() has no argument 'cuont'; did you mean count?"),
        (("T",), {"xyz": 2}, "send() has no argument 'xyz'"),
    ],
)
def test_bad_arguments_are_named(given: Any, named: Any, said: str) -> None:
    with pytest.raises(TypeError) as raised:
        Arguments(send, "send").taken(given, named)
    assert said in str(raised.value)


def test_functions_of_a_hot_call_are_not_examined() -> None:
    takes = Arguments(send, "send", is_hot=True)
    one = lambda: 1  # noqa: E731 - as programs write them
    assert takes.taken(("T",), {"choose": one}) == (("T",), {"choose": one})
    with pytest.raises(TypeError, match="choose must be a function"):
        takes.taken(("T",), {"choose": 5})


def test_other_arguments_are_converted_first() -> None:
    @converted_by(lambda given, named: ((int(given[0]),), named), number=(str,))
    def twice(number: int | str) -> Any:
        return number

    takes = Arguments(twice, "twice")
    assert takes.first == {int}
    assert takes.taken(("7",), {}) == ((7,), {})
    with pytest.raises(
        TypeError, match=r"^twice\(\) takes 1 argument \(number\) by position, not 2"
    ):
        takes.taken(("7", "8"), {})


class Caller:
    """A class whose arguments are checked."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def made(cls, name: str) -> Caller:
        return cls(name)

    async def wait(self, seconds: float, *more: int, **others: Any) -> Any:
        return seconds, more, others

    def _inside(self, number: int) -> int:
        return number


Checked = checked_class(Caller)


class Derived(Checked):  # type: ignore[valid-type,misc]
    """A class that has its methods from a checked one."""


def test_a_class_is_checked() -> None:
    assert Checked.made("x").name == "x"
    for call in (Checked, Checked.made):
        with pytest.raises(TypeError, match="name must be str, not 5"):
            call(5)  # type: ignore[arg-type]
    caller = Checked("x")
    with pytest.raises(
        TypeError, match=r"^Caller\(\) takes 1 argument \(name\) by position, not 2"
    ):
        Checked("x", "y")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Derived\.wait\(\) needs the argument seconds"):
        Derived("x").wait().send(None)
    assert caller._inside("y") == "y"  # type: ignore[arg-type]
    assert inspect.iscoroutinefunction(caller.wait)
    assert str(inspect.signature(Checked)) == "(name: 'str') -> 'None'"
    waiting = caller.wait("1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seconds must be int or float, not '1'"):
        waiting.send(None)
    with pytest.raises(StopIteration) as over:
        caller.wait(1, other=2).send(None)
    assert over.value.value == (1, (), {"other": 2})


def test_a_function_is_checked_when_it_is_called() -> None:
    @checked
    def parts(numbers: Sequence[int]) -> Any:
        yield from numbers

    assert list(parts([1])) == [1]
    with pytest.raises(TypeError, match=r"numbers\[0\] must be int"):
        parts(["1"])  # type: ignore[list-item]


@checked_settings
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings."""

    address: str = "here"
    path: str | PathLike[str] = ""
    names: tuple[str, ...] = ()
    count: int = 3
    limit: int | None = None


def test_settings_are_checked() -> None:
    made = Settings(address=None, path=None, names=["a"], limit=None)  # type: ignore[arg-type]
    assert made == Settings(names=("a",))
    assert replace(made, count=4).count == 4
    with pytest.raises(TypeError, match="count must be int, not None"):
        Settings(count=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="count must be int, not '4'"):
        replace(made, count="4")  # type: ignore[arg-type]


@within(count=(1, 3))
@checked_settings
@dataclass(frozen=True, kw_only=True)
class Ranged:
    """Settings with ranges."""

    count: int = 3


def test_settings_have_ranges() -> None:
    assert [Ranged(count=count).count for count in (1, 3)] == [1, 3]
    for count in (0, 4):
        with pytest.raises(ValueError, match=f"count must be from 1 to 3, not {count}"):
            Ranged(count=count)
    with pytest.raises(TypeError, match="count must be int"):
        Ranged(count="2")  # type: ignore[arg-type]


def test_names_for_checkers_only_mean_anything() -> None:
    assert evaluated("Nowhere", {}) == "Nowhere"
    assert evaluated("str | None", vars(arguments)) == str | None
