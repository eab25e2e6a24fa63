# SPDX-License-Identifier: Apache-2.0
"""What a guard refuses, a whole broker does not do: no kind of request passes it by, on no port."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.broker.test_service import Client, Scene
from txrocketmq.broker.service import Broker
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.codes import RequestCode, ResponseCode, SerializeType
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.guards import Guard
from txrocketmq.remoting.message.message import Message, encode_batch
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.heartbeat import ConsumerData, HeartbeatData
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.pull import PullMessageRequestHeader
from txrocketmq.remoting.protocol.send import SendMessageRequestHeader
from txrocketmq.remoting.protocol.topic import CreateTopicRequestHeader

NO_PERMISSION = int(ResponseCode.NO_PERMISSION)


def send_fields(topic: str = "T", *, letters: bool = True) -> dict[str, str]:
    header = SendMessageRequestHeader(
        producer_group="p", topic=topic, default_topic="TBW102", default_topic_queue_nums=4,
        queue_id=0, sys_flag=0, born_timestamp=1, flag=0,
        properties=encode_properties({"UNIQ_KEY": "7F00000100002A139A9E5EFB7A4F0000"}),
    )  # fmt: skip
    return header.encode_letters() if letters else header.encode()


def pull_fields() -> dict[str, str]:
    return PullMessageRequestHeader(
        consumer_group="g", topic="T", queue_id=0, queue_offset=0, max_msg_nums=32, sys_flag=4,
        commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
    ).encode()  # fmt: skip


def topic_fields() -> dict[str, str]:
    return CreateTopicRequestHeader(
        topic="Made", default_topic="TBW102", read_queue_nums=1, write_queue_nums=1, perm=6,
        topic_filter_type="SINGLE_TAG", topic_sys_flag=0, order=False,
    ).encode()  # fmt: skip


BEAT = HeartbeatData(
    client_id="c1",
    consumer_data_set=[
        ConsumerData(
            group_name="g",
            consume_type="CONSUME_PASSIVELY",
            message_model="CLUSTERING",
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            subscription_data_set=[SubscriptionData("T", sub_version=1)],
        )
    ],
).encode()

_BATCH = encode_batch([Message("T", b"one", 0, {}), Message("T", b"two", 0, {})])
REQUESTS: dict[str, tuple[int, dict[str, str] | None, bytes]] = {
    "send": (RequestCode.SEND_MESSAGE, send_fields(letters=False), b"body"),
    "send V2": (RequestCode.SEND_MESSAGE_V2, send_fields(), b"body"),
    "batch": (RequestCode.SEND_BATCH_MESSAGE, send_fields(), _BATCH),
    "pull": (RequestCode.PULL_MESSAGE, pull_fields(), b""),
    "heartbeat": (RequestCode.HEART_BEAT, None, BEAT),
    "create topic": (RequestCode.UPDATE_AND_CREATE_TOPIC, topic_fields(), b""),
    "broker config": (RequestCode.UPDATE_BROKER_CONFIG, None, b"longPollingEnable=false"),
    "unknown": (9_999, None, b""),
}


class Effects(NamedTuple):
    """What requests leave behind in a broker."""

    stored_bytes: int
    has_topic: bool
    has_consumer: bool
    polls: bool

    @classmethod
    def of(cls, broker: Broker) -> Effects:
        parts = broker.parts
        return cls(
            parts.store.max_physical_offset,
            parts.topics.get("Made") is not None,
            parts.consumers.group("g") is not None,
            parts.config.long_polling_enable,
        )


LEAVES_SOMETHING = {"send", "send V2", "batch", "heartbeat", "create topic", "broker config"}


def refuses_peer(refused: Client) -> Guard:
    def guard(peer: Peer, command: RemotingCommand) -> None:
        if peer is refused.protocol:
            raise ResponseError(ResponseCode.NO_PERMISSION, "not you")

    return guard


def refuses_code(code: int) -> Guard:
    def guard(peer: Peer, command: RemotingCommand) -> None:
        if command.code == code:
            raise ResponseError(ResponseCode.NO_PERMISSION, "not this")

    return guard


def ask(client: Client, *commands: RemotingCommand) -> list[RemotingCommand]:
    """The answers to the requests of one read."""
    data = b"".join(b"".join(map(bytes, encode_frame(each))) for each in commands)
    client.protocol.dataReceived(data)
    return client.heard()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path).start()
    made.broker.parts.topics.update(TopicConfig(topic_name="T"))
    return made


@pytest.mark.parametrize("flag", [0, ONEWAY_FLAG])
@pytest.mark.parametrize("form", list(SerializeType))
@pytest.mark.parametrize("port", [0, 1])
@pytest.mark.parametrize("kind", list(REQUESTS))
def test_what_a_guard_refuses_has_no_effect(
    scene: Scene, kind: str, port: int, form: int, flag: int
) -> None:
    code, fields, body = REQUESTS[kind]
    request = RemotingCommand(code, fields, body, flag=flag, opaque=7, serialize_type=form)
    client, other = Client(scene, port), Client(scene, port)
    before = Effects.of(scene.broker)
    told: list[Any] = [] if flag else [(7, NO_PERMISSION)] * 2
    for guard in (refuses_peer(client), refuses_code(code)):
        scene.broker.guards[:] = [guard]
        answers = ask(client, request, request)
        assert [(answer.opaque, answer.code) for answer in answers] == told
        assert Effects.of(scene.broker) == before
    scene.broker.guards[:] = [refuses_peer(client)]
    answers = ask(other, request)
    assert NO_PERMISSION not in [answer.code for answer in answers]
    assert (Effects.of(scene.broker) != before) == (kind in LEAVES_SOMETHING)


@pytest.mark.parametrize("port", [0, 1])
def test_requests_of_a_read_around_a_refused_one_are_served_in_their_order(
    scene: Scene, port: int
) -> None:
    def guard(peer: Peer, command: RemotingCommand) -> None:
        fields = command.ext_fields or {}
        if "Secret" in (fields.get("topic"), fields.get("b")):
            raise ResponseError(ResponseCode.NO_PERMISSION, "not Secret")

    scene.broker.guards.append(guard)
    scene.broker.parts.topics.update(TopicConfig(topic_name="Secret"))
    topics = ["T", "Secret", "T", "T", "Secret", "T"]
    answers = ask(
        Client(scene, port),
        *(
            RemotingCommand(
                RequestCode.SEND_MESSAGE_V2,
                send_fields(topic),
                b"body",
                opaque=opaque,
                serialize_type=opaque % 2,
            )
            for opaque, topic in enumerate(topics)
        ),
    )
    codes = [NO_PERMISSION if topic == "Secret" else 0 for topic in topics]
    assert [(answer.opaque, answer.code) for answer in answers] == list(enumerate(codes))
    offsets = [answer.ext_fields["queueOffset"] for answer in answers if answer.ext_fields]
    assert offsets == ["0", "1", "2", "3"]
    assert scene.broker.parts.store.max_offset("Secret", 0) == 0


def test_clients_are_sent_away_for_a_while_when_that_is_wanted(tmp_path: Path) -> None:
    scene = Scene(tmp_path, enable_shutdown_gracefully=True, shutdown_wait_time_seconds=30).start()
    client, vip = Client(scene), Client(scene, 1)
    assert scene.registered()
    stopped = scene.stop()
    for each in (client, vip):
        assert each.send().code == ResponseCode.GO_AWAY
    scene.pass_ms(29_000, 1_000)
    assert (stopped, client.wire.disconnecting) == ([], False)
    assert not scene.connections.take(), "it does not register anew"
    scene.broker.parts.registration.register(force=True)
    assert not scene.connections.take()
    assert scene.broker.membership.why_not_ready()
    scene.pass_ms(2_000, 1_000)
    assert (stopped, client.wire.disconnecting) == ([None], True)
    assert scene.broker.parts.store.max_offset("T", 0) == 0
