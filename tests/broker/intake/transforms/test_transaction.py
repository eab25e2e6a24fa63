# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes import refused
from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import NotTaken, no_transforms
from txrocketmq.broker.intake.transforms.transaction import Transaction, TransactionBatch
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.flags import MessageSysFlag


def message(
    topic: str = "T", way: Way = Way.SEND, body: bytes = b"body", **properties: str
) -> InnerMessage:
    return InnerMessage(topic, 1, body, 1, bytes(8), bytes(8), properties, way=way)


class Opened(dict[str, int]):
    """What a Transaction has told."""

    def transaction(self, config: BrokerConfig | None = None) -> Transaction:
        return Transaction(config or BrokerConfig(), self.__setitem__)


@pytest.mark.parametrize("text", ["true", "TRUE"])
def test_half_messages_wait(text: str) -> None:
    opened = Opened()
    half = message(TRAN_MSG=text, UNIQ_KEY="U", TAGS="a")
    half.sys_flag = MessageSysFlag.TRANSACTION_PREPARED_TYPE | MessageSysFlag.COMPRESSED
    opened.transaction().apply(half, 0)
    assert (half.topic, half.queue_id, half.real_queue_id) == ("RMQ_SYS_TRANS_HALF_TOPIC", 0, 1)
    assert half.sys_flag == MessageSysFlag.COMPRESSED
    assert half.properties == {
        "TRAN_MSG": text,
        "UNIQ_KEY": "U",
        "TAGS": "a",
        "__transactionId__": "U",
        "REAL_TOPIC": "T",
        "REAL_QID": "1",
    }
    assert opened == {"T": 1}


def test_half_messages_are_refused() -> None:
    opened = Opened()
    transaction = opened.transaction(replace(BrokerConfig(), reject_transaction_message=True))
    with refused(ResponseCode.NO_PERMISSION, "transaction message is forbidden"):
        transaction.apply(message(TRAN_MSG="true"), 0)
    assert not opened


def test_what_is_none_goes_its_way() -> None:
    retried = message(TRAN_MSG="true", DELAY="3")
    retried.reconsume_times = 1
    for each in (message(TRAN_MSG="false"), retried):
        before = replace(each, properties=dict(each.properties))
        Opened().transaction().apply(each, 0)
        assert each == before


def test_a_batch_is_never_one() -> None:
    transforms = no_transforms([TransactionBatch()])
    batch = message(way=Way.BATCH)
    transforms.apply(batch, 0)
    batch.sys_flag = MessageSysFlag.TRANSACTION_PREPARED_TYPE
    with pytest.raises(NotTaken, match="MESSAGE_ILLEGAL"):
        transforms.apply(batch, 0)
