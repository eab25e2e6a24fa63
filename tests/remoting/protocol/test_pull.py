# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol import pull
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    same_headers_as_the_original(pull, ours="PullMessageRequestHeader.liteTopic")


def test_request_in_the_order_of_the_originals_binary_codec() -> None:
    assert [field.wire for field in PullMessageRequestHeader.fields] == [
        "consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag",
        "commitOffset", "suspendTimeoutMillis", "subscription", "subVersion", "expressionType",
        "maxMsgBytes", "requestSource", "proxyFrowardClientId", "liteTopic", "lo", "ns", "nsd",
        "bname", "oway",
    ]  # fmt: skip


def test_both_pulls_are_alike() -> None:
    assert pull.LITE_PULL_MESSAGE.request is pull.PULL_MESSAGE.request
    assert pull.LITE_PULL_MESSAGE.response is pull.PULL_MESSAGE.response
