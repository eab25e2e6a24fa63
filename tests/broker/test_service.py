# SPDX-License-Identifier: Apache-2.0
"""A whole broker, on a reactor without a network and a clock that the tests advance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock, StringTransport

from tests.fakes import FakeConnections, SetClock
from txrocketmq.broker import membership
from txrocketmq.broker.cluster.registration import FIRST_PAUSE_MS
from txrocketmq.broker.service import Broker
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.remoting.call import Call, Reply
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.message.flags import PullSysFlag
from txrocketmq.remoting.message.message import decode_messages
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol import heartbeat, offset, pull, send, topic
from txrocketmq.remoting.protocol.body.heartbeat import ConsumerData, HeartbeatData
from txrocketmq.remoting.protocol.body.route import KVTable, RegisterBrokerBody, TopicConfig
from txrocketmq.remoting.protocol.heartbeat import HeartbeatRequestHeader
from txrocketmq.remoting.protocol.offset import UpdateConsumerOffsetRequestHeader
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader
from txrocketmq.remoting.protocol.route import (
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
)
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader
from txrocketmq.remoting.protocol.topic import CreateTopicRequestHeader
from txrocketmq.remoting.serialize.json import decode_body


class Wire(StringTransport):
    """A connection's end, with what TCP adds."""

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - ITCPTransport
        """Nothing to delay."""


class Client:
    """Somebody connected to one of the broker's ports."""

    def __init__(self, scene: Scene, port: int = 0) -> None:
        factory: Any = scene.reactor.tcpServers[port][1]
        self.wire: Any = Wire()  # type: ignore[no-untyped-call]
        self.protocol: Any = factory.buildProtocol(None)
        self.protocol.makeConnection(self.wire)
        self._decoder = FrameDecoder()

    def tell(self, call: Call[Any, Any], header: Header, body: bytes = b"") -> None:
        command = RemotingCommand(call.code, header.encode(), body, opaque=1)
        self.protocol.dataReceived(b"".join(map(bytes, encode_frame(command))))

    def heard(self) -> list[RemotingCommand]:
        data = self.wire.value()
        self.wire.clear()
        return self._decoder.receive(data)

    def ask(self, call: Call[Any, Any], header: Header, body: bytes = b"") -> RemotingCommand:
        self.tell(call, header, body)
        (answer,) = self.heard()
        return answer

    def beat(self, *groups: str) -> None:
        consumers = [
            ConsumerData(
                group_name=group,
                consume_type="CONSUME_PASSIVELY",
                message_model="CLUSTERING",
                consume_from_where="CONSUME_FROM_LAST_OFFSET",
                subscription_data_set=[SubscriptionData("T", sub_version=1)],
            )
            for group in groups or ("g",)
        ]
        data = HeartbeatData(client_id="c1", consumer_data_set=consumers)
        self.tell(heartbeat.HEART_BEAT, HeartbeatRequestHeader(), data.encode())

    def send(self, **properties: str) -> RemotingCommand:
        self.tell_send(**properties)
        (answer,) = self.heard()
        return answer

    def tell_send(self, **properties: str) -> None:
        text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
        header = SendMessageRequestHeader(
            producer_group="p",
            topic="T",
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=0,
            sys_flag=0,
            born_timestamp=1,
            flag=0,
            properties=text,
        )
        self.tell(send.SEND_MESSAGE, header, b"body")

    def pull(self, call: Call[Any, Any] = pull.PULL_MESSAGE) -> None:
        header = PullMessageRequestHeader(
            consumer_group="g",
            topic="T",
            queue_id=0,
            queue_offset=0,
            max_msg_nums=32,
            sys_flag=PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=15_000,
            subscription="*",
            sub_version=0,
        )
        self.tell(call, header)


class Scene:
    """A broker that has started, its name servers in the test's hands."""

    def __init__(
        self, folder: Path, store_settings: Mapping[str, Any] | None = None, **settings: Any
    ) -> None:
        self.folder = folder
        self.reactor = MemoryReactorClock()
        self.reactor.advance(1_700_000_000)
        self.clock = SetClock(self.reactor)
        self.connections = FakeConnections()
        self.broker = Broker(
            BrokerConfig(
                **{
                    "broker_ip1": "127.0.0.1",
                    "namesrv_addr": "127.0.0.1:9876",
                    **settings,
                }
            ),
            StoreConfig(
                store_path_root_dir=str(folder),
                mapped_file_size_commit_log=65_536,
                mapped_file_size_consume_queue=2_000,
                max_hash_slot_num=100,
                max_index_num=400,
                **(store_settings or {}),
            ),
            self.clock,
        )

    def start(self) -> Scene:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(membership, "Connections", lambda *_, **__: self.connections)
            self.broker.start()
        return self

    def pass_ms(self, ms: int, step_ms: int = 50) -> None:
        for _ in range(ms // step_ms):
            self.reactor.advance(step_ms / 1000)

    def registered(self) -> list[RegisterBrokerBody]:
        """The registrations since, each answered."""
        bodies = []
        for asked in self.connections.take():
            if asked.call.code == RequestCode.REGISTER_BROKER:
                bodies.append(RegisterBrokerBody.decode(asked.body))
                asked.pending.resolve(Reply(RegisterBrokerResponseHeader()))
        return bodies

    def stop(self) -> list[object]:
        """Stops; the name server's answer is given. Gives what `stop` fired with."""
        fired: list[object] = []
        self.broker.stop().addCallback(fired.append)
        for asked in self.connections.take():
            assert asked.call.code == RequestCode.UNREGISTER_BROKER
            assert fired == []
            asked.pending.resolve(Reply())
        return fired

    def saved(self, name: str) -> Any:
        return decode_body((self.folder / "config" / name).read_bytes())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path).start()


def test_it_listens_on_two_ports(scene: Scene) -> None:
    assert [server[0] for server in scene.reactor.tcpServers] == [10911, 10909, 10912]
    assert scene.broker.address == "127.0.0.1:10911"
    assert scene.broker.parts.known_as.store_host == bytes([127, 0, 0, 1]) + (10911).to_bytes(
        4, "big"
    )


def test_pulls_are_not_for_the_vip_port(scene: Scene) -> None:
    vip = Client(scene, port=1)
    assert vip.send().code == ResponseCode.SUCCESS
    vip.pull()
    (answer,) = vip.heard()
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def test_what_is_not_served_is_said(scene: Scene) -> None:
    client = Client(scene)
    header = UpdateConsumerOffsetRequestHeader(
        consumer_group="g", topic="T", queue_id=0, commit_offset=0
    )
    answer = client.ask(
        Call(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO, type(header), type(header)), header
    )
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def test_it_registers_at_the_start_and_every_30_seconds(scene: Scene) -> None:
    (body,) = scene.registered()
    wrapper = body.topic_config_serialize_wrapper
    assert wrapper.topic_config_table == scene.broker.parts.topics.all()
    assert wrapper.data_version == scene.broker.parts.topics.data_version
    scene.pass_ms(29_000, 1_000)
    assert scene.registered() == []
    scene.pass_ms(2_000)
    assert len(scene.registered()) == 1


def test_a_new_topic_is_registered_at_once_and_several_together(scene: Scene) -> None:
    scene.registered()
    Client(scene).send()
    (body,) = scene.registered()
    assert "T" in body.topic_config_serialize_wrapper.topic_config_table
    for name in "ABC":
        scene.broker.parts.topics.update(TopicConfig(topic_name=name))
    assert scene.registered() == []
    scene.pass_ms(100)
    (body,) = scene.registered()
    assert set("ABC") <= set(body.topic_config_serialize_wrapper.topic_config_table)
    scene.pass_ms(200)
    assert scene.registered() == []


def test_the_longer_topics_come_the_more_are_registered_together(scene: Scene) -> None:
    scene.registered()
    registered: list[int] = []
    for number in range(300):
        scene.broker.parts.topics.update(TopicConfig(topic_name=f"t{number}"))
        if scene.registered():
            registered.append(number)
        scene.pass_ms(1, 1)
    assert registered[0] == 0
    assert registered[1] <= FIRST_PAUSE_MS + 1, "the second does not wait for long"
    assert len(registered) <= 8


def test_order_topics_of_the_name_server_are_taken(scene: Scene) -> None:
    Client(scene).send()
    for asked in scene.connections.take():
        asked.pending.resolve(
            Reply(RegisterBrokerResponseHeader(), KVTable(table={"T": "b:4"}).encode())
        )
    assert scene.broker.parts.topics.is_order_topic("T")


def test_name_servers_that_change_are_told(scene: Scene) -> None:
    scene.registered()
    version = scene.broker.parts.topics.data_version
    scene.broker.parts.configuration.update({"namesrvAddr": "127.0.0.1:1;127.0.0.1:2"})
    assert [asked.address for asked in scene.connections.take()] == ["127.0.0.1:1", "127.0.0.1:2"]
    assert scene.broker.parts.topics.data_version == version


def test_a_changed_permission_is_told_to_name_servers(scene: Scene) -> None:
    scene.registered()
    parts = scene.broker.parts
    version = parts.topics.data_version
    parts.configuration.update({"longPollingEnable": "false"})
    assert not scene.registered()
    scene.pass_ms(50)
    parts.configuration.update({"brokerPermission": "4"})
    (body,) = scene.registered()
    wrapper = body.topic_config_serialize_wrapper
    assert wrapper.data_version == version.next(scene.broker.clock.now_ms())
    assert all(not topic.perm & 2 for topic in wrapper.topic_config_table.values())


def test_a_pull_that_waits_gets_the_message_when_it_comes(scene: Scene) -> None:
    producer, consumer = Client(scene), Client(scene)
    producer.send()
    consumer.pull()
    (answer,) = consumer.heard()
    assert [message.body for message in decode_messages(answer.body)] == [b"body"]
    scene.broker.parts.topics.delete("T")
    scene.broker.parts.store.delete_topic("T")
    scene.broker.parts.topics.update(TopicConfig(topic_name="T"))
    consumer.pull()
    assert consumer.heard() == []
    assert producer.send().code == ResponseCode.SUCCESS
    scene.pass_ms(50)
    (answer,) = consumer.heard()
    assert len(decode_messages(answer.body)) == 1


def test_a_pull_that_waits_ends_when_its_time_is_over(scene: Scene) -> None:
    consumer = Client(scene)
    scene.broker.parts.topics.update(TopicConfig(topic_name="T"))
    consumer.pull()
    scene.pass_ms(14_000, 500)
    assert consumer.heard() == []
    scene.pass_ms(2_000)
    (answer,) = consumer.heard()
    assert answer.code == ResponseCode.PULL_NOT_FOUND


def test_delayed_messages_come_when_they_are_due(scene: Scene) -> None:
    client = Client(scene)
    assert client.send(DELAY="1").code == ResponseCode.SUCCESS
    scene.pass_ms(900)
    assert scene.broker.parts.store.max_offset("T", 0) == 0
    scene.pass_ms(300)
    assert scene.broker.parts.store.max_offset("T", 0) == 1


def test_progress_of_delays_that_the_log_has_lost_is_taken_back(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "delayOffset.json").write_text('{"offsetTable":{1:5}}')
    scene = Scene(tmp_path).start()
    Client(scene).send(DELAY="1")
    scene.pass_ms(2_000)
    assert scene.broker.parts.store.max_offset("T", 0) == 1


def test_messages_reach_the_disk_twice_a_second(scene: Scene) -> None:
    Client(scene).send()
    flush = scene.broker.parts.store.flush
    assert flush.flushed_offset < flush.appended_offset
    scene.pass_ms(600)
    assert flush.flushed_offset == flush.appended_offset > 0


def test_offsets_are_saved_every_five_seconds(scene: Scene) -> None:
    scene.broker.parts.topics.update(TopicConfig(topic_name="T"))
    scene.broker.parts.groups.find("g")
    header = UpdateConsumerOffsetRequestHeader(
        consumer_group="g", topic="T", queue_id=0, commit_offset=7
    )
    Client(scene).ask(offset.UPDATE_CONSUMER_OFFSET, header)
    scene.pass_ms(5_100)
    assert scene.saved("consumerOffset.json")["offsetTable"] == {"T@g": {0: 7}}


def test_clients_are_told_of_each_other(scene: Scene) -> None:
    first, second = Client(scene), Client(scene)
    first.beat()
    scene.pass_ms(1, 1)
    first.heard()
    second.beat()
    scene.pass_ms(1, 1)  # what changes in a turn is told in the next
    codes = [command.code for command in first.heard()]
    assert codes == [RequestCode.NOTIFY_CONSUMER_IDS_CHANGED]
    second.heard()
    first.protocol.connectionLost()
    scene.pass_ms(1, 1)
    assert [command.code for command in second.heard()] == codes
    assert len(scene.broker.parts.consumers.groups()[0].members) == 1


def test_silent_clients_are_dropped(scene: Scene) -> None:
    client = Client(scene)
    client.beat()
    scene.pass_ms(135_000, 1_000)
    assert scene.broker.parts.consumers.groups() == []
    assert client.wire.disconnecting


def test_its_figures_count(scene: Scene) -> None:
    client = Client(scene)
    for _ in range(3):
        client.send()
        scene.pass_ms(10_000, 1_000)
    assert scene.broker.parts.stats.topic_put_tps("T") > 0


def test_it_stops_in_order_and_starts_where_it_was(scene: Scene) -> None:
    Client(scene).send()
    scene.broker.parts.offsets.commit("g", "T", 0, 1)
    scene.registered()
    assert (scene.folder / "abort").exists()
    assert scene.stop() == [None]
    assert scene.connections.is_closed
    assert not (scene.folder / "abort").exists()
    assert scene.saved("consumerOffset.json")["offsetTable"] == {"T@g": {0: 1}}
    assert "T" in scene.saved("topics.json")["topicConfigTable"]
    scene.pass_ms(60_000, 1_000)
    assert scene.connections.asked == []
    again = Scene(scene.folder).start()
    assert again.broker.parts.store.max_offset("T", 0) == 1
    assert again.broker.parts.offsets.query("g", "T", 0) == 1


def test_one_that_never_started_stops_too(tmp_path: Path) -> None:
    assert Scene(tmp_path).stop() == [None]


def test_without_a_port_the_store_is_closed_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path)

    def refuse(*_: object) -> None:
        raise CannotListenError("", 10911, OSError("in use"))

    scene.reactor.listenTCP = refuse  # type: ignore[method-assign]
    with pytest.raises(CannotListenError):
        scene.start()
    assert not (tmp_path / "abort").exists()
    Scene(tmp_path).start()


@pytest.mark.parametrize(("configured", "shown"), [(0, 11_001), (12_000, 12_000)])
def test_the_port_for_replication_is_beside_its_own_unless_told(
    tmp_path: Path, configured: int, shown: int
) -> None:
    scene = Scene(tmp_path, {"ha_listen_port": configured}, listen_port=11_000).start()
    assert scene.broker.parts.configuration.properties["haListenPort"] == str(shown)
    (asked,) = scene.connections.take()
    assert isinstance(asked.header, RegisterBrokerRequestHeader)
    assert asked.header.ha_server_addr == f"127.0.0.1:{shown}"


def test_no_address_is_told_where_nobody_listens(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"ha_allowed_addresses": ()}).start()
    header: Any = scene.connections.take()[0].header
    assert header.ha_server_addr == ""


def test_the_interval_of_flushes_may_change(scene: Scene) -> None:
    store = scene.broker.parts.store
    scene.broker.parts.configuration.update({"flushIntervalCommitLog": "5000"})
    scene.pass_ms(600)
    Client(scene).send()
    scene.pass_ms(4_000)
    assert store.flush.flushed_offset < store.flush.appended_offset
    scene.pass_ms(1_500)
    assert store.flush.flushed_offset == store.flush.appended_offset


def test_a_folder_is_called_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by the original, whatever a shell would make of it; all of the store is in one place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    scene = Scene(Path("~/store")).start()
    scene.broker.parts.topics.update(TopicConfig(topic_name="T"))
    assert not (tmp_path / "home").exists()
    assert sorted(path.name for path in (tmp_path / "~" / "store").iterdir() if path.is_dir()) == [
        "commitlog",
        "config",
        "consumequeue",
    ]


def test_an_administrator_is_answered_when_the_topic_is_on_disk(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One write answers all who came while another was made; a send does not wait."""
    threads: list[tuple[Callable[[], object], Deferred[None]]] = []

    def in_thread(work: Callable[[], object]) -> Deferred[None]:
        threads.append((work, Deferred()))
        return threads[-1][1]

    scene.registered()
    clients = [Client(scene) for _ in range(3)]
    with monkeypatch.context() as patched:
        patched.setattr(scene.broker.clock, "in_thread", in_thread)
        for number, client in enumerate(clients):
            client.tell(
                topic.UPDATE_AND_CREATE_TOPIC,
                CreateTopicRequestHeader(
                    topic=f"new{number}",
                    default_topic="TBW102",
                    read_queue_nums=4,
                    write_queue_nums=4,
                    perm=6,
                    topic_filter_type="SINGLE_TAG",
                ),
            )
        assert Client(scene).send().code == ResponseCode.SUCCESS
        written = []
        while threads:
            work, done = threads.pop(0)
            assert sum(len(client.heard()) for client in clients) == 0
            work()
            done.callback(None)
            written.append([len(client.heard()) for client in clients])
    assert [each for each in written if any(each)] == [[1, 0, 0], [0, 1, 1]]
    assert {"new0", "new1", "new2", "T"} <= scene.saved("topics.json")["topicConfigTable"].keys()
