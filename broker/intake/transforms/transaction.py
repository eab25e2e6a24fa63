# SPDX-License-Identifier: Apache-2.0
"""TRAN_MSG: sends half messages of transactions to the half topic; see `broker/transaction`.

They are refused with rejectTransactionMessage. A delayed retry of a former half message is an
ordinary message, and a batch is never a half message. Codes: 13, 16.

Java: SendMessageProcessor.sendMessage, CommitLog.asyncPutMessages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn, NotTaken
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.flags import MessageSysFlag
from txrocketmq.remoting.message.topics import TRANS_HALF_TOPIC

_TRANSACTION_BITS: Final = MessageSysFlag.TRANSACTION_ROLLBACK_TYPE


class Transaction:
    """Sends half messages to the half topic; `opened` is called with their topic and 1."""

    acts_on = ActsOn(properties=frozenset({names.TRAN_MSG}), ways=Way.SEND)

    def __init__(self, config: BrokerConfig, opened: Callable[[str, int], None]) -> None:
        self._config = config
        self._opened = opened

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Sends the message to the half topic if it is a half message."""
        if message.properties.get(names.TRAN_MSG, "").lower() != "true":
            return
        level = message.delay_level  # one that cannot be read is refused now, not at the commit
        if message.reconsume_times > 0 and level > 0:
            return
        if self._config.reject_transaction_message:
            raise ResponseError(
                ResponseCode.NO_PERMISSION,
                f"the broker[{self._config.broker_ip1}] sending transaction message is forbidden",
            )
        self._opened(message.topic, 1)
        uniq_key = message.properties.get(names.UNIQ_KEY)
        if uniq_key:
            message.properties[names.TRANSACTION_ID] = uniq_key
        message.park(TRANS_HALF_TOPIC, 0)
        message.sys_flag &= ~_TRANSACTION_BITS


class TransactionBatch:
    """Refuses batches that say they belong to a transaction."""

    acts_on = ActsOn(sys_flags=_TRANSACTION_BITS, ways=Way.BATCH)

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        """Refuses the batch."""
        raise NotTaken(PutStatus.MESSAGE_ILLEGAL)
