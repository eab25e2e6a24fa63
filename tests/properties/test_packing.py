# SPDX-License-Identifier: Apache-2.0
"""construct, the derived struct and the derived numpy dtype agree, whatever the declaration."""

from __future__ import annotations

from typing import Any

import construct
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.store.formats import formats
from txrocketmq.remoting import formats as wire
from txrocketmq.remoting.message import ids, record
from txrocketmq.remoting.primitives.packing import dtype, fixed

INTEGERS = {
    construct.Int8sb: (-(1 << 7), (1 << 7) - 1),
    construct.Int8ub: (0, (1 << 8) - 1),
    construct.Int16sb: (-(1 << 15), (1 << 15) - 1),
    construct.Int16ub: (0, (1 << 16) - 1),
    construct.Int32sb: (-(1 << 31), (1 << 31) - 1),
    construct.Int32ub: (0, (1 << 32) - 1),
    construct.Int64sb: (-(1 << 63), (1 << 63) - 1),
    construct.Int64ub: (0, (1 << 64) - 1),
}
NOT_FIXED = {
    "RECORD", "BATCH_ENTRY", "CONSUME_QUEUE_EXT_UNIT",
    "FRAME", "BINARY_FIELD", "BINARY_HEADER", "REGISTRATION",
}  # fmt: skip
DECLARED = {
    f"{module.__name__}.{name}": declaration
    for module in (record, formats, ids, wire)
    for name, declaration in vars(module).items()
    if isinstance(declaration, construct.Struct) and name not in NOT_FIXED
}


def bare(declaration: construct.Construct) -> construct.Construct:
    while isinstance(declaration, construct.Renamed):
        declaration = declaration.subcon
    return declaration


def members() -> st.SearchStrategy[construct.Construct]:
    lengths = st.integers(1, 20)
    leaves = st.one_of(
        st.sampled_from(list(INTEGERS)),
        lengths.map(construct.Bytes),
        lengths.map(lambda count: construct.Array(count, construct.Byte)),
        st.tuples(lengths, lengths).map(
            lambda counts: construct.Array(counts[0], construct.Bytes(counts[1]))
        ),
    )
    return st.recursive(leaves, structs, max_leaves=8)


def structs(of: st.SearchStrategy[construct.Construct]) -> st.SearchStrategy[construct.Struct]:
    return st.lists(of, min_size=1, max_size=5).map(
        lambda found: construct.Struct(
            *(f"f{index}" / (member * "documented") for index, member in enumerate(found))
        )
    )


def values(declaration: construct.Construct) -> st.SearchStrategy[Any]:
    """Values of a declaration, as construct builds them."""
    plain = bare(declaration)
    if isinstance(plain, construct.Struct):
        return st.fixed_dictionaries({each.name: values(each) for each in plain.subcons})
    if isinstance(plain, construct.Array):
        return st.lists(values(plain.subcon), min_size=plain.count, max_size=plain.count)
    if isinstance(plain, construct.Bytes):
        return st.binary(min_size=plain.length, max_size=plain.length)
    return st.integers(*INTEGERS[plain])


def flat(declaration: construct.Construct, value: Any) -> list[Any]:
    """The leaves of a value, in the declaration's order; arrays as the bytes that they hold."""
    plain = bare(declaration)
    if isinstance(plain, construct.Struct):
        return [leaf for each in plain.subcons for leaf in flat(each, value[each.name])]
    if isinstance(plain, construct.Array):
        return [b"".join(bytes([each]) if isinstance(each, int) else each for each in value)]
    return [value]


def check_agreement(declaration: construct.Struct, value: dict[str, Any]) -> None:
    packed = declaration.build(value)
    derived = fixed(declaration)
    leaves = flat(declaration, value)
    assert derived.size == declaration.sizeof() == len(packed)
    assert derived.struct.pack(*leaves) == packed
    assert list(derived.struct.unpack(packed)) == leaves
    assert flat(declaration, declaration.parse(packed)) == leaves
    row = numpy.frombuffer(packed, dtype(declaration))[0]
    assert row.dtype.names == derived.names
    for name, leaf in zip(derived.names, leaves, strict=True):
        found = row[name].tobytes() if isinstance(leaf, bytes) else int(row[name])
        assert found == leaf
        assert row.dtype.fields[name][1] == derived.offset_of(name)


@given(st.data())
def test_of_any_declaration(data: st.DataObject) -> None:
    declaration = data.draw(structs(members()))
    check_agreement(declaration, data.draw(values(declaration)))


@pytest.mark.parametrize("name", DECLARED)
@given(data=st.data())
def test_of_our_declarations(name: str, data: st.DataObject) -> None:
    check_agreement(DECLARED[name], data.draw(values(DECLARED[name])))


def test_all_declarations_are_seen() -> None:
    assert len(DECLARED) > 20


def test_one_field_and_many_rows() -> None:
    layout = fixed(formats.CONSUME_QUEUE_UNIT)
    units = [(1, 2, 3), (4, 5, -6)]
    data = b"".join(layout.struct.pack(*unit) for unit in units)
    assert layout.rows(2).unpack(data) == (1, 2, 3, 4, 5, -6)
    assert layout.rows(2).size == 2 * layout.size
    for index, name in enumerate(layout.names):
        at = layout.size + layout.offset_of(name)
        assert layout.codec_of(name).unpack_from(data, at) == (units[1][index],)
    with pytest.raises(KeyError, match="nothing"):
        layout.codec_of("nothing")
