# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import sys

import construct
import numpy
import pytest
from construct import Array, Byte, Bytes, Const, Int8ub, Int16ub, Int32sb, Int32ul, Int64sb, this

from txrocketmq.remoting.primitives.packing import dtype, fixed, picked, picked_rows

POINT = construct.Struct("x" / Int32sb * "across", "y" / Int64sb)


def test_fixed_has_codec_names_size_and_offsets() -> None:
    derived = fixed(construct.Struct("kind" / Int16ub, "name" / Bytes(3), "at" / POINT))
    assert derived.struct.format == ">H3slq"
    assert derived.names == ("kind", "name", "at_x", "at_y")
    assert derived.size == 17
    assert [derived.offset_of(name) for name in derived.names] == [0, 2, 5, 9]
    with pytest.raises(KeyError):
        derived.offset_of("z")


def test_the_fields_of_a_value_have_their_names() -> None:
    derived = fixed(POINT)
    assert derived.fields(b"?" + derived.struct.pack(-7, 8), 1) == {"x": -7, "y": 8}


def test_fixed_is_frozen_and_hashable() -> None:
    derived = fixed(POINT)
    with pytest.raises(AttributeError):
        derived.size = 3  # type: ignore[misc]
    assert hash(derived) == hash(derived)


def test_arrays_of_bytes_are_one_item_and_a_numpy_shape() -> None:
    declaration = construct.Struct("a" / Array(4, Byte), "b" / Array(2, Bytes(3)))
    assert fixed(declaration).struct.unpack(b"abcdefghij") == (b"abcd", b"efghij")
    record = numpy.frombuffer(b"abcdefghij", dtype(declaration))[0]
    assert record["a"].tolist() == list(b"abcd")
    assert record["b"].tolist() == [list(b"efg"), list(b"hij")]


def test_dtype_is_packed_big_endian_and_keeps_trailing_zeros() -> None:
    derived = dtype(construct.Struct("b" / Bytes(4), "n" / Int32sb))
    assert derived.itemsize == 8
    assert derived["n"] == numpy.dtype(">i4")
    record = numpy.frombuffer(b"\x7f\0\0\0\0\0\1\0", derived)[0]
    assert record["b"].tobytes() == b"\x7f\0\0\0"
    assert record["n"] == 256


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        (Int32sb, "only a Struct"),
        (construct.Struct(), "no fields"),
        (construct.Struct(Int32sb), "no name"),
        (construct.Struct("a" / construct.Struct(Int32sb)), "field of a has no name"),
        (construct.Struct("n" / Int32ul), "'n' is not big-endian"),
        (construct.Struct("n" / construct.Float32b), "'n' is not an integer"),
        (construct.Struct("n" / Int8ub, "b" / Bytes(this.n)), "'b' has no fixed size"),
        (construct.Struct("n" / Int8ub, "b" / Array(this.n, Byte)), "'b' has no fixed size"),
        (construct.Struct("b" / Bytes(0)), "'b' is empty"),
        (construct.Struct("b" / construct.GreedyBytes), "'b' has no fixed size"),
        (construct.Struct("b" / construct.VarInt), "'b' has no fixed size"),
        (construct.Struct("b" / Const(b"x")), "'b' has no fixed size or is neither"),
        (construct.Struct("a" / Array(2, Int16ub)), "'a' is an array of '>H'"),
        (construct.Struct("a" / Array(2, POINT)), "'a' has no fixed size or is neither"),
        (construct.Struct("a_x" / Byte, "a" / POINT), "two fields are called 'a_x'"),
    ],
)
def test_what_is_not_fixed_is_refused_by_name(
    declaration: construct.Construct, reason: str
) -> None:
    for derive in (fixed, dtype):
        with pytest.raises(TypeError, match=reason):
            derive(declaration)


def test_numpy_is_imported_for_dtypes_only() -> None:
    program = (
        "import sys, txrocketmq.remoting.message.message, txrocketmq.broker.store.formats.formats;"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'twisted')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_some_fields_are_picked_and_the_others_passed_over() -> None:
    declaration = construct.Struct("a" / Int32sb, "b" / Bytes(3), "c" / Int16ub, "d" / Int64sb)
    codec = picked(declaration, "c", "a")
    assert (codec.format, codec.size) == (">l3xH", 9)
    whole = fixed(declaration).struct.pack(7, b"xyz", 8, 9)
    assert codec.unpack_from(whole) == (7, 8)
    with pytest.raises(KeyError, match="e"):
        picked(declaration, "a", "e")


def test_some_fields_of_many_values_are_one_row_of_numbers() -> None:
    three = construct.Struct("a" / Int16ub, "at" / POINT, "z" / Int64sb)
    whole = fixed(three).struct
    data = whole.pack(1, -2, 3, 4) + whole.pack(5, 6, -7, 8)
    codec = picked_rows(three, 2, "a", "at_y")
    assert codec.size == len(data)
    assert codec.unpack(data) == (1, 3, 5, -7)
    assert picked_rows(three, 2, "z").unpack(data) == (4, 8)
    with pytest.raises(KeyError, match="b"):
        picked_rows(three, 2, "a", "b")
