# SPDX-License-Identifier: Apache-2.0
"""The compiled pulls are taken and answered as those of the reference are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.kernel.installed import kernel, needs_kernel
from txrocketmq.broker.kernel.pulls import ReferencePulls, pull_answer
from txrocketmq.broker.store.queues.consume_queue import UNIT
from txrocketmq.remoting.message.record import MAGIC_V1

pytestmark = needs_kernel

FROM = 5_000
_NUMBERS = st.sampled_from([b"0", b"7", b"00", b"1234567", b"-1", b"", b"x", b"9" * 18, b"9" * 19])
_OPAQUES = st.sampled_from([b"0", b"5", b"05", b"2147483647", b"2147483648", b"-1", b'"1"'])
_PIECES = st.sampled_from([[b"{", b"|", b"|", b"#", b"}"], [b"B", b"-", b"n", b"l", b"u", b"."]])
_RECORDS = st.lists(
    st.tuples(
        st.sampled_from([36, 40, 40, 300, 3_000, 40_000]),
        st.sampled_from([0, 0, 0, 5]),
        st.sampled_from(["", "", "", "", "", "size", "magic", "offset", "end", "unit", "blank"]),
    ),
    max_size=8,
)


def _json(opaque: bytes, first: bytes, second: bytes, topic: bytes) -> bytes:
    return (
        b'{"code":11,"extFields":{"topic":"%b","queueOffset":"%b","commitOffset":"%b"},"opaque":%b}'
        % (topic, first, second, opaque)
    )


def _frame(header: bytes) -> bytes:
    return (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header


def _taken(pulls: Any, headers: list[bytes], missing: int) -> list[Any]:
    learned = [pulls.learn(0, header, 0, None) for header in headers[:2]]
    data = b"".join(map(_frame, headers))
    data = data[: len(data) - missing]
    at, found = 0, []
    while (taken := pulls.take(data, at, 0)) is not None:
        found.append(taken)
        at = taken[1]
    return [learned, found, pulls.take(data, len(data) + 1, 0)]


@given(
    st.lists(
        st.builds(_json, _OPAQUES, _NUMBERS, _NUMBERS, st.sampled_from([b"T", b"U"])),
        min_size=1,
        max_size=5,
    ),
    st.integers(0, 80),
)
@example([_json(b"5", b"7", b"8", b"T")] * 3, 0)
@example([_json(b'"1"', b"0", b"0", b"T")], 0)
def test_both_take_the_same_pulls(headers: list[bytes], missing: int) -> None:
    expected = _taken(ReferencePulls(), headers, missing)
    assert _taken(kernel.Pulls(), headers, missing) == expected


def _log(records: list[tuple[int, int, str]]) -> tuple[bytes, bytes]:
    """A file of the log, and units, with what is the matter with some of the records."""
    log, units = b"", b""
    for size, gap, wrong in records:
        log += bytes(gap)
        start = FROM + len(log)
        head = (size + (wrong == "size")).to_bytes(4, "big")
        head += (MAGIC_V1 + (wrong == "magic")).to_bytes(4, "big", signed=True)
        head += b"h" * 20 + (start + (wrong == "offset")).to_bytes(8, "big")
        log += head + b"b" * (size - len(head))
        if wrong == "end":
            log = log[:-1] + b"\0"
        at = start - 7_000 if wrong == "unit" else start
        units += UNIT.pack(at, (1 << 31) - 1 if wrong == "blank" else size, 0)
    return log, units


@given(
    _RECORDS, st.integers(-1, 9), st.sampled_from([0, 100, 400, 100_000, 1 << 40]), _PIECES,
    st.sampled_from([0, 0, 0, 1, 50]), st.sampled_from([FROM, FROM, FROM + 1, 0]),
)  # fmt: skip
@example([(40, 0, "")] * 3, 9, 1_000, [b"{", b"|", b"|", b"#", b"}"], 0, FROM)
@example([(40_000, 5, "")] * 3, 9, 1 << 40, [b"{", b"|", b"|", b"#", b"}"], 0, FROM)
def test_both_answer_the_same(
    records: list[tuple[int, int, str]], most: int, most_bytes: int, pieces: list[bytes],
    missing: int, least: int,
) -> None:  # fmt: skip
    log, units = _log(records)
    end = max(len(log) - missing, 0)
    views = memoryview(units), memoryview(log)
    more: Any = (FROM, end, least, MAGIC_V1, max(most, 1), most_bytes, pieces, 77, (3, 0, 99))
    expected = pull_answer(*views, *more)
    assert kernel.pull_answer(*views, *more) == expected


def test_usual_records_are_answered() -> None:
    log, units = _log([(40, 0, ""), (40, 0, ""), (3_000, 5, ""), (40_000, 0, "")])
    more = FROM, len(log), FROM, MAGIC_V1, 32, 1 << 18, [b"{", b"|", b"|", b"#", b"}"]
    found = kernel.pull_answer(units, log, *more, 77, (3, 0, 99))
    assert (found[0], found[1], found[3]) == (4, 43_080, [])
    assert found[2][8:19] == b"{7|0|99#77}"
    assert found[2][19:99] == log[:80]


def test_another_number_of_pieces_is_refused() -> None:
    log, units = _log([(40, 0, "")])
    for answer in (kernel.pull_answer, pull_answer):
        with pytest.raises(ValueError, match="pieces"):
            answer(
                memoryview(units), memoryview(log), FROM, 40, 0, MAGIC_V1, 1, 1, [b""], 1, (0, 0, 1)
            )
