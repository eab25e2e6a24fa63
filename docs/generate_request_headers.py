# SPDX-License-Identifier: Apache-2.0
"""Writes docs/request_codes.md from the declared calls; `make docs` runs it.

Which of them are served is found out by generate_request_codes.py.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from docs.generate_request_codes import ORIGINAL, Status, in_original, statuses
from txrocketmq.remoting import protocol
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.header import Header, HeaderField, NoHeader
from txrocketmq.remoting.protocol.base import RpcRequestHeader, TopicRequestHeader

PAGE = Path(__file__).with_name("request_codes.md")
BASES: tuple[type[Header], ...] = (TopicRequestHeader, RpcRequestHeader)
"""The nearer one first: what the further one has, the nearer one has too."""

INTRODUCTION = """\
# Request codes and their headers

<!-- Written by docs/generate_request_headers.py from the declared calls; see `make docs`. -->

This page is for developers who work on the protocol. It lists all request codes of 4.9.7 and 5.4.0
with the fields of their headers, grouped by the module of `txrocketmq.remoting.protocol` that
declares them. It says who serves them in the original, and whether they are served here; "-" means
that nobody serves them. [compatibility.md](compatibility.md#request-codes) has a summary.

Fields have the names that they have on the wire. `!` marks a mandatory field and `=` gives a
default. A letter in brackets is the short name of the field, which codes marked *letters* use. An
int has 32 bits and a long has 64; on the wire all values are text.
"""


def _fields_of(kind: type[Header]) -> Iterator[str]:
    base = next((each for each in BASES if issubclass(kind, each) and kind is not each), None)
    shared = {field.name for field in base.fields} if base else set()
    for field in kind.fields:
        if field.name not in shared:
            yield _field(kind, field)
    if base:
        yield f"and those of {base.__name__}"


def _field(kind: type[Header], field: HeaderField) -> str:
    text = f"`{field.wire}` {field.kind}{'!' if field.mandatory else ''}"
    if field.letter:
        text = f"`{field.wire}` [{field.letter}] {field.kind}{'!' if field.mandatory else ''}"
    specs: dict[str, dataclasses.Field[Any]] = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    default = specs[field.name].default
    if default is None or field.mandatory:
        return text
    return f"{text}={str(default).lower() if isinstance(default, bool) else repr(default)}"


def _header(kind: type[Header]) -> str:
    summary = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
    fields = ", ".join(_fields_of(kind)) or "no fields"
    return f"- **{kind.__name__}**: {summary}<br>{fields}"


def _name(kind: type[Header]) -> str:
    return "" if kind is NoHeader else kind.__name__


def _family(name: str, module: ModuleType, found: dict[int, Status]) -> Iterator[str]:
    calls = [value for value in vars(module).values() if isinstance(value, Call)]
    summary = (module.__doc__ or "").strip().partition("\n\n")[0]
    yield f"## {name}"
    yield ""
    yield " ".join(summary.split())
    yield ""
    yield "| code | name | in 4.9.7 | in 5.4.0 | here | request | response |"
    yield "|---|---|---|---|---|---|---|"
    for call in sorted(calls, key=lambda each: each.code):
        letters = ", *letters*" if call.letters else ""
        request, response = _name(call.request), _name(call.response)
        originals = " | ".join(in_original(call.code, version) for version in ORIGINAL)
        here = ": ".join(filter(None, found[call.code]))
        headers = f"{request}{letters} | {response}"
        yield f"| {call.code.value} | {call.name} | {originals} | {here} | {headers} |"
    kinds = dict.fromkeys(kind for call in calls for kind in (call.request, call.response))
    own = [kind for kind in kinds if kind is not NoHeader and kind.__module__ == module.__name__]
    if own:
        yield ""
        yield from (_header(kind) for kind in own)
    yield ""


def _lines() -> Iterator[str]:
    yield INTRODUCTION
    yield "Fields that many headers share:"
    yield ""
    yield from (_header(base) for base in reversed(BASES))
    yield ""
    found = statuses()
    for name in protocol.__all__:
        yield from _family(name, getattr(protocol, name), found)


def pages() -> dict[Path, str]:
    """Each page's path and what it has to be."""
    return {PAGE: "\n".join(_lines())}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
