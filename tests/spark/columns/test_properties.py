# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from txrocketmq.remoting.message.properties import decode_properties
from txrocketmq.spark.columns.properties import Properties
from txrocketmq.spark.columns.spans import Spans

NAMES = st.sampled_from(
    (b"TAGS", b"KEYS", b"UNIQ_KEY", b"TAG", b"TAGS2", b"a_longer_name", b"a_longer_neck", b"\0")
)
VALUES = st.sampled_from((b"v", b"", b"longer than twelve", "größe".encode(), b"\xff", b"x\x01y"))
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=5).map(
    lambda pairs: b"\x02".join(name + b"\x01" + value for name, value in pairs)
)
ODD = st.lists(
    st.sampled_from((b"\x01", b"\x02", b"TAGS", b"KEYS\x01k", b"\x02a\x01", b"\xc3", b"\0")),
    max_size=9,
).map(b"".join)
TEXTS = st.tuples(PAIRS | ODD, st.sampled_from((b"", b"\x02"))).map(b"".join)


def properties_of(texts: list[bytes]) -> Properties:
    """In one buffer, each after its length, as in records."""
    data = b"".join(b"\x02\x02" + text for text in texts)
    lengths = np.array([len(text) for text in texts], np.int64)
    at = np.cumsum(lengths + 2) - lengths
    return Properties(Spans((np.frombuffer(data, np.uint8),), at, lengths))


def check(texts: list[bytes]) -> None:
    properties = properties_of(texts)
    readable = [text.decode("utf-8", "replace") for text in texts]
    expected = [decode_properties(text) for text in readable]
    found = properties.map()
    found.validate(full=True)
    pairs = found.to_pylist()
    assert [dict(each) for each in pairs] == expected
    assert all(len(dict(each)) == len(each) for each in pairs), "a name comes twice"
    for name in ("TAGS", "KEYS", "UNIQ_KEY", "a_longer_name"):
        assert properties.value(name).to_pylist() == [each.get(name) for each in expected]
    assert [json.loads(text) for text in properties.json().to_pylist()] == expected
    assert properties.raw().to_pylist() == readable


@given(texts=st.lists(TEXTS, max_size=12))
@example(texts=[])
@example(texts=[b""])
@example(texts=[b"", b"\x02", b"\x02\x02", b"\x01", b"\x01\x02"])
@example(texts=[b"a\x01b\x01c\x02TAGS\x01t", b"a\x01b\x02"])
@example(texts=[b"a", b"TAGS\x01t\x02alone", b"alone\x02TAGS\x01t"])
@example(texts=[b"TAGS\x01one\x02TAGS\x01two\x02KEYS\x01k"])
@example(texts=[b"prefix_of_eight_1\x01a\x02prefix_of_eight_2\x01b\x02prefix_of_eight_1\x01c"])
@example(texts=[b"\xff\x01a\x02\xfe\x01b\x02"])
@example(texts=[b"TAGS\x01\x02KEYS\x01k\x02", b"\x01v\x02KEYS\x01k\x02"])
def test_properties_are_those_of_the_codec(texts: list[bytes]) -> None:
    check(texts)


@pytest.mark.parametrize("count", [63, 64, 65, 500])
def test_very_many_properties(count: int) -> None:
    text = b"".join(b"n%d\x01v%d\x02" % (number, number) for number in range(count))
    check([text, text + b"n1\x01again\x02", b"TAGS\x01t"])


def test_texts_as_they_should_be_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("txrocketmq.spark.columns.properties.decode_properties", None)
    texts = [
        b"TAGS\x01a\x02KEYS\x01k\x02",
        b"",
        "größe\x01ß\x02TAGS\x01t\x01t".encode(),
        b"prefix_of_eight_1\x01a\x02prefix_of_eight_2\x01b\x02",
    ]
    assert properties_of(texts).value("TAGS").to_pylist() == ["a", None, "t\x01t", None]
    assert len(properties_of(texts)) == 4
