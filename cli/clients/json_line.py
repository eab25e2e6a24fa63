# SPDX-License-Identifier: Apache-2.0
"""Messages as JSON lines: `send --json-lines` reads what `tail --json` prints.

Only what a producer says of a message is read: body, tag, keys, the user's own properties and the
flag. Where and when the message was stored belongs to the one that was printed.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import orjson

from txrocketmq.cli.line_format import Parts
from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.remoting.message.properties import SYSTEM_PROPERTIES

_FLAGS: Final = range(-(1 << 31), 1 << 31)


def parts_of_json(line: bytes) -> Parts:
    """Returns what a JSON object says of a message.

    Raises MessageIllegal, which says what is wrong.
    """
    try:
        value = orjson.loads(line)
    except ValueError as error:
        raise MessageIllegal(f"it is not a JSON object: {error}") from None
    if not isinstance(value, dict):
        raise MessageIllegal(f"it is not a JSON object, but {_named(value)}")
    properties = _member(value, "properties", dict, {})
    for name, each in properties.items():
        if not isinstance(each, str):
            raise MessageIllegal(f'property "{name}" must be a string, not {_named(each)}')
    flag = _member(value, "flag", int, 0)
    if isinstance(flag, bool) or flag not in _FLAGS:
        raise MessageIllegal('"flag" must be a whole number of 32 bits')
    return Parts(
        _body(value),
        _member(value, "tags", str, None),
        _keys(value),
        {name: each for name, each in properties.items() if name not in SYSTEM_PROPERTIES},
        flag,
    )


def _body(value: Mapping[str, Any]) -> bytes:
    text: str | None = _member(value, "body", str, None)
    coded: str = _member(value, "bodyBase64", str, None)
    if (text is None) == (coded is None):
        raise MessageIllegal('it needs "body" or "bodyBase64", and not both')
    if text is not None:
        return text.encode()
    try:
        return base64.b64decode(coded, validate=True)
    except ValueError as error:
        raise MessageIllegal(f'"bodyBase64" is not base64: {error}') from None


def _keys(value: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the keys, which may be one text or a list of texts."""
    keys = value.get("keys")
    keys = [] if keys is None else [keys] if isinstance(keys, str) else keys
    if not isinstance(keys, list) or not all(isinstance(each, str) for each in keys):
        raise MessageIllegal('"keys" must be a string or a list of strings')
    return tuple(keys)


def _member(value: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    found = value.get(name)
    if found is None:
        return default
    if not isinstance(found, kind):
        wanted = {dict: "an object", int: "a whole number", str: "a string"}[kind]
        raise MessageIllegal(f'"{name}" must be {wanted}, not {_named(found)}')
    return found


def _named(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return names.get(type(value), "null" if value is None else "a number")
