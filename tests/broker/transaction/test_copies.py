# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.transaction import copies
from txrocketmq.broker.transaction.copies import Copies
from txrocketmq.remoting.message.ids import Host
from txrocketmq.remoting.message.message import MessageExt


def half(key: str | None = "k", born_ms: int = 1, *, copy: bool = False) -> MessageExt:
    properties = {} if key is None else {"UNIQ_KEY": key}
    if copy:
        properties["TRANSACTION_CHECK_TIMES"] = "1"
    return MessageExt("T", b"", properties=properties, born_timestamp=born_ms)


def test_a_copy_takes_the_place_of_the_one_before() -> None:
    found = Copies(3, 9)
    assert found.add(3, half()) is None
    assert found.add(4, half("other")) is None
    assert found.add(5, half(copy=True)) == 3
    assert found.add(6, None) is None
    assert found.add(7, half(copy=True)) == 5
    assert not found.is_done
    assert found.add(8, half("other", copy=True)) == 4
    assert found.is_done


@pytest.mark.parametrize(
    "other",
    [
        half("another", copy=True),
        half(born_ms=2, copy=True),
        half(None, copy=True),
        half(),  # sent twice by its producer, which ends both
    ],
)
def test_only_the_same_message_has_copies(other: MessageExt) -> None:
    found = Copies(0, 9)
    for message in (half(), half(None)):
        found.add(found.offset, message)
    assert found.add(5, other) is None


def test_another_sender_and_another_body_are_another_message() -> None:
    found = Copies(0, 9)
    found.add(0, half())
    for at, (name, value) in enumerate((("born_host", Host("127.0.0.9", 7)), ("body_crc", 7)), 1):
        other = half(copy=True)
        setattr(other, name, value)
        assert found.add(at, other) is None


def test_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "MAX_KNOWN", 2)
    found = Copies(0, 9)
    for at in range(3):
        found.add(at, half(str(at)))
    assert found.add(3, half("0", copy=True)) is None
    assert found.add(4, half("2", copy=True)) == 2


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_what_is_open_is_looked_at_and_what_ended_early(opened: set[int], ended: set[int]) -> None:
    def next_open(offset: int) -> int:
        return next((each for each in range(offset, 30) if each in opened), 30)

    def seen() -> Iterator[int]:
        found = Copies(0, 30, list(ended))
        while (offset := found.next(next_open(found.offset))) < found.end:
            yield offset
            found.add(offset, None)

    assert list(seen()) == sorted(each for each in opened | ended if each < 30)
