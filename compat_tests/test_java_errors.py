# SPDX-License-Identifier: Apache-2.0
"""What the official Java client throws when the original refuses: class, code and text.

The expectations were recorded from the original brokers; where 4.9.7 and 5.4.0 differ, both are
given.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.java_client import JavaError, message
from compat_tests.peers import ORIGINALS_OF_5, Origin
from compat_tests.scene import Scene

MAX_BODY_BYTES = 4 * 1024 * 1024
TOO_LARGE = (
    "the message is illegal, maybe msg body or properties length not matched. "
    "msg body length limit 4194304B, msg properties length limit 32KB."
)
NO_ROUTE = 10005
MESSAGE_ILLEGAL = 13
NO_PERMISSION = 16
TOPIC_NOT_EXIST = 17
INVALID_PARAMETER = {"4.9.7": 1, "5.4.0": 29}
NO_SUCH_QUEUE = {"ours": 1, "original-4.9.7": 1, **dict.fromkeys(ORIGINALS_OF_5, 29)}
"""Of a send: clients try another queue after 1, and none after 29."""

Expected = tuple[str, int, str]


def thrown(act: Callable[[], Any], text: str) -> Expected:
    """Class and code of what ``act`` throws, and ``text`` if its message has that in it."""
    with pytest.raises(JavaError) as caught:
        act()
    error = caught.value
    assert error.code is not None, error
    return error.java_class, error.code, text if text in error.text else error.text


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_no_such_topic(strict_scene: Scene, mode: str) -> None:
    topic, text = strict_scene.unique("none"), "No route info of this topic"
    producer = strict_scene.producer()
    error = thrown(lambda: producer.send([message(topic, "m")], mode=mode), text)
    assert error == ("MQClientException", NO_ROUTE, text)


@pytest.mark.both_releases
@pytest.mark.parametrize("mode", ["sync", "async", "batch"])
def test_no_such_topic_at_the_broker(strict_scene: Scene, mode: str) -> None:
    """With a queue named the client asks the broker without looking for a route."""
    known, unknown = strict_scene.topic(), strict_scene.unique("none")
    producer = strict_scene.producer()
    producer.send([message(known, "m")])
    queue, sent = strict_scene.queue(unknown, 0), [message(unknown, "m")]
    text = f"topic[{unknown}] not exist, apply first please!"

    def send() -> None:
        if mode == "batch":
            producer.send_batch(sent, queue=queue)
        else:
            producer.send(sent, queue=queue, mode=mode)

    assert thrown(send, text) == ("MQBrokerException", TOPIC_NOT_EXIST, text)


def test_oneway_to_no_such_topic_is_not_answered(strict_scene: Scene) -> None:
    known, unknown = strict_scene.topic(queues=1), strict_scene.unique("none")
    producer = strict_scene.producer()
    producer.send([message(known, "before")])
    queue = strict_scene.queue(unknown, 0)
    assert producer.send([message(unknown, "m")], mode="oneway", queue=queue) == [None]
    producer.send([message(known, "after")])
    assert len(strict_scene.read(known, 2)) == 2


def test_too_large_for_the_client(scene: Scene) -> None:
    topic, text = scene.topic(), "the message body size over max value, MAX: 4194304"
    producer = scene.producer()
    sent = [message(topic, b"x" * (MAX_BODY_BYTES + 1))]
    assert thrown(lambda: producer.send(sent), text) == ("MQClientException", MESSAGE_ILLEGAL, text)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("excess", [1, 100_000])
def test_too_large_for_the_broker(scene: Scene, mode: str, excess: int) -> None:
    topic = scene.topic(queues=1)
    producer = scene.producer(max_message_bytes=20_000_000, compress_over_bytes=100_000_000)
    sent = [message(topic, random.Random(1).randbytes(MAX_BODY_BYTES + excess))]
    error = thrown(lambda: producer.send(sent, mode=mode), TOO_LARGE)
    assert error == ("MQBrokerException", MESSAGE_ILLEGAL, TOO_LARGE)

    producer.send([message(topic, "a small one still goes")])
    assert len(scene.read(topic, 1)) == 1


def test_a_batch_too_large_for_the_broker(scene: Scene, origin: Origin) -> None:
    topic = scene.topic(queues=1)
    producer = scene.producer(max_message_bytes=20_000_000)
    half = random.Random(1).randbytes(MAX_BODY_BYTES // 2 + 100)
    error = thrown(lambda: producer.send_batch([message(topic, half), message(topic, half)]), "")
    if origin.name in ORIGINALS_OF_5:  # its encoder throws, and so the client tries three times
        assert error[:2] == ("MQClientException", 1)
    else:
        assert error[:2] == ("MQBrokerException", MESSAGE_ILLEGAL)
    assert scene.read(topic, 0) == []


def test_properties_too_long(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    producer = scene.producer()
    producer.send([message(topic, "m", properties={"p": "x" * 32_000})])
    for length in (32_767, 40_000):
        sent = [message(topic, "m", properties={"p": "x" * length})]
        error = thrown(lambda sent=sent: producer.send(sent), TOO_LARGE)  # type: ignore[misc]
        assert error == ("MQBrokerException", MESSAGE_ILLEGAL, TOO_LARGE)
    assert len(scene.read(topic, 1)) == 1


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_no_write_permission(scene: Scene, mode: str) -> None:
    """The route has no queue to write, so the client does not get as far as the broker."""
    topic, text = scene.topic(queues=1, perm=4), "No route info of this topic"
    error = thrown(lambda: scene.producer().send([message(topic, "m")], mode=mode), text)
    assert error == ("MQClientException", NO_ROUTE, text)


def test_no_write_permission_is_not_checked_by_the_broker(scene: Scene) -> None:
    """As the original does: it leaves the permission of an ordinary topic to the route."""
    topic, known = scene.topic(queues=1, perm=4), scene.topic()
    producer = scene.producer()
    producer.send([message(known, "m")])
    (result,) = producer.send([message(topic, "m")], queue=scene.queue(topic, 0))
    assert result["status"] == "SEND_OK"


def test_no_read_permission(scene: Scene) -> None:
    topic = scene.topic(queues=1, perm=2)
    reader = scene.reader()
    reader.queues(scene.topic())  # makes the broker known
    text = f"the topic[{topic}] pulling message is forbidden"
    error = thrown(lambda: reader.pull(scene.queue(topic, 0), 0), text)
    assert error == ("MQBrokerException", NO_PERMISSION, text)
    text = f"Can not find Message Queue for this topic, {topic}"
    assert thrown(lambda: reader.queues(topic), text) == ("MQClientException", -1, text)


@pytest.mark.both_releases
def test_no_such_topic_to_pull(scene: Scene) -> None:
    topic, other = scene.unique("none"), scene.topic()
    reader = scene.reader()
    reader.pull(scene.queue(other, 0), 0)  # by which the client has the broker's address
    text = f"topic[{topic}] not exist, apply first please!"
    error = thrown(lambda: reader.pull(scene.queue(topic, 0), 0), text)
    assert error == ("MQBrokerException", TOPIC_NOT_EXIST, text)


def test_no_such_queue(scene: Scene, origin: Origin) -> None:
    topic = scene.topic(queues=2)
    code = INVALID_PARAMETER[origin.behaves_as]
    producer, reader = scene.producer(), scene.reader()
    producer.send([message(topic, "m")])
    reader.queues(topic)

    text = "request queueId[7] is illegal, TopicConfig [topicName=" + topic
    error = thrown(lambda: producer.send([message(topic, "m")], queue=scene.queue(topic, 7)), text)
    assert error == ("MQBrokerException", NO_SUCH_QUEUE[origin.name], text)
    for queue_id in (7, -1):
        text = f"queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[2]"
        queue = scene.queue(topic, queue_id)
        error = thrown(lambda queue=queue: reader.pull(queue, 0), text)  # type: ignore[misc]
        assert error == ("MQBrokerException", code, text)


def test_a_negative_queue_lets_the_broker_choose(scene: Scene) -> None:
    topic = scene.topic(queues=2)
    producer = scene.producer()
    producer.send([message(topic, "m")])
    (result,) = producer.send([message(topic, "m")], queue=scene.queue(topic, -1))
    assert result["queue"]["queue_id"] in (0, 1)
    assert len(scene.read(topic, 2)) == 2


@pytest.mark.both_releases
@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ("bad topic!", "illegal characters"),
        ("TBW102", "is conflict with system topic"),
        ("x" * 128, "is longer than topic max length"),
    ],
)
def test_topics_that_cannot_be_created(scene: Scene, origin: Origin, topic: str, text: str) -> None:
    error = thrown(lambda: scene.admin().create_topic(scene.broker.address, topic), text)
    assert error == ("MQClientException", INVALID_PARAMETER[origin.behaves_as], text)
