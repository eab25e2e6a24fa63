# SPDX-License-Identifier: Apache-2.0
"""Methods are declared beside what serves them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.grpc.texts import Text
from txrocketmq.proxy.grpc.service import MOST_BYTES, Kind, Rpcs, rpc


class Part:
    """Serves two methods."""

    @rpc("Send")
    def send(self, call: Any, request: Any) -> Any:
        return request

    @rpc("Talk", request_name="Command", kind=Kind.CONVERSATION, most_bytes=None)
    def talk(self, call: Any) -> Any:
        return None


class Heir(Part):
    """Serves one of them in another way."""

    @rpc("Send")
    def send(self, call: Any, request: Any) -> Any:
        return None


def test_methods_are_found_by_their_path() -> None:
    asked: list[str] = []

    def message_class(name: str) -> type[Text]:
        asked.append(name)
        return Text

    part = Part()
    rpcs = Rpcs("a.b.Service", message_class, part)
    sends, talks = rpcs.find("/a.b.Service/Send"), rpcs.find("/a.b.Service/Talk")
    assert sends is not None
    assert talks is not None
    assert asked == ["SendRequest", "Command"]
    assert (sends.rpc.kind, sends.rpc.most_bytes) == (Kind.UNARY, MOST_BYTES)
    assert (talks.rpc.kind, talks.rpc.most_bytes) == (Kind.CONVERSATION, None)
    assert sends.method(None, 7) == 7
    assert sends.parse(b"x").text == "x"
    assert {each.rpc.name for each in rpcs} == {"Send", "Talk"}
    assert rpcs.find("/a.b.Service/Nothing") is None


def test_a_method_is_served_once() -> None:
    with pytest.raises(ValueError, match="Send is served twice"):
        Rpcs("s", lambda _: Text, Part(), Part())
    served = Rpcs("s", lambda _: Text, Heir()).find("/s/Send")
    assert served is not None
    assert served.method(None, 7) is None
