# SPDX-License-Identifier: Apache-2.0
"""Forms: a header that is filled in is the one that the general codec writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.remoting.call import CALLS, Call
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.form import Filled, Form
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.protocol import send
from txrocketmq.remoting.protocol.operations import auth
from txrocketmq.remoting.protocol.operations.auth import CreateAccessConfigRequestHeader
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(st.characters(codec="utf-8")),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "double": st.floats(allow_nan=False, allow_infinity=False),
}
OPAQUES = st.integers(0, 2**31 - 1)


def a_header(**values: Any) -> SendMessageRequestHeader:
    return SendMessageRequestHeader(
        **{
            "producer_group": "g",
            "topic": "T",
            "default_topic": "TBW102",
            "default_topic_queue_nums": 4,
            "queue_id": 1,
            "sys_flag": 0,
            "born_timestamp": 0,
            "flag": 0,
            "properties": "",
            "unit_mode": False,
            **values,
        }
    )


def general(call: Call[Any, Any], header: Header, body: bytes, opaque: int) -> bytes:
    """The frame as the general codec writes it."""
    fields = header.encode_letters() if call.letters else header.encode()
    return b"".join(encode_frame(RemotingCommand(call.code, fields, body, opaque=opaque)))


@given(
    data=st.data(),
    call=st.sampled_from([each for each in CALLS.values() if each.request.fields]),
    opaque=OPAQUES,
    body=st.binary(max_size=20),
)
def test_any_call_with_any_fields(
    data: st.DataObject, call: Call[Any, Any], opaque: int, body: bytes
) -> None:
    """Whatever is in the fixed fields, such as what stands for the places of the others."""
    fields = call.request.fields
    marks = st.sampled_from(["<>0.", '"<>1."', "%d%b%%", "1234567890"])
    values = VALUES | {"str": VALUES["str"] | marks}
    first = {each.name: data.draw(values[each.kind], each.name) for each in fields}
    can_vary = [each for each in fields if each.kind != "double"]
    varying = data.draw(st.lists(st.sampled_from(can_vary), unique=True)) if can_vary else []
    then = {each.name: data.draw(values[each.kind], each.name) for each in varying}
    form = Form(call, call.request(**first), *then)
    filled = form.filled(*then.values())
    expected = call.request(**(first | then))
    frame = b"".join(form.frame(opaque, filled.values, body))
    assert frame == general(call, expected, body, opaque)
    assert filled.encode() == filled.encode_letters()
    assert filled.encode() == (expected.encode_letters() if call.letters else expected.encode())
    assert all(getattr(filled, each.name) == getattr(expected, each.name) for each in fields)
    assert repr(filled) == repr(expected)


def test_a_secret_is_not_shown() -> None:
    header = CreateAccessConfigRequestHeader(access_key="a", secret_key="hidden")  # noqa: S106
    filled = Form(auth.UPDATE_AND_CREATE_ACL_CONFIG, header, "access_key").filled("b")
    assert repr(filled) == "CreateAccessConfigRequestHeader('b', admin=False)"


def test_fields_that_are_absent_stay_so() -> None:
    form = Form(send.SEND_MESSAGE_V2, a_header(), "born_timestamp", "properties")
    frame = b"".join(form.frame(7, (5, "a\x01b\x02"), b"body"))
    (command,) = FrameDecoder().receive(frame)
    assert command.ext_fields == {
        "a": "g", "b": "T", "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": "5", "h": "0",
        "i": "a\x01b\x02", "k": "false",
    }  # fmt: skip
    assert (command.opaque, command.body) == (7, b"body")


@pytest.mark.parametrize("name", ["<>0.", "<<>>0.", '"<>0."', "%d", "1234567890"])
def test_a_field_may_look_like_a_place_for_one(name: str) -> None:
    """Also one that stands after the places: the name of the broker does."""
    header = a_header(topic=name, bname=name)
    form = Form(send.SEND_MESSAGE_V2, header, "flag", "properties")
    expected = replace(header, flag=3, properties=name)
    frame = b"".join(form.frame(1_234_567_890, (3, name), b""))
    assert frame == general(form.call, expected, b"", 1_234_567_890)


def test_what_varies_has_a_value() -> None:
    with pytest.raises(ValueError, match="'j'"):
        Form(send.SEND_MESSAGE_V2, a_header(), "reconsume_times")


def test_what_varies_is_a_field() -> None:
    with pytest.raises(KeyError):
        Form(send.SEND_MESSAGE_V2, a_header(), "no_such_field")


def test_a_text_that_the_general_codec_alone_can_write() -> None:
    form = Form(send.SEND_MESSAGE_V2, a_header(), "properties")
    with pytest.raises(TypeError):
        form.frame(1, ("\ud800",), b"")


def test_it_is_a_header_that_nothing_changes() -> None:
    filled = Form(send.SEND_MESSAGE_V2, a_header(), "flag").filled(3)
    assert isinstance(filled, Header)
    assert isinstance(filled, Filled)
    with pytest.raises(AttributeError):
        filled.values = ()
    with pytest.raises(AttributeError):
        _ = filled.no_such_field
