# SPDX-License-Identifier: Apache-2.0
"""What the scanner reads, by way of `decode_body`, which leaves it what is not plain JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.errors import HeaderError
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.serialize import json
from txrocketmq.remoting.serialize.json_scanner import MAX_DEPTH, JsonError, scan


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"{a:1,$b_2.c:'x'}", {"a": 1, "$b_2.c": "x"}),
        (b"[-0, 1.5e3, -2E-2, true, false, null]", [0, 1500.0, -0.02, True, False, None]),
        (b"{0:1,-5:2}", {0: 1, -5: 2}),
        (b"{1:'a\\'b\\\"c\\\\d\\/e'}", {1: "a'b\"c\\d/e"}),
        (b"{1:'\\b\\f\\n\\r\\t\\v\\u00e9\\x41\\0\\7'}", {1: "\b\f\n\r\t\vé" + "A\0\7"}),
        (b'{1:"\\ud83d\\ude00","b":"\\ud83dx"}', {1: "😀", "b": "�x"}),
        (b'"\\ud800"', "�"),
        (b'{1:"tab\there\nand there"}', {1: "tab\there\nand there"}),
        (b' \t\r\n{ 1 : [ ] , "b" : { } } \n', {1: [], "b": {}}),
        (b'{{"a":1,"b":[1,{"c":2}]}:3}', {(("a", 1), ("b", (1, (("c", 2),)))): 3}),
        (b'{{"topic":"t","queueId":1,"brokerName":"b"}:3}', {MessageQueue("t", "b", 1): 3}),
        (b'{{"topic":"t","queueId":1}:3}', {(("queueId", 1), ("topic", "t")): 3}),
        (b'{1:"\xff"}', {1: "�"}),
        (b'{"twice":1,"twice":2}', {"twice": 2}),
        (b"{1:1,1:2}", {1: 2}),
    ],
)
def test_what_fastjson_takes_for_json(text: bytes, value: Any) -> None:
    assert json.decode_body(text) == value


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (b"", 0),
        (b"   ", 3),
        (b"{", 1),
        (b"{1", 2),
        (b"{1:", 3),
        (b"{1:2", 4),
        (b"{1:2,", 5),
        (b"{1:2]", 4),
        (b"[1 2]", 3),
        (b"[1,]", 3),
        (b"{,}", 1),
        (b"nul", 0),
        (b"True", 0),
        (b"{1:2} x", 6),
        (b'{1:"x}', 3),
        (b"{1:'x\"}", 3),
        (b'{1:"\\q"}', 4),
        (b'{1:"\\u12"}', 4),
        (b"{1:-}", 3),
        (b"{1:+1}", 3),
        (b"{1:.5}", 3),
        (b"{{:1}", 2),
        (b"{[1]:1}", 1),
        (b"\xff", 0),
        ("{1:'é', x}".encode(), 9),
        (b"{1:" + b"9" * 41 + b"}", 3),
        (b"[" * 65, 64),
        (b"{1:" * 65, 64 * 3),
        (b"{" * 65, 64),
    ],
)
def test_errors_tell_the_position(text: bytes, position: int) -> None:
    with pytest.raises(JsonError) as caught:
        json.decode_body(text)
    assert caught.value.position == position
    assert str(caught.value).startswith(f"no JSON at character {position}: ")
    assert isinstance(caught.value, HeaderError)


def test_nesting_up_to_the_limit_is_read() -> None:
    text = b"{1:" * MAX_DEPTH + b"0" + b"}" * MAX_DEPTH
    assert json.encode_body(json.decode_body(text)) == text


@given(st.binary(max_size=60) | st.text("{}[]:,\"'0123456789.-eE\\u truefalsnxab", max_size=40))
def test_anything_is_a_value_or_a_json_error(text: bytes | str) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    try:
        json.decode_body(data)
    except JsonError as error:
        position = error.position
    else:
        position = 0
    assert 0 <= position <= len(data)


def test_plain_json_is_read_too() -> None:
    assert scan(b'{"a":[1,2.5,null,true,"b"]}') == {"a": [1, 2.5, None, True, "b"]}
