# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.broker.conftest import Parts
from tests.broker.delays.scene import deliver
from tests.fakes import FakePeer, refused, reply_of, request
from txrocketmq.broker.processors.admin.admin_stats import (
    AdminStatsProcessor,
    _capacity,
    readable_bytes,
)
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.broker.tables.clients import Client
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.topics import SCHEDULE_TOPIC
from txrocketmq.remoting.protocol.body.client import (
    ClientConnection,
    ConsumerConnection,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from txrocketmq.remoting.protocol.body.route import KVTable
from txrocketmq.remoting.protocol.body.stats import BrokerStatsData
from txrocketmq.remoting.protocol.operations.admin import (
    GetConsumerConnectionListRequestHeader,
    GetProducerConnectionListRequestHeader,
    ViewBrokerStatsDataRequestHeader,
)

OF_BEHAVIOURS = """
brokerVersion brokerVersionDesc brokerActive msgPutTotalYesterdayMorning msgPutTotalTodayMorning
msgPutTotalTodayNow msgGetTotalYesterdayMorning msgGetTotalTodayMorning msgGetTotalTodayNow
dispatchBehindBytes pageCacheLockTimeMills earliestMessageTimeStamp startAcceptSendRequestTimeStamp
timerReadBehind timerOffsetBehind timerCongestNum timerEnqueueTps timerDequeueTps
remainTransientStoreBufferNumbs remainHowManyDataToFlush commitLogDirCapacity
sendThreadPoolQueueSize sendThreadPoolQueueCapacity sendThreadPoolQueueHeadWaitTimeMills
pullThreadPoolQueueSize pullThreadPoolQueueCapacity pullThreadPoolQueueHeadWaitTimeMills
litePullThreadPoolQueueSize litePullThreadPoolQueueCapacity
litePullThreadPoolQueueHeadWaitTimeMills queryThreadPoolQueueSize queryThreadPoolQueueCapacity
queryThreadPoolQueueHeadWaitTimeMills ackThreadPoolQueueSize ackThreadPoolQueueCapacity
ackThreadPoolQueueHeadWaitTimeMills EndTransactionQueueSize EndTransactionThreadPoolQueueCapacity
commitLogDiskRatio consumeQueueDiskRatio commitLogMinOffset commitLogMaxOffset
scheduleMessageOffset_1 bootTimestamp runtime putMessageEntireTimeMax putMessageTimesTotal
putMessageFailedTimes putMessageSizeTotal putMessageDistributeTime putMessageAverageSize
dispatchMaxBuffer getMessageEntireTimeMax putTps getFoundTps getMissTps getTotalTps
getTransferredTps getTransferedTps putLatency99 putLatency999
""".split()


@pytest.fixture
def admin(parts: Parts) -> AdminStatsProcessor:
    return AdminStatsProcessor(
        parts.config,
        parts.consumers,
        parts.producers,
        parts.store,
        parts.schedule,
        parts.timers,
        parts.stats,
        parts.walks,
        parts.clock,
    )


def runtime_info(admin: AdminStatsProcessor) -> dict[str, str]:
    reply = admin.runtime_info(request(NoHeader()))
    assert isinstance(reply, Reply)
    return dict(KVTable.decode(reply.body_bytes).table)


def test_all_figures_are_there(parts: Parts, admin: AdminStatsProcessor) -> None:
    parts.put(SCHEDULE_TOPIC, 0)
    deliver(parts.schedule, parts.now_ms)
    assert set(OF_BEHAVIOURS) - set(runtime_info(admin)) == set()


def test_figures_tell_what_happened(parts: Parts, admin: AdminStatsProcessor) -> None:
    put = parts.put("T")
    parts.stats.put("T", 1, put.size)
    parts.stats.got("g", "T", 1, put.size)
    parts.set(start_accept_send_request_time_stamp=7)
    info = runtime_info(admin)
    assert info["msgPutTotalTodayNow"] == info["msgGetTotalTodayNow"] == "1"
    assert info["commitLogMaxOffset"] == str(put.size)
    assert info["remainHowManyDataToFlush"] == f"{put.size} B"
    assert info["earliestMessageTimeStamp"] == str(parts.now_ms)
    assert info["startAcceptSendRequestTimeStamp"] == "7"
    assert info["commitLogDirCapacity"].startswith("Total : ")
    assert info["brokerVersionDesc"].startswith("V")


def test_progress_of_delay_levels(parts: Parts, admin: AdminStatsProcessor) -> None:
    parts.put(SCHEDULE_TOPIC, 2)
    deliver(parts.schedule, parts.now_ms)
    assert runtime_info(admin)["scheduleMessageOffset_3"] == "1,1"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2, "1.0 MiB"),
        (500 * 1024**3, "500.0 GiB"),
        (1024**7, "1024.0 EiB"),
    ],
)
def test_readable_sizes(count: int, text: str) -> None:
    assert readable_bytes(count) == text


def test_one_counter(parts: Parts, admin: AdminStatsProcessor) -> None:
    for second in range(31):
        parts.stats.put("T", 3, 300)
        finished(parts.stats.tick(parts.now_ms + second * 1000, 1))

    def ask(name: str, key: str) -> BrokerStatsData:
        header = ViewBrokerStatsDataRequestHeader(stats_name=name, stats_key=key)
        return BrokerStatsData.decode(admin.stats_data(request(header)).body_bytes)

    found = ask("TOPIC_PUT_SIZE", "T")
    assert found.stats_minute is not None
    assert (found.stats_minute.sum, found.stats_minute.tps) == (9_300, 310.0)
    assert found.stats_minute.avgpt == 100.0
    assert found.stats_hour is not None
    assert found.stats_day is not None
    assert ask("BROKER_PUT_NUMS", "DefaultCluster").stats_minute is not None
    with refused(ResponseCode.SYSTEM_ERROR, "The stats <TOPIC_PUT_NUMS> <U> not exist"):
        ask("TOPIC_PUT_NUMS", "U")


def test_connections_of_consumers(parts: Parts, admin: AdminStatsProcessor) -> None:
    peer = parts.consumer("g", "c1", "T")
    asked = request(GetConsumerConnectionListRequestHeader(consumer_group="g"))
    reply = reply_of(admin.consumers(asked))
    body = ConsumerConnection.decode(reply.body_bytes)
    assert body.connection_set == (
        ClientConnection(
            client_id="c1", client_addr=peer.remote_address, language="JAVA", version=407
        ),
    )
    assert set(body.subscription_table) == {"T"}
    assert (body.consume_type, body.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert body.consume_from_where == "CONSUME_FROM_LAST_OFFSET"
    with refused(ResponseCode.CONSUMER_NOT_ONLINE, "the consumer group[h] not online"):
        admin.consumers(request(GetConsumerConnectionListRequestHeader(consumer_group="h")))


def test_connections_of_producers(parts: Parts, admin: AdminStatsProcessor) -> None:
    peer = FakePeer()
    parts.producers.register("p", Client(peer, "c1", "GO", 493, 7, parts.now_ms))
    asked = request(GetProducerConnectionListRequestHeader(producer_group="p"))
    reply = reply_of(admin.producers(asked))
    assert ProducerConnection.decode(reply.body_bytes).connection_set == (
        ClientConnection(
            client_id="c1", client_addr=peer.remote_address, language="GO", version=493
        ),
    )
    with refused(ResponseCode.SYSTEM_ERROR, "the producer group[q] not exist"):
        admin.producers(request(GetProducerConnectionListRequestHeader(producer_group="q")))
    table = ProducerTableInfo.decode(
        reply_of(admin.all_producers(request(NoHeader()))).body_bytes
    ).data
    assert table == {
        "p": (
            ProducerInfo(
                client_id="c1",
                remote_ip=f"/{peer.remote_address}",
                language="GO",
                version=493,
                last_update_timestamp=parts.now_ms,
            ),
        )
    }


def test_free_space_is_that_of_java(monkeypatch: pytest.MonkeyPatch, parts: Parts) -> None:
    """File.getFreeSpace includes what is reserved for the superuser."""
    disk = SimpleNamespace(f_blocks=100, f_frsize=1 << 20, f_bfree=50, f_bavail=45)
    monkeypatch.setattr("os.statvfs", lambda _: disk)
    assert _capacity(str(parts.folder)) == "Total : 100.0 MiB, Free : 50.0 MiB."
