# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.call import Call
from txrocketmq.remoting.protocol import pop
from txrocketmq.remoting.serialize.rocketmq import MAX_CODE


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    same_headers_as_the_original(
        pop,
        ours="AckMessageRequestHeader.liteTopic ChangeInvisibleTimeRequestHeader.liteTopic"
        " ChangeInvisibleTimeRequestHeader.suspend",
    )


def test_codes_need_json_headers() -> None:
    assert min(call.code for call in vars(pop).values() if isinstance(call, Call)) > MAX_CODE
