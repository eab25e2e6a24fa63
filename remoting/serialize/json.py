# SPDX-License-Identifier: Apache-2.0
"""JSON command headers, and JSON bodies as fastjson writes and reads them.

What fastjson writes is not always JSON: a map with numbers as keys comes out as `{0:"1.2.3.4"}`,
and one keyed by message queues as `{{"brokerName":"b","queueId":0,"topic":"t"}:{...}}`. Such bodies
are written here as the original writes them, and read by a scanner of our own (json_scanner.py);
plain JSON, which nearly everything is, goes through orjson alone. Java: RemotingSerializable,
RemotingCommand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from operator import itemgetter
from typing import Any, Final

import orjson

from txrocketmq.remoting.codes import SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import FrameError, NotPlainJson
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.serialize.json_scanner import JsonError, scan

MAX_JSON_BYTES: Final = 64 * 1024 * 1024
"""Largest text that `decode_body` accepts; a frame has at most 16 MiB, a file may have more."""
MAX_LENIENT_HEADER_BYTES: Final = 64 * 1024
MAX_LENIENT_HEADER_COMMAS: Final = 2048
"""The largest command header for which the tolerant scanner is tried, which takes some 8 ms."""

HOLE: Final = "<-- here -->"
"""Marks the place of a member's value that `encode_around` leaves out."""

_ROOM_BYTES: Final = 4096
"""orjson does not look whether it gets the memory for what it writes, so that a process without any
crashes in it. A buffer that is at least as large as most texts is made before it, and given back at
once: then there is room, or a MemoryError."""
_INT_MAX: Final = 2**31 - 1
_loads: Final = orjson.loads
_members: Final = itemgetter("code", "flag", "opaque", "version", "language", "extFields")
_bare_members: Final = itemgetter("code", "flag", "opaque", "version", "language")
_new_command: Final = RemotingCommand.__new__
_JSON: Final = SerializeType.JSON
_PLAIN: Final = frozenset((str, int, float, bool, type(None)))
_THERE: Final = _PLAIN - {type(None)}
Data = bytes | bytearray | memoryview


def encode_header(command: RemotingCommand) -> bytes:
    """Returns the header of a command; as in fastjson, members that are None are left out."""
    fields: dict[str, Any] = {
        "code": command.code,
        "extFields": command.ext_fields,
        "flag": command.flag,
        "language": command.language,
        "opaque": command.opaque,
        "remark": command.remark,
        "serializeTypeCurrentRPC": "JSON",
        "version": command.version,
    }
    if command.remark is None:
        del fields["remark"]
    if command.ext_fields is None:
        del fields["extFields"]
    if command.language is None:
        del fields["language"]
    bytes(_ROOM_BYTES)
    try:
        return orjson.dumps(fields)
    except TypeError:  # a text that is not Unicode, a mapping that is no dict
        return encode_body(fields)


def decode_header(header: bytes) -> RemotingCommand:
    """Returns the command of a header, with an empty body. Raises FrameError if it is no header."""
    try:
        return decode_plain_header(header)
    except NotPlainJson:
        return scan_header(header)


def decode_plain_header(header: bytes) -> RemotingCommand:
    """Does what `decode_header` does, but raises NotPlainJson for what `scan_header` may take."""
    try:
        fields = _loads(header)
    except orjson.JSONDecodeError:
        raise NotPlainJson from None
    try:
        code, flag, opaque, version, language, ext_fields = _members(fields)
        if (
            type(code) is type(flag) is type(opaque) is type(version) is int
            and 0 <= code | flag | opaque | version <= _INT_MAX  # so is each of them
            and type(language) is str
        ):
            "".join(ext_fields.values())  # the cheapest test that all of them are texts
            command = _new_command(RemotingCommand)  # its __init__ takes longer than all of this
            command.code, command.ext_fields, command.body = code, ext_fields, b""
            command.flag, command.opaque, command.version = flag, opaque, version
            command.language, command.serialize_type = language, _JSON
            command.remark = _text(fields["remark"]) if "remark" in fields else None
            return command
    except (KeyError, TypeError, AttributeError, RecursionError):
        pass
    if type(fields) is dict and "extFields" not in fields and "remark" not in fields:
        return _bare_header(fields, header)
    return _general_header(fields, header)


def _bare_header(fields: dict[str, Any], header: bytes) -> RemotingCommand:
    """Decodes a header without fields, such as that of a heartbeat, and of most answers to it."""
    try:
        code, flag, opaque, version, language = _bare_members(fields)
        if (
            type(code) is type(flag) is type(opaque) is type(version) is int
            and 0 <= code | flag | opaque | version <= _INT_MAX
            and type(language) is str
        ):
            return RemotingCommand(code, None, b"", flag, opaque, None, language, version)
    except KeyError:
        pass
    return _general_header(fields, header)


BEGINNING: Final = 16
"""How much is shown of a header that is none: enough to recognize another protocol. Behind it may
be a signature or a secret.
"""


def _general_header(fields: Any, header: bytes) -> RemotingCommand:
    """Decodes a header that lacks members, or is written in other ways than Java writes it."""
    if type(fields) is not dict:
        raise FrameError(f"the JSON header is not an object: {header[:BEGINNING]!r}")
    ext_fields, remark = fields.get("extFields"), fields.get("remark")
    try:
        return RemotingCommand(
            _number(fields, "code"),
            None if ext_fields is None else _texts(ext_fields),
            b"",
            _number(fields, "flag"),
            _number(fields, "opaque"),
            _text(remark),
            _text(fields.get("language", "JAVA")),
            _number(fields, "version"),
        )
    except RecursionError:
        raise FrameError(f"the JSON header is nested too deep: {header[:BEGINNING]!r}") from None


def scan_header(header: bytes) -> RemotingCommand:
    """Returns the command of a header that is not plain JSON. Raises FrameError."""
    if len(header) > MAX_LENIENT_HEADER_BYTES or header.count(b",") > MAX_LENIENT_HEADER_COMMAS:
        raise FrameError(f"a header of {len(header)} bytes is not JSON: {header[:BEGINNING]!r}")
    try:
        return _general_header(scan(header), header)
    except JsonError as error:
        raise FrameError(f"the JSON header is broken: {error}") from None


def _number(fields: dict[str, Any], name: str) -> int:
    """Returns a number of the header as fastjson casts it: digits in a text count, absent is 0."""
    value = fields.get(name, 0)
    if value is None:
        return 0
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,10}", value):
        value = int(value)
    if type(value) is not int or not ~_INT_MAX <= value <= _INT_MAX:
        raise FrameError(f"{name} of the JSON header is not an int: {value!r:.80}")
    return value


def _texts(ext_fields: Any) -> dict[str, str]:
    if not isinstance(ext_fields, dict):
        kind = type(ext_fields).__name__
        raise FrameError(f"extFields of the JSON header is not an object but a {kind}")
    return {
        str(name): text for name, value in ext_fields.items() if (text := _text(value)) is not None
    }


def _text(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    return encode_body(value).decode() if isinstance(value, (bool, dict, list)) else str(value)


def decode_body(data: Data, *, max_bytes: int = MAX_JSON_BYTES, only_plain: bool = False) -> Any:
    """Returns the value of a JSON body, or of one that only fastjson accepts as JSON.

    Keys that are bare numbers become ints, quoted ones stay texts. A key that is an object becomes
    a MessageQueue if it has the members of one, else a tuple of its sorted items. Single quotes,
    unquoted names, control characters in texts and bytes that are not UTF-8 (read as U+FFFD) are
    accepted, unless the body is to be `only_plain` JSON: the scanner takes a hundred times as long.
    Raises JsonError, with the position, for anything else, and for what exceeds the limits.
    """
    if len(data) > max_bytes:
        raise JsonError(max_bytes, f"{len(data)} bytes are more than the limit of {max_bytes}")
    try:
        return _loads(data)
    except orjson.JSONDecodeError as error:
        if only_plain:
            raise JsonError(error.pos, f"in so long a text: {error.msg}") from None
        return scan(data)


def encode_body(value: Any) -> bytes:
    """Returns a JSON body as fastjson writes it: compact, without members that are None.

    Keys that are numbers are written bare, and so are message queues, as objects. Of an object with
    a method `to_json`, its result is written; a set becomes a sorted list, and an enum member its
    name unless it is a number or a text. Raises TypeError for values that JSON has no form for.
    """
    return _dumped(_prepared(value))


def _dumped(prepared: Any) -> bytes:
    bytes(_ROOM_BYTES)
    try:
        return orjson.dumps(prepared)
    except TypeError:  # a key that is no text, a text that is not Unicode, more than 64 bits
        return "".join(_pieces(prepared)).encode("utf-8", "replace")


def encode_standard_body(value: Any) -> bytes:
    """Does the same in strict JSON, for clients since 4.9.4: keys quoted, members sorted."""
    return _dumped(_standard(_prepared(value)))


def encode_pretty(value: Any) -> bytes:
    """Returns a configuration file as 5.4 writes it: indented by tabs, number keys bare."""
    return "".join(_pretty_pieces(_prepared(value), 0)).encode("utf-8", "replace")


def encode_member(name: str | MessageQueue, value: Any) -> bytes:
    """Returns one member, `"name":value`, as `encode_body` writes it inside an object."""
    return _key_text(name).encode("utf-8", "replace") + b":" + encode_body(value)


def encode_pretty_member(name: str, value: Any, depth: int) -> bytes:
    """Returns one member of an object as `encode_pretty` writes it inside the object.

    `depth` counts the objects around the member; it is 1 for a member of the outermost one.
    """
    indent = "\n" + "\t" * depth
    pieces = _pretty_pieces(_prepared(value), depth)
    return f"{indent}{_key_text(name)}:{''.join(pieces)}".encode("utf-8", "replace")


def encode_around(value: Any, encode: Callable[[Any], bytes] = encode_body) -> tuple[bytes, bytes]:
    """Returns the JSON before and after the one member of `value` that has HOLE as its value.

    A long table is put together with it, of members that were encoded before.
    """
    before, after = encode(value).split(b'"' + HOLE.encode() + b'"')
    return before, after


def _prepared(value: Any) -> Any:
    """Returns the value as dicts, lists and plain values only, without members that are None."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        is_plain = _THERE.issuperset(map(type, value.values()))
        return (
            value
            if is_plain
            else {
                name: member if type(member) in _PLAIN else _prepared(member)
                for name, member in value.items()
                if member is not None
            }
        )
    if kind is list or kind is tuple:
        is_plain = kind is list and _PLAIN.issuperset(map(type, value))
        return value if is_plain else [*map(_prepared, value)]
    if kind is MessageQueue:
        return _queue_object(value)
    to_json = getattr(value, "to_json", None)
    if to_json is not None:
        return _prepared(to_json())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Mapping):
        return _prepared(dict(value))
    if isinstance(value, AbstractSet):
        return _prepared(sorted(value))
    raise TypeError(f"{kind.__name__} cannot be written as JSON: {value!r:.80}")


def _standard(value: Any) -> Any:
    if type(value) is dict:
        names = sorted(value, key=lambda name: (type(name) is not int, name))
        return {
            name if isinstance(name, str) else _key_text(name): _standard(value[name])
            for name in names
        }
    return [_standard(item) for item in value] if type(value) is list else value


def _queue_object(queue: MessageQueue) -> dict[str, Any]:
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}


def _pieces(value: Any) -> Iterator[str]:
    if type(value) is dict:
        before = "{"
        for name, member in value.items():
            yield before
            yield _key_text(name)
            yield ":"
            yield from _pieces(member)
            before = ","
        yield "{}" if before == "{" else "}"
    elif type(value) is list:
        before = "["
        for item in value:
            yield before
            yield from _pieces(item)
            before = ","
        yield "[]" if before == "[" else "]"
    else:
        yield _scalar(value)


def _pretty_pieces(value: Any, depth: int) -> Iterator[str]:
    """Yields fastjson2's form: lists of plain values on one line, an empty map on three."""
    indent = "\n" + "\t" * depth
    if type(value) is dict:
        before = "{"
        for name, member in value.items():
            yield f"{before}{indent}\t{_key_text(name)}:"
            yield from _pretty_pieces(member, depth + 1)
            before = ","
        yield f"{{{indent}\t{indent}}}" if before == "{" else indent + "}"
    elif type(value) is list and any(type(item) in (dict, list) for item in value):
        before = "["
        for item in value:
            yield f"{before}{indent}\t"
            yield from _pretty_pieces(item, depth + 1)
            before = ","
        yield indent + "]"
    else:
        yield from _pieces(value)


def _key_text(name: Any) -> str:
    if isinstance(name, str):
        return _scalar(name)
    if isinstance(name, bool):
        return "true" if name else "false"
    if isinstance(name, int):
        return str(int(name))
    if isinstance(name, MessageQueue):
        return "".join(_pieces(_queue_object(name)))
    if isinstance(name, tuple):
        return "".join(_pieces(_prepared(dict(name))))
    raise TypeError(f"{type(name).__name__} cannot be a key of JSON: {name!r:.80}")


def _scalar(value: Any) -> str:
    bytes(_ROOM_BYTES)
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        if isinstance(value, int):
            return str(value)
        if isinstance(value, str):  # lone surrogates, which Java writes as question marks
            return orjson.dumps(value.encode("utf-8", "replace").decode()).decode()
        raise
