# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.spark.logs import Log, buffer_of, log_of, logs
from tests.spark.stores import Draft
from txrocketmq.remoting.message.record import BLANK, MAGIC_BLANK, MAGIC_V1
from txrocketmq.spark.arrow import walk as walk_module
from txrocketmq.spark.arrow.walk import HEAD_BYTES, MIN_RECORD_BYTES, Stop, candidates, chain, walk
from txrocketmq.spark.arrow.words import words

FIRST = 1 << 30
BLANK_BYTES = BLANK.build({"room": 4711, "magic": MAGIC_BLANK})


@pytest.fixture(autouse=True)
def _cursors_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small logs are walked as large ones are: by many cursors, and few of them alive."""
    monkeypatch.setattr(walk_module, "_CURSOR_BYTES", 400)
    monkeypatch.setattr(walk_module, "_MIN_ALIVE", 2)


def large_log(seed: int, *, fakes: bool, messages: int = 400) -> Log:
    """Records of uneven sizes; a third of the bodies holds records with the offsets they lie at."""
    draw = random.Random(seed)

    def drafts() -> Iterator[Draft]:
        for _ in range(messages):
            yield Draft(
                body=draw.randbytes(int(draw.paretovariate(1) * 30) % 9000),
                fakes=draw.randrange(8) if fakes and draw.random() < 0.3 else 0,
                born_ipv6=draw.random() < 0.2,
                v2=draw.random() < 0.2,
            )

    return log_of(drafts(), FIRST)


@given(log=logs())
def test_the_records_are_those_of_the_declaration(log: Log) -> None:
    found = walk(log.buffer, log.first_offset)
    assert found.starts.tolist() == log.starts
    assert found.starts.dtype == np.int64
    assert (found.stop, found.reason) == (len(log.data), Stop.END)
    if found.heads is not None:
        heads = [log.data[at : at + HEAD_BYTES] for at in log.starts]
        assert found.heads.tolist() == [head.ljust(HEAD_BYTES, b"\0") for head in heads]


def test_the_heads_come_along() -> None:
    log = large_log(2, fakes=True)
    found = walk(log.buffer, FIRST)
    assert found.heads is not None
    assert found.heads.tobytes() == b"".join(log.data[at : at + HEAD_BYTES] for at in log.starts)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fakes", [False, True])
def test_many_cursors_find_what_one_finds(
    seed: int, fakes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = large_log(seed, fakes=fakes)
    assert walk(log.buffer, FIRST).starts.tolist() == log.starts
    monkeypatch.setattr(walk_module, "_MAX_PLACES", 1 << 10)
    assert walk(log.buffer, FIRST).starts.tolist() == log.starts
    monkeypatch.setattr(walk_module, "_MAX_CANDIDATES", 1)
    assert walk(log.buffer, FIRST).starts.tolist() == log.starts


def test_cursors_are_set_and_trusted() -> None:
    log = large_log(1, fakes=True)
    first = walk_module._settings(log.buffer, FIRST, 0, len(log.data), 50)
    assert len(first) > 20
    assert set(first.tolist()) - set(log.starts), "some were set into bodies"
    chains = walk_module._advance(log.buffer, FIRST, first, len(log.data))
    assert chains.ends[-1] > len(log.starts) // 2


@given(log=logs(), data=st.data())
def test_a_range_has_the_records_that_start_in_it(log: Log, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from(log.starts))
    end = data.draw(st.integers(start, len(log.data)))
    found = walk(log.buffer, log.first_offset, start, end)
    assert found.starts.tolist() == [at for at in log.starts if start <= at < end]
    assert found.reason is Stop.END
    assert found.stop == min([at for at in [*log.starts, len(log.data)] if at >= end])


@given(log=logs(max_size=4), data=st.data())
def test_a_torn_log_ends_at_the_last_whole_record(log: Log, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, len(log.data) - 1))
    found = walk(buffer_of(log.data[:length]), log.first_offset)
    ends = [*log.starts, len(log.data)]
    whole = sum(end <= length for end in ends) - 1
    assert found.starts.tolist() == log.starts[:whole]
    assert found.stop == ends[whole]
    assert found.reason is (Stop.END if ends[whole] == length else Stop.PARTIAL)


@pytest.mark.parametrize("messages", [2, 300])
@pytest.mark.parametrize(
    ("behind", "reason"),
    [
        (b"", Stop.END),
        (b"\0" * 7, Stop.PARTIAL),
        (b"\0" * 8, Stop.UNWRITTEN),
        (b"\0" * 9000, Stop.UNWRITTEN),
        (b"\0" * 44 + b"rest", Stop.BAD),
        (BLANK_BYTES, Stop.BLANK),
        (BLANK_BYTES + b"\0" * 9000, Stop.BLANK),
        (b"\0\0\0\1" + BLANK_BYTES[4:], Stop.BAD),
        (b"no record at all, whatever one thinks of it; neither here nor there", Stop.BAD),
        (b"no record", Stop.BAD),
        (b"\0\0\1\0" + MAGIC_V1.to_bytes(4, "big", signed=True), Stop.PARTIAL),
        (b"\0\0\0\1" + MAGIC_V1.to_bytes(4, "big", signed=True), Stop.BAD),
    ],
)
def test_why_a_walk_ends(messages: int, behind: bytes, reason: Stop) -> None:
    log = log_of((Draft(body=b"x" * (number % 700)) for number in range(messages)), FIRST)
    found = walk(buffer_of(log.data + behind), FIRST)
    assert found.starts.tolist() == log.starts
    assert (found.stop, found.reason) == (len(log.data), reason)


def test_nothing_to_walk() -> None:
    found = walk(buffer_of(b""), 0)
    assert (found.starts.tolist(), found.stop, found.reason) == ([], 0, Stop.END)
    assert walk(buffer_of(b"\0" * 200), 0).reason is Stop.UNWRITTEN


FIELDS = {"total_size": (0, 4), "magic": (4, 8), "physical_offset": (28, 36)}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_head_ends_the_walk(field: str, seed: int) -> None:
    log = large_log(seed, fakes=seed % 2 == 0)
    draw = random.Random(seed)
    number = draw.randrange(100, 300)
    at = log.starts[number]
    start, end = FIELDS[field]
    data = bytearray(log.data)
    data[at + start : at + end] = b"\x01" + draw.randbytes(end - start - 1)
    found = walk(buffer_of(bytes(data)), FIRST)
    assert found.starts.tolist() == log.starts[:number]
    assert found.stop == at
    # A size is not known to be wrong when it goes beyond the buffer.
    assert found.reason is (Stop.PARTIAL if field == "total_size" else Stop.BAD)


@given(junk=st.binary(max_size=3000), log=logs(max_size=3))
@example(junk=b"\xda\xa3\x20\xa7" * 700, log=log_of([Draft()]))
@example(junk=b"\x7f\xff\xff\xff" * 700, log=log_of([Draft()]))
def test_anything_may_follow(junk: bytes, log: Log) -> None:
    found = walk(buffer_of(log.data + junk), log.first_offset)
    assert found.starts.tolist() == log.starts


def test_a_record_is_no_smaller_than_its_fixed_parts() -> None:
    log = log_of([Draft(topic="", body=b"")])
    assert len(log.data) == MIN_RECORD_BYTES
    assert walk(log.buffer, 0).starts.tolist() == [0]


def test_the_records_of_a_pull_lie_at_any_offset() -> None:
    first = log_of([Draft(), Draft(v2=True)], 7_000)
    second = log_of([Draft(born_ipv6=True, fakes=2)], 99)
    data = first.data + second.data
    found = chain(buffer_of(data))
    assert found.starts.tolist() == [*first.starts, len(first.data)]
    assert (found.stop, found.reason) == (len(data), Stop.END)
    assert chain(buffer_of(data[:-1])).reason is Stop.PARTIAL
    assert chain(buffer_of(data + b"nothing of the kind, and fifty bytes long or more")).reason is (
        Stop.BAD
    )


def test_candidates_are_records_and_what_looks_like_them() -> None:
    log = log_of([Draft(fakes=3), Draft(body=MAGIC_V1.to_bytes(4, "big", signed=True))], FIRST)
    found = list(candidates(log.buffer, FIRST, 0))
    assert len(found) == 2 + 3
    assert set(log.starts) < set(found)
    assert list(candidates(log.buffer, FIRST, 1)) == found[1:]
    assert list(candidates(log.buffer, FIRST + 8, 0)) == []


SIZES = (0, 1, -1, 8, 36, 90, 91, 92, 200, -91, -200, (1 << 31) - 1, -(1 << 31))


def damaged(log: Log, draw: random.Random) -> bytes:
    """The log with sizes that lead anywhere, heads where none should be, and parts cut out."""
    data = bytearray(log.data)
    for _ in range(draw.choice((1, 2, 9))):
        at = draw.choice(log.starts) if draw.random() < 0.5 else draw.randrange(len(data))
        size = draw.choice((*SIZES, draw.choice(log.starts) - at)).to_bytes(4, "big", signed=True)
        magic = MAGIC_V1.to_bytes(4, "big", signed=True)
        head = size + magic + bytes(20) + (log.first_offset + at).to_bytes(8, "big")
        kind = draw.choice((size, head, head, bytes(draw.randrange(300))))
        data[at : at + len(kind)] = kind if draw.random() < 0.9 else b""
    return bytes(data[: draw.randrange(len(data)) if draw.random() < 0.2 else len(data)])


@pytest.mark.parametrize("seed", range(4))
def test_whatever_sizes_say_many_cursors_find_what_one_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(seed)
    log = large_log(seed, fakes=True, messages=40)
    for _ in range(60):
        buffer = buffer_of(damaged(log, draw))
        start = draw.choice((0, draw.randrange(len(buffer)), min(log.starts[9], len(buffer))))
        end = draw.choice((len(buffer), draw.randrange(start, len(buffer) + 1)))
        limits = {"_CURSOR_BYTES": (91, 400), "_STEPS": (1, 3, 8), "_MIN_ALIVE": (1, 8)}
        for name, choices in limits.items():
            monkeypatch.setattr(walk_module, name, draw.choice(choices))
        found = walk(buffer, FIRST, start, end)
        expected = walk_module._one_by_one(buffer, FIRST, start, end)
        assert found.starts.tolist() == expected.starts.tolist()
        assert found[1:3] == expected[1:3]
        if found.heads is not None:
            assert found.heads.tobytes() == words(buffer, expected.starts, HEAD_BYTES).tobytes()


def test_sizes_that_lead_around_take_neither_memory_nor_time() -> None:
    data = bytearray(1 << 19)
    for at in range(0, len(data) // 2, 500):
        for number, size in enumerate((MIN_RECORD_BYTES, MIN_RECORD_BYTES, -MIN_RECORD_BYTES)):
            place = at + number * MIN_RECORD_BYTES
            head = size.to_bytes(4, "big", signed=True) + MAGIC_V1.to_bytes(4, "big", signed=True)
            data[place : place + 36] = head + bytes(20) + (FIRST + place).to_bytes(8, "big")
    buffer = buffer_of(bytes(data))
    first = walk_module._settings(buffer, FIRST, 0, len(data), len(data) // 500)
    assert len(first) > 400
    tracemalloc.start()
    chains = walk_module._advance(buffer, FIRST, first, len(data))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(chains.starts) == 2 * len(first)
    assert peak_bytes < 2 * len(data)
    found = walk(buffer, FIRST)
    assert found.starts.tolist() == [0, MIN_RECORD_BYTES]
    assert (found.stop, found.reason) == (2 * MIN_RECORD_BYTES, Stop.BAD)


def test_bodies_of_what_magics_begin_with() -> None:
    flood = bytes([MAGIC_V1.to_bytes(4, "big", signed=True)[0]]) * 500
    log = log_of((Draft(body=flood) for _ in range(60)), FIRST)
    targets = np.arange(400, len(log.buffer) - 400, 400)
    assert not len(walk_module._near(log.buffer, FIRST, targets, 400))
    assert walk(log.buffer, FIRST).starts.tolist() == log.starts


@pytest.mark.parametrize(("body_bytes", "near"), [(40, True), (3000, False)])
def test_cursors_are_set_where_records_are_near_or_far(body_bytes: int, near: bool) -> None:
    log = log_of((Draft(body=bytes(body_bytes)) for _ in range(200)), FIRST)
    size = len(log.buffer)
    cursors = size // 400
    found = walk_module._settings(log.buffer, FIRST, 0, size, cursors)
    assert set(found.tolist()) <= set(log.starts)
    assert (len(found) > cursors // 2) is near
    assert len(found) > 50
    assert walk(log.buffer, FIRST).starts.tolist() == log.starts
