# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.receives.filters import MAX_EXPRESSION, filter_of
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import FilterType
from txrocketmq.proxy.schema.messages import message_type


def test_expressions_are_of_tags_unless_they_are_sql() -> None:
    expression = message_type("FilterExpression")
    assert filter_of("T", expression()).accepts_all
    tags = filter_of("T", expression(type=FilterType.TAG, expression="a || b"))
    assert tags.tags_set == {"a", "b"}
    sql = filter_of("T", expression(type=FilterType.SQL, expression="a > 5"))
    assert (sql.expression_type, sql.sub_string) == ("SQL92", "a > 5")


@pytest.mark.parametrize(
    "fields",
    [
        {"type": FilterType.TAG, "expression": "||"},
        {"type": FilterType.SQL},
        {"type": FilterType.TAG, "expression": "a" * (MAX_EXPRESSION + 1)},
    ],
)
def test_what_is_no_expression_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(Refused) as refused:
        filter_of("T", message_type("FilterExpression")(**fields))
    assert refused.value.code is Code.ILLEGAL_FILTER_EXPRESSION
