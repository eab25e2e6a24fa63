# SPDX-License-Identifier: Apache-2.0
"""The classes of rocketmq-client-python; compat_tests run its programs against servers."""

from __future__ import annotations

from typing import Any

import pytest

from txrocketmq.client import blocking, compat
from txrocketmq.client.blocking import ConsumeOrderlyContext, ConsumeOrderlyStatus
from txrocketmq.client.blocking import ConsumeStatus as CoreConsumeStatus
from txrocketmq.client.blocking import MessageModel as CoreMessageModel
from txrocketmq.client.blocking import SendStatus as CoreSendStatus
from txrocketmq.client.blocking import TransactionStatus as CoreTransactionStatus
from txrocketmq.client.consumer.listening.listener import ConsumeContext
from txrocketmq.client.producer.send_result import SendResult, TransactionSendResult
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

QUEUE = MessageQueue("T", "b", 0)
STORED = SendResult(CoreSendStatus.FLUSH_DISK_TIMEOUT, "ID", "O", QUEUE, 7)


class Client:
    """In place of the blocking face's classes."""

    made: Any = None

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self.arguments, self.settings = arguments, settings
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.is_shut_down = False
        self.error: Exception | None = None
        type(self).made = self

    def start(self) -> Client:
        if self.settings.get("namesrv_addr") == "bad":
            raise ValueError("no address")
        return self

    def shutdown(self) -> None:
        self.is_shut_down = True

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append((name, arguments, named))
            if self.error is not None:
                raise self.error
            if name == "send_in_transaction":
                status = arguments[1](arguments[0], arguments[2])
                return TransactionSendResult(STORED, status)
            return STORED

        return call


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch) -> type[Client]:
    for name in ("Producer", "TransactionProducer", "PushConsumer"):
        monkeypatch.setattr(blocking, name, Client)
    return Client


def a_message() -> compat.Message:
    message = compat.Message("T")
    message.set_keys("k1 k2")
    message.set_tags(b"t")
    message.set_body("x")
    message.set_property("own", "1")
    message.set_delay_time_level(3)
    return message


def test_settings_and_a_send(client: type[Client]) -> None:
    producer = compat.Producer("g", timeout=5, compress_level=6, max_message_size=7)
    producer.set_namesrv_addr("n:1")
    producer.set_name_server_domain("d")
    producer.set_instance_name("i")
    producer.set_session_credentials("me", "hidden", "CLOUD")
    producer.set_message_trace(True)
    producer.set_group("h")
    producer.start()
    assert client.made.arguments == ("h",)
    assert client.made.settings == {
        "send_timeout_ms": 5, "compression_level": 6, "max_message_bytes": 7, "namesrv_addr": "n:1",
        "namesrv_domain": "d", "instance_name": "i", "access_key": "me", "secret_key": "hidden",
        "enable_trace": True,
    }  # fmt: skip
    result = producer.send_sync(a_message())
    assert result == (compat.SendStatus.FLUSH_DISK_TIMEOUT, "ID", 7)
    ((_, (message,), _),) = client.made.calls
    assert message.properties == {"KEYS": "k1 k2", "TAGS": "t", "own": "1", "DELAY": "3"}
    with pytest.raises(compat.RocketMQException, match="before the start"):
        producer.set_timeout(1)
    with pytest.raises(compat.RocketMQException, match="group can be set only before the start"):
        producer.set_group("other")
    producer.shutdown()
    producer.shutdown()
    assert client.made.is_shut_down


def test_each_send_has_a_message_of_its_own(client: type[Client]) -> None:
    with compat.Producer("g") as producer:
        message = a_message()
        producer.send_oneway(message)
        producer.send_orderly_with_sharding_key(message, "key")
    (_, (one,), _), (_, (two,), named) = client.made.calls
    assert one is not two
    assert named["key"] == "key"


def test_errors_have_the_names_of_the_original(client: type[Client]) -> None:
    producer = compat.Producer("g")
    with pytest.raises(compat.ProducerException, match="not started"):
        producer.send_sync(a_message())
    producer.set_name_server_address("bad")
    with pytest.raises(compat.ProducerStartFailed, match="no address"):
        producer.start()
    producer.set_name_server_address("good")
    producer.start()
    client.made.error = LookupError("no route")
    with pytest.raises(compat.ProducerSendSyncFailed, match="no route"):
        producer.send_sync(a_message())
    with pytest.raises(compat.ProducerSendOnewayFailed):
        producer.send_oneway(a_message())
    with pytest.raises(compat.ProducerSendOrderlyFailed):
        producer.send_orderly_with_sharding_key(a_message(), "k")


def test_transactions(client: type[Client]) -> None:
    seen: list[Any] = []

    def check(message: compat.ReceivedMessage) -> Any:
        return compat.TransactionStatus.ROLLBACK

    def execute(message: compat.ReceivedMessage, argument: Any) -> Any:
        seen.append((message.body, argument))
        return compat.TransactionStatus.COMMIT

    producer = compat.TransactionMQProducer("g", check)
    producer.start()
    group, core_check = client.made.arguments
    assert group == "g"
    assert core_check(MessageExt("T", b"x")) is CoreTransactionStatus.ROLLBACK
    assert producer.send_message_in_transaction(a_message(), execute, 5).msg_id == "ID"
    assert seen == [(b"x", 5)]
    with pytest.raises(compat.ProducerSendSyncFailed, match="TransactionStatus"):
        producer.send_message_in_transaction(a_message(), lambda m, a: None)  # type: ignore[arg-type,return-value]


def consumed(answers: dict[bytes, Any], *bodies: bytes) -> tuple[CoreConsumeStatus, int | None]:
    consumer = compat.PushConsumer("g")
    consumer.subscribe("T", lambda message: answers[message.body], "a || b")
    consumer.set_thread_count(5)
    consumer.set_message_batch_max_size(2)
    consumer.start()
    group, expressions, listener = Client.made.arguments
    assert (group, expressions) == ("g", {"T": "a || b"})
    assert Client.made.settings == {
        "consume_concurrency": 5, "consume_message_batch_max_size": 2, "orderly": False,
        "message_model": CoreMessageModel.CLUSTERING,
    }  # fmt: skip
    context = ConsumeContext(QUEUE)
    status = listener([MessageExt("T", body) for body in bodies], context)
    return status, context.ack_index


def test_consuming() -> None:
    good, later = compat.ConsumeStatus
    assert consumed({b"x": good}, b"x") == (CoreConsumeStatus.CONSUME_SUCCESS, 0)
    assert consumed({b"x": later}, b"x")[0] is CoreConsumeStatus.RECONSUME_LATER
    both = {b"x": good, b"y": later}
    assert consumed(both, b"x", b"y") == (CoreConsumeStatus.CONSUME_SUCCESS, 0)
    with pytest.raises(ValueError, match="ConsumeStatus"):
        consumed({b"x": None}, b"x")


def test_consuming_in_order() -> None:
    good, later = compat.ConsumeStatus
    answers: dict[bytes, Any] = {b"x": good, b"y": later, b"z": None}
    seen: list[bytes] = []

    def consume(message: compat.ReceivedMessage) -> Any:
        seen.append(message.body)
        return answers[message.body]

    consumer = compat.PushConsumer("g", orderly=True)
    consumer.subscribe("T", consume)
    consumer.start()
    assert Client.made.settings["orderly"] is True
    listener = Client.made.arguments[2]

    def status(*bodies: bytes) -> Any:
        return listener([MessageExt("T", body) for body in bodies], ConsumeOrderlyContext(QUEUE))

    assert status(b"x") is ConsumeOrderlyStatus.SUCCESS
    assert status(b"y", b"x") is ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
    assert seen == [b"x", b"y"]
    with pytest.raises(ValueError, match="ConsumeStatus"):
        status(b"z")


def test_broadcasting() -> None:
    consumer = compat.PushConsumer("g", message_model=compat.MessageModel.BROADCASTING)
    with pytest.raises(compat.PushConsumerException, match="7 is not a MessageModel"):
        consumer.set_message_model(7)
    consumer.start()
    assert Client.made.settings["message_model"] is CoreMessageModel.BROADCASTING
