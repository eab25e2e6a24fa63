# SPDX-License-Identifier: Apache-2.0
"""Lite topics (LiteTopic, 5.5) are not served: requests that name one are refused (29).

An older broker passes the field over: it gives the messages of the parent topic to a pull, and
takes an acknowledgement for one of a message of that topic.

Java: PullMessageProcessor, AdminBrokerProcessor, AckMessageProcessor, ChangeInvisibleTimeProcessor
of 5.5.
"""

from __future__ import annotations

from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError


def refusal_of_lite_topic(name: str) -> ResponseError:
    """Makes the error for a request that is about a lite topic."""
    return ResponseError(
        ResponseCode.INVALID_PARAMETER,
        f"the request is about the lite topic {name:.80}: lite topics (5.5) are not served",
    )
