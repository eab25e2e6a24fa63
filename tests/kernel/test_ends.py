# SPDX-License-Identifier: Apache-2.0
"""The compiled table takes the same ends of transactions as the reference, and stores the same."""

from __future__ import annotations

from mmap import mmap
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.broker.kernel.test_ends import AT, REAL, TEXT, TOPIC, record
from tests.kernel.installed import kernel, needs_kernel
from tests.kernel.test_take import HOST, _frame, _header
from txrocketmq.broker.kernel.rows import ReferenceRows
from txrocketmq.broker.kernel.table import ReferenceTable
from txrocketmq.remoting.message.record import MAGIC_V1

pytestmark = needs_kernel

_END = (
    b'{"code":37,"extFields":{"producerGroup":"g","tranStateTableOffset":"%d",'
    b'"commitLogOffset":"%b","commitOrRollback":"%d","msgId":"%b"},"flag":2,"opaque":%d}'
)
_PAIRS = st.sampled_from([
    b"UNIQ_KEY\x01K1", b"UNIQ_KEY\x01K2", b"PGROUP\x01g", b"PGROUP\x01h", REAL,
    b"REAL_TOPIC\x01T", b"REAL_QID\x010", b"REAL_QID\x011", b"TAGS\x01a", b"KEYS\x01a  b",
    b"DELAY\x012", b"a\x01\xc3\xa9", b"a\x01\xff", b"a\x01", b"\x01b", b"a\x01b\x01c", b"x\x01y",
    b"",
])  # fmt: skip
_TEXTS = st.just(TEXT) | st.builds(
    lambda pairs, end: b"\x02".join(pairs) + end,
    st.lists(_PAIRS, max_size=7),
    st.sampled_from([b"", b"\x02"]),
)
_ENDS = st.lists(
    st.tuples(
        st.sampled_from([7, 7, 7, 8]), st.sampled_from([b"", b"", b"", b"1", b"9" * 20, b"x"]),
        st.sampled_from([8, 8, 12, 0]), st.sampled_from([b"A1", b"b", b"", b"-"]), st.booleans(),
    ),
    min_size=1, max_size=5,
)  # fmt: skip


def _data(ends: list[tuple[int, bytes, int, bytes, bool]], offset: int) -> bytes:
    frames = []
    for opaque, (place, more, kind, word, has_send) in enumerate(ends):
        header = _END % (place, b"%d%b" % (offset, more), kind, word, opaque)
        lengths = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big")
        frames.append(lengths + header)
        if has_send:
            frames.append(_frame([rb"UNIQ_KEY\u0001K1"], b"body", opaque))
    return b"".join(frames)


def _results(new_table: Any, new_rows: Any, half: bytes, data: bytes, least: int) -> Any:
    """All that a table makes of a read, with a half message in the log."""
    table = new_table([b"DELAY"], [], [], b"OWN\x01x\x02")
    queue = table.add_queue("queue", b"\x01T", MAGIC_V1, 3)
    table.expect_ends(TOPIC, [b"DELAY"])
    assert table.add_target(queue, REAL, 0) == 0
    assert table.learn(0, _header(b"", 1, 1), queue, False, False, 5, 0, 0, 310, None, 0, None)
    for kind, is_commit in ((8, True), (12, False)):
        header = _END % (1, b"1", kind, b"A", 1)
        assert table.learn_end(0, header, b"g", is_commit, True, 37)
    mapped = mmap(-1, 8192)
    mapped[: len(half)] = half
    run = table.take(data, 0, lambda: (memoryview(mapped), AT, len(half), least))
    if run is None:
        return None
    rows, nexts = new_rows(), [7] if run.messages else []
    units = run.write(
        table, mapped, len(half), AT + len(half), nexts, 1_000, HOST, HOST, rows
    )  # fmt: skip
    items = mmap(-1, 40 + 4 * 8 + 20 * 100)
    put = rows.put(items, 8, 72, 1, 0)
    said = run.answers(table, [b"1", b"2", b"3", b"4", b"5", b"6"], [b"1"] * 5, HOST)
    facts = run.at, run.commands, run.messages, run.size_bytes, run.most_bytes, run.waits
    return facts, units, mapped[:], put, items[:], said, run.kinds(), [*map(tuple, run.ends())]


@given(_TEXTS, st.binary(max_size=40), st.sampled_from([0, 0, 1, 4, 16]), _ENDS, st.integers(0, 90))
@example(TEXT, b"body", 0, [(7, b"", 8, b"A1", True), (7, b"", 12, b"A2", False)] * 2, 0)
def test_both_make_the_same_of_ends(
    text: bytes,
    body: bytes,
    flag: int,
    ends: list[tuple[int, bytes, int, bytes, bool]],
    missing: int,
) -> None:
    half, data = record(text, body, flag=flag), _data(ends, AT)
    data = data[: len(data) - missing]
    expected = _results(ReferenceTable, ReferenceRows, half, data, 0)
    assert _results(kernel.Table, kernel.Rows, half, data, 0) == expected


def test_usual_ends_are_taken_between_sends() -> None:
    data = _data([(7, b"", 8, b"A1", True), (7, b"", 12, b"A2", True)], AT)
    found = _results(kernel.Table, kernel.Rows, record(), data, AT)
    assert found[0][:3] == (len(data), 4, 3)
    assert found[-1] == [(3, 7, 17, 0, True), (3, 7, 17, 0, False)]
    assert _results(kernel.Table, kernel.Rows, record(), data, AT + 1) is None


def test_a_file_that_is_shorter_than_it_says_has_no_half_messages() -> None:
    data = _data([(7, b"", 8, b"A1", False)], AT)
    table = kernel.Table([], [], [], b"")
    table.expect_ends(TOPIC, [])
    table.add_target(table.add_queue("queue", b"\x01T", MAGIC_V1, 3), REAL, 0)
    assert table.learn_end(0, _END % (1, b"1", 8, b"A", 1), b"g", True, True, 37)
    half = record()
    assert table.take(data, 0, lambda: (memoryview(half), AT, len(half), 0)) is not None
    assert table.take(data, 0, lambda: (memoryview(half), AT, len(half) + 1, 0)) is None
    assert table.take(data, 0, lambda: (memoryview(half)[::2], AT, 9, 0)) is None
    assert table.take(data, 0, lambda: None) is None
    assert table.take(data, 0, lambda: 1 // 0) is None
