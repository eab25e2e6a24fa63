# SPDX-License-Identifier: Apache-2.0
"""The classes of the messages, made from the tables in a pool of descriptors of their own.

Nothing is generated, so no version of protobuf is bound to what another one has written. The pool
is private because protobuf refuses a second declaration of a name in the common one: the official
Python client, which declares the same names there, may live in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    message_factory,
    timestamp_pb2,
)

from txrocketmq.proxy.schema import enums
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.tables import FIELDS

PACKAGE: Final = "apache.rocketmq.v2"
SERVICE: Final = f"{PACKAGE}.MessagingService"
_FILE: Final = "apache/rocketmq/v2/messaging.proto"
_WELL_KNOWN: Final = {"Duration": duration_pb2, "Timestamp": timestamp_pb2}
_ENUMS: Final[tuple[type[IntEnum], ...]] = (
    Code,
    enums.AddressScheme,
    enums.ClientType,
    enums.DigestType,
    enums.Encoding,
    enums.FilterType,
    enums.Language,
    enums.LiteSubscriptionAction,
    enums.MessageType,
    enums.Permission,
    enums.QueryOffsetPolicy,
    enums.TransactionResolution,
    enums.TransactionSource,
)
_NESTED: Final[dict[type[IntEnum], str]] = {enums.Policy: "OffsetOption"}
"""The enumerations that are declared inside of a message, and of which."""
_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
    "bool": _FIELD.TYPE_BOOL,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "float": _FIELD.TYPE_FLOAT,
}


def declared() -> Iterator[tuple[str, list[str]]]:
    """Returns the messages of the table, each with the lines of its fields."""
    name, lines = "", list[str]()
    for line in FIELDS.strip().splitlines():
        if line.startswith(" "):
            lines.append(line)
            continue
        if name:
            yield name, lines
        name, lines = line, []
    yield name, lines


class _File:
    """Describes the messages and enumerations as a file of definitions would."""

    def __init__(self) -> None:
        self.proto = descriptor_pb2.FileDescriptorProto(
            name=_FILE, package=PACKAGE, syntax="proto3"
        )
        self.proto.dependency.extend(its.DESCRIPTOR.name for its in _WELL_KNOWN.values())
        self._enums = {each.__name__ for each in _ENUMS}
        messages = dict(declared())
        self._messages = set(messages)
        for enum in _ENUMS:
            self._enum(self.proto.enum_type.add(), enum)
        for name, lines in messages.items():
            its = self.proto.message_type.add(name=name)
            for enum in (each for each, owner in _NESTED.items() if owner == name):
                self._enum(its.enum_type.add(), enum)
            self._message(its, lines)

    def _enum(self, proto: Any, enum: type[IntEnum]) -> None:
        proto.name = enum.__name__
        for value in enum:
            proto.value.add(name=value.name, number=value.value)

    def _message(self, proto: Any, lines: list[str]) -> None:
        optional = []
        for line in lines:
            number, its_type, name, *choice = line.split()
            field = proto.field.add(name=name, number=int(number), label=_FIELD.LABEL_OPTIONAL)
            if its_type.endswith("*"):
                field.label = _FIELD.LABEL_REPEATED
            if its_type.endswith("?"):
                optional.append(field)
            if its_type == "map":
                self._map(proto, field)
            else:
                self._type(field, proto.name, its_type.rstrip("?*"))
            if choice:
                if choice[1] not in [each.name for each in proto.oneof_decl]:
                    proto.oneof_decl.add(name=choice[1])
                field.oneof_index = len(proto.oneof_decl) - 1
        for field in optional:  # each is a choice of its own, after those that were declared
            field.proto3_optional = True
            field.oneof_index = len(proto.oneof_decl)
            proto.oneof_decl.add(name=f"_{field.name}")

    def _type(self, field: Any, message: str, name: str) -> None:
        if name in _SCALARS:
            field.type = _SCALARS[name]
        elif name in _WELL_KNOWN:
            field.type = _FIELD.TYPE_MESSAGE
            field.type_name = f".google.protobuf.{name}"
        elif (message, name) in {(owner, each.__name__) for each, owner in _NESTED.items()}:
            field.type = _FIELD.TYPE_ENUM
            field.type_name = f".{PACKAGE}.{message}.{name}"
        elif name in self._enums or name in self._messages:
            field.type = _FIELD.TYPE_ENUM if name in self._enums else _FIELD.TYPE_MESSAGE
            field.type_name = f".{PACKAGE}.{name}"
        else:
            raise ValueError(f"{message}.{field.name}: there is no type {name}")

    def _map(self, proto: Any, field: Any) -> None:
        words = (word.capitalize() for word in field.name.split("_"))
        entry = proto.nested_type.add(name="".join(words) + "Entry")
        entry.options.map_entry = True
        for number, name in ((1, "key"), (2, "value")):
            entry.field.add(
                name=name, number=number, label=_FIELD.LABEL_OPTIONAL, type=_FIELD.TYPE_STRING
            )
        field.label = _FIELD.LABEL_REPEATED
        field.type = _FIELD.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{proto.name}.{entry.name}"


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    for its in _WELL_KNOWN.values():
        pool.AddSerializedFile(its.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(_File().proto.SerializeToString())
    found = {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name, _ in declared()
    }
    for name in _WELL_KNOWN:
        full = f"google.protobuf.{name}"
        found[name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(full))
    return found


_CLASSES: Final = _classes()


def message_type(name: str) -> Any:
    """Returns the class of a message, such as `QueryRouteRequest`. Raises KeyError."""
    return _CLASSES[name]
