# SPDX-License-Identifier: Apache-2.0
"""What the original says of headers and bodies: see tests/golden/json/README.md."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from txrocketmq.remoting.call import Call
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.protocol.body.base import Body
from txrocketmq.remoting.serialize.json import decode_body

GOLDEN = Path(__file__).parents[2] / "golden" / "json"
KINDS = {
    "String": "str", "BoundaryType": "str", "Integer": "int", "int": "int", "Long": "long",
    "long": "long", "Boolean": "bool", "boolean": "bool",
}  # fmt: skip
NOW = re.compile(r"1[78]\d{11}")
"""A time at which the samples were printed."""
MADE_UP = re.compile(r"argument\d|100000000\d\d")
"""Values that the program of the samples gave to a constructor."""


@dataclasses.dataclass(frozen=True)
class JavaField:
    """A field as Java's reflection shows it; `default` as text, None when there is none."""

    wire: str
    kind: str
    mandatory: bool
    default: str | None


@cache
def original_headers(version: str) -> dict[str, list[JavaField]]:
    """Returns the fields of headers by simple class name."""
    headers = {}
    for line in (GOLDEN / f"headers-{version}.txt").read_text().splitlines():
        name, _, *rest = line.split("\t")
        words = rest[0].split(" ") if rest else []
        headers[name.rpartition(".")[2]] = [_java_field(word) for word in words]
    return headers


def _java_field(word: str) -> JavaField:
    wire, _, rest = word.partition(":")
    kind, equals, default = rest.partition("=")
    mandatory = kind.endswith("!")
    return JavaField(
        wire, KINDS.get(kind.rstrip("!"), "other"), mandatory, default if equals else None
    )


def _headers_in(family: ModuleType) -> set[type[Header]]:
    calls = [value for value in vars(family).values() if isinstance(value, Call)]
    return {kind for call in calls for kind in (call.request, call.response) if kind.java_class}


@pytest.fixture
def same_headers_as_the_original(golden_version: str) -> Callable[..., None]:
    """Returns a check of all headers of a family against a version.

    `lenient` names fields, as "Class.wireName", that are mandatory only in the original, `ours`
    those that the original's class does not have in these releases.
    """

    def check(family: ModuleType, lenient: str = "", ours: str = "") -> None:
        for kind in _headers_in(family):
            name = kind.__name__
            there = original_headers(golden_version).get(name)
            if there is None:
                assert name in original_headers("5.4.0") | original_headers("4.9.7")
                continue
            here = {field.wire: field for field in kind.fields}
            for field in there:
                mine = here.pop(field.wire)
                assert (name, mine.wire, mine.kind) == (name, field.wire, field.kind)
                if f"{name}.{field.wire}" in lenient.split():
                    assert (mine.mandatory, field.mandatory) == (False, True)
                else:
                    assert (mine.wire, mine.mandatory) == (field.wire, field.mandatory)
                _check_default(kind, mine.name, field)
            for wire, mine in here.items():
                newer = {f.wire for f in original_headers("5.4.0").get(name, [])}
                assert wire in newer or f"{name}.{wire}" in ours.split(), f"{name} has no {wire}"
                assert not mine.mandatory

    return check


def _check_default(kind: type[Header], name: str, field: JavaField) -> None:
    default = kind.__dataclass_fields__[name].default  # type: ignore[attr-defined]
    if default is dataclasses.MISSING or (field.default and NOW.fullmatch(field.default)):
        return
    if default is None:  # a Boolean of one version is a boolean of the other
        assert field.default in (None, "false")
    else:
        text = {True: "true", False: "false"}[default] if type(default) is bool else str(default)
        assert text == field.default


def original_bodies(version: str, kind: str) -> dict[str, str]:
    """Returns the text of that kind of each body, by simple class name."""
    lines = (GOLDEN / f"bodies-{version}.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    return {name: text for name, row_kind, text in rows if row_kind == kind}


@pytest.fixture
def same_bodies_as_the_original(golden_version: str) -> Callable[..., None]:
    """Returns a check that the bodies of a module read and write what a version writes.

    The text of 5.4 must be written back byte by byte; nothing of 4.9's may be lost. `nested` names
    classes that the samples have only inside others, `derived` members that the original only
    writes. Keywords are names that classes have here, with those of the original.
    """

    def check(module: ModuleType, nested: str = "", derived: str = "", **renamed: str) -> None:
        filled = original_bodies(golden_version, "filled")
        fresh = original_bodies(golden_version, "fresh")
        for kind in _bodies_in(module):
            name = renamed.get(kind.__name__, kind.__name__)
            if name not in filled:
                everywhere = original_bodies("5.4.0", "filled") | original_bodies("4.9.7", "filled")
                assert name in everywhere or name in nested.split(), f"{name} is nowhere"
                continue
            there = _without(decode_body(filled[name].encode()), derived.split())
            body = kind.from_json(there)
            assert kind.decode(body.encode()) == body
            _check_nothing_is_lost(there, decode_body(body.encode()))
            if golden_version == "5.4.0" and not derived:
                assert body.encode().decode() == filled[name]
                _check_fresh(kind, fresh[name])

    return check


def _bodies_in(module: ModuleType) -> list[type[Body]]:
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Body)
        and value.__module__ == module.__name__
    ]


def _without(value: Any, names: list[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: _without(item, names)
            for name, item in value.items()
            if not isinstance(name, str) or name not in names
        }
    return [_without(item, names) for item in value] if isinstance(value, list) else value


def _check_nothing_is_lost(there: Any, here: Any) -> None:
    if isinstance(there, dict):
        for name, item in there.items():
            _check_nothing_is_lost(item, here[name])
    elif isinstance(there, list):
        assert len(there) == len(here)
        for one, other in zip(there, here, strict=True):
            _check_nothing_is_lost(one, other)
    else:
        assert there == here


def _check_fresh(kind: type[Body], text: str) -> None:
    """Checks that a new object of ours is like theirs, but for times and mandatory members."""
    there = decode_body(NOW.sub("0", text).encode())
    if any(each.required for each in kind.members) or MADE_UP.search(text):
        return
    here = decode_body(kind().encode())
    empty = {name: value for name, value in here.items() if name not in there}
    assert {name: value for name, value in here.items() if name in there} == there
    assert all(value in ([], {}, "") for value in empty.values()), empty
