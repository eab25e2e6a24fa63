# SPDX-License-Identifier: Apache-2.0
"""Values: declared like dataclasses, and they behave like frozen ones with keywords only."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from txrocketmq.remoting.primitives.values import Value, maker, value_class


@value_class
class Point(Value):
    """Two coordinates, and names."""

    x: int
    y: int = 2
    names: Sequence[str] = dataclasses.field(default_factory=list)


@value_class
class Point3(Point):
    """A third one."""

    z: int = 0


@value_class
class Nothing(Value):
    """No field."""


def test_fields_have_their_values_and_defaults() -> None:
    point: Any = Point(x=1)
    assert (point.x, point.y, point.names) == (1, 2, [])
    point = Point(x=1, y=5, names=("a",))
    assert (point.x, point.y, point.names) == (1, 5, ("a",))


def test_each_has_its_own_default_of_a_factory() -> None:
    one: Any = Point(x=1)
    other: Any = Point(x=1)
    assert one.names is not other.names


def test_a_subclass_has_a_constructor_of_its_own() -> None:
    Point(x=1)  # the base's is compiled first
    point: Any = Point3(x=1, z=3)
    assert (point.x, point.y, point.z) == (1, 2, 3)
    assert "z" not in vars(Point)["__init__"].__code__.co_varnames


def test_no_field_at_all() -> None:
    assert dataclasses.fields(Nothing) == ()
    Nothing()
    with pytest.raises(TypeError):
        Nothing(x=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("values", [{}, {"y": 1}, {"x": 1, "w": 2}])
@pytest.mark.parametrize("again", [False, True])
def test_wrong_fields_are_refused_at_the_first_time_and_later(
    values: dict[str, int], again: bool
) -> None:
    @value_class
    class Fresh(Value):
        """Never made before."""

        x: int
        y: int = 2

    if again:
        Fresh(x=1)
    with pytest.raises(TypeError, match="__init__"):
        Fresh(**values)


def test_values_are_keywords() -> None:
    with pytest.raises(TypeError):
        Point(1, 2)  # type: ignore[call-arg]


def test_nothing_changes_later() -> None:
    point: Any = Point(x=1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        del point.x
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.other = 2
    assert point.x == 1
    assert not hasattr(point, "__dict__")


def test_dataclass_functions_work() -> None:
    point: Any = Point(x=1, names=("a",))
    moved: Any = dataclasses.replace(point, y=7)
    assert (moved.x, moved.y, moved.names) == (1, 7, ("a",))
    assert [field.name for field in dataclasses.fields(Point3)] == ["x", "y", "names", "z"]


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """As callers know it."""

    name: str
    count: int = 0


def test_values_are_made_of_all_their_fields() -> None:
    made = maker(Result)("a", 3)
    assert made == Result("a", 3)
    assert hash(made) == hash(Result("a", 3))
    assert repr(made) == "Result(name='a', count=3)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.count = 4  # type: ignore[misc]
    with pytest.raises(TypeError):
        maker(Result)("a")
