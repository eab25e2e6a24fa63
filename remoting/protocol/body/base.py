# SPDX-License-Identifier: Apache-2.0
"""JSON bodies as dataclasses: the codec is derived from the fields.

    @body("org.apache.rocketmq.remoting.protocol.body.LockBatchResponseBody")
    class LockBatchResponseBody(Body):
        lock_ok_mq_set: frozenset[MessageQueue] = member(wire="lockOKMQSet", default=frozenset())

The wire name of a field is the camel case of its own unless `member(wire=...)` says otherwise;
members are written in alphabetical order, those that are None are left out. Reading casts as
fastjson does: null is the default, a number may come as text and the reverse, unknown members are
ignored. Counterpart of RemotingSerializable with its reflection.

A field may be str, int, float, bool, Any (left as it is), MessageQueue, a Body or whatever else has
`to_json` and `from_json`, a Sequence or frozenset of these, or a Mapping from str, int or
MessageQueue; or any of it with `| None`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from typing import (
    Any,
    ClassVar,
    Final,
    Self,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from txrocketmq.remoting.errors import HeaderError, RemotingError
from txrocketmq.remoting.header import Lazy, camel_case, without_none
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.primitives.values import Value, value_class
from txrocketmq.remoting.serialize.json import (
    MAX_JSON_BYTES,
    decode_body,
    encode_body,
)
from txrocketmq.remoting.serialize.json_scanner import JsonError

_LONG_MAX: Final = 2**63 - 1
_LONG_MIN: Final = -(2**63)
_DIGITS: Final = re.compile("[+-]?[0-9]{1,19}")

SHORT_BYTES: Final = 16 * 1024
"""A longer body is read in steps by `Body.reading`."""
MOST_BYTES: Final = 1024 * 1024
"""How long a body may be that is read in steps: the parser takes some 6 ms for so much JSON."""
_ITEMS_A_STEP: Final = 16

Reader = Callable[[Any], Any]
Writer = Callable[[Any], Any]
Reading = Callable[[Any], Generator[None, None, Any]]
"""Reads a value, with a pause after each small step."""


class BodyError(HeaderError):
    """A JSON body does not have the shape of its class; the text says where and what is wrong."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path

    def below(self, path: str) -> BodyError:
        """Returns the same error as seen from one level further out."""
        inner = self.path if self.path.startswith("[") or not self.path else f".{self.path}"
        return BodyError(self.reason, path + inner)


@dataclasses.dataclass(frozen=True, slots=True)
class _Member:
    name: str
    wire: str
    read: Reader
    write: Writer | None
    required: bool
    reading: Reading | None
    """Reads in steps what may be long; None for all else."""


_Written = tuple[Callable[[Any], Sequence[Any]], tuple[str, ...], tuple[tuple[str, Writer], ...]]


class Body(Value):
    """Base class of all JSON bodies; see the module's docstring."""

    __slots__ = ()
    java_class: ClassVar[str] = ""
    members: ClassVar[tuple[_Member, ...]] = ()
    written: ClassVar[Callable[[Any], dict[str, Any]]]

    def to_json(self) -> dict[str, Any]:
        """Returns the members that are not None as plain values, sorted by their wire names."""
        return type(self).written(self)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, m.name) == getattr(other, m.name) for m in self.members)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, m.name) for m in self.members)))

    def __repr__(self) -> str:
        values = (f"{m.name}={getattr(self, m.name)!r}" for m in self.members)
        return f"{type(self).__name__}({', '.join(values)})"

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Returns the body that a JSON object describes.

        Raises BodyError, which names the member, if one is missing or of a wrong type.
        """
        if type(value) is not dict:
            _check_object(value)
        found: dict[str, Any] = {}
        for each in cls.members:
            item = value.get(each.wire)
            if item is not None:
                try:
                    item = each.read(item)
                except BodyError as error:
                    raise error.below(each.wire) from None
            if item is not None:
                found[each.name] = item
            elif each.required:
                raise BodyError("is missing", each.wire)
        return cls(**found)

    @classmethod
    def from_json_in_steps(cls, value: Any) -> Generator[None, None, Self]:
        """Does the same as `from_json`, with a pause after each small step."""
        if type(value) is not dict:
            _check_object(value)
        found: dict[str, Any] = {}
        for each in cls.members:
            item = value.get(each.wire)
            if item is not None:
                reading = each.reading
                try:
                    item = each.read(item) if reading is None else (yield from reading(item))
                except BodyError as error:
                    raise error.below(each.wire) from None
            if item is not None:
                found[each.name] = item
            elif each.required:
                raise BodyError("is missing", each.wire)
        return cls(**found)

    def encode(self) -> bytes:
        """Returns the bytes of this body in a command."""
        return encode_body(self.to_json())

    @classmethod
    def decode(cls, data: bytes, max_bytes: int = MAX_JSON_BYTES) -> Self:
        """Returns the body that a command contains. Raises JsonError or BodyError (HeaderError)."""
        try:
            return cls.from_json(decode_body(data, max_bytes=max_bytes))
        except BodyError as error:
            raise error.below(cls.__name__) from None
        except RecursionError:
            raise BodyError("is nested too deep", cls.__name__) from None

    @classmethod
    def reading(cls, data: bytes) -> Generator[None, None, Self]:
        """Does the same as `decode` for what a stranger has sent: a long body is read in steps.

        Such a body may have MOST_BYTES and has to be plain JSON, as all clients write it; otherwise
        JsonError is raised.
        """
        if len(data) <= SHORT_BYTES:
            return cls.decode(data)
        try:
            value = decode_body(data, max_bytes=MOST_BYTES, only_plain=True)
            return (yield from cls.from_json_in_steps(value))
        except BodyError as error:
            raise error.below(cls.__name__) from None
        except RecursionError:
            raise BodyError("is nested too deep", cls.__name__) from None


def member(
    *,
    wire: str | None = None,
    names: Sequence[str] = (),
    default: Any = dataclasses.MISSING,
    default_factory: Any = dataclasses.MISSING,
) -> Any:
    """Declares a field with a wire name of its own, the names of an enum, or a mutable default.

    With `names`, the field is an enum's member by its name. As with fastjson, an ordinal (which the
    C++ client sends) is read as the name, and an unknown name as null.
    """
    extra: dict[str, Any] = {"wire": wire, "names": tuple(names)}
    if default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=default_factory, metadata=extra)
    if default is not dataclasses.MISSING:
        return dataclasses.field(default=default, metadata=extra)
    return dataclasses.field(metadata=extra)


class SecretBody(Body):
    """A body that contains a secret, so that no error shows what stands where."""

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Returns the body that a JSON object describes. Raises BodyError, as all bodies do."""
        try:
            return super().from_json(value)
        except BodyError as error:
            raise BodyError(error.reason.partition(", not ")[0], error.path) from None


B = TypeVar("B", bound=Body)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(member,))
def body(java_class: str) -> Callable[[type[B]], type[B]]:
    """Returns a decorator that makes a Body subclass a frozen keyword dataclass with a codec."""

    def make(cls: type[B]) -> type[B]:
        made = value_class(cls)
        made.java_class = java_class
        made.members = Lazy("members", _members)  # type: ignore[assignment]
        made.written = Lazy("written", _compile_written)  # type: ignore[assignment]
        return made

    return make


def _members(cls: type[Any]) -> tuple[_Member, ...]:
    hints = get_type_hints(cls)
    members = (_member(each, hints[each.name]) for each in dataclasses.fields(cls))
    return tuple(sorted(members, key=lambda each: each.wire))


def _compile_written(cls: type[Body]) -> Callable[[Any], dict[str, Any]]:
    """Compiles what `to_json` does, which takes half the time of a loop over the members."""
    scope: dict[str, Any] = {}
    lines = ["def written(self):", "    found = {}"]
    for each in cls.members:
        value = "value"
        if each.write is not None:
            scope[f"write_{each.name}"] = each.write
            value = f"write_{each.name}(value)"
        lines.append(f"    value = self.{each.name}")
        lines.append(f"    if value is not None: found[{each.wire!r}] = {value}")
    lines.append("    return found")
    exec("\n".join(lines), scope)  # noqa: S102 - generated from declarations only, as headers do
    written: Callable[[Any], dict[str, Any]] = scope["written"]
    return written


def _member(declared: dataclasses.Field[Any], hint: Any) -> _Member:
    names = declared.metadata.get("names") or ()
    read, write = (_enum_reader(names), None) if names else _codec(hint)
    required = declared.default is declared.default_factory is dataclasses.MISSING
    wire = declared.metadata.get("wire") or camel_case(declared.name)
    return _Member(declared.name, wire, read, write, required, _reading(hint))


def _codec(hint: Any) -> tuple[Reader, Writer | None]:
    """Returns the reader and the writer of a type; the writer is None for plain values."""
    (hint,) = without_none(hint)
    if hint in _PLAIN:
        return _PLAIN[hint], None
    origin, of = get_origin(hint), get_args(hint)
    if origin is Sequence:
        return _sequence_codec(of[0], tuple)
    if origin is frozenset:
        return _sequence_codec(of[0], frozenset)
    if origin is Mapping:
        return _mapping_codec(*of)
    if hint is MessageQueue:
        return _read_queue, _write_queue
    if hasattr(hint, "from_json"):
        return _object_reader(hint), hint.to_json
    raise TypeError(f"a member of a body cannot be {hint}")


def _reading(hint: Any) -> Reading | None:
    """Returns what reads lists, and objects that may have lists in them, in steps."""
    (hint,) = without_none(hint)
    origin, of = get_origin(hint), get_args(hint)
    if origin is Sequence:
        return _sequence_reading(of[0], tuple)
    if origin is frozenset:
        return _sequence_reading(of[0], frozenset)
    if isinstance(hint, type) and issubclass(hint, Body):
        return hint.from_json_in_steps
    return None


def _sequence_reading(of: Any, make: Callable[[Any], Any]) -> Reading:
    read, reading = _codec(of)[0], _reading(of)

    def read_all(value: Any) -> Generator[None, None, Any]:
        _check_list(value)
        items = []
        for index, item in enumerate(value):
            try:
                items.append(read(item) if reading is None else (yield from reading(item)))
            except BodyError as error:
                raise error.below(f"[{index}]") from None
            if index % _ITEMS_A_STEP == 0:
                yield
        return make(items)

    return read_all


def _check_object(value: Any) -> None:
    if not isinstance(value, Mapping):
        raise BodyError(f"an object is expected, not {value!r:.80}")


def _check_list(value: Any) -> None:
    if not isinstance(value, (list, tuple)):
        raise BodyError(f"a list is expected, not {value!r:.80}")


def _sequence_codec(of: Any, make: Callable[[Any], Any]) -> tuple[Reader, Writer | None]:
    read, write = _codec(of)

    def read_all(value: Any) -> Any:
        if type(value) is not list:
            _check_list(value)
        items = []
        for index, item in enumerate(value):
            try:
                items.append(read(item))
            except BodyError as error:
                raise error.below(f"[{index}]") from None
        return make(items)

    def write_all(value: Any) -> list[Any]:
        items = sorted(value) if isinstance(value, frozenset) else value
        return list(items) if write is None else [write(item) for item in items]

    return read_all, write_all


def _mapping_codec(key: Any, of: Any) -> tuple[Reader, Writer | None]:
    read, write = _codec(of)
    read_key: Reader = _read_queue_key if key is MessageQueue else _PLAIN[key]

    def read_all(value: Any) -> dict[Hashable, Any]:
        if type(value) is not dict:
            _check_object(value)
        items = {}
        for name, item in value.items():
            try:
                items[read_key(name)] = read(item)
            except BodyError as error:
                raise error.below(f"[{name!s:.80}]") from None
        return items

    def write_all(value: Mapping[Any, Any]) -> dict[Any, Any]:
        return {name: write(item) for name, item in value.items()} if write else dict(value)

    return read_all, write_all


def _object_reader(kind: Any) -> Reader:
    def read(value: Any) -> Any:
        try:
            return kind.from_json(value)
        except BodyError:
            raise
        except RemotingError as error:
            raise BodyError(str(error)) from None

    return read


def _enum_reader(names: Sequence[str]) -> Reader:
    def read(value: Any) -> str | None:
        if type(value) is int:
            return names[value] if 0 <= value < len(names) else None
        if not isinstance(value, str):
            raise BodyError(f"one of {', '.join(names)} is expected, not {value!r:.80}")
        return value if value in names else None

    return read


def _read_str(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise BodyError(f"a text is expected, not {value!r:.80}")


def _read_int(value: Any) -> int:
    kind = type(value)
    if kind is str and _DIGITS.fullmatch(value):
        value, kind = int(value), int
    if kind is int and _LONG_MIN <= value <= _LONG_MAX:
        return value  # type: ignore[no-any-return]
    raise BodyError(f"a number is expected, not {value!r:.80}")


def _read_float(value: Any) -> float:
    if not isinstance(value, bool):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise BodyError(f"a number is expected, not {value!r:.80}")


def _read_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise BodyError(f"true or false is expected, not {value!r:.80}")


def _read_any(value: Any) -> Any:
    return value


def _read_queue(value: Any) -> MessageQueue:
    if isinstance(value, MessageQueue):
        return value
    if not isinstance(value, Mapping):
        raise BodyError(f"a message queue is expected, not {value!r:.80}")
    try:
        topic, broker = _read_str(value.get("topic")), _read_str(value.get("brokerName"))
        return MessageQueue(topic, broker, _read_int(value.get("queueId", 0)))
    except BodyError as error:
        raise BodyError(f"{error.reason} in the message queue {value!r:.80}") from None


def _read_queue_key(value: Any) -> MessageQueue:
    """Reads a queue that is a key; some peers write it as JSON in a text, which is decoded here."""
    if isinstance(value, str):
        try:
            value = decode_body(value.encode("utf-8", "replace"))
        except JsonError as error:
            raise BodyError(f"a message queue is expected as key: {error}") from None
    elif isinstance(value, tuple):
        value = dict(value)
    return _read_queue(value)


def _write_queue(queue: MessageQueue) -> dict[str, Any]:
    return {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}


_PLAIN: Final[dict[Any, Reader]] = {
    str: _read_str,
    int: _read_int,
    float: _read_float,
    bool: _read_bool,
    Any: _read_any,
}
