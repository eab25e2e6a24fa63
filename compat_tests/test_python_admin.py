# SPDX-License-Identifier: Apache-2.0
"""Our admin client on the servers under test, to which official Java clients are connected."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.java_client import message, text
from compat_tests.scene import Scene, poll
from txrocketmq.client import (
    Admin,
    AdminRefused,
    GroupNotFound,
    GroupOffline,
    GroupOnline,
    MessageNotFound,
    MessageQueue,
    NoRoute,
    NotKept,
    TrackType,
    aio,
)


@pytest.fixture
def admin(scene: Scene) -> Iterator[Any]:
    with Admin(namesrv_addr=scene.namesrv) as admin:
        yield admin


def is_of_4(scene: Scene) -> bool:
    return scene.broker.origin.behaves_as.startswith("4.")


def has_route(admin: Any, topic: str) -> bool:
    try:
        return bool(admin.topic_route(topic).queue_datas)
    except NoRoute:
        return False


def test_a_topic_from_its_creation_to_its_end(scene: Scene, admin: Any) -> None:
    topic = scene.unique("admin-topic")
    admin.create_topic(topic, queues=3)
    scene.wait_for_route(topic)
    assert topic in admin.topics()
    assert topic in admin.topics("DefaultCluster")
    config = admin.topic_configs(topic)[scene.broker.name]
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (3, 3, 6)
    assert [each.max_offset for each in admin.topic_stats(topic).queues] == [0, 0, 0]
    admin.update_topic(topic, write_queues=2, perm=4)
    config = admin.topic_configs(topic)[scene.broker.name]
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (3, 2, 4)
    admin.delete_topic(topic)
    assert topic not in admin.topics()
    with pytest.raises(NoRoute, match=topic):
        admin.delete_topic(topic)
    with pytest.raises(AdminRefused, match="TBW102") as refused:
        admin.create_topic("TBW102")
    assert refused.value.address == scene.broker.address


def test_an_ordered_topic_with_attributes(scene: Scene, admin: Any) -> None:
    topic = scene.unique("admin-fifo")
    attributes = {"message.type": "FIFO"}
    if is_of_4(scene):
        with pytest.raises(NotKept, match=r"of 4\.x"):
            admin.create_topic(topic, attributes=attributes)
        assert topic not in admin.topics()
        attributes = {}
    admin.create_topic(topic, queues=2, order=True, attributes=attributes)
    poll(lambda: has_route(admin, topic), "the topic is registered")
    assert admin.kv_config("ORDER_TOPIC_CONFIG", topic) == f"{scene.broker.name}:2"
    config = admin.topic_configs(topic)[scene.broker.name]
    assert config.order is not is_of_4(scene)  # which has the name servers keep it alone
    assert dict(config.attributes) == attributes
    if attributes:
        admin.update_topic(topic, attributes={"message.type": None})
        assert not admin.topic_configs(topic)[scene.broker.name].attributes
    admin.delete_topic(topic)
    assert admin.kv_config("ORDER_TOPIC_CONFIG", topic) is None


def test_a_group_from_its_creation_to_its_end(scene: Scene, admin: Any) -> None:
    group = scene.unique("admin-group")
    with pytest.raises(GroupNotFound, match=group):
        admin.group_configs(group)
    admin.create_group(group, retry_max_times=3, retry_queue_nums=2)
    admin.update_group(group, consume_broadcast_enable=False)
    config = admin.group_configs(group)[scene.broker.name]
    assert (config.retry_max_times, config.retry_queue_nums) == (3, 2)
    assert not config.consume_broadcast_enable
    if is_of_4(scene):
        with pytest.raises(NotKept, match="consume_timeout_minute"):
            admin.update_group(group, consume_timeout_minute=7)
    else:
        admin.update_group(group, consume_timeout_minute=7)
        assert admin.group_configs(group)[scene.broker.name].consume_timeout_minute == 7
    assert group in admin.groups()
    with pytest.raises(GroupOffline, match=group):
        admin.consumer_connections(group)
    admin.delete_group(group)
    assert group not in admin.groups()


def test_messages_are_found(scene: Scene, admin: Any) -> None:
    topic = scene.topic(queues=2)
    begin_ms = int(time.time() * 1000) - 1_000
    sent = scene.producer().send(
        [message(topic, f"m{n}", tags="a", keys=f"k{n} both") for n in range(5)]
    )
    poll(lambda: len(admin.messages_by_key(topic, "both")) == 5, "they are in the index")
    for n, each in enumerate(sent):
        for msg_id in (each["msg_id"], each["offset_msg_id"]):
            found = admin.message(topic, msg_id)
            assert (found.body, found.broker_name) == (f"m{n}".encode(), scene.broker.name)
    (third,) = admin.messages_by_key(topic, "k3")
    assert third.body == b"m3"
    assert admin.messages_by_key(topic, "k") == []
    place = MessageQueue(topic, scene.broker.name, third.queue_id)
    assert admin.message_at(place, third.queue_offset).body == b"m3"
    assert {each.body for each in admin.messages_between(topic, begin_ms)} == {
        f"m{n}".encode() for n in range(5)
    }
    assert admin.messages_between(topic, begin_ms - 60_000, begin_ms) == []
    assert admin.messages_between(topic, begin_ms, expression="b") == []
    assert len(admin.messages_between(topic, begin_ms, max_messages=3)) == 3
    with pytest.raises(MessageNotFound, match="no broker of topic"):
        admin.message(topic, "0" * 32)
    again = admin.resend(topic, sent[1]["msg_id"])
    assert again.msg_id != sent[1]["msg_id"]
    assert sorted(text(item) for item in scene.read(topic, 6)).count("m1") == 2
    poll(lambda: len(admin.messages_by_key(topic, "k1")) == 2, "it is in the index, too")
    (twin,) = [each for each in admin.messages_by_key(topic, "k1") if each.msg_id == again.msg_id]
    assert (twin.tags, twin.body) == ("a", b"m1")


@pytest.mark.both_releases
def test_a_java_consumer_is_seen_and_sent_back(scene: Scene, admin: Any) -> None:
    topic, group = scene.topic(queues=2), scene.unique("admin-group")
    admin.create_group(group)
    sent = scene.producer().send([message(topic, f"m{n}") for n in range(6)])
    consumer = scene.push_consumer(topic, group)
    consumer.wait_for(6)
    poll(lambda: admin.progress(group, topic).lag == 0, "all is committed", 60)
    assert {each.consumer_offset for each in admin.progress(group, topic).queues} != {0}
    connection = admin.consumer_connections(group)
    (client,) = connection.connection_set
    assert client.language == "JAVA"
    assert topic in connection.subscription_table
    assert admin.topic_groups(topic) == [group]
    running = admin.consumer_running_info(group, client.client_id)
    assert any(queue.topic == topic for queue in running.mq_table)
    found = admin.message(topic, sent[0]["msg_id"])
    assert [(each.group, each.track) for each in admin.message_tracks(found)] == [
        (group, TrackType.CONSUMED)
    ]
    result = admin.consume_directly(group, client.client_id, topic, sent[0]["msg_id"])
    assert result.consume_result == "CR_SUCCESS"
    assert all(each.message_queue.topic == topic for each in admin.time_spans(group, topic))
    with pytest.raises(GroupOnline, match="reset_offsets"):
        admin.set_offset(group, MessageQueue(topic, scene.broker.name, 0), 0)
    before = len(consumer.wait_for(7))
    done = admin.reset_offsets(group, topic, "first")
    assert set(done.values()) == {0}
    poll(lambda: len(consumer.messages()) >= before + 6, "all six come again", 90)


def test_offsets_of_a_group_that_nobody_consumes_as(scene: Scene, admin: Any) -> None:
    topic, group = scene.topic(queues=2), scene.unique("admin-group")
    with pytest.raises(GroupNotFound, match=group):
        admin.reset_offsets(group, topic, "first")
    admin.create_group(group)
    scene.producer().send([message(topic, f"m{n}") for n in range(8)])
    queues = [MessageQueue(topic, scene.broker.name, n) for n in range(2)]
    poll(lambda: sum(map(admin.max_offset, queues)) == 8, "all are in their queues")
    assert admin.reset_offsets(group, topic, "last") == {
        queue: admin.max_offset(queue) for queue in queues
    }
    assert admin.progress(group, topic).lag == 0
    assert set(admin.reset_offsets(group, topic, "first").values()) == {0}
    assert admin.progress(group, topic).lag == 8
    late = int(time.time() * 1000) + 60_000
    # For a time after the last message 4.x finds the last message, not what comes after it.
    assert sum(admin.reset_offsets(group, topic, late).values()) == (6 if is_of_4(scene) else 8)
    admin.set_offset(group, queues[1], 1)
    assert admin.consumer_offset(group, queues[1]) == 1
    other = scene.unique("admin-group")
    admin.create_group(other)
    cloned = admin.clone_offsets(group, other, topic)
    assert cloned[queues[1]] == 1
    assert admin.consumer_offset(other, queues[1]) == 1
    left = admin.progress(group, topic).lag
    consumer = scene.push_consumer(topic, group)
    assert len(consumer.wait_for(left)) == left


def test_producers_are_seen(scene: Scene, admin: Any) -> None:
    topic = scene.topic(queues=1)
    producer = scene.producer()
    producer.send([message(topic, "x")])
    poll(
        lambda: any(
            each.language == "JAVA"
            for group in admin.producers(scene.broker.name)
            for each in admin.producer_connections(group, topic)
        ),
        "the Java producer is connected",
        40,
    )
    assert admin.producer_connections("nobody", topic) == []


def test_servers_and_their_settings(scene: Scene, admin: Any) -> None:
    name = scene.broker.name
    assert scene.broker.address in {each.address for each in admin.brokers("DefaultCluster")}
    assert "DefaultCluster" in admin.clusters()
    assert admin.broker_stats(name)["brokerVersionDesc"]
    assert admin.broker_config(name)["brokerName"] == name
    before = admin.broker_config(name)["longPollingEnable"]
    admin.update_broker_config(name, {"longPollingEnable": before})
    assert admin.broker_config(scene.broker.address)["longPollingEnable"] == before
    ((address, settings),) = admin.namesrv_config().items()
    assert address == scene.namesrv
    assert settings["listenPort"] == scene.namesrv.rpartition(":")[2]
    admin.update_namesrv_config({"scanNotActiveBrokerInterval": "5000"})
    admin.put_kv_config("compat", "k", "v")
    assert admin.kv_config("compat", "k") == "v"
    assert admin.kv_configs("compat") == {"k": "v"}
    admin.delete_kv_config("compat", "k")
    assert admin.kv_config("compat", "k") is None
    topic = scene.topic(queues=1)
    try:
        assert admin.wipe_write_perm(name) > 0
        assert admin.topic_route(topic).queue_datas[0].perm == 4
    finally:  # other tests use this broker
        changed = admin.add_write_perm(name)
    assert changed > 0
    assert admin.topic_route(topic).queue_datas[0].perm == 6
    admin.clean_unused_topics(name)
    admin.clean_expired_queues(name)
    if is_of_4(scene):
        with pytest.raises(AdminRefused, match="older release"):
            admin.timer_stats(name)
    else:
        assert dict(admin.timer_stats(name)) is not None


def test_a_java_trace_is_read(scene: Scene, admin: Any) -> None:
    topic = scene.topic(queues=1)
    (sent,) = scene.producer(trace=True).send([message(topic, "12345", tags="t", keys="k")])

    def traced() -> bool:
        try:
            return bool(admin.message_trace(sent["msg_id"]))
        except NoRoute:  # the first trace makes the topic
            return False

    poll(traced, "it is traced", 30)
    (record,) = admin.message_trace(sent["msg_id"])
    assert (record.word, record.topic, record.body_bytes) == ("Pub", topic, 5)
    assert (record.tags, record.keys, record.success) == ("t", "k", True)


def test_asyncio(scene: Scene) -> None:
    topic = scene.topic(queues=3)

    async def main() -> int:
        async with aio.Admin(namesrv_addr=scene.namesrv) as admin:
            return len((await admin.topic_stats(topic)).queues)

    assert asyncio.run(main()) == 3
