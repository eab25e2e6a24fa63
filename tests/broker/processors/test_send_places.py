# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.processors import send_places as module
from txrocketmq.broker.processors.send_places import Place, Shapes

LETTERS = {"a": "p", "b": "T", "e": "1", "g": "17", "i": "K\x01v", "z": "unknown"}
NAMES = {"topic": "T", "properties": "K\x01v", "queueId": "1", "bornTimestamp": "17"}
PLACE = Place("T", 1, b"1", 0, 0, 0)


@pytest.mark.parametrize(("ext", "rest"), [(LETTERS, "p T 1 unknown"), (NAMES, "T 1")])
def test_a_shape_knows_what_varies_and_gives_all_the_rest(ext: dict[str, str], rest: str) -> None:
    shape = Shapes().of(ext)
    assert shape is not None
    assert shape.size == len(ext)
    assert (ext[shape.born], ext[shape.properties]) == ("17", "K\x01v")
    assert shape.rest(ext) == tuple(rest.split())


def test_a_letter_counts_more_than_the_long_name() -> None:
    ext = {"g": "1", "bornTimestamp": "2", "properties": "long", "i": "short"}
    shape = Shapes().of(ext)
    assert shape is not None
    assert (ext[shape.born], ext[shape.properties]) == ("1", "short")
    assert shape.rest(ext) == ("2", "long")


@pytest.mark.parametrize(
    "ext", [None, {}, {"g": "1"}, {"i": "a"}, {"g": "1", "i": "a"}, {"b": "T", "e": "1"}]
)
def test_headers_that_lack_what_varies_or_all_else_have_no_shape(
    ext: dict[str, str] | None,
) -> None:
    assert Shapes().of(ext) is None


def test_shapes_are_told_apart_by_their_names() -> None:
    shapes = Shapes()
    assert shapes.of(LETTERS) is shapes.of({**LETTERS, "b": "U"})
    assert shapes.of(LETTERS) is not shapes.of({**LETTERS, "y": "more"})


def test_places_are_forgotten_when_they_may_be_wrong() -> None:
    shapes = Shapes()
    shape = shapes.of(LETTERS)
    shapes.of({})
    assert shape is not None
    shape.keep("p\0T\x001\0unknown", PLACE)
    assert shape.places
    shapes.forget_places()
    assert shape.places == {}


def test_values_that_others_could_join_to_are_not_kept() -> None:
    shape = Shapes().of(LETTERS)
    assert shape is not None
    odd = {**LETTERS, "a": "p\0T", "b": "1"}
    for ext in (odd, {**odd, "a": "p", "b": "T\x001"}):
        shape.keep("\0".join(shape.rest(ext)), PLACE)
    assert shape.places == {}


def test_there_are_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PLACES", 2)
    monkeypatch.setattr(module, "MAX_SHAPES", 2)
    shapes = Shapes()
    shape = shapes.of(LETTERS)
    assert shape is not None
    for each in "abc":
        shape.keep(f"{each}\0\0\0", PLACE)
    assert list(shape.places) == ["c\0\0\0"]
    for each in "xyz":
        shapes.of({**LETTERS, each: ""})
    assert len(shapes._shapes) <= 2
