# SPDX-License-Identifier: Apache-2.0
"""Messages that `send` reads as JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.cli.clients.json_line import parts_of_json
from txrocketmq.cli.line_format import Parts
from txrocketmq.cli.show import message_json
from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.remoting.message.message import MessageExt

words = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=5)


@given(
    st.binary(),
    st.none() | words,
    st.lists(words, max_size=3),
    st.dictionaries(words.map("own_".__add__), words, max_size=3),
    st.integers(-(1 << 31), (1 << 31) - 1),
)
def test_what_tail_prints_is_read(
    body: bytes, tag: str | None, keys: list[str], own: dict[str, str], flag: int
) -> None:
    properties = {**own, "UNIQ_KEY": "ID", "WAIT": "true"}
    if tag is not None:
        properties["TAGS"] = tag
    if keys:
        properties["KEYS"] = " ".join(keys)
    printed = message_json(MessageExt("T", body, flag, properties=properties))
    assert parts_of_json(printed.encode()) == Parts(body, tag, tuple(keys), own, flag)


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ({"body": "b"}, Parts(b"b")),
        ({"body": "b", "keys": "k", "tags": None}, Parts(b"b", keys=("k",))),
        ({"bodyBase64": "AAE=", "topic": "other", "queueId": "x"}, Parts(b"\0\1")),
    ],
)
def test_little_is_enough(value: dict[str, object], parts: Parts) -> None:
    assert parts_of_json(json.dumps(value).encode()) == parts


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"body", "it is not a JSON object: "),
        (b"[]", "it is not a JSON object, but a list"),
        (b"null", "but null"),
        (b"{}", 'it needs "body" or "bodyBase64", and not both'),
        (b'{"body":"a","bodyBase64":""}', "and not both"),
        (b'{"body":5}', '"body" must be a string, not a number'),
        (b'{"bodyBase64":"?"}', '"bodyBase64" is not base64'),
        (b'{"body":"a","tags":["b"]}', '"tags" must be a string, not a list'),
        (b'{"body":"a","keys":{"b":1}}', '"keys" must be a string or a list of strings'),
        (b'{"body":"a","keys":[1]}', '"keys" must be'),
        (b'{"body":"a","properties":"x"}', '"properties" must be an object, not a string'),
        (b'{"body":"a","properties":{"n":true}}', 'property "n" must be a string, not true or'),
        (b'{"body":"a","flag":"1"}', '"flag" must be a whole number'),
        (b'{"body":"a","flag":true}', '"flag" must be a whole number'),
        (b'{"body":"a","flag":2147483648}', '"flag" must be a whole number of 32 bits'),
    ],
)
def test_what_is_no_message(line: bytes, why: str) -> None:
    with pytest.raises(MessageIllegal) as raised:
        parts_of_json(line)
    assert why in str(raised.value)
