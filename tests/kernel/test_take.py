# SPDX-License-Identifier: Apache-2.0
"""The compiled table takes the same sends as the reference, however their texts are written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from mmap import mmap
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.kernel.installed import kernel, needs_kernel
from txrocketmq.broker.kernel.rows import ReferenceRows
from txrocketmq.broker.kernel.table import ReferenceTable
from txrocketmq.remoting.message.record import MAGIC_V1

pytestmark = needs_kernel

HOST = bytes([127, 0, 0, 1, 0, 0, 0, 9])
_HEADER = b'{"code":310,"extFields":{%b},"flag":0,"language":"JAVA","opaque":%d,"version":407}'
_CHARACTERS = st.sampled_from([*"aZ09 =/%^", "\u007f", "\u00e9", "\u20ac", "\U0001f600"])
_ESCAPES = st.sampled_from([
    rb"\u0001", rb"\u0002", rb"\u0009", rb"\u000A", rb"\u0000", rb"\u00e9", rb"\ud83d",
    rb"\uD83D\uDE00",
    rb"\n", rb"\t", rb"\"", rb"\\", rb"\/", rb"\b", rb"\x", rb"\u00", b"\x01", b"\x1f", b"\xff",
])  # fmt: skip
_PIECES = st.lists(st.text(_CHARACTERS, max_size=20).map(str.encode) | _ESCAPES, max_size=6)
_PLAIN = st.lists(
    st.tuples(
        st.sampled_from(
            [
                b"UNIQ_KEY",
                b"WAIT",
                b"TAGS",
                b"KEYS",
                b"DELAY",
                b"other",
                b"n" * 30,
                b"TRAN_MSG",
            ]
        ),
        st.text(_CHARACTERS, min_size=1, max_size=60).map(str.encode) | st.sampled_from([b"true"]),
    ),
    max_size=5,
).map(lambda pairs: [rb"UNIQ_KEY\u0001K1\u0002", *(rb"%b\u0001%b\u0002" % pair for pair in pairs)])
_USUAL = range(5)
_SENDS = st.lists(
    st.tuples(
        _PLAIN | _PLAIN | _PIECES, st.binary(max_size=40), st.integers(0, 2**31 + 9),
        st.just(_USUAL) | st.permutations(_USUAL),
    ),
    min_size=1, max_size=5,
)  # fmt: skip


def _header(text: bytes, born: int, opaque: int, order: Sequence[int] = _USUAL) -> bytes:
    """A header with its fields in this order."""
    fields = b'"a":"P"', b'"b":"T"', b'"g":"%d"' % born, b'"i":"%b"' % text, b'"j":"0"'
    return _HEADER % (b",".join([fields[number] for number in order]), opaque)


def _frame(text: list[bytes], body: bytes, opaque: int, order: Sequence[int] = _USUAL) -> bytes:
    header = _header(b"".join(text), 1_700_000_000_000 + opaque, opaque, order)
    lengths = (4 + len(header) + len(body)).to_bytes(4, "big") + len(header).to_bytes(4, "big")
    return lengths + header + body


def _results(new_table: Any, new_rows: Any, data: bytes, *, are_halves: bool = False) -> Any:
    """All that a table makes of a read: what it takes, records, units, index, answers."""
    touched, own = [b"DELAY", b"TRAN_MSG"], b"OWN\x01x\x02"
    table = new_table(touched, touched[:1], touched[:1], own)
    queue = table.add_queue("queue", b"\x01T", MAGIC_V1, 3)
    half = table.add_half(7, b"ID\x01", b"\x02TO\x01T\x02") if are_halves else None
    assert table.learn(0, _header(b"", 1, 1), queue, False, False, 5, 0, 0, 310, half, 0, None)
    run = table.take(data, 0)
    if run is None:
        return None
    rows, mapped = new_rows(), mmap(-1, 8192)
    units = run.write(table, mapped, 9, 5_000, [7], 1_000, HOST, HOST, rows)
    items = mmap(-1, 40 + 4 * 8 + 20 * 100)
    put = rows.put(items, 8, 72, 1, 0)
    said = run.answers(table, [b"1", b"2", b"3", b"4", b"5", b"6"], [b"1"] * 5, HOST)
    facts = run.at, run.commands, run.messages, run.size_bytes, run.most_bytes, run.waits
    return facts, units, mapped[:], put, items[:], said, run.kinds(), run.answered, run.halves()


@given(_SENDS, st.integers(0, 200), st.booleans())
@example([([rb"UNIQ_KEY\u0001K1\u0002WAIT\u0001true"], b"body", 5, _USUAL)], 0, False)
@example([([rb"UNIQ_KEY\u0001K1\u0002TRAN_MSG\u0001true"], b"body", 5, _USUAL)] * 2, 0, True)
def test_both_make_the_same_of_a_read(
    sends: list[tuple[list[bytes], bytes, int, Sequence[int]]], missing: int, are_halves: bool
) -> None:
    data = b"".join([_frame(*send) for send in sends])
    data = data[: len(data) - missing]
    expected = _results(ReferenceTable, ReferenceRows, data, are_halves=are_halves)
    assert _results(kernel.Table, kernel.Rows, data, are_halves=are_halves) == expected


def test_usual_sends_are_taken() -> None:
    data = _frame([rb"UNIQ_KEY\u0001K1\u0002TAGS\u0001", "\u00e9".encode()], b"body", 5)
    assert _results(kernel.Table, kernel.Rows, data)[0][:3] == (len(data), 1, 1)


def test_half_messages_are_taken_at_their_place_and_nowhere_else() -> None:
    data = _frame([rb"UNIQ_KEY\u0001K1\u0002TRAN_MSG\u0001True"], b"body", 5)
    found = _results(kernel.Table, kernel.Rows, data, are_halves=True)
    assert (found[0][:3], found[-1]) == ((len(data), 1, 1), [(0, 1)])
    assert b"TRAN_MSG\x01True\x02ID\x01K1\x02TO\x01T\x02OWN\x01x\x02" in found[2]
    assert found[5] == b"\0\0\0'\0\0\0#1" + HOST + b"0000000000001388" + b"27374K1556"
    assert _results(kernel.Table, kernel.Rows, data) is None


def test_a_place_is_found_again_whatever_the_order_of_the_fields() -> None:
    """The Go client writes them in another one each time."""
    frames = [
        _frame([rb"UNIQ_KEY\u0001K1"], b"body", opaque, order)
        for opaque, order in enumerate(permutations(_USUAL))
    ]
    for at in range(0, len(frames), 4):
        data = b"".join(frames[at : at + 4])
        assert _results(kernel.Table, kernel.Rows, data)[0][:3] == (len(data), 4, 4)
