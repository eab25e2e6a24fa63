# SPDX-License-Identifier: Apache-2.0
"""Filters of receives: expressions of tags or of SQL92."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import FilterType
from txrocketmq.remoting.message.tags import (
    SQL92,
    TAG,
    SubscriptionData,
    SubscriptionError,
    build_subscription_data,
)

MAX_EXPRESSION: Final = 16_384


def filter_of(topic: str, expression: Any) -> SubscriptionData:
    """Returns the subscription that a filter expression means. Raises Refused."""
    text = expression.expression
    if len(text) > MAX_EXPRESSION:
        raise Refused(
            Code.ILLEGAL_FILTER_EXPRESSION,
            f"a filter expression has at most {MAX_EXPRESSION} characters, not {len(text)}",
        )
    return _filter(topic, text, SQL92 if expression.type == FilterType.SQL else TAG)


@lru_cache(maxsize=512)  # the same few come again and again
def _filter(topic: str, text: str, kind: str) -> SubscriptionData:
    try:
        return build_subscription_data(topic, text, kind)
    except SubscriptionError as error:
        raise Refused(Code.ILLEGAL_FILTER_EXPRESSION, str(error)) from None
