# SPDX-License-Identifier: Apache-2.0
"""Offsets of groups: reading, setting, resetting and copying them.

A reset is sent to the broker, which notifies the connected consumers (4.x) or corrects their next
pull (5.x). A 4.x broker refuses it if no consumer is connected; then the client looks up the
offsets and commits them itself, as mqadmin does. Until the next pull a broker of 5.x passes over
what is committed, so a single offset is set by a commit and by a reset of that queue.

Java: ResetOffsetByTimeCommand, ResetOffsetByTimeOldCommand, CloneGroupOffsetCommand;
DefaultMQAdminExtImpl.resetOffsetByQueueId.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from txrocketmq.client.admin.clients import Clients
from txrocketmq.client.admin.destinations import Destinations
from txrocketmq.client.admin.groups import Groups
from txrocketmq.client.admin.results import BrokerInfo
from txrocketmq.client.base.errors import (
    AdminRefused,
    GroupNotFound,
    GroupOffline,
    GroupOnline,
    OffsetIllegal,
)
from txrocketmq.remoting.call import Call
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import offset as calls
from txrocketmq.remoting.protocol.body.offset import ResetOffsetBody
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    QueryConsumerOffsetRequestHeader,
    ResetOffsetRequestHeader,
    SearchOffsetRequestHeader,
)
from txrocketmq.remoting.routing.queue_requests import commit_header

Q = TypeVar("Q", bound=Header)

FIRST: Final = "first"
LAST: Final = "last"
_END_MS: Final = -1


class Offsets:
    """The part of the admin client for offsets."""

    def __init__(self, destinations: Destinations, groups: Groups, clients: Clients) -> None:
        self._servers = destinations
        self._groups = groups
        self._clients = clients

    async def min_offset(self, queue: MessageQueue) -> int:
        """Returns the offset of the first message of a queue.

        Raises NoRoute and BrokerNotExist.
        """
        header = GetMinOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        return await self._asked(queue, calls.GET_MIN_OFFSET, header, f"asking for {queue}")

    async def max_offset(self, queue: MessageQueue) -> int:
        """Returns the offset that the next message of a queue will get.

        Raises NoRoute and BrokerNotExist.
        """
        header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id)
        return await self._asked(queue, calls.GET_MAX_OFFSET, header, f"asking for {queue}")

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """Returns the offset of the first message that was stored at a time or later.

        If there is no such message, 5.x brokers return the offset that the next message will get,
        and 4.x brokers that of the last message. Raises NoRoute, BrokerNotExist and AdminRefused.
        """
        header = SearchOffsetRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=timestamp_ms
        )
        call = calls.SEARCH_OFFSET_BY_TIMESTAMP
        return await self._asked(queue, call, header, f"searching {queue}")

    async def consumer_offset(self, group: str, queue: MessageQueue) -> int | None:
        """Returns the offset that a group consumes next in a queue, or None if it has none.

        Raises NoRoute, BrokerNotExist and AdminRefused.
        """
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            set_zero_if_not_found=False,
        )
        doing = f"asking how far group {group} has come in {queue}"
        try:
            return await self._asked(queue, calls.QUERY_CONSUMER_OFFSET, header, doing)
        except AdminRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise

    async def set_offset(self, group: str, queue: MessageQueue, next_offset: int) -> None:
        """Sets the offset of a group in a queue, while no consumer of the group is connected.

        Raises GroupOnline if one is connected, because it would overwrite the offset with its own,
        OffsetIllegal if the queue does not contain the offset, and also NoRoute, BrokerNotExist and
        AdminRefused.
        """
        if await self._is_online(group):
            raise GroupOnline(group, "stop them first, or use reset_offsets")
        lowest, highest = await self.min_offset(queue), await self.max_offset(queue)
        if not lowest <= next_offset <= highest:
            raise OffsetIllegal(
                f"{queue} goes from {lowest} to {highest}: {next_offset} is not in it"
            )
        await self._set(group, queue, next_offset)

    async def reset_offsets(
        self, group: str, topic: str, to: str | int, *, force: bool = True
    ) -> dict[MessageQueue, int]:
        """Moves a group to the beginning or the end of a topic, or to a time.

        `to` is "first", "last" or a time in milliseconds since the epoch. With `force=False`,
        offsets are only moved back and never forward. Returns the new offset in each queue.
        Consumers may be connected; they continue at the new offsets after a few seconds. Raises
        ValueError for any other `to`, and also GroupNotFound, NoRoute, AdminRefused and
        PartlyFailed.
        """
        timestamp_ms = {FIRST: 0, LAST: _END_MS}.get(to) if isinstance(to, str) else to
        if timestamp_ms is None or (isinstance(to, int) and to < 0):
            raise ValueError(
                f"offsets can be reset to first, last or a time in milliseconds, not to {to!r}"
            )
        doing = f"resetting the offsets of group {group} in topic {topic}"
        if group not in await self._groups.groups():
            raise GroupNotFound(group)

        async def reset(broker: BrokerInfo) -> Mapping[MessageQueue, int]:
            header = ResetOffsetRequestHeader(
                group=group,
                topic=topic,
                timestamp=timestamp_ms,
                is_force=force,
                offset=-1,
            )
            try:
                reply = await self._servers.ask(
                    broker.address,
                    calls.INVOKE_BROKER_TO_RESET_OFFSET,
                    header,
                    doing=doing,
                    timeout_ms=self._servers.config.search_timeout_ms,
                )
            except AdminRefused as error:
                if not await self._is_for_offline(error, group):
                    raise
                return await self._reset_from_here(broker, header)
            return ResetOffsetBody.decode(reply.body_bytes).offset_table

        tables = await self._servers.each(await self._servers.brokers_of_topic(topic), doing, reset)
        return {queue: table[queue] for table in tables for queue in sorted(table)}

    async def clone_offsets(
        self, source: str, group: str, topic: str | None = None
    ) -> dict[MessageQueue, int]:
        """Gives a group the offsets of another group, in one topic or in all; returns them.

        Raises GroupOnline if consumers of the group are connected, and also GroupNotFound, NoRoute,
        BrokerNotExist and AdminRefused.
        """
        if await self._is_online(group):
            raise GroupOnline(group, "stop them first, they would commit their own offsets")
        own_topics = ("%RETRY%", "%DLQ%")
        progress = await self._groups.progress(source, topic)
        cloned = {
            each.queue: each.consumer_offset
            for each in progress.queues
            if not each.queue.topic.startswith(own_topics)
        }
        for queue, next_offset in cloned.items():
            await self._set(group, queue, next_offset)
        return cloned

    async def _is_for_offline(self, error: AdminRefused, group: str) -> bool:
        """Whether a 4.x broker refuses a reset only because no consumer is or was connected."""
        if error.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return True
        has_no_offsets = f"consumer group <{group}> not exist" in (error.remark or "")
        return has_no_offsets and not await self._is_online(group)

    async def _reset_from_here(
        self, broker: BrokerInfo, header: ResetOffsetRequestHeader
    ) -> dict[MessageQueue, int]:
        """Looks up and commits the offsets, for a broker that only resets connected consumers."""
        done: dict[MessageQueue, int] = {}
        route = await self._servers.route(header.topic)
        counts = {each.broker_name: each.read_queue_nums for each in route.queue_datas}
        for queue_id in range(counts.get(broker.name, 0)):
            queue = MessageQueue(header.topic, broker.name, queue_id)
            if header.timestamp == _END_MS:
                target = await self.max_offset(queue)
            elif header.timestamp == 0:
                target = await self.min_offset(queue)
            else:
                target = await self.search_offset(queue, header.timestamp)
            before = await self.consumer_offset(header.group, queue)
            if header.is_force or before is None or target < before:
                await self._commit(header.group, queue, target)
                done[queue] = target
            else:
                done[queue] = before
        return done

    async def _set(self, group: str, queue: MessageQueue, next_offset: int) -> None:
        await self._commit(group, queue, next_offset)
        header = ResetOffsetRequestHeader(
            group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            offset=next_offset,
            timestamp=_END_MS,  # 4.x ignores the queue; this time without force changes nothing
            is_force=False,
        )
        doing = f"setting the offset of group {group} in {queue}"
        address = (await self._servers.broker_of(queue)).address
        try:
            await self._servers.ask(
                address, calls.INVOKE_BROKER_TO_RESET_OFFSET, header, doing=doing
            )
        except AdminRefused as error:
            if not await self._is_for_offline(error, group):
                raise

    async def _commit(self, group: str, queue: MessageQueue, next_offset: int) -> None:
        header = commit_header(group, queue, next_offset)
        doing = f"setting the offset of group {group} in {queue}"
        address = (await self._servers.broker_of(queue)).address
        await self._servers.ask(address, calls.UPDATE_CONSUMER_OFFSET, header, doing=doing)

    async def _asked(self, queue: MessageQueue, call: Call[Q, Any], header: Q, doing: str) -> int:
        """The offset that the broker of a queue answers with."""
        address = (await self._servers.broker_of(queue)).address
        reply = await self._servers.ask(address, call, header, doing=doing)
        assert reply.header is not None
        offset: int = reply.header.offset
        return offset

    async def _is_online(self, group: str) -> bool:
        try:
            return bool((await self._clients.consumer_connections(group)).connection_set)
        except GroupOffline:
            return False
