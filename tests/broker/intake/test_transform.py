# SPDX-License-Identifier: Apache-2.0
"""A transform that nobody knew of is obeyed by every way in, as soon as it is declared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.conftest import STORE_HOST
from tests.broker.delays.scene import deliver
from tests.broker.processors.sends import Sending, Writing
from tests.fakes import request
from txrocketmq.broker.intake.inner_message import InnerMessage, Way
from txrocketmq.broker.intake.transform import ActsOn, NotTaken, Transforms, no_transforms
from txrocketmq.broker.processors.send.send_back import SendBackProcessor
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.remoting.codes import RequestCode, SerializeType
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.message.message import Message, encode_batch
from txrocketmq.remoting.message.properties import encode_properties
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.protocol.send import (
    ConsumerSendMsgBackRequestHeader,
    SendMessageRequestHeader,
)

KEY = "7F00000100002A139A9E5EFB7A4F0000"
SECRET_FLAG = 0x10000
ACTS_ON = {
    "property": ActsOn(properties=frozenset({"secret"})),
    "topic": ActsOn(topics=frozenset({"SecretTopic"})),
    "prefix": ActsOn(topic_prefixes=("Secret",)),
    "attribute": ActsOn(topic_attributes=frozenset({"message.type"})),
    "flag": ActsOn(sys_flags=SECRET_FLAG),
}


class MadeUp:
    """Marks what it acts on."""

    def __init__(self, acts_on: ActsOn) -> None:
        self.acts_on = acts_on

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        message.properties["MARK"] = "seen"


class Scene:
    """A broker with a made-up transform beside its own."""

    def __init__(self, folder: Path, kind: str, acts_on: ActsOn) -> None:
        self.kind = kind
        self.sending = Sending(folder)
        parts = self.parts = self.sending.parts
        self.topic = "SecretTopic" if kind in ("topic", "prefix") else "T"
        for name in ("T", "SecretTopic"):
            parts.topic(name)
        if kind == "attribute":
            parts.topics.update(
                TopicConfig(
                    topic_name="T",
                    read_queue_nums=4,
                    write_queue_nums=4,
                    attributes={"+message.type": "NORMAL"},
                )
            )
        own = parts.intake.transforms
        parts.intake.transforms = Transforms(
            (*own._transforms, MadeUp(acts_on)), own._attributes_of
        )
        self.sending.dispatcher.use(Writing(parts).registry)

    def header(self) -> SendMessageRequestHeader:
        return SendMessageRequestHeader(
            producer_group="p", topic=self.topic, default_topic="TBW102",
            default_topic_queue_nums=4, queue_id=1,
            sys_flag=SECRET_FLAG if self.kind == "flag" else 0, born_timestamp=1, flag=0,
            properties=encode_properties({"UNIQ_KEY": KEY, **self.properties()}),
        )  # fmt: skip

    def properties(self) -> dict[str, str]:
        return {"secret": "x"} if self.kind == "property" else {}

    def serve(self, *commands: RemotingCommand) -> None:
        data = b"".join(b"".join(map(bytes, encode_frame(each))) for each in commands)
        answers = self.sending.receive(data)
        assert [answer.code for answer in answers] == [0] * len(answers)

    def marks(self) -> list[str | None]:
        return [message.properties.get("MARK") for message in self.sending.stored()]


@pytest.fixture(params=list(ACTS_ON))
def scene(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(tmp_path, request.param, ACTS_ON[request.param])
    yield made
    made.sending.close()


@pytest.mark.parametrize("code", [RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2])
@pytest.mark.parametrize("form", [SerializeType.JSON, SerializeType.ROCKETMQ])
@pytest.mark.parametrize("flag", [0, ONEWAY_FLAG])
def test_sends_of_every_form(scene: Scene, code: int, form: int, flag: int) -> None:
    fields = scene.header()
    ext = fields.encode() if code == RequestCode.SEND_MESSAGE else fields.encode_letters()
    send = RemotingCommand(code, ext, b"body", flag=flag, serialize_type=form)
    for _ in range(2):
        scene.serve(send, send)
    assert scene.marks() == ["seen"] * 4


def test_batches(scene: Scene) -> None:
    fields = scene.header()
    body = encode_batch([Message(scene.topic, b"one", 0, scene.properties())] * 2)
    scene.serve(RemotingCommand(RequestCode.SEND_BATCH_MESSAGE, fields.encode_letters(), body))
    assert scene.marks() == ["seen"] * 2


def put(scene: Scene, topic: str, **properties: str) -> int:
    """Stores a message as if it had been there before the transform."""
    parts = scene.parts
    message = InnerMessage(
        topic, 0, b"body", 1, STORE_HOST, STORE_HOST, {**properties, **scene.properties()}
    )
    message.sys_flag = SECRET_FLAG if scene.kind == "flag" else 0
    (result,) = parts.store.put([message.to_put()], parts.now_ms)
    return result.physical_offset


def test_what_is_sent_back(scene: Scene) -> None:
    parts = scene.parts
    processor = SendBackProcessor(
        parts.config,
        parts.topics,
        parts.groups,
        parts.intake,
        parts.stats,
        STORE_HOST,
        parts.clock,
        parts.patience,
    )
    header = ConsumerSendMsgBackRequestHeader(offset=put(scene, "T"), group="g", delay_level=1)
    processor.send_back(request(header, now_ms=parts.now_ms))
    goes_elsewhere = scene.kind in ("topic", "prefix", "attribute")  # to the group's retry topic
    assert scene.marks() == [None, None if goes_elsewhere else "seen"]


def test_what_is_due(scene: Scene) -> None:
    parts = scene.parts
    put(scene, "SCHEDULE_TOPIC_XXXX", DELAY="1", REAL_TOPIC=scene.topic, REAL_QID="0")
    assert deliver(parts.schedule, parts.now_ms + 1_000_000) == 1
    assert scene.marks() == [None, "seen"]


def test_what_nothing_touches_is_plain(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "", ActsOn(properties=frozenset({"secret"})))
    send = RemotingCommand(RequestCode.SEND_MESSAGE_V2, scene.header().encode_letters(), b"body")
    scene.serve(send, send)
    assert scene.marks() == [None, None]
    scene.sending.close()


# ------------------------------------------------------------------------- the table itself


class Noted:
    """Notes that it was there, and may move the message elsewhere."""

    def __init__(self, told: list[str], name: str, acts_on: ActsOn, to: str = "") -> None:
        self.acts_on = acts_on
        self._told = told
        self._name = name
        self._to = to

    def apply(self, message: InnerMessage, now_ms: int) -> None:
        self._told.append(self._name)
        message.topic = self._to or message.topic


def message(topic: str = "T", way: Way = Way.SEND) -> InnerMessage:
    return InnerMessage(topic, 0, b"body", 1, bytes(8), bytes(8), way=way)


def test_transforms_act_in_their_order_and_on_what_others_made_of_it() -> None:
    told: list[str] = []
    transforms = no_transforms(
        [
            Noted(told, "first", ActsOn(topics=frozenset({"T"})), "U"),
            Noted(told, "second", ActsOn(topics=frozenset({"U"}))),
            Noted(told, "third", ActsOn(topics=frozenset({"T"}))),
        ]
    )
    transforms.apply(message(), 0)
    assert told == ["first", "second"]


def test_a_transform_may_be_for_some_ways_only() -> None:
    told: list[str] = []
    acts_on = ActsOn(properties=frozenset({"p"}), topics=frozenset({"T"}), ways=Way.SEND_BACK)
    transforms = no_transforms([Noted(told, "once", acts_on)])
    for way in Way:
        transforms.apply(message(way=way), 0)
    assert told == ["once"]
    assert transforms.properties(Way.SEND_BACK) == {"p"}
    assert transforms.properties(Way.SEND) == frozenset()
    assert transforms.touches_topic(Way.SEND_BACK, "T", 0)
    assert not transforms.touches_topic(Way.SEND, "T", 0)


def test_why_a_message_is_not_taken() -> None:
    assert str(NotTaken(PutStatus.MESSAGE_ILLEGAL)) == "MESSAGE_ILLEGAL"
