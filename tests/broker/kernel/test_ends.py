# SPDX-License-Identifier: Apache-2.0
"""Half messages are found in the log, and taken only if Python would store the same."""

from __future__ import annotations

import pytest

from txrocketmq.broker.kernel.ends import MOST_TARGETS, Ending, ReferenceEnds, TakenHalf
from txrocketmq.broker.kernel.header_holes import EndHoles
from txrocketmq.broker.kernel.table import ReferenceTable, pairs_of
from txrocketmq.broker.store.log.encode import IPV4_LAYOUT
from txrocketmq.remoting.message.record import MAGIC_V1

TOPIC = b"\x04half"
REAL = b"REAL_TOPIC\x01T\x02REAL_QID\x010"
TEXT = b"UNIQ_KEY\x01K1\x02PGROUP\x01g\x02" + REAL + b"\x02TAGS\x01a\x02"
HOST = bytes(8)
AT = 1_000


def record(text: bytes = TEXT, body: bytes = b"body", topic: bytes = TOPIC, flag: int = 0) -> bytes:
    """A half message at the beginning of a file of the log."""
    size = IPV4_LAYOUT.size + len(body) + len(topic) + 2 + len(text)
    head = IPV4_LAYOUT.pack(
        size, MAGIC_V1, 0, 3, 5, 7, AT, flag, 17, HOST, 18, HOST, 2, 0, len(body)
    )
    return head + body + topic + len(text).to_bytes(2, "big") + text


def take(
    data: bytes, *, queue_offset: int = 7, offset: int = AT, least: int = 0, group: bytes = b"g"
) -> TakenHalf | None:
    ends = ReferenceEnds(TOPIC, [b"DELAY"])
    assert ends.add(6, REAL, 0) == 0
    log = memoryview(data), AT, len(data), least
    holes = EndHoles((), 1, queue_offset, offset, None)
    taken: TakenHalf | None = ends.take(log, holes, Ending(group, True, True, 37), pairs_of)
    return taken


def test_a_half_message_becomes_one_without_its_place() -> None:
    taken = take(record())
    assert taken is not None
    assert (taken.target, taken.queue, taken.sys_flag) == (0, 6, 8)
    assert taken.properties == b"UNIQ_KEY\x01K1\x02PGROUP\x01g\x02TAGS\x01a\x02"
    assert (taken.half.queue_id, taken.half.flag, taken.half.reconsume_times) == (3, 5, 2)
    assert taken.half.size == len(record())
    without_end = take(record(TEXT[:-1]))
    assert without_end is not None
    assert without_end.properties == taken.properties


@pytest.mark.parametrize(
    "data",
    [
        record(topic=b"\x04hall"),
        record(body=b""),
        record(flag=4),
        record(TEXT.replace(b"PGROUP\x01g\x02", b"")),
        record(TEXT.replace(b"K1", b"K-1")),
        record(TEXT.replace(b"REAL_QID\x010", b"REAL_QID\x011")),
        record(TEXT.replace(b"\x02REAL_QID", b"\x02x\x01y\x02REAL_QID")),
        record(TEXT.replace(b"TAGS", b"DELAY")),
        record(REAL + b"\x02PGROUP\x01g\x02"),
        record(TEXT + b"a\x01\x00"),
        record(TEXT + b"a\x01\xff"),
        record()[:-1],
        b"",
    ],
)
def test_what_is_unusual_is_not_taken(data: bytes) -> None:
    assert take(data) is None


def test_an_end_has_to_name_its_own_half_message() -> None:
    data = record()
    assert take(data, queue_offset=8) is None
    assert take(data, offset=AT - 1) is None
    assert take(data, offset=AT + 1) is None
    assert take(data, least=AT + 1) is None
    assert take(data, group=b"other") is None
    assert take(data, least=AT) is not None


def test_places_are_known_once_and_there_is_a_limit() -> None:
    ends = ReferenceEnds(TOPIC, [])
    assert [ends.add(0, b"%d" % number, 0) for number in range(MOST_TARGETS)][
        -1
    ] + 1 == MOST_TARGETS
    with pytest.raises(ValueError, match="known already, or there are enough"):
        ends.add(0, b"more", 0)
    table = ReferenceTable([], [], [], b"")
    with pytest.raises(ValueError, match="no ends are expected"):
        table.add_target(0, REAL, 0)
    table.expect_ends(TOPIC, [])
    with pytest.raises(ValueError, match="there is no such queue"):
        table.add_target(0, REAL, 0)
