# SPDX-License-Identifier: Apache-2.0
"""Transactions: how a producer ends them, and how a broker asks about them.

Java: EndTransactionProcessor; ClientRemotingProcessor for the broker's question.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.header import Header, Int, Long, NoHeader, header
from txrocketmq.remoting.protocol.base import RpcRequestHeader

COMMITTED: Final = "the transaction has ended already: it was committed"
ROLLED_BACK: Final = "the transaction has ended already: it was rolled back"
"""Remarks of brokers of txrocketmq that refuse to end a transaction once more."""


@header("org.apache.rocketmq.remoting.protocol.header.EndTransactionRequestHeader")
class EndTransactionRequestHeader(RpcRequestHeader):
    """Tells the broker how a transaction ended.

    `commit_or_rollback` is 8 (commit), 12 (roll back) or 0 (undecided): bits of a message's
    `sys_flag`. `tran_state_table_offset` is the half message's offset in its queue.
    """

    topic: str | None = None
    producer_group: str
    tran_state_table_offset: Long
    commit_log_offset: Long
    commit_or_rollback: Int
    from_transaction_check: bool = False
    msg_id: str
    transaction_id: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.CheckTransactionStateRequestHeader")
class CheckTransactionStateRequestHeader(RpcRequestHeader):
    """The broker asks a producer how a transaction ended."""

    topic: str | None = None
    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ResumeCheckHalfMessageRequestHeader")
class ResumeCheckHalfMessageRequestHeader(Header):
    """Makes the broker ask again about a half message that it has given up."""

    topic: str | None = None
    msg_id: str | None = None


END_TRANSACTION = define(
    RequestCode.END_TRANSACTION,
    EndTransactionRequestHeader,
    NoHeader,
    at_slave=ResponseCode.SLAVE_NOT_AVAILABLE,
)
CHECK_TRANSACTION_STATE = define(
    RequestCode.CHECK_TRANSACTION_STATE, CheckTransactionStateRequestHeader, NoHeader
)
RESUME_CHECK_HALF_MESSAGE = define(
    RequestCode.RESUME_CHECK_HALF_MESSAGE,
    ResumeCheckHalfMessageRequestHeader,
    NoHeader,
    at_slave=ResponseCode.SYSTEM_ERROR,
)
