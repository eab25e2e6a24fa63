# SPDX-License-Identifier: Apache-2.0
"""`struct` codecs and numpy dtypes derived from a construct declaration.

A format is declared once, in construct; construct parses and builds it for reference, for
inspection and in tests. It is far too slow for the path of a message, so hot code takes the same
layout as a `struct.Struct` from `fixed()`, and Spark's batches take it as a numpy dtype from
`dtype()`. `tests/properties/test_packing.py` holds the three equal.

What can be derived: a Struct of named big-endian integers, `Bytes(n)`, arrays of bytes and nested
Structs thereof. A nested Struct is flattened: field `ip` in `born_host` becomes `born_host_ip`.
Whatever has no fixed size or another byte order is refused with a TypeError that names the field.

RocketMQ has no counterpart: its Java sources repeat each layout in every reader and writer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct as StructCodec
from typing import TYPE_CHECKING, Any, NamedTuple

import construct

if TYPE_CHECKING:
    import numpy

_INTEGER_CODES = frozenset("bBhHlLqQ")
_NUMPY_BY_CODE = {
    "b": "i1", "B": "u1", "h": ">i2", "H": ">u2", "l": ">i4", "L": ">u4", "q": ">i8", "Q": ">u8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fixed:
    """A fixed-size layout: the codec for one value, and where each field lies.

    `names[i]` is the field of the i-th item of `struct.unpack()`; `size` is in bytes.
    """

    struct: StructCodec
    names: tuple[str, ...]
    size: int
    offsets: dict[str, int] = field(compare=False, repr=False)
    codecs: tuple[StructCodec, ...] = field(compare=False, repr=False)
    """The codec of each field alone, in the order of `names`."""

    def offset_of(self, name: str) -> int:
        """Returns the offset of a field, in bytes. Raises KeyError if there is no such field."""
        return self.offsets[name]

    def codec_of(self, name: str) -> StructCodec:
        """Returns the codec of one field alone. Raises KeyError if there is no such field."""
        return dict(zip(self.names, self.codecs, strict=True))[name]

    def fields(self, data: bytes | memoryview, at: int = 0) -> dict[str, Any]:
        """Returns the fields, by their names, of the value that begins at byte `at` of `data`."""
        return dict(zip(self.names, self.struct.unpack_from(data, at), strict=True))

    def rows(self, count: int) -> StructCodec:
        """Returns the codec of `count` values that lie end to end."""
        return StructCodec(">" + self.struct.format[1:] * count)


class _Field(NamedTuple):
    name: str
    code: str
    """One character: a code of `struct` for an integer, `s` for bytes."""
    shape: tuple[int, ...]
    """The dimensions of a field of bytes; empty for an integer."""

    @property
    def format(self) -> str:
        return f"{math.prod(self.shape)}s" if self.code == "s" else self.code


def fixed(declaration: construct.Construct[Any, Any]) -> Fixed:
    """Returns the `struct` codec of a declaration. Raises TypeError if it is not of fixed size.

    Each field of bytes (`Bytes(n)`, arrays of bytes) is one `bytes` item of its whole length.
    """
    fields = _fields(declaration)
    codec = StructCodec(">" + "".join(each.format for each in fields))
    offsets: dict[str, int] = {}
    position_bytes = 0
    codecs = tuple(StructCodec(">" + each.format) for each in fields)
    for each, its_codec in zip(fields, codecs, strict=True):
        offsets[each.name] = position_bytes
        position_bytes += its_codec.size
    return Fixed(codec, tuple(each.name for each in fields), codec.size, offsets, codecs)


def picked(declaration: construct.Construct[Any, Any], *names: str) -> StructCodec:
    """Returns the codec of some fields of a declaration, in its order, which skips the others.

    It ends with the last of these fields. Raises KeyError for a name that the declaration does not
    have.
    """
    fields = _fields(declaration)
    unknown = set(names) - {each.name for each in fields}
    if unknown:
        raise KeyError(", ".join(sorted(unknown)))
    form, passed = ">", 0
    for each in fields:
        if each.name not in names:
            passed += StructCodec(">" + each.format).size
            continue
        form += (f"{passed}x" if passed else "") + each.format
        passed = 0
    return StructCodec(form)


def picked_rows(declaration: construct.Construct[Any, Any], count: int, *names: str) -> StructCodec:
    """Returns the codec of some fields of `count` values that lie end to end. Raises KeyError."""
    one = picked(declaration, *names)
    rest = fixed(declaration).size - one.size
    return StructCodec(">" + f"{one.format[1:]}{rest}x" * count)


def dtype(declaration: construct.Construct[Any, Any]) -> numpy.dtype[numpy.void]:
    """Returns the packed numpy dtype of a declaration. Raises TypeError if it is not of fixed size.

    Fields of bytes are sub-arrays of uint8, since numpy's own byte strings lose trailing zeros.
    """
    import numpy  # noqa: PLC0415 - a server runs without it

    return numpy.dtype(
        [
            (each.name, "u1", each.shape)
            if each.code == "s"
            else (each.name, _NUMPY_BY_CODE[each.code])
            for each in _fields(declaration)
        ]
    )


def _fields(declaration: construct.Construct[Any, Any]) -> list[_Field]:
    declaration = _unnamed(declaration)
    if not isinstance(declaration, construct.Struct):
        raise TypeError(f"only a Struct has named fields, not {declaration!r}")
    fields = list(_flattened(declaration, ""))
    if not fields:
        raise TypeError("the Struct has no fields")
    seen: set[str] = set()
    for each in fields:
        if each.name in seen:
            raise TypeError(f"two fields are called {each.name!r}")
        seen.add(each.name)
    return fields


def _flattened(declaration: construct.Construct[Any, Any], prefix: str) -> Iterator[_Field]:
    for member in declaration.subcons:
        if not member.name:
            raise TypeError(
                f"a field of {prefix.rstrip('_') or 'the Struct'} has no name: {member!r}"
            )
        name = prefix + member.name
        inner = _unnamed(member)
        if isinstance(inner, construct.Struct):
            yield from _flattened(inner, name + "_")
        elif isinstance(inner, construct.FormatField):
            yield _Field(name, _integer_code(name, inner), ())
        else:
            yield _Field(name, "s", _byte_shape(name, inner))


def _unnamed(declaration: construct.Construct[Any, Any]) -> construct.Construct[Any, Any]:
    """Returns what is inside the wrappers of `"name" / ...` and `... * "documentation"`."""
    while isinstance(declaration, construct.Renamed):
        declaration = declaration.subcon
    return declaration


def _integer_code(name: str, declaration: construct.Construct[Any, Any]) -> str:
    order, code = declaration.fmtstr
    if code not in _INTEGER_CODES:
        raise TypeError(f"field {name!r} is not an integer: format {declaration.fmtstr!r}")
    if order != ">" and declaration.length > 1:
        raise TypeError(f"field {name!r} is not big-endian: format {declaration.fmtstr!r}")
    return str(code)


def _byte_shape(name: str, declaration: construct.Construct[Any, Any]) -> tuple[int, ...]:
    declaration = _unnamed(declaration)
    if isinstance(declaration, construct.Bytes):
        return (_constant(name, "length", declaration.length),)
    if isinstance(declaration, construct.Array):
        count = _constant(name, "count", declaration.count)
        item = _unnamed(declaration.subcon)
        if isinstance(item, construct.FormatField):
            if item.fmtstr[1] != "B":
                raise TypeError(f"field {name!r} is an array of {item.fmtstr!r}, not of bytes")
            return (count,)
        return (count, *_byte_shape(name, item))
    raise TypeError(
        f"field {name!r} has no fixed size or is neither an integer nor bytes: {declaration!r}"
    )


def _constant(name: str, what: str, value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"field {name!r} has no fixed size: its {what} is computed")
    if value <= 0:
        raise TypeError(f"field {name!r} is empty: its {what} is {value}")
    return value
