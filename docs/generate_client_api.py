# SPDX-License-Identifier: Apache-2.0
"""Writes docs/client_api.md from the docstrings of the client; `make docs` runs it."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from txrocketmq.client import blocking
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.faces import names
from txrocketmq.client.faces.descriptions import config_class, shown_default
from txrocketmq.client.faces.faces import members
from txrocketmq.remoting.settings.field_texts import field_texts

PAGE = Path(__file__).with_name("client_api.md")

INTRODUCTION = """\
# The Python client's classes

<!-- Written by docs/generate_client_api.py from the docstrings; run `make docs`. -->

This page is the reference of [the Python client](client.md); that page leads to the guides, which
have examples. The modules `txrocketmq.client`, `txrocketmq.client.aio` and `txrocketmq.client.tx`
have the same names. A method marked with *waits* blocks until it is done in the first of them, is a
coroutine in `aio`, and returns a Deferred in `tx`. The errors of connections are subclasses of
`RemotingError`, and all other errors of the client subclasses of `MQClientError`.

Each class takes the arguments shown below, and its settings as keyword arguments: its own settings
and those of [every client](#settings-of-every-client). All classes have the methods `start()` and
`shutdown()`, which a `with` or `async with` statement calls.
"""

SETTINGS = """\
## Settings of every client
"""

FUNCTIONS = """\
## Functions
"""

VALUES = """\
## Messages, results and other values
"""

ERRORS = """\
## Errors

The list is indented by inheritance: each error is below its base class.
"""


def _text(thing: object) -> str:
    """The docstring; what `inspect` has made of a class without one is none."""
    text = inspect.cleandoc(getattr(thing, "__doc__", None) or "")
    name = getattr(thing, "__name__", "")
    return "" if inspect.isclass(thing) and text.startswith(f"{name}(") else text


def _plain(annotation: object) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return str(text or annotation).strip("\"'")


def _signature(function: Any, *, skip: frozenset[str] = frozenset()) -> str:
    """The parameters as they are written, and what is returned."""
    parts: list[str] = []
    by_keyword = False
    signature = inspect.signature(function)
    for name, each in signature.parameters.items():
        if name in skip or name == "self":
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not by_keyword:
            by_keyword = True
            parts.append("*")
        part = str(each.replace(annotation=each.empty, default=each.empty))
        if each.annotation is not inspect.Parameter.empty:
            part += f": {_plain(each.annotation)}"
        if each.default is not inspect.Parameter.empty:
            part += f" = {shown_default(each.default)}"
        parts.append(part)
    result = signature.return_annotation
    gives = "" if result in (inspect.Signature.empty, "None", None) else f" -> {_plain(result)}"
    return f"({', '.join(parts)}){gives}"


def _settings(config: type) -> Iterator[str]:
    texts = field_texts(config)
    yield "| setting | default | meaning |"
    yield "|---|---|---|"
    for each in dataclasses.fields(config):
        is_known = each.default is not dataclasses.MISSING and each.default not in ("", None)
        default = f"`{shown_default(each.default)}`" if is_known else ""
        meaning = texts.get(each.name, "").replace("|", "\\|")
        yield f"| `{each.name}` | {default} | {meaning} |"


def _class(name: str) -> Iterator[str]:
    core: Any = getattr(blocking, name)._core_class  # noqa: SLF001 - what it is made of
    yield f"## {name}\n"
    skip = frozenset({"instance", "config"})
    yield f"`{name}{_signature(core.__init__, skip=skip)}`\n"
    yield f"{_text(core)}\n"
    for member in members(core):
        signature = "" if member.is_property else _signature(member.function)
        yield f"### {name}.{member.name}\n"
        yield f"`{member.name}{signature}`{', *waits*' if member.waits else ''}\n"
        yield f"{_text(member.function)}\n"
    yield f"### Settings of {name}\n"
    yield from _settings(config_class(core))
    yield ""


def _value(name: str, thing: type) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{_text(thing)}\n"
    if issubclass(thing, enum.Enum):
        yield f"{', '.join(f'`{each.name}`' for each in thing)}\n"
    elif dataclasses.is_dataclass(thing):
        texts = _texts(thing)
        for field in dataclasses.fields(thing):
            meaning = texts.get(field.name, "")
            yield f"- `{field.name}: {_plain(field.type)}`" + (f": {meaning}" if meaning else "")
        yield ""


def _texts(thing: type) -> dict[str, str]:
    """Those of the fields of a class: `is_dataclass` would make it a value of one, too."""
    return field_texts(thing)


def _errors(errors: Iterable[type]) -> Iterator[str]:
    left = {each: each.__name__ for each in errors}

    def below(base: type | None, depth: int) -> Iterator[str]:
        for each, name in sorted(left.items(), key=lambda item: item[1]):
            known = [its for its in each.__mro__[1:] if its in left]
            if (known[0] if known else None) is base:
                yield f"{'  ' * depth}- `{name}`: {' '.join(_text(each).split())}"
                yield from below(each, depth + 1)

    yield from below(None, 0)


def pages() -> dict[Path, str]:
    """The page by its path."""
    lines = [INTRODUCTION]
    for name in blocking.__all__:
        if name not in names.__all__:
            lines += _class(name)
    lines += [SETTINGS, *_settings(ClientConfig), "", FUNCTIONS]
    known = {name: getattr(names, name) for name in names.__all__}
    for name, thing in known.items():
        if not inspect.isclass(thing):
            lines += [f"### {name}\n", f"`{name}{_signature(thing)}`\n", f"{_text(thing)}\n"]
    lines.append(VALUES)
    classes = {name: each for name, each in known.items() if inspect.isclass(each)}
    for name, each in classes.items():
        if not issubclass(each, Exception):
            lines += _value(name, each)
    lines.append(ERRORS)
    lines += _errors(each for each in classes.values() if issubclass(each, Exception))
    return {PAGE: "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
        print(path.name)
