# SPDX-License-Identifier: Apache-2.0
"""Every declared call round-trips its headers in both serializations, whatever is in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from txrocketmq.remoting import protocol
from txrocketmq.remoting.call import CALLS, Call
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.header import Header, HeaderField
from txrocketmq.remoting.serialize import json, rocketmq

assert protocol.__all__  # importing it declares all calls

# Binary headers know no empty texts, so none are made here.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "str": TEXTS,
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "double": st.floats(allow_nan=False),
}
HEADERS = {
    kind.__name__: kind
    for call in CALLS.values()
    for kind in (call.request, call.response)
    if kind.fields
}


def headers_of(kind: type[Header]) -> st.SearchStrategy[Header]:
    def values(field: HeaderField) -> st.SearchStrategy[Any]:
        return VALUES[field.kind] if field.mandatory else _or_default(kind, field)

    return st.builds(kind, **{field.name: values(field) for field in kind.fields})


def _or_default(kind: type[Header], field: HeaderField) -> st.SearchStrategy[Any]:
    default = kind.__dataclass_fields__[field.name].default  # type: ignore[attr-defined]
    return st.just(default) | VALUES[field.kind]


@pytest.mark.parametrize("name", HEADERS)
@settings(max_examples=examples(10))
@given(data=st.data())
def test_headers_round_trip(name: str, data: st.DataObject) -> None:
    kind = HEADERS[name]
    header = data.draw(headers_of(kind))
    for ext_fields in (header.encode(), header.encode_letters()):
        command = RemotingCommand(100, ext_fields)
        for codec in (json, rocketmq):
            decoded = codec.decode_header(codec.encode_header(command))
            assert kind.decode(decoded.ext_fields) == header


@pytest.mark.parametrize("call", CALLS.values(), ids=lambda call: call.name)
def test_names_on_the_wire_are_distinct(call: Call[Any, Any]) -> None:
    for kind in (call.request, call.response):
        names = [field.wire for field in kind.fields]
        names += [field.letter for field in kind.fields if field.letter]
        assert len(set(names)) == len(names)
        assert all(name.isascii() and name for name in names)


def test_only_sending_has_letters() -> None:
    with_letters = {call.name for call in CALLS.values() if call.letters}
    assert with_letters == {"SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE", "SEND_REPLY_MESSAGE_V2"}
    for call in CALLS.values():
        assert not call.letters or any(field.letter for field in call.request.fields)
