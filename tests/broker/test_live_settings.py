# SPDX-License-Identifier: Apache-2.0
"""What UPDATE_BROKER_CONFIG takes counts at once: no part keeps a live setting for itself.

For each live setting there is a check in one of six tables: here, in the modules of this name in
`processors`, `store`, `timer`, `transaction` and `pop`, or in test_broadcast_offsets.py.

A setting that is declared live must be read when it is used. So none may be read while the parts,
the processors and the service are built, but for those whose later use is named here; and each must
be read somewhere at all.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.broker.pop.test_live_settings import check as check_of_pops
from tests.broker.processors.test_live_settings import check as check_of_topics
from tests.broker.pulls.test_broadcast_offsets import check as check_of_broadcasting
from tests.broker.replication.live_settings import check as check_of_replication
from tests.broker.store.test_live_settings import check as check_of_store
from tests.broker.test_service import Client, Scene
from tests.broker.timer.test_live_settings import check as check_of_timers
from tests.broker.transaction.test_live_settings import check as check_of_transactions
from tests.broker.updated import update
from tests.live import Checks, live
from tests.remoting.transport.wires import UNFINISHED
from txrocketmq.broker import parts as broker_parts
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.tables.group_changes import DELAYED_MS
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.message import decode_message, decode_messages
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol import offset, pull, query
from txrocketmq.remoting.protocol.body.pop import (
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from txrocketmq.remoting.protocol.body.route import (
    QueueData,
    TopicConfig,
    TopicRouteData,
)
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupConfig
from txrocketmq.remoting.protocol.offset import ResetOffsetRequestHeader
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader
from txrocketmq.remoting.protocol.query import QueryMessageRequestHeader

READ_AT_THE_START_TOO = {
    "region_id": "what answers to sends and messages have; both are made anew when it changes",
    "trace_on": "likewise",
    "auto_create_topic_enable": "whether TBW102 is made; each send looks again",
    "namesrv_addr": "by which of its addresses the machine is known; each registration looks again",
    "broker_permission": "the first registration; each one looks again",
    "register_broker_timeout_mills": "the first registration; each one looks again",
    "enable_split_registration": "the first registration; each one looks again",
    "split_registration_size": "likewise",
    "disk_space_warning_level_ratio": "whether the disk is full now; each tick looks again",
    "disk_space_min_free_bytes": "likewise",
    "flush_interval_commit_log": "the first period; each one is looked up again",
    "timer_wheel_enable": "whether files of timers are opened; each tick looks again",
}
"""Live settings that are read while a broker starts, and why that is not all."""


ALL_LIVE = live(BrokerConfig, StoreConfig)
check = Checks()


def test_no_live_setting_is_kept_by_whoever_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: set[str] = set()

    def record(config: object, name: str) -> Any:
        read.add(name)
        return object.__getattribute__(config, name)

    scene = Scene(tmp_path, {"ha_listen_port": 12_000}, broker_ip2="127.0.0.1")
    made = scene.broker.parts
    with monkeypatch.context() as patched:
        for cls in (BrokerConfig, StoreConfig):
            patched.setattr(cls, "__getattribute__", record, raising=False)
        broker_parts.Parts(
            configuration=made.configuration, clock=made.clock, steady_clock=made.steady_clock
        )
        scene.start()
    assert read & ALL_LIVE == READ_AT_THE_START_TOO.keys()


def test_each_live_setting_is_used() -> None:
    root = Path(__file__).parents[2]
    source = "".join(
        path.read_text("utf-8")
        for folder in ("broker", "remoting/transport")
        for path in sorted((root / folder).rglob("*.py"))
        if path.name not in {"config.py", "original_keys.py"}
    )
    used = set(re.findall(r"\.([a-z_0-9]+)\b", source)) | {"delete_when"}  # by delete_hours()
    assert ALL_LIVE - used == set()


def make_topic(scene: Scene, name: str = "T") -> None:
    scene.broker.parts.topics.update(TopicConfig(topic_name=name))


def pulled(scene: Scene, client: Client | None = None) -> list[RemotingCommand]:
    """What is answered to a pull at once."""
    client = client or Client(scene)
    client.pull()
    return client.heard()


@check
def namesrv_addr(scene: Scene) -> None:
    scene.registered()
    update(scene, namesrvAddr="127.0.0.1:1")
    assert [asked.address for asked in scene.connections.take()] == ["127.0.0.1:1"]


@check
def broker_permission(scene: Scene) -> None:
    make_topic(scene)
    assert pulled(scene) == []
    update(scene, brokerPermission=2)
    assert [answer.code for answer in pulled(scene)] == [ResponseCode.NO_PERMISSION]


@check
def auto_create_topic_enable(scene: Scene) -> None:
    update(scene, autoCreateTopicEnable="false")
    assert Client(scene).send().code == ResponseCode.TOPIC_NOT_EXIST
    update(scene, autoCreateTopicEnable="true")
    assert Client(scene).send().code == ResponseCode.SUCCESS


@check
def auto_create_limit(scene: Scene) -> None:
    update(scene, autoCreateLimit="1")
    assert Client(scene).send().code == ResponseCode.TOPIC_NOT_EXIST
    update(scene, autoCreateLimit="100000")
    assert Client(scene).send().code == ResponseCode.SUCCESS


@check
def auto_create_subscription_group(scene: Scene) -> None:
    make_topic(scene)
    update(scene, autoCreateSubscriptionGroup="false")
    assert [each.code for each in pulled(scene)] == [ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST]
    update(scene, autoCreateSubscriptionGroup="true")
    assert pulled(scene) == []


@check
def enable_create_sys_group(scene: Scene) -> None:
    groups = scene.broker.parts.groups
    update(scene, autoCreateSubscriptionGroup="false", enableCreateSysGroup="false")
    assert groups.find("CID_RMQ_SYS_x") is None
    update(scene, enableCreateSysGroup="true")
    assert groups.find("CID_RMQ_SYS_x") is not None


def pulled_by_expression(scene: Scene, topic: str = "T", text: str = "a = 'x'") -> int:
    """The code of a pull by an expression in its header."""
    header = PullMessageRequestHeader(
        consumer_group="g",
        topic=topic,
        queue_id=0,
        queue_offset=0,
        max_msg_nums=32,
        sys_flag=PullSysFlag.SUBSCRIPTION,
        commit_offset=0,
        suspend_timeout_millis=0,
        subscription=text,
        sub_version=0,
        expression_type="SQL92",
    )
    return Client(scene).ask(pull.PULL_MESSAGE, header).code


@check
def enable_property_filter(scene: Scene) -> None:
    Client(scene).send(a="x")
    assert pulled_by_expression(scene) == ResponseCode.SYSTEM_ERROR
    update(scene, enablePropertyFilter="true")
    assert pulled_by_expression(scene) == ResponseCode.SUCCESS


@check
def filter_support_retry(scene: Scene) -> None:
    update(scene, enablePropertyFilter="true")
    make_topic(scene, "%RETRY%g")
    scene.broker.parts.filters.register(
        "g", [SubscriptionData("T", "a = 'x'", sub_version=1, expression_type="SQL92")]
    )
    message = InnerMessage(
        "%RETRY%g", 0, b"", scene.clock.now_ms(), bytes(8), bytes(8), {"RETRY_TOPIC": "T", "a": "y"}
    )
    scene.broker.parts.store.put([message.to_put()], scene.clock.now_ms())
    for enabled, code in (
        ("false", ResponseCode.SUCCESS),
        ("true", ResponseCode.PULL_RETRY_IMMEDIATELY),
    ):
        update(scene, filterSupportRetry=enabled)
        assert pulled_by_expression(scene, "%RETRY%g", "TRUE") == code


@check
def enable_calc_filter_bit_map(scene: Scene) -> None:
    filters, store = scene.broker.parts.filters, scene.broker.parts.store
    filters.register(
        "g", [SubscriptionData("T", "a = 'x'", sub_version=1, expression_type="SQL92")]
    )
    Client(scene).send(a="x")
    for enabled, length in (("false", 0), ("true", 14)):
        update(scene, enableCalcFilterBitMap=enabled)
        assert len(filters.bitmap("T", store.message_at(0))) == length


@check
def filter_data_clean_time_span(scene: Scene) -> None:
    filters = scene.broker.parts.filters
    wanted = SubscriptionData("T", "a = 'x'", sub_version=1, expression_type="SQL92")
    for span, count in ((3_600_000, 1), (1_000, 0)):
        update(scene, filterDataCleanTimeSpan=span)
        filters.register("g", [wanted])
        filters.register("g", [])
        scene.pass_ms(11_000)
        assert len(filters) == count


def stored(scene: Scene, name: str) -> tuple[str, str]:
    """What a message that is sent now has as a property, and what its sender is told."""
    answer = Client(scene).send(UNIQ_KEY="k")
    assert answer.code == ResponseCode.SUCCESS
    store = scene.broker.parts.store
    ((offset, size, _),) = store.queue_units("T", 0, store.max_offset("T", 0) - 1, 1)
    record = store.message_at(offset, size)
    assert record is not None
    return decode_message(record)[0].properties[name], (answer.ext_fields or {})[name]


@check
def region_id(scene: Scene) -> None:
    assert stored(scene, "MSG_REGION") == ("DefaultRegion", "DefaultRegion")
    update(scene, regionId="eu")
    assert stored(scene, "MSG_REGION") == ("eu", "eu")


@check
def trace_on(scene: Scene) -> None:
    assert stored(scene, "TRACE_ON") == ("true", "true")
    update(scene, traceOn="false")
    assert stored(scene, "TRACE_ON") == ("false", "false")


@check
def start_accept_send_request_time_stamp(scene: Scene) -> None:
    assert Client(scene).send().code == ResponseCode.SUCCESS
    update(scene, startAcceptSendRequestTimeStamp=2 * scene.clock.now_ms())
    assert Client(scene).send().code == ResponseCode.SYSTEM_ERROR


@check
def long_polling_enable(scene: Scene) -> None:
    make_topic(scene)
    for enabled, answers in (("true", 0), ("false", 1)):
        update(scene, longPollingEnable=enabled)
        client = Client(scene)
        assert pulled(scene, client) == []
        scene.pass_ms(3_000)
        assert len(client.heard()) == answers


@check
def short_polling_time_mills(scene: Scene) -> None:
    make_topic(scene)
    update(scene, longPollingEnable="false")
    for wait_ms, answers in ((9_000, 0), (2_000, 1)):
        update(scene, shortPollingTimeMills=wait_ms)
        client = Client(scene)
        assert pulled(scene, client) == []
        scene.pass_ms(4_000)
        assert len(client.heard()) == answers


@check
def lite_pull_message_enable(scene: Scene) -> None:
    Client(scene).send()
    for enabled, code in (("true", ResponseCode.SUCCESS), ("false", ResponseCode.NO_PERMISSION)):
        update(scene, litePullMessageEnable=enabled)
        client = Client(scene)
        client.pull(pull.LITE_PULL_MESSAGE)
        assert [answer.code for answer in client.heard()] == [code]


@check
def slave_read_enable(scene: Scene) -> None:
    Client(scene).send()
    scene.broker.parts.groups.update(SubscriptionGroupConfig(group_name="g", broker_id=3))
    for enabled, broker_id in (("false", "0"), ("true", "3")):
        update(scene, slaveReadEnable=enabled)
        (answer,) = pulled(scene)
        assert (answer.ext_fields or {})["suggestWhichBrokerId"] == broker_id


def told_of_members(scene: Scene, group: str) -> tuple[int, int]:
    """How often a consumer is told of its group's members: at once when it comes, and later."""
    client = Client(scene)
    client.beat(group)
    scene.pass_ms(1, 1)  # what changes in a turn is told in the next
    at_once = len(client.heard()) - 1
    scene.pass_ms(DELAYED_MS, 1_000)
    return at_once, len(client.heard())


@check
def notify_consumer_ids_changed_enable(scene: Scene) -> None:
    assert told_of_members(scene, "g1") == (1, 0)
    update(scene, notifyConsumerIdsChangedEnable="false")
    assert told_of_members(scene, "g2") == (0, 0)


@check
def real_time_notify_consumer_change(scene: Scene) -> None:
    assert told_of_members(scene, "g1") == (1, 0)
    update(scene, realTimeNotifyConsumerChange="false")
    assert told_of_members(scene, "g2") == (0, 1)


@check
def register_broker_timeout_mills(scene: Scene) -> None:
    update(scene, registerBrokerTimeoutMills=7)
    make_topic(scene)
    assert scene.connections.timeouts_ms[-1] == 7


@check
def force_register(scene: Scene) -> None:
    scene.registered()
    for forced, code in (
        ("true", RequestCode.REGISTER_BROKER), ("false", RequestCode.QUERY_DATA_VERSION),
    ):  # fmt: skip
        update(scene, forceRegister=forced)
        scene.pass_ms(31_000, 1_000)
        (asked,) = scene.connections.asked
        assert asked.call.code == code
        scene.registered()


@check
def use_server_side_reset_offset(scene: Scene) -> None:
    make_topic(scene)
    scene.broker.parts.groups.find("g")
    header = ResetOffsetRequestHeader(topic="T", group="g", timestamp=-1, is_force=True)
    for here, code in (("true", ResponseCode.SUCCESS), ("false", ResponseCode.CONSUMER_NOT_ONLINE)):
        update(scene, useServerSideResetOffset=here)
        assert Client(scene).ask(offset.INVOKE_BROKER_TO_RESET_OFFSET, header).code == code


@check
def server_load_balancer_enable(scene: Scene) -> None:
    Client(scene).beat()
    route = TopicRouteData(
        queue_datas=[QueueData(broker_name="b", read_queue_nums=2, write_queue_nums=2, perm=6)]
    )
    body = QueryAssignmentRequestBody(
        topic="T", consumer_group="g", client_id="stranger", strategy_name="AVG",
        message_model="CLUSTERING",
    )  # fmt: skip
    make_topic(scene)
    for balances, queues in (("true", 0), ("false", 2)):
        update(scene, serverLoadBalancerEnable=balances)
        client = Client(scene)
        scene.connections.take()
        client.tell(pull.QUERY_ASSIGNMENT, NoHeader(), body.encode())
        for asked in scene.connections.take():
            asked.pending.resolve(Reply(body=route.encode()))
        (answer,) = client.heard()
        shared = QueryAssignmentResponseBody.decode(answer.body).message_queue_assignments
        assert len(shared or ()) == queues


@check
def default_query_max_num(scene: Scene) -> None:
    for _ in range(3):
        assert Client(scene).send(UNIQ_KEY="k").code == ResponseCode.SUCCESS
    header = QueryMessageRequestHeader(
        topic="T", key="k", max_num=9, begin_timestamp=0, end_timestamp=2 * scene.clock.now_ms(),
        unique_key_query=True,
    )  # fmt: skip
    for most, found in ((32, 3), (2, 2)):
        update(scene, defaultQueryMaxNum=most)
        client = Client(scene)
        client.tell(query.QUERY_MESSAGE, header)
        scene.pass_ms(100)
        (answer,) = client.heard()
        assert len(decode_messages(answer.body)) == found


@check
def flush_interval_commit_log(scene: Scene) -> None:
    flush = scene.broker.parts.store.flush
    scene.pass_ms(1_000)
    update(scene, flushIntervalCommitLog=60_000)
    scene.pass_ms(1_000)
    Client(scene).send()
    scene.pass_ms(20_000)
    assert flush.flushed_offset == 0
    update(scene, flushIntervalCommitLog=500)
    scene.pass_ms(41_000)  # the period that had begun
    Client(scene).send()
    before = flush.flushed_offset
    scene.pass_ms(1_000)
    assert flush.flushed_offset > before


@check
def sync_flush_timeout(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scene.broker.parts.store.flush, "begin", lambda: None)
        for wait_ms, answers in ((9_000, 0), (2_000, 1)):
            update(scene, syncFlushTimeout=wait_ms)
            client = Client(scene)
            client.tell_send()
            scene.pass_ms(5_000)
            assert len(client.heard()) == answers
            scene.pass_ms(9_000)


@check
def enable_shutdown_gracefully(scene: Scene) -> None:
    scene.registered()
    client = Client(scene)
    update(scene, enableShutdownGracefully="true")
    assert scene.stop() == []
    assert client.send().code == ResponseCode.GO_AWAY


@check
def shutdown_wait_time_seconds(scene: Scene) -> None:
    scene.registered()
    update(scene, enableShutdownGracefully="true", shutdownWaitTimeSeconds=3)
    stopped = scene.stop()
    scene.pass_ms(2_900)
    assert stopped == []
    scene.pass_ms(200)
    assert stopped == [None]


@check
def max_bytes_held_for_peers(scene: Scene) -> None:
    scene.registered()
    held = scene.broker.server.shared.held
    for _ in range(3):
        Client(scene).protocol.dataReceived(UNFINISHED)
    assert held.crowded == 0
    update(scene, maxBytesHeldForPeers=32 << 20)
    Client(scene).protocol.dataReceived(UNFINISHED)
    assert held.crowded == 1


STORE_SETTINGS = {"sync_flush_timeout": {"flush_disk_type": "SYNC_FLUSH"}}
"""What else of the store a check needs from the start."""


@pytest.mark.parametrize("name", check)
def test_a_live_setting_counts_at_once(tmp_path: Path, name: str) -> None:
    check[name](Scene(tmp_path, STORE_SETTINGS.get(name)).start())


def test_each_live_setting_has_its_check() -> None:
    tables = (
        check, check_of_store, check_of_transactions, check_of_broadcasting, check_of_pops,
        check_of_timers, check_of_topics, check_of_replication,
    )  # fmt: skip
    assert set().union(*tables) == ALL_LIVE
