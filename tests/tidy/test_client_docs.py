# SPDX-License-Identifier: Apache-2.0
"""Every public name of the client, and every setting of it, says what it is, and what it raises."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from txrocketmq import client
from txrocketmq.client import blocking
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.faces import names
from txrocketmq.client.faces.descriptions import config_class
from txrocketmq.client.faces.faces import LIFE, members
from txrocketmq.remoting.settings.field_texts import field_texts


def _texts() -> Iterator[tuple[str, str | None]]:
    configs: set[type] = {ClientConfig}
    for name in blocking.__all__:
        if name in names.__all__:
            continue
        core: Any = getattr(blocking, name)._core_class
        configs.add(config_class(core))
        yield name, core.__doc__
        for member in members(core):
            yield f"{name}.{member.name}", member.function.__doc__
    for name in names.__all__:
        thing = getattr(names, name)
        is_made = inspect.isclass(thing) and (thing.__doc__ or "").startswith(f"{name}(")
        yield name, None if is_made else thing.__doc__
    for config in configs:
        texts = field_texts(config)
        for field in dataclasses.fields(config):
            yield f"{config.__name__}.{field.name}", texts.get(field.name)


def test_all_of_it_is_documented() -> None:
    everything = list(_texts())
    assert len(everything) > 200
    assert [name for name, text in everything if not (text or "").strip()] == []


CORE: Final[list[type]] = [
    getattr(blocking, name)._core_class for name in blocking.__all__ if name not in names.__all__
]


def _outside_try(node: ast.AST) -> Iterator[ast.AST]:
    """What a function does, but for what it tries: that is handled, or raised as something else."""
    yield node
    for name, value in ast.iter_fields(node):
        if not (isinstance(node, ast.Try) and name == "body"):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield from _outside_try(each)


def _raised(core: type, function: Callable[..., Any], seen: set[Any]) -> set[str]:
    """The errors that a method raises by itself, or by other methods of its class."""
    if function in seen:
        return set()
    seen.add(function)
    found: set[str] = set()
    for node in _outside_try(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name))):
                found.add(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                other = inspect.getattr_static(core, name, None)
                if inspect.isfunction(other):
                    found |= _raised(core, other, seen)
    return found


def _said(core: type, text: str) -> str:
    """What a docstring says, with the docstrings of those that it refers to."""
    referred = re.findall(r"[Rr]aises\s+the\s+same\s+as\s+`(\w+)`", text)
    classes = [each.__doc__ or "" for each in core.__mro__[:-1]]
    return " ".join([text, *(getattr(core, name).__doc__ for name in referred), *classes])


def _unsaid(core: type) -> Iterator[str]:
    """The public methods whose docstrings do not say all that they raise."""
    for member in members(core):
        text = member.function.__doc__ or ""
        if member.waits and not re.search(r"\b[Rr]aises?\b", text):
            yield f"{core.__name__}.{member.name}: what it raises, or that it raises nothing"
        said = _said(core, text)
        for error in sorted(_raised(core, member.function, set())):
            if error not in said:
                yield f"{core.__name__}.{member.name}: {error}"


@pytest.mark.parametrize("core", CORE)
def test_all_that_is_raised_is_said(core: type) -> None:
    assert list(_unsaid(core)) == []


@pytest.mark.parametrize("core", CORE)
def test_what_is_said_to_be_raised_can_be_caught(core: type) -> None:
    texts = [core.__doc__ or "", *(each.function.__doc__ or "" for each in members(core))]
    texts += [getattr(core, name).__doc__ or "" for name in LIFE if hasattr(core, name)]
    for text in texts:
        for sentence in re.findall(r"\b[Rr]aises?\b([^.;:]*)", text):
            for word in re.findall(r"\b[A-Z]+[a-z]+[A-Z]\w*", sentence):
                assert word in names.__all__ or hasattr(builtins, word), f"{core.__name__}: {word}"


class Forgetful:
    """Its docstrings leave something out."""

    def __init__(self, instance: object) -> None:
        """It is made."""

    async def waits(self) -> None:
        """Says nothing of errors."""

    async def fails(self) -> None:
        """Raises LookupError at times."""
        self._check()

    async def handles(self) -> None:
        """Raises nothing."""
        try:
            self._check()
        except ValueError:
            return

    async def refers(self) -> None:
        """Raises the same as `complete`."""
        self._check()

    def complete(self) -> None:
        """Raises ValueError."""
        self._check()

    def _check(self) -> None:
        raise ValueError("no")


def test_what_is_not_said_is_seen() -> None:
    assert list(_unsaid(Forgetful)) == [
        "Forgetful.fails: ValueError",
        "Forgetful.waits: what it raises, or that it raises nothing",
    ]


def test_the_inside_of_the_client_says_that_it_is_one() -> None:
    folders = sorted(Path(client.__path__[0]).rglob("*/__init__.py"))
    assert len(folders) > 10
    for path in folders:
        assert "This is the inside of the client" in path.read_text("utf-8"), path


PUBLIC: Final = """
    client client.aio client.compat client.tx spark testing.aio testing.container testing.in_process
    testing.server
""".split()


@pytest.mark.parametrize("name", PUBLIC)
def test_public_modules_name_what_is_public(name: str) -> None:
    module = importlib.import_module(f"txrocketmq.{name}")
    assert module.__all__
    assert module.__doc__
    for each in module.__all__:
        thing = getattr(module, each)
        assert thing.__doc__, f"{name}.{each}"
