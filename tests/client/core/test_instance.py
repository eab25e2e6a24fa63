# SPDX-License-Identifier: Apache-2.0
"""One client: routes that are kept current, addresses, heartbeats, the end."""

from __future__ import annotations

from typing import cast

import pytest
from twisted.internet.testing import MemoryReactorClock

from tests.client.fakes import (
    BROKER_A,
    BROKER_B,
    NAME_SERVER,
    Scene,
    a_route,
    given,
    result_of,
    started,
)
from tests.remoting.transport.wires import FarEnd
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import BrokerNotExist, ClientClosed, NoNameServer, NoRoute
from txrocketmq.client.core.instance import FIRST_HEARTBEAT_MS, ClientInstance, client_id
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.message.message import MessageQueue
from txrocketmq.remoting.protocol import heartbeat
from txrocketmq.remoting.protocol.body.heartbeat import HeartbeatData
from txrocketmq.remoting.protocol.body.route import BrokerData
from txrocketmq.remoting.protocol.route import GET_ROUTEINFO_BY_TOPIC
from txrocketmq.remoting.transport.client import Connections

QUEUE = MessageQueue("T", "broker-a", 0)


def topics_asked(scene: Scene) -> list[str]:
    return [header.topic for _, header in scene.connections.questions(GET_ROUTEINFO_BY_TOPIC)]


def test_the_id_has_address_instance_and_unit() -> None:
    named = ClientConfig(instance_name="one", unit_name="u")
    assert client_id("10.0.0.9", named) == "10.0.0.9@one@u"
    unnamed = client_id("10.0.0.9", ClientConfig())
    assert unnamed.startswith("10.0.0.9@")
    assert unnamed != client_id("10.0.0.9", ClientConfig())


def test_a_route_is_asked_for_once(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 2})
    info = result_of(scene.client.publish_info("T", "TBW102", 4))
    assert len(info.queues) == 2
    assert result_of(scene.client.publish_info("T", "TBW102", 4)) is info
    assert len(result_of(scene.client.subscribe_queues("T"))) == 2
    assert topics_asked(scene) == ["T"]


def test_all_who_ask_at_once_share_one_question(scene: Scene) -> None:
    answer = PendingReply()
    scene.connections.on(NAME_SERVER, GET_ROUTEINFO_BY_TOPIC, answer)
    asking = [started(scene.client.subscribe_queues("T")) for _ in range(3)]
    assert topics_asked(scene) == ["T"]
    answer.resolve(Reply(body=a_route({"broker-a": 1}).encode()))
    assert [result_of(one) for one in asking] == [[QUEUE]] * 3


def test_a_new_topic_goes_where_topics_are_created(scene: Scene) -> None:
    scene.routes["TBW102"] = a_route({"broker-a": 8, "broker-b": 3})
    info = result_of(scene.client.publish_info("New", "TBW102", 4))
    assert topics_asked(scene) == ["New", "TBW102"]
    counts = [q.broker_name for q in info.queues]
    assert (counts.count("broker-a"), counts.count("broker-b")) == (4, 3)
    assert {q.topic for q in info.queues} == {"New"}


def test_consumers_do_not_create_topics(scene: Scene) -> None:
    scene.routes["TBW102"] = a_route({"broker-a": 8})
    with pytest.raises(NoRoute, match=f"topic T has no route: .*{NAME_SERVER} has it"):
        result_of(scene.client.subscribe_queues("T"))


def test_without_a_pattern_there_is_no_route(scene: Scene) -> None:
    with pytest.raises(NoRoute, match="autoCreateTopicEnable"):
        result_of(scene.client.publish_info("T", "TBW102", 4))


def test_a_topic_that_may_not_be_written_is_not_created(scene: Scene) -> None:
    scene.routes |= {"TBW102": a_route({"broker-a": 8}), "T": a_route({"broker-a": 4}, perm=4)}
    with pytest.raises(NoRoute, match="no writing"):
        result_of(scene.client.publish_info("T", "TBW102", 4))


def test_routes_are_polled_and_watchers_hear_of_changes_only(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 1})
    result_of(scene.client.subscribe_queues("T"))
    heard: list[int] = []
    unwatch = scene.client.watch("T", lambda: heard.append(1))
    scene.client.start()
    scene.time.advance(30)
    assert topics_asked(scene) == ["T", "T"]
    assert heard == []
    scene.routes["T"] = a_route({"broker-a": 2})
    scene.time.advance(30)
    assert heard == [1]
    assert len(result_of(scene.client.subscribe_queues("T"))) == 2
    unwatch()
    scene.routes["T"] = a_route({"broker-a": 3})
    scene.time.advance(30)
    assert heard == [1]


def test_a_topic_that_vanishes_keeps_its_last_route(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 1})
    result_of(scene.client.subscribe_queues("T"))
    del scene.routes["T"]
    assert result_of(scene.client.refresh("T")) is False
    assert result_of(scene.client.subscribe_queues("T")) == [QUEUE]


def test_a_poll_that_fails_is_not_the_last(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 1})
    result_of(scene.client.subscribe_queues("T"))
    scene.client.start()
    scene.connections.on(NAME_SERVER, GET_ROUTEINFO_BY_TOPIC, ConnectError("down"))
    scene.time.advance(30)
    scene.connections.on(NAME_SERVER, GET_ROUTEINFO_BY_TOPIC, scene._route)
    scene.routes["T"] = a_route({"broker-a": 2})
    scene.time.advance(30)
    assert len(result_of(scene.client.subscribe_queues("T"))) == 2


def test_an_address_is_looked_for_once_more(scene: Scene) -> None:
    with pytest.raises(BrokerNotExist, match="broker-a has no master now"):
        result_of(scene.client.address_to_publish(QUEUE))
    with pytest.raises(BrokerNotExist, match="broker-a is not available now"):
        result_of(scene.client.address_to_subscribe(QUEUE))
    scene.routes["T"] = a_route({"broker-a": 1})
    assert result_of(scene.client.address_to_publish(QUEUE)) == BROKER_A
    assert result_of(scene.client.address_to_subscribe(QUEUE, 1)) == BROKER_A


def test_brokers_of_other_topics_stay_known(scene: Scene) -> None:
    scene.routes |= {"T": a_route({"broker-a": 1}), "U": a_route({"broker-b": 1})}
    result_of(scene.client.subscribe_queues("T"))
    result_of(scene.client.subscribe_queues("U"))
    assert sorted(scene.client.brokers.masters()) == [BROKER_A, BROKER_B]
    scene.routes["T"] = a_route({"broker-b": 1})
    result_of(scene.client.refresh("T"))
    assert scene.client.brokers.masters() == [BROKER_B]


def test_heartbeats_tell_of_producers(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 1, "broker-b": 1})
    scene.connections.on(BROKER_A, heartbeat.HEART_BEAT, Reply())
    result_of(scene.client.subscribe_queues("T"))
    scene.client.start()
    scene.time.advance(FIRST_HEARTBEAT_MS / 1000)
    assert scene.connections.questions(heartbeat.HEART_BEAT) == []
    scene.client.register_producer("g2")
    scene.client.register_producer("g1")
    scene.time.advance(30)  # broker-b refuses the connection: a warning, no more
    beats = [one for one in scene.connections.asked if one[1] is heartbeat.HEART_BEAT]
    assert sorted(one[0] for one in beats) == [BROKER_A, BROKER_B]
    data = HeartbeatData.decode(beats[0][3])
    assert data.client_id == scene.client.client_id
    assert [each.group_name for each in data.producer_data_set] == ["g1", "g2"]
    scene.time.advance(30)
    assert len(scene.connections.questions(heartbeat.HEART_BEAT)) == 4


def test_the_end_is_told_to_brokers(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 1, "broker-b": 1})
    scene.connections.on(BROKER_B, heartbeat.UNREGISTER_CLIENT, Reply())
    result_of(scene.client.subscribe_queues("T"))
    scene.client.register_producer("g")
    scene.client.start()
    result_of(scene.client.stop())
    told = scene.connections.questions(heartbeat.UNREGISTER_CLIENT)
    assert sorted(address for address, _ in told) == [BROKER_A, BROKER_B]
    assert scene.connections.closed
    assert scene.time.getDelayedCalls() == []
    result_of(scene.client.stop())
    assert len(scene.connections.questions(heartbeat.UNREGISTER_CLIENT)) == 2


def test_an_answer_after_the_end_is_no_route(scene: Scene) -> None:
    answer = PendingReply()
    scene.connections.on(NAME_SERVER, GET_ROUTEINFO_BY_TOPIC, given(answer))
    asking = started(scene.client.subscribe_queues("T"))
    result_of(scene.client.stop())
    answer.resolve(Reply(body=a_route({"broker-a": 1}).encode()))
    with pytest.raises(ClientClosed):
        result_of(asking)


def test_no_name_server_is_told_as_such(scene: Scene) -> None:
    scene.connections.on(NAME_SERVER, GET_ROUTEINFO_BY_TOPIC, ConnectError("refused"))
    with pytest.raises(NoNameServer, match=f"{NAME_SERVER} .refused."):
        result_of(scene.client.publish_info("T", "TBW102", 4))


def test_brokers_that_do_not_answer_hold_up_the_end_only_so_long() -> None:
    reactor = MemoryReactorClock()
    config = ClientConfig(namesrv_addr=NAME_SERVER, client_ip="10.0.0.9")
    client = ClientInstance(config, Clock(reactor))
    client.start()
    client.register_producer("g")
    client.brokers.update([BrokerData(broker_name="broker-a", broker_addrs={0: BROKER_A})])
    ending = started(client.stop())
    FarEnd(reactor.tcpClients[0][2].buildProtocol(None), port=10_911)
    for _ in range(config.api_timeout_ms // 100 + 5):
        assert not ending.called or reactor.seconds() * 1000 >= config.api_timeout_ms
        reactor.advance(0.1)
    assert ending.called
    assert reactor.getDelayedCalls() == []


def test_a_route_without_a_master_says_so(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 2}, addresses={"broker-a": {1: BROKER_A}})
    with pytest.raises(NoRoute, match="no master is registered for broker-a; a slave takes no"):
        result_of(scene.client.publish_info("T", "TBW102", 4))


def test_a_new_connection_to_a_broker_is_told_who_is_here(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 1, "broker-b": 1})
    result_of(scene.client.publish_info("T", "TBW102", 4))
    scene.client.register_producer("g")
    scene.client._connected(BROKER_A)
    assert scene.connections.questions(heartbeat.HEART_BEAT) == []  # the start looks after that
    scene.client._connected(BROKER_A)
    for _ in range(2):
        scene.client._connected("10.0.0.7:9876")  # no broker
    assert [address for address, _ in scene.connections.questions(heartbeat.HEART_BEAT)] == [
        BROKER_A
    ]


def test_producers_of_a_group_leave_with_the_last_of_them(scene: Scene) -> None:
    scene.routes["T"] = a_route({"broker-a": 1})
    result_of(scene.client.publish_info("T", "TBW102", 4))
    scene.client.register_producer("g")
    scene.client.register_producer("g")
    result_of(scene.client.unregister_producer("g"))
    assert scene.connections.questions(heartbeat.UNREGISTER_CLIENT) == []
    result_of(scene.client.unregister_producer("g"))
    ((_, header),) = scene.connections.questions(heartbeat.UNREGISTER_CLIENT)
    assert header.producer_group == "g"


def test_name_servers_that_a_server_tells(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetch(config: ClientConfig, clock: Clock) -> str:
        return "10.0.0.5:9876; 10.0.0.6:9876"

    monkeypatch.setattr("txrocketmq.client.core.top_addressing.fetch", fetch)
    config = ClientConfig(namesrv_addr="", namesrv_domain="tells", client_ip="10.0.0.9")
    client = ClientInstance(config, Clock(scene.time), cast(Connections, scene.connections))
    client.start()
    assert client.name_servers.addresses == []
    scene.time.advance(10)
    assert sorted(client.name_servers.addresses) == ["10.0.0.5:9876", "10.0.0.6:9876"]


def test_ids_of_clients(scene: Scene) -> None:
    named = ClientConfig(instance_name="n", unit_name="u")
    assert client_id("1.2.3.4", named) == "1.2.3.4@n@u"
    assert client_id("1.2.3.4", ClientConfig()) != client_id("1.2.3.4", ClientConfig())
    kept = ClientConfig(keep_default_instance_name=True)
    assert client_id("1.2.3.4", kept) == "1.2.3.4@DEFAULT"


def test_namespaces(scene: Scene) -> None:
    scene.client.config = ClientConfig(namespace="ns")
    assert scene.client.with_namespace("%RETRY%g") == "%RETRY%ns%g"
    assert scene.client.without_namespace("ns%T") == "T"


def test_a_pattern_without_a_master_is_no_route(scene: Scene) -> None:
    scene.routes["TBW102"] = a_route({"broker-a": 4}, addresses={"broker-a": {1: BROKER_A}})
    with pytest.raises(NoRoute, match="no master is registered for broker-a"):
        result_of(scene.client.publish_info("T", "TBW102", 4))
    with pytest.raises(NoRoute, match="no master is registered for broker-a"):
        result_of(scene.client.publish_info("T", "TBW102", 4))
