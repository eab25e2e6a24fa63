# SPDX-License-Identifier: Apache-2.0
"""CHECK_TRANSACTION_STATE: asks a producer about its transaction.

The producers of the group are asked in turns, since all of them use the same database. They answer
with an END_TRANSACTION of their own. A producer that does not read what it is sent is not asked:
questions would only pile up. Java: AbstractTransactionalMessageCheckListener.sendCheckMessage,
ProducerManager.getAvailableChannel.
"""

from __future__ import annotations

from dataclasses import replace

from txrocketmq.broker.tables.clients import Producers
from txrocketmq.broker.transaction.half_message import number_of
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.ids import encode_message_id
from txrocketmq.remoting.message.message import MessageEncodeError, MessageExt, encode_message
from txrocketmq.remoting.protocol import transaction
from txrocketmq.remoting.protocol.transaction import CheckTransactionStateRequestHeader


class Questions:
    """Asks producers."""

    def __init__(self, producers: Producers, broker_name: str) -> None:
        self._producers = producers
        self._broker_name = broker_name
        self._turn = 0

    def ask(self, half: MessageExt) -> bool:
        """Asks about a half message as it is stored now; returns False without a producer."""
        peer = self._peer(half.properties.get(names.PGROUP, ""))
        topic, queue_id = half.properties.get(names.REAL_TOPIC), half.properties.get(names.REAL_QID)
        if peer is None or not topic or number_of(queue_id or "") < 0:
            return False
        uniq_key = half.properties.get(names.UNIQ_KEY)
        header = CheckTransactionStateRequestHeader(
            topic=half.topic,
            tran_state_table_offset=half.queue_offset,
            commit_log_offset=half.commit_log_offset,
            msg_id=uniq_key,
            transaction_id=uniq_key,
            offset_msg_id=encode_message_id(half.store_host, half.commit_log_offset),
            bname=self._broker_name,
        )
        try:
            body = encode_message(replace(half, topic=topic, queue_id=int(queue_id or 0)))
        except MessageEncodeError:
            return False
        peer.invoke_oneway(transaction.CHECK_TRANSACTION_STATE, header, body)
        return True

    def _peer(self, group: str) -> Peer | None:
        members = self._producers.members(group)
        self._turn += 1
        for at in range(len(members)):
            peer = members[(self._turn + at) % len(members)].peer
            if peer.reads:
                return peer
        return None
