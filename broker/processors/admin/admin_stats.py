# SPDX-License-Identifier: Apache-2.0
"""The state of a broker: GET_BROKER_RUNTIME_INFO, VIEW_BROKER_STATS_DATA, connections.

28, 315; 203, 204, 328. A counter that was not used yet and a group of producers that is
not connected are SYSTEM_ERROR (1), a group of consumers that is not connected is
CONSUMER_NOT_ONLINE (206). This broker has no such thread pools as the original: their figures are
shown as if they were idle. Java: AdminBrokerProcessor.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from txrocketmq.broker.delays.schedule import Schedule
from txrocketmq.broker.engines.role import Role
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.disk.steps import when_in_memory
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.tables.clients import Client, Consumers, Producers
from txrocketmq.broker.tables.stats import BrokerStats, Window
from txrocketmq.broker.timer.timers import Timers
from txrocketmq.broker.work.walks import BodyPieces, Pieces, Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import MQVersion, ResponseCode
from txrocketmq.remoting.command import OWN_VERSION
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.base import Body
from txrocketmq.remoting.protocol.body.client import (
    ClientConnection,
    ConsumerConnection,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.body.stats import BrokerStatsData, BrokerStatsItem
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.protocol.operations.admin import (
    GetConsumerConnectionListRequestHeader,
    GetProducerConnectionListRequestHeader,
    ViewBrokerStatsDataRequestHeader,
)
from txrocketmq.remoting.serialize.json import HOLE, encode_around, encode_body

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_IDLE = {
    "pageCacheLockTimeMills": "0",
    "remainTransientStoreBufferNumbs": "2147483647",
    "sendThreadPoolQueueSize": "0",
    "sendThreadPoolQueueCapacity": "10000",
    "sendThreadPoolQueueHeadWaitTimeMills": "0",
    "pullThreadPoolQueueSize": "0",
    "pullThreadPoolQueueCapacity": "100000",
    "pullThreadPoolQueueHeadWaitTimeMills": "0",
    "litePullThreadPoolQueueSize": "0",
    "litePullThreadPoolQueueCapacity": "100000",
    "litePullThreadPoolQueueHeadWaitTimeMills": "0",
    "queryThreadPoolQueueSize": "0",
    "queryThreadPoolQueueCapacity": "20000",
    "queryThreadPoolQueueHeadWaitTimeMills": "0",
    "ackThreadPoolQueueSize": "0",
    "ackThreadPoolQueueCapacity": "100000",
    "ackThreadPoolQueueHeadWaitTimeMills": "0",
    "EndTransactionQueueSize": "0",
    "EndTransactionThreadPoolQueueCapacity": "100000",
}
"""Figures that tools expect, of parts of the original that do not exist here."""


class AdminStatsProcessor:
    """Shows figures and connections."""

    def __init__(
        self,
        config: BrokerConfig,
        consumers: Consumers,
        producers: Producers,
        store: MessageStore,
        schedule: Schedule,
        timers: Timers,
        stats: BrokerStats,
        walks: Walks,
        now_ms: Callable[[], int],
    ) -> None:
        self._config = config
        self._consumers = consumers
        self._producers = producers
        self._store = store
        self._schedule = schedule
        self._timers = timers
        self._now_ms = now_ms
        role = Role(store.config)
        self._acts: Callable[[], bool] = lambda: role.writes
        self._stats = stats
        self._walks = walks

    def on_slave(self, acts: Callable[[], bool]) -> None:
        """Shows a slave as active when it acts as master."""
        self._acts = acts

    # ---------------------------------------------------------------- figures

    @serves(admin.GET_BROKER_RUNTIME_INFO)
    def runtime_info(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns some eighty figures, all as texts."""
        return self._walks.answer(self._figures(request.steady_ms))

    def _figures(self, steady_ms: int) -> Walk:
        earliest_ms = yield from when_in_memory(self._store.earliest_message_ms)
        return Reply(body=KVTable(table=self._runtime_info(steady_ms, earliest_ms)).encode())

    def _runtime_info(self, steady_ms: int, earliest_ms: int) -> dict[str, str]:
        store, stats = self._store, self._stats
        unflushed = max(store.flush.appended_offset - store.flush.flushed_offset, 0)
        put_now, get_now = stats.totals_now()
        return {
            **store.runtime_info(steady_ms),
            **{
                f"scheduleMessageOffset_{level}": f"{offset},{top}"
                for level, (offset, top) in self._schedule.offsets.progress().items()
            },
            **_IDLE,
            **self._timers.runtime_info(self._now_ms()),
            "brokerActive": "true" if self._acts() else "false",
            "brokerVersion": str(OWN_VERSION),
            "brokerVersionDesc": MQVersion(OWN_VERSION).name,
            "msgPutTotalYesterdayMorning": str(stats.put_mornings[0]),
            "msgPutTotalTodayMorning": str(stats.put_mornings[1]),
            "msgPutTotalTodayNow": str(put_now),
            "msgGetTotalYesterdayMorning": str(stats.get_mornings[0]),
            "msgGetTotalTodayMorning": str(stats.get_mornings[1]),
            "msgGetTotalTodayNow": str(get_now),
            "dispatchBehindBytes": str(store.dispatch_behind_bytes),
            "earliestMessageTimeStamp": str(earliest_ms),
            "startAcceptSendRequestTimeStamp": str(
                self._config.start_accept_send_request_time_stamp
            ),
            "remainHowManyDataToFlush": readable_bytes(unflushed),
            "commitLogDirCapacity": _capacity(store.config.store_path_root_dir),
        }

    @serves(admin.VIEW_BROKER_STATS_DATA)
    def stats_data(self, request: Request[ViewBrokerStatsDataRequestHeader]) -> Reply[NoHeader]:
        """Returns one counter, over the last minute, hour and day."""
        header = request.header
        item = self._stats.item(header.stats_name, header.stats_key)
        if item is None:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                f"The stats <{header.stats_name}> <{header.stats_key}> not exist",
            )
        return Reply(
            body=BrokerStatsData(
                stats_minute=_window(item.minute),
                stats_hour=_window(item.hour),
                stats_day=_window(item.day),
            ).encode()
        )

    # ------------------------------------------------------------ connections

    @serves(admin.GET_CONSUMER_CONNECTION_LIST)
    def consumers(
        self, request: Request[GetConsumerConnectionListRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the members of a consumer group, and their subscriptions."""
        name = request.header.consumer_group
        group = self._consumers.group(name)
        if group is None:
            raise ResponseError(
                ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online"
            )
        body = ConsumerConnection(
            subscription_table=dict(group.subscriptions),
            consume_type=group.consume_type,
            message_model=group.message_model,
            consume_from_where=group.consume_from_where,
        )
        return self._walks.answer(_connections(body, list(group.members.values())))

    @serves(admin.GET_PRODUCER_CONNECTION_LIST)
    def producers(
        self, request: Request[GetProducerConnectionListRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the members of a producer group."""
        name = request.header.producer_group
        members = self._producers.members(name)
        if not members:
            raise ResponseError(ResponseCode.SYSTEM_ERROR, f"the producer group[{name}] not exist")
        return self._walks.answer(_connections(ProducerConnection(), members))

    @serves(admin.GET_ALL_PRODUCER_INFO)
    def all_producers(self, request: Request[NoHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns all producer groups."""
        return self._walks.answer(self._all_producers())

    def _all_producers(self) -> Walk:
        before, after = encode_around({**ProducerTableInfo().to_json(), "data": HOLE})
        pieces = Pieces()
        pieces.add(before + b"{")
        separator = b""
        for group in self._producers.groups():
            members = self._producers.members(group)
            if not members:
                continue
            pieces.add(separator + encode_body(group) + b":[")
            separator = b""
            for each in members:
                info = ProducerInfo(
                    client_id=each.client_id,
                    remote_ip=f"/{each.peer.remote_address}",  # as Java prints an address
                    language=each.language,
                    version=each.version,
                    last_update_timestamp=each.last_update_timestamp_ms,
                )
                pieces.add(separator + info.encode())
                separator = b","
                yield
            pieces.add(b"]")
            yield
        pieces.add(b"}" + after)
        return Reply(body=pieces.end())


def _connections(content: Body, members: list[Client]) -> Walk:
    """Fills a body with the connections of these members, and answers with it."""
    body = BodyPieces({**content.to_json(), "connectionSet": HOLE}, "[]")
    for each in members:
        connection = ClientConnection(
            client_id=each.client_id,
            client_addr=each.peer.remote_address,
            language=each.language,
            version=each.version,
        )
        body.add(connection.encode())
        yield
    return Reply(body=body.end())


def _window(window: Window) -> BrokerStatsItem:
    snapshot = window.snapshot()
    return BrokerStatsItem(sum=snapshot.sum, tps=snapshot.tps, avgpt=snapshot.avgpt)


def _capacity(directory: str) -> str:
    if not Path(directory).is_dir():
        return ""
    disk = os.statvfs(directory)
    total, free = disk.f_blocks * disk.f_frsize, disk.f_bfree * disk.f_frsize  # as Java's File
    return f"Total : {readable_bytes(total)}, Free : {readable_bytes(free)}."


def readable_bytes(count: int) -> str:
    """A size as people read it: "0 B", "1.5 KiB" (MixAll.humanReadableByteCount)."""
    power = min((max(count, 1).bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{count / 1024**power:.1f} {_UNITS[power]}" if power else f"{count} B"
