# SPDX-License-Identifier: Apache-2.0
"""Transactions: how a producer ends them, and how a broker asks about them.

Java: EndTransactionProcessor; ClientRemotingProcessor for the question.
"""

from __future__ import annotations

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.header import Header, Int, Long, NoHeader, header
from txrocketmq.remoting.protocol.base import RpcRequestHeader


@header("org.apache.rocketmq.remoting.protocol.header.EndTransactionRequestHeader")
class EndTransactionRequestHeader(RpcRequestHeader):
    """Commit (8), roll back (12) or undecided (0), as bits of the message's system flag."""

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
    """The broker asks a producer what became of a transaction."""

    topic: str | None = None
    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ResumeCheckHalfMessageRequestHeader")
class ResumeCheckHalfMessageRequestHeader(Header):
    """Checks a given-up half message once more."""

    topic: str | None = None
    msg_id: str | None = None


END_TRANSACTION = define(RequestCode.END_TRANSACTION, EndTransactionRequestHeader, NoHeader)
CHECK_TRANSACTION_STATE = define(
    RequestCode.CHECK_TRANSACTION_STATE, CheckTransactionStateRequestHeader, NoHeader
)
RESUME_CHECK_HALF_MESSAGE = define(
    RequestCode.RESUME_CHECK_HALF_MESSAGE, ResumeCheckHalfMessageRequestHeader, NoHeader
)
