# SPDX-License-Identifier: Apache-2.0
"""Configuration: .properties text, and frozen dataclasses that are filled from it.

    @dataclass(frozen=True)
    class NamesrvConfig:
        listen_port: int = setting(9876)
        order_message_enable: bool = setting(False, live=True)

A field's key in the file is its name in camel case unless `java` says otherwise. Keys of the original
that have no effect here are listed in the class attribute `IGNORED`: they are accepted. Counterpart of
java.util.Properties, MixAll.properties2Object and Configuration.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KEY = re.compile(r"((?:\\.|[^\\\s=:])*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)


class ConfigError(ValueError):
    """A configuration that cannot be used; the text names key, value, and what is valid."""


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key nobody knows; `nearest` is the known one it may have been meant to be."""

    key: str
    nearest: str | None

    def __str__(self) -> str:
        hint = f" (did you mean {self.nearest}?)" if self.nearest else ""
        return f"unknown key {self.key}{hint}"


def setting(default: Any, *, live: bool = False, java: str | None = None) -> Any:
    """A field of a configuration; `live` ones may be changed while the server runs."""
    return dataclasses.field(default=default, metadata={"live": live, "java": java})


def read_properties(text: str) -> dict[str, str]:
    """Keys and values of .properties text (java.util.Properties.load); the last of a key counts."""
    values: dict[str, str] = {}
    lines = iter(text.splitlines())
    for raw in lines:
        line = raw.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, "").lstrip(" \t\f")
        match = _KEY.match(line)
        if match and match.group(1):
            values[_unescaped(match.group(1))] = _unescaped(match.group(2)).rstrip()
    return values


def write_properties(values: Mapping[str, str]) -> str:
    """Lines of `key=value` as the original's tools read them (MixAll.properties2String)."""
    return "".join(f"{key}={value}\n" for key, value in values.items())


def load(cls: type[T], values: Mapping[str, str]) -> tuple[T, list[UnknownKey]]:
    """An instance with the values that are given, defaults else; and the keys it does not know.

    Raises ConfigError for a value that does not fit.
    """
    fields = _fields(cls)
    known: dict[str, Any] = {}
    unknown: list[UnknownKey] = []
    ignored: frozenset[str] = getattr(cls, "IGNORED", frozenset())
    for key, text in values.items():
        if key in fields:
            name, kind, _ = fields[key]
            known[name] = _parsed(key, text, kind)
        elif key not in ignored:
            near = difflib.get_close_matches(key, [*fields, *ignored], n=1, cutoff=0.7)
            unknown.append(UnknownKey(key, near[0] if near else None))
    return cls(**known), unknown


def ignored_keys(cls: type, values: Mapping[str, str]) -> list[str]:
    """Keys that are the original's but have no effect here."""
    ignored: frozenset[str] = getattr(cls, "IGNORED", frozenset())
    return sorted(key for key in values if key in ignored)


def as_properties(config: Any) -> dict[str, str]:
    """All settings of an instance by key, as text."""
    return {
        key: _text(getattr(config, name)) for key, (name, _, _) in _fields(type(config)).items()
    }


def updated(config: T, values: Mapping[str, str]) -> T:
    """A copy with those of `values` that may change while running; others are left as they are.

    Raises ConfigError for a value that does not fit.
    """
    fields = _fields(type(config))
    changes = {
        fields[key][0]: _parsed(key, text, fields[key][1])
        for key, text in values.items()
        if key in fields and fields[key][2]
    }
    return dataclasses.replace(config, **changes)  # type: ignore[type-var]


def java_key(name: str) -> str:
    """The original's spelling of a snake_case name."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _fields(cls: type) -> dict[str, tuple[str, type, bool]]:
    hints = get_type_hints(cls)
    return {
        each.metadata.get("java") or java_key(each.name): (
            each.name,
            hints[each.name],
            bool(each.metadata.get("live")),
        )
        for each in dataclasses.fields(cls)
    }


def _parsed(key: str, text: str, kind: type) -> Any:
    if kind is bool:
        if text.lower() not in {"true", "false"}:
            raise ConfigError(f"{key} is true or false, not {text!r}")
        return text.lower() == "true"
    if kind in {int, float}:
        try:
            return kind(text.strip())
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise ConfigError(f"{key} is {what}, not {text!r}") from None
    return text


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)  # noqa: PLR2004

    return _ESCAPED.sub(one, text)
