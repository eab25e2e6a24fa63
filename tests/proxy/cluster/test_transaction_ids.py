# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.cluster.transaction_ids import TransactionId
from txrocketmq.proxy.schema.codes import Code


def test_an_id_says_where_the_half_message_is() -> None:
    its = TransactionId("a b", "broker-a", 7, 1_000)
    assert TransactionId.parse(str(its)) == its


@pytest.mark.parametrize(
    "text", ["", "ID", "ID broker-a 7", "ID broker-a x 5", "ID b 7 " + "9" * 30]
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        TransactionId.parse(text)
    assert refused.value.code is Code.INVALID_TRANSACTION_ID
