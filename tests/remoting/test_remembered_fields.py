# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from txrocketmq.remoting import remembered_fields
from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.header import Header, Int, Long, header
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader


@header("AsEver")
class AsEver(Header):
    """A header that nothing is remembered of."""

    topic: str
    at: Long
    queue_id: Int
    until: Long
    size: Int | None = None
    is_lite: bool = False


@header("AsEver", varying=("at", "until"))
class Remembered(Header):
    """The same, of which it is."""

    topic: str
    at: Long
    queue_id: Int
    until: Long
    size: Int | None = None
    is_lite: bool = False


USUAL: Final = {"topic": "T", "at": "7", "queueId": "1", "until": "5", "size": "32"}
_TEXTS: Final = st.sampled_from(
    ["", "0", "1", "01", "-1", "+1", " 1", "\u0661", "2147483648", "9" * 18, "9" * 19, "T", "true"]
)
_VALUES: Final = _TEXTS | st.sampled_from([None, 1, 1.0, True, False, 2**40])
_NAMES: Final = st.sampled_from([*USUAL, "isLite", "unknown"])
_CHANGES: Final = st.tuples(
    st.dictionaries(_NAMES, _VALUES, max_size=4), st.sets(_NAMES, max_size=2), st.booleans()
)


def outcome(cls: type[Header], fields: Mapping[str, Any]) -> object:
    try:
        return cls.decode(fields).encode()
    except HeaderError as error:
        return str(error)


@settings(max_examples=examples(60))
@given(st.lists(_CHANGES, min_size=1, max_size=8))
def test_what_is_remembered_means_what_it_means_otherwise(
    changes: list[tuple[dict[str, Any], set[str], bool]],
) -> None:
    for changed, missing, is_turned in changes:
        items = [(name, text) for name, text in {**USUAL, **changed}.items() if name not in missing]
        fields = dict(reversed(items) if is_turned else items)
        for _ in range(2):
            assert outcome(Remembered, fields) == outcome(AsEver, fields), fields


def test_two_numbers_are_read_anew_each_time() -> None:
    for at, until in [("7", "5"), ("8", "5"), ("8", "6"), ("0", "9" * 18)]:
        found = Remembered.decode({**USUAL, "at": at, "until": until})
        assert (found.at, found.until, found.topic, found.size) == (int(at), int(until), "T", 32)
        assert not found.is_lite
    other = Remembered.decode({**USUAL, "topic": "U"})
    assert (other.topic, other.at) == ("U", 7)


class Counted:
    """Decodes as ever, and counts how often."""

    def __init__(self) -> None:
        self.count = 0
        fields = remembered_fields.RememberedFields
        wires = {spec.name: spec.wire for spec in AsEver.fields}
        self.decode = fields(AsEver, self._decode, wires, ("at", "until")).decode

    def _decode(self, fields: Mapping[str, Any]) -> AsEver:
        self.count += 1
        return AsEver.decode(fields)


def test_usual_fields_are_decoded_once() -> None:
    counted = Counted()
    for number in range(100):
        fields = {**USUAL, "at": str(number)}
        fields = fields if number % 2 else dict(reversed(fields.items()))
        assert counted.decode(fields) == AsEver.decode(fields)
    assert counted.count == 1


def test_bare_numbers_and_long_texts_are_not_remembered() -> None:
    unusual: list[dict[str, Any]] = [
        {"queueId": 1},
        {"topic": "T" * remembered_fields.MOST_CHARACTERS},
    ]
    for fields in unusual:
        counted = Counted()
        for _ in range(5):
            counted.decode({**USUAL, **fields})
        assert counted.count == 5


def test_no_more_is_remembered_than_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered_fields, "MOST_HEADERS", 3)
    monkeypatch.setattr(remembered_fields, "MOST_SHAPES", 2)
    counted = Counted()

    def decoded(*topics: str, **more: str) -> int:
        before = counted.count
        for topic in topics:
            counted.decode({**USUAL, **more, "topic": topic})
        return counted.count - before

    assert decoded("A", "B", "C", "A", "B", "C") == 3
    assert decoded("D", "D", "A", "B", "C") == 2, "there are enough"
    assert decoded("E") == 1, "the third besides, for which all are forgotten"
    assert decoded("D", "D", "A") == 2
    assert decoded("A", "A", one="1") == 1
    assert decoded("A", "A", two="2") == 2, "a third set of names"
    assert decoded("A") == 0


def test_pulls_are_remembered_but_for_their_offsets() -> None:
    fields = {
        "consumerGroup": "g", "topic": "T", "queueId": "1", "queueOffset": "7",
        "maxMsgNums": "32", "sysFlag": "2", "commitOffset": "5", "suspendTimeoutMillis": "15000",
        "subVersion": "17",
    }  # fmt: skip
    first = PullMessageRequestHeader.decode(fields)
    second = PullMessageRequestHeader.decode({**fields, "queueOffset": "8", "commitOffset": "6"})
    assert (second.queue_offset, second.commit_offset) == (8, 6)
    assert second.topic is first.topic
    assert second.encode() == {**fields, "queueOffset": "8", "commitOffset": "6"}
