# SPDX-License-Identifier: Apache-2.0
"""One pull of one queue: the broker to ask, the request and the answer.

A broker may suggest to pull from a slave next; that is remembered by the queue. When the queue
turns out to be another one than before, nothing is pulled, and the result says where it begins.

Java: PullAPIWrapper.
"""

from __future__ import annotations

from typing import NamedTuple

from twisted.logger import Logger

from txrocketmq.client.base.errors import MQBrokerError, MQClientError
from txrocketmq.client.consumer.queue.pull_result import wanted_messages
from txrocketmq.client.consumer.queue.queue_life import Marks, QueueLife
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.message import MessageExt, MessageQueue
from txrocketmq.remoting.message.tags import TAG, SubscriptionData
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader, PullMessageResponseHeader
from txrocketmq.remoting.routing.addresses import MASTER_ID

log = Logger()


class Pulled(NamedTuple):
    """The result of a pull. `code` is one of codes.PULLED."""

    code: int
    next_offset: int
    messages: list[MessageExt]
    is_anew: bool = False
    """Whether the queue was made anew, so that what was pulled of it before is of no use."""

    @property
    def is_moved(self) -> bool:
        """Whether the offset is outside the queue; `next_offset` says where to continue."""
        return self.code == ResponseCode.PULL_OFFSET_MOVED

    @property
    def is_found(self) -> bool:
        """Whether the broker returned messages, though the subscription may accept none of them."""
        return self.code == ResponseCode.SUCCESS


class QueuePull:
    """Pulls one queue for a group."""

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        queue: MessageQueue,
        *,
        suspend_ms: int,
        timeout_ms: int,
        batch_size: int,
        batch_bytes: int | None = None,
        marks: Marks | None = None,
    ) -> None:
        self._instance = instance
        self._group = group
        self.queue = queue
        self._suspend_ms = suspend_ms
        self._timeout_ms = timeout_ms
        self._batch_size = batch_size
        self._batch_bytes = batch_bytes
        self._broker_id = MASTER_ID
        self._knows_lite = True
        self._life = QueueLife(instance, queue, {} if marks is None else marks)

    async def pull(
        self,
        offset: int,
        subscription: SubscriptionData,
        *,
        commit_offset: int = 0,
        posts_subscription: bool = False,
        is_lite: bool = False,
    ) -> Pulled:
        """Requests the messages from an offset on; the broker may wait until there are some.

        Raises MQBrokerError, BrokerNotExist, MessageDecodeError and errors of the connection.
        """
        queue, life = self.queue, self._life
        start = await life.begins_anew(offset) if life.is_to_be_looked_at(offset) else None
        if start is not None:
            return Pulled(ResponseCode.PULL_OFFSET_MOVED, start, [], is_anew=True)
        address = await self._instance.address_to_subscribe(queue, self._broker_id)
        commits = commit_offset > 0 and self._broker_id == MASTER_ID  # slaves keep no offsets
        is_by_tag = subscription.expression_type == TAG
        header = PullMessageRequestHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=self._batch_size,
            sys_flag=_flags(commits=commits, posts=posts_subscription, is_lite=is_lite),
            commit_offset=commit_offset if commits else 0,
            suspend_timeout_millis=self._suspend_ms,
            subscription=subscription.sub_string if posts_subscription else None,
            sub_version=0 if is_lite and is_by_tag else subscription.sub_version,
            expression_type=subscription.expression_type,
            max_msg_bytes=self._batch_bytes,
            bname=queue.broker_name,
        )
        try:
            reply = await self._ask(address, header, is_lite=is_lite)
        except (MQClientError, RemotingError) as error:
            self._life.doubt(error if self._broker_id == MASTER_ID else None)
            if isinstance(error, RemotingError):
                self._broker_id = MASTER_ID  # a slave may be gone for good
            raise
        answer = reply.header
        if answer is None:
            raise MQBrokerError(
                reply.code, "the answer does not say at which offset to continue", address
            )
        self._broker_id = answer.suggest_which_broker_id
        if answer.max_offset < offset:
            self._life.doubt()
            start = await self._life.begins_anew(offset)
            if start is not None:
                return Pulled(ResponseCode.PULL_OFFSET_MOVED, start, [], is_anew=True)
        messages = []
        if reply.code == ResponseCode.PULL_OFFSET_MOVED:
            _told(queue, offset, answer.next_begin_offset)
        if reply.code == ResponseCode.SUCCESS:
            messages = wanted_messages(reply.body_bytes, queue, subscription)
            self._life.saw(messages)
        return Pulled(reply.code, answer.next_begin_offset, messages)

    async def _ask(
        self, address: str, header: PullMessageRequestHeader, *, is_lite: bool
    ) -> Reply[PullMessageResponseHeader]:
        """Sends the pull; to 4.x brokers a lite pull has a flag, not a request code."""
        pull = self._instance.api.pull
        if is_lite and self._knows_lite:
            try:
                return await pull(address, header, self._timeout_ms, is_lite=True)
            except MQBrokerError as error:
                if error.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
                    raise
                self._knows_lite = False
        return await pull(address, header, self._timeout_ms)


def _told(queue: MessageQueue, offset: int, to: int) -> None:
    """Says where a reader goes on. At 0 begins whoever is new, and need not be told."""
    if 0 < offset < to:
        log.warn(
            "queue {queue} continues at offset {to}, not at {offset}: the broker does not have the"
            " {count} messages in between any more",
            queue=queue,
            to=to,
            offset=offset,
            count=to - offset,
        )
    elif offset > to:
        log.warn(
            "queue {queue} continues at offset {to}, not at {offset}", queue=queue, to=to,
            offset=offset,
        )  # fmt: skip


def _flags(*, commits: bool, posts: bool, is_lite: bool) -> int:
    flags = PullSysFlag.SUSPEND
    if commits:
        flags |= PullSysFlag.COMMIT_OFFSET
    if posts:
        flags |= PullSysFlag.SUBSCRIPTION
    if is_lite:
        flags |= PullSysFlag.LITE_PULL
    return flags
