# SPDX-License-Identifier: Apache-2.0
"""Returns messages that could not be consumed to the brokers, to be delivered again.

The broker that has a message keeps it for the group and delivers it later each time, or puts it to
the dead letters. Where that broker does not take it, a copy is sent to the group's retry topic at
any broker.

Java: DefaultMQPushConsumerImpl.sendMessageBack, ConsumeMessageOrderlyService.sendMessageBack.
"""

from __future__ import annotations

from typing import Final

from twisted.logger import Logger

from txrocketmq.client.base.errors import MQClientError
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.client.producer.producer import Producer
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message import properties as names
from txrocketmq.remoting.message.message import Message, MessageExt, MessageQueue
from txrocketmq.remoting.message.topics import RETRY_PREFIX
from txrocketmq.remoting.protocol.send import ConsumerSendMsgBackRequestHeader

TIMEOUT_MS: Final = 5_000
MAX_RECONSUME_TIMES: Final = 16
FIRST_RETRY_LEVEL: Final = 3
"""The delay level of a message that is sent again for the first time."""
INNER_PRODUCER_GROUP: Final = "CLIENT_INNER_PRODUCER"
"""The producer group that sends copies of messages that a broker did not take back."""

log = Logger()


class GiveBack:
    """Gives messages of one group back; `max_reconsume_times` is -1 for the broker's own limit."""

    def __init__(self, instance: ClientInstance, group: str, max_reconsume_times: int) -> None:
        self._instance = instance
        self._group = group
        self._most = MAX_RECONSUME_TIMES if max_reconsume_times < 0 else max_reconsume_times
        self._producer = Producer(instance, INNER_PRODUCER_GROUP)

    async def to_broker(self, message: MessageExt, delay_level: int) -> bool:
        """Returns a message to its broker, or else to the retry topic; whether that succeeded."""
        topic = self._instance.with_namespace(message.topic)
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.commit_log_offset,
            group=self._group,
            delay_level=delay_level,
            origin_msg_id=message.msg_id,
            origin_topic=topic,
            max_reconsume_times=self._most,
        )
        queue = MessageQueue(topic, message.broker_name or "", message.queue_id)
        try:
            address = await self._instance.address_to_subscribe(queue)
            await self._instance.api.send_back(address, header, TIMEOUT_MS)
        except (MQClientError, RemotingError) as error:
            log.warn(
                "message {id} is sent again, since it was not taken back: {error}",
                id=message.msg_id,
                error=error,
            )
            return await self.to_retry_topic(message, self._most)
        return True

    async def to_retry_topic(self, message: MessageExt, most: int) -> bool:
        """Sends a copy of a message to the retry topic, at any broker; whether that succeeded.

        `most` is how often it may be delivered again; after that the broker makes it a dead letter.
        """
        again = Message(RETRY_PREFIX + self._group, message.body, message.flag)
        topic = self._instance.with_namespace(message.topic)
        again.properties = {
            **message.properties,
            names.RETRY_TOPIC: message.properties.get(names.RETRY_TOPIC, topic),
            names.ORIGIN_MESSAGE_ID: message.properties.get(
                names.ORIGIN_MESSAGE_ID, message.msg_id
            ),
            names.RECONSUME_TIME: str(message.reconsume_times + 1),
            names.MAX_RECONSUME_TIMES: str(most),
            names.DELAY: str(FIRST_RETRY_LEVEL + message.reconsume_times),
        }
        again.properties.pop(names.TRAN_MSG, None)
        try:
            await self._producer.send(again)
        except (MQClientError, RemotingError) as error:
            log.warn(
                "message {id} is consumed here again, since it could not be sent: {error}",
                id=message.msg_id,
                error=error,
            )
            return False
        return True
