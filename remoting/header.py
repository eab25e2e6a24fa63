# SPDX-License-Identifier: Apache-2.0
"""Typed headers of commands: dataclasses from which the text codecs are compiled.

    @header("org.apache.rocketmq.remoting.protocol.header.GetMaxOffsetRequestHeader")
    class GetMaxOffsetRequestHeader(Header):
        topic: str
        queue_id: Int
        committed: bool | None = None

A field without default is mandatory (@CFNotNull), its wire name is the camel case of its own unless
`field(wire=...)` says otherwise, its order is the order in which Java's binary codec writes it:
fields of base classes come after those of the class itself. `letters` names the fields once more
for SEND_MESSAGE_V2's one-letter form. Counterpart of CommandCustomHeader and its 136 classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NewType,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.primitives.java_numbers import double, double_text, integer, long
from txrocketmq.remoting.primitives.values import Value, value_class
from txrocketmq.remoting.remembered_fields import RememberedFields

Int = int
"""A Java int: 32 bits, range-checked on decoding."""
if TYPE_CHECKING:
    Long = int
else:
    Long = NewType("Long", int)
"""Marks a Java long in a declaration: 64 bits, range-checked on decoding. Values are plain ints."""


def field(*, wire: str, default: Any = dataclasses.MISSING) -> Any:
    """Declares a field whose wire name is not the camel case of its own."""
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata={"wire": wire})
    return dataclasses.field(default=default, metadata={"wire": wire})


@dataclasses.dataclass(frozen=True, slots=True)
class HeaderField:
    """A field as the wire knows it; `letter` is its name in the one-letter form, if it has one.

    `kind` is str, int, long, bool or double.
    """

    name: str
    wire: str
    letter: str | None
    kind: str
    mandatory: bool


class Header(Value):
    """The base class of all command headers; the module's docstring shows how they are declared."""

    __slots__ = ()
    java_class: ClassVar[str] = ""
    fields: ClassVar[tuple[HeaderField, ...]] = ()
    _encode: ClassVar[Callable[[Any], dict[str, str]]]
    _encode_letters: ClassVar[Callable[[Any], dict[str, str]]]
    _decode: ClassVar[Callable[[Mapping[str, str]], Any]]

    def encode(self) -> dict[str, str]:
        """Returns the extension fields, text by wire name, without those that are None."""
        return type(self)._encode(self)  # noqa: SLF001 - a function of the class

    def encode_letters(self) -> dict[str, str]:
        """Like `encode`, but with one-letter names for the fields that have one."""
        return type(self)._encode_letters(self)  # noqa: SLF001 - likewise

    @classmethod
    def decode(cls, ext_fields: Mapping[str, str] | None) -> Self:
        """Returns a header from extension fields, which may have their letters or their long names.

        Unknown fields are ignored, as in the original. Raises HeaderError, whose text names the
        field.
        """
        ext = ext_fields or {}
        try:
            return cls._decode(ext)  # type: ignore[no-any-return]
        except (KeyError, ValueError, TypeError, AttributeError):  # something is wrong: say what
            return cls(**{f.name: v for f in cls.fields if (v := _decoded(f, ext)) is not _ABSENT})

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.encode() == other.encode()

    def __hash__(self) -> int:
        return hash((type(self), *self.encode().items()))

    def __repr__(self) -> str:
        values = (f"{f.name}={getattr(self, f.name)!r}" for f in self.fields)
        return f"{type(self).__name__}({', '.join(values)})"


_ABSENT: Any = object()
H = TypeVar("H", bound=Header)


class Lazy:
    """A class attribute that is computed when it is first read, and then replaced by its value.

    There are some 150 headers, and a process uses twenty: making the codecs of all of them would
    take half of the time in which a server starts.
    """

    def __init__(self, name: str, make: Callable[[type[Any]], Any]) -> None:
        self._name = name
        self._make = make

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        value = self._make(owner)
        plain = staticmethod(value) if callable(value) else value
        setattr(owner, self._name, plain)
        return value


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def header(
    java_class: str, letters: str = "", varying: tuple[str, ...] = ()
) -> Callable[[type[H]], type[H]]:
    """Makes a frozen keyword dataclass of a Header subclass; its text codec is compiled when used.

    `java_class` is the full name of the Java class that it follows, and `letters` has the
    one-letter names of its first fields, in order. `varying` are the wire names of two longs that
    mostly alone differ from one such header to the next.
    """

    def make(cls: type[H]) -> type[H]:
        made = value_class(cls)
        made.java_class = java_class
        codecs: dict[str, Callable[[type[Any]], Any]] = {
            "fields": lambda its: _fields_of(its, letters),
            "_encode": lambda its: _compile_encode(its.fields, use_letters=False),
            "_encode_letters": lambda its: _compile_encode(its.fields, use_letters=True),
            "_decode": partial(_decoder, varying=varying),
        }
        for name, compiled in codecs.items():
            setattr(made, name, Lazy(name, compiled))
        return made

    return make


def camel_case(name: str) -> str:
    """Returns Java's spelling of a snake_case name."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def _fields_of(cls: type, letters: str) -> tuple[HeaderField, ...]:
    hints = get_type_hints(cls)  # those of each base are resolved in its own module
    result = []
    for index, declared in enumerate(_in_binary_order(cls)):
        result.append(
            HeaderField(
                name=declared.name,
                wire=declared.metadata.get("wire", camel_case(declared.name)),
                letter=letters[index] if index < len(letters) else None,
                kind=_kind(hints[declared.name]),
                mandatory=declared.default is dataclasses.MISSING,
            )
        )
    return tuple(result)


def _in_binary_order(cls: type) -> list[dataclasses.Field[Any]]:
    """Returns the fields of the class itself first, and those of its furthest base last."""
    result: list[dataclasses.Field[Any]] = []
    for base in reversed(cls.__mro__):
        if dataclasses.is_dataclass(base):
            known = {each.name for each in result}
            result = [f for f in dataclasses.fields(base) if f.name not in known] + result
    return result


def without_none(hint: Any) -> list[Any]:
    """Returns the types of a hint such as `X | None`, but for None; any other hint is its own."""
    if get_origin(hint) in (Union, UnionType):
        return [each for each in get_args(hint) if each is not NoneType]
    return [hint]


def _kind(annotation: Any) -> str:
    kinds = {str: "str", int: "int", Long: "long", bool: "bool", float: "double"}
    try:
        (option,) = without_none(annotation)
        return kinds[option]
    except (KeyError, ValueError):
        raise TypeError(
            f"a header field cannot be {annotation}: use str, Int, Long, bool, float"
        ) from None


def _decoded(spec: HeaderField, ext: Mapping[str, str]) -> Any:
    text: Any = ext.get(spec.letter) if spec.letter else None
    if text is None:
        text = ext.get(spec.wire)
    if text is None:
        if spec.mandatory:
            raise HeaderError(f"the custom field <{spec.wire}> is null")
        return _ABSENT
    if not isinstance(text, str):  # a peer wrote a bare JSON number or boolean
        text = str(text).lower() if isinstance(text, bool) else str(text)
    if spec.kind == "str":
        return text
    if spec.kind == "bool":
        return text.lower() == "true"
    if text == "" and not spec.mandatory:
        return _ABSENT
    return _number(spec, text)


def _number(spec: HeaderField, text: str) -> int | float:
    try:
        if spec.kind == "double":
            return double(text)
        return integer(text) if spec.kind == "int" else long(text)
    except ValueError:
        raise HeaderError(
            f'the custom field <{spec.wire}>: For input string: "{text[:80]}"'
        ) from None


_TEXT = {
    "str": "{0}",
    "bool": "('true' if {0} else 'false')",
    "double": "double_text({0})",
}
_PARSE = {
    "str": "value",
    "bool": "value == 'true' or value.lower() == 'true'",
    "int": "int(value) if value.isdecimal() and len(value) < 10 else integer(value)",
    "long": "int(value) if value.isdecimal() and len(value) < 19 else long(value)",
    "double": "double(value)",
}


def _compile_encode(
    fields: tuple[HeaderField, ...], *, use_letters: bool
) -> Callable[[Any], dict[str, str]]:
    """Compiles an encoder without loops, which takes half the time of one that uses getattr."""
    lines = ["def encode(self):", "    ext = {}"]
    for spec in fields:
        key = spec.letter if use_letters and spec.letter else spec.wire
        text = _TEXT.get(spec.kind, "str({0})").format("value")
        lines.append(f"    value = self.{spec.name}")
        lines.append(f"    if value is not None: ext[{key!r}] = {text}")
    lines.append("    return ext")
    return _compiled(lines, {"double_text": double_text})


def _decoder(cls: type[Header], varying: tuple[str, ...]) -> Callable[[Mapping[str, str]], Any]:
    decode = _compile_decode(cls)
    if not varying:
        return decode
    wires = {spec.name: spec.wire for spec in cls.fields}
    return RememberedFields(cls, decode, wires, varying).decode


def _compile_decode(cls: type[Header]) -> Callable[[Mapping[str, str]], Any]:
    """Compiles a decoder of valid fields, which takes a third of the time of `_decoded` for each.

    The decoder raises KeyError, ValueError, TypeError or AttributeError if something is wrong, or
    if a text is None. It fills the slots directly, as a frozen dataclass's own constructor does in
    a roundabout way.
    """
    scope: dict[str, Any] = {"cls": cls, "new": object.__new__}
    scope |= {"integer": integer, "long": long, "double": double}
    lines = ["def decode(ext):", "    self = new(cls)"]
    for spec, declared in zip(cls.fields, _in_binary_order(cls), strict=True):
        name, wire = spec.name, spec.wire
        scope[f"set_{name}"] = getattr(cls, name).__set__
        scope[f"default_{name}"] = declared.default
        parsed = f"set_{name}(self, {_PARSE[spec.kind]})"
        if spec.letter:
            lines.append(f"    value = ext.get({spec.letter!r})")
            lines.append(f"    if value is None: value = ext.get({wire!r})")
            lines.append(f"    if value is not None: {parsed}")
            lines.append(f"    else: {_without(spec)}")
            continue
        # Mostly fields without a default are there, and those with one are not.
        indent = "    "
        if not spec.mandatory:
            lines += [f"    if {wire!r} not in ext: {_without(spec)}", "    else:"]
            indent *= 2
        lines.append(f"{indent}value = ext[{wire!r}]")
        if spec.kind == "str":  # None has no digits, and is neither true nor false
            lines.append(f"{indent}if value is None: raise TypeError")
        lines.append(indent + parsed)
    lines.append("    return self")
    return _compiled(lines, scope)


def _without(spec: HeaderField) -> str:
    """Returns the statement for a field that is not there."""
    return "raise TypeError" if spec.mandatory else f"set_{spec.name}(self, default_{spec.name})"


def _compiled(lines: list[str], scope: dict[str, Any]) -> Callable[..., Any]:
    exec("\n".join(lines), scope)  # noqa: S102 - generated from declarations only, as dataclasses do
    function: Callable[..., Any] = scope[lines[0].removeprefix("def ").partition("(")[0]]
    return function


@header("")
class NoHeader(Header):
    """The header of requests and answers without fields of their own."""
