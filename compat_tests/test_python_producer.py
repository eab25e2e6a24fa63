# SPDX-License-Identifier: Apache-2.0
"""Our producer in all its ways, with the official Java client as the consumer."""

import asyncio
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from compat_tests import probe
from compat_tests.java_client import ClientJvm, JavaError, message, text
from compat_tests.java_client import Producer as JavaProducer
from compat_tests.peers import Broker, NameServer, Origin
from compat_tests.scene import Scene, poll
from compat_tests.transactions import Asker, Replier
from txrocketmq.client import (
    CompressionType,
    ConsumeFrom,
    NoRoute,
    Producer,
    PushConsumer,
    TransactionProducer,
    TransactionStatus,
    aio,
    by_hash,
    compat,
    new_message,
    split_batches,
)

CHECKS: Final = {
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "transactionOpBatchInterval": "200",
}
"""The broker asks soon what became of a transaction."""
WAIT_MS: Final = 20_000
TOPIC_NOT_EXIST: Final = 17


def producer_of(scene: Scene, **settings: Any) -> Any:
    return Producer(
        scene.unique("python"), namesrv_addr=scene.namesrv, send_timeout_ms=WAIT_MS, **settings
    )


def test_every_way_to_send_reaches_java(scene: Scene) -> None:
    topic = scene.topic(queues=4)
    consumer = scene.push_consumer(topic, scene.unique("group"))
    with producer_of(scene) as producer:
        sent = producer.send(
            new_message(
                topic, "sync 漢字", tags="a", keys=["k1", "k2"], properties={"own": "1"}, flag=5
            )
        )
        futures = [producer.send_async(new_message(topic, f"async {n}")) for n in range(5)]
        assert len({future.result(60).msg_id for future in futures}) == 5
        producer.send_oneway(new_message(topic, "oneway"))
        batch = [new_message(topic, f"batch {n}", tags="b") for n in range(20)]
        for part in split_batches(batch, max_messages=7):
            producer.send_batch(part)
        chosen = producer.publish_queues(topic)[2]
        assert producer.send(new_message(topic, "to a queue"), queue=chosen).queue == chosen
    wanted = {
        "sync 漢字", "oneway", "to a queue", *(f"async {n}" for n in range(5)),
        *(f"batch {n}" for n in range(20)),
    }  # fmt: skip
    received = {text(item): item for item in consumer.wait_for(len(wanted))}
    assert set(received) == wanted
    first = received["sync 漢字"]
    assert (first["tags"], first["keys"], first["flag"]) == ("a", "k1 k2", 5)
    assert first["properties"]["own"] == "1"
    assert first["msg_id"] == sent.msg_id
    assert received["batch 3"]["tags"] == "b"


@pytest.mark.both_releases
@pytest.mark.parametrize("kind", list(CompressionType))
def test_java_reads_what_is_compressed(scene: Scene, kind: CompressionType) -> None:
    topic = scene.topic(queues=1)
    with producer_of(scene, compression=kind, compress_body_over_bytes=1_000) as producer:
        producer.send(new_message(topic, "x" * 3_000))
    (item,) = scene.read(topic, 1)
    assert text(item) == "x" * 3_000


def test_a_key_has_the_queue_that_java_gives_it(scene: Scene) -> None:
    topic = scene.topic(queues=7)
    keys = ["orderId", "漢字", "", *(f"key-{n}" for n in range(20))]
    java = scene.producer().send([message(topic, "java", shard=key) for key in keys])
    with producer_of(scene) as producer:
        own = [producer.send(new_message(topic, "x"), selector=by_hash, key=key) for key in keys]
    assert [each.queue.queue_id for each in own] == [
        each["queue"]["queue_id"] for each in java
    ]  # fmt: skip


def test_a_delay_level(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    consumer = scene.push_consumer(topic, scene.unique("group"))
    with producer_of(scene) as producer:
        begun = time.time()
        producer.send(new_message(topic, "later", delay_level=2))
        (item,) = consumer.wait_for(1)
    assert time.time() - begun >= 4.5
    assert text(item) == "later"


def test_asking_java(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    replier = Replier(
        scene.jvm, scene.unique("replier"), scene.namesrv, topic=topic,
        group=scene.unique("repliers"), delay_ms=0,
    )  # fmt: skip
    scene._clients.append(replier)
    with producer_of(scene) as producer:
        reply = producer.request(new_message(topic, "how much?"), timeout_ms=60_000)
    assert reply.body == b"re: how much?"
    assert reply.topic == "DefaultCluster_REPLY_TOPIC"


@pytest.mark.both_releases
def test_answering_java(scene: Scene) -> None:
    from txrocketmq.client import PushConsumer  # noqa: PLC0415 - for this scenario alone

    topic = scene.topic(queues=1)
    asker = Asker(scene.jvm, scene.unique("asker"), scene.namesrv)
    scene._clients.append(asker)
    with producer_of(scene) as producer:

        def answer(messages: list[Any], _: Any) -> None:
            for each in messages:
                producer.reply(each, b"re: " + each.body)

        group = scene.unique("repliers")
        with PushConsumer(group, {topic: "*"}, answer, namesrv_addr=scene.namesrv):
            reply = asker.request(message(topic, "how much?"), timeout_s=60)
    assert text(reply) == "re: how much?"


@pytest.fixture(scope="module")
def asking_broker(origin: Origin, name_server: NameServer, work_folder: Any) -> Iterator[Broker]:
    recalls = {} if origin.name == "original-4.9.7" else {"recallMessageEnable": "true"}
    folder = work_folder / "python-transactions"
    broker = Broker(origin, folder, name_server, "broker-p", {**CHECKS, **recalls})
    broker.start()
    yield broker
    broker.close()


def test_transactions(scene: Scene, asking_broker: Broker) -> None:
    scene = Scene(scene.jvm, asking_broker)
    topic, asked = scene.topic(queues=2), []

    def check(its: Any) -> TransactionStatus:
        asked.append(its.body)
        return TransactionStatus.COMMIT if its.body == b"late" else TransactionStatus.ROLLBACK

    endings = {
        "now": TransactionStatus.COMMIT,
        "never": TransactionStatus.ROLLBACK,
        "late": TransactionStatus.UNKNOWN,
        "late never": TransactionStatus.UNKNOWN,
    }
    group = scene.unique("transactions")
    with TransactionProducer(group, check, namesrv_addr=scene.namesrv) as producer:
        for body, status in endings.items():
            result = producer.send_in_transaction(
                new_message(topic, body), lambda _, status: status, status
            )
            assert result.status is status
        poll(lambda: {b"late", b"late never"} <= set(asked), "the broker has asked", 90)
        received = scene.read(topic, 2, 60)
    assert sorted(text(item) for item in received) == ["late", "now"]
    scene.close()


@pytest.mark.both_releases
def test_traces_are_as_the_original_writes_them(scene: Scene) -> None:
    topic, traces = scene.topic(queues=1), scene.topic("traces", queues=1)
    java = scene.producer()
    java.send([message(topic, "java", tags="t", keys="k")])
    with producer_of(scene, enable_trace=True, trace_topic=traces) as producer:
        sent = producer.send(new_message(topic, "12345", tags="t", keys="k"))
        group = producer.group
    (item,) = scene.read(traces, 1)
    fields = text(item).rstrip("\x02").split("\x01")
    assert fields[0] == "Pub"
    assert fields[2:10] == [
        "DefaultRegion", group, topic, sent.msg_id, "t", "k", scene.broker.address, "5",
    ]  # fmt: skip
    assert fields[11:] == ["0", sent.offset_msg_id, "true"]
    assert set(item["keys"].split()) == {"k", sent.msg_id}


def test_a_timer_message_is_taken_back(scene: Scene, asking_broker: Broker) -> None:
    scene = Scene(scene.jvm, asking_broker)
    if scene.broker.origin.name == "original-4.9.7":
        pytest.skip("4.9.7 has no timer messages")
    topic = scene.topic(queues=1)
    with producer_of(scene) as producer:
        later = int(time.time() * 1000) + 8_000
        recalled = producer.send(new_message(topic, "recalled", deliver_at_ms=later))
        assert recalled.recall_handle is not None
        producer.send(new_message(topic, "delivered", deliver_at_ms=later))
        assert producer.recall(topic, recalled.recall_handle) == recalled.msg_id
        received = scene.read(topic, 1, 60)
        time.sleep(3)
        received = scene.read(topic, 1, 60)
    assert [text(item) for item in received] == ["delivered"]


def test_asyncio_reaches_java(scene: Scene) -> None:
    topic = scene.topic(queues=4)

    async def main() -> None:
        async with aio.Producer(
            scene.unique("python"), namesrv_addr=scene.namesrv, send_timeout_ms=WAIT_MS
        ) as producer:
            await asyncio.gather(*(producer.send(new_message(topic, f"m{n}")) for n in range(50)))

    asyncio.run(main())
    assert {text(item) for item in scene.read(topic, 50)} == {f"m{n}" for n in range(50)}


def test_programs_of_the_older_python_client(scene: Scene) -> None:
    """The programs of the README of apache/rocketmq-client-python, after one changed import."""
    topic, got = scene.topic(queues=2), []
    producer = compat.Producer(scene.unique("python"))
    producer.set_name_server_address(scene.namesrv)
    producer.start()
    for n in range(5):
        msg = compat.Message(topic)
        msg.set_keys("ABC")
        msg.set_tags("ABC")
        msg.set_body(f"body {n}")
        ret = producer.send_sync(msg)
        assert (ret.status, len(ret.msg_id)) == (compat.SendStatus.OK, 32)
    ordered = [producer.send_orderly_with_sharding_key(msg, "orderId") for _ in range(3)]
    assert [each.offset - ordered[0].offset for each in ordered] == [0, 1, 2]
    producer.send_oneway(msg)
    producer.shutdown()
    assert len(scene.read(topic, 9)) == 9

    def callback(msg: compat.ReceivedMessage) -> compat.ConsumeStatus:
        got.append((msg.id, msg.body, msg.tags, msg.keys))
        return compat.ConsumeStatus.CONSUME_SUCCESS

    group = scene.unique("python")
    consumer = compat.PushConsumer(group)
    consumer.set_name_server_address(scene.namesrv)
    consumer.subscribe(topic, callback)
    consumer._set("consume_from", ConsumeFrom.FIRST_OFFSET)
    consumer.start()
    # At least once: a member may begin while its group still changes.
    poll(lambda: len({each[0] for each in got}) == 9, "all are consumed", 60)
    consumer.shutdown()
    assert {each[1] for each in got} == {f"body {n}".encode() for n in range(5)}
    assert {each[2:] for each in got} == {(b"ABC", b"ABC")}


@contextmanager
def listener() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The address of a name server that knows nothing, and the fields of what it is asked."""
    asked: list[dict[str, str]] = []

    class Asked(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while True:
                try:
                    header, _ = probe.read_frame(self.request)
                except OSError:
                    return
                asked.append(header.get("extFields") or {})
                answer = {"code": TOPIC_NOT_EXIST, "opaque": header["opaque"], "flag": 1}
                probe.send_frame(self.request, answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Asked) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def test_a_namespace_beside_the_names_is_written_as_java_writes_it(
    jvms: dict[str, ClientJvm],
) -> None:
    jvm = jvms["5.4.0"]
    with listener() as (address, asked):
        java = JavaProducer(jvm, "names-space", address, namespace_v2="space")
        with pytest.raises(JavaError, match="No route info"):
            java.send([message("T", "x")])
        java.stop()
        said, asked[:] = {tuple(sorted(each.items())) for each in asked}, []
        with (
            Producer("space", namesrv_addr=address, namespace_v2="space") as producer,
            pytest.raises(NoRoute),
        ):
            producer.send(new_message("T", "x"))
        own = [each for each in asked if each.get("topic") == "T"]
    wanted = {"topic": "T", "nsd": "true", "ns": "space"}
    assert any(wanted.items() <= set(each) for each in said)
    assert own
    assert all(wanted.items() <= each.items() for each in own)


def test_a_namespace_beside_the_names_separates_nobody(
    jvms: dict[str, ClientJvm], broker: Broker
) -> None:
    """It is for servers of vendors: name servers, brokers and proxies of the original ignore it."""
    scene = Scene(jvms["5.4.0"], broker)
    topic, got = scene.topic(queues=2), list[tuple[str, bytes]]()

    def listen(messages: list[Any], context: Any) -> None:
        got.extend((each.topic, each.body) for each in messages)

    settings: Any = {"namesrv_addr": scene.namesrv, "consume_from": ConsumeFrom.FIRST_OFFSET}
    java = [
        scene.push_consumer(topic, scene.unique("group"), namespace_v2=name)
        for name in ("space", "other")
    ]
    scene.producer(namespace_v2="space").send([message(topic, "java")])
    with (
        producer_of(scene, namespace_v2="space") as producer,
        PushConsumer(scene.unique("group"), {topic: "*"}, listen, namespace_v2="other", **settings),
    ):
        producer.send(new_message(topic, "sync"))
        producer.send_async(new_message(topic, "async")).result(60)
        producer.send_oneway(new_message(topic, "oneway"))
        producer.send_batch([new_message(topic, "batch")])
        wanted = {"java", "sync", "async", "oneway", "batch"}
        for each in java:
            received = each.wait_for(len(wanted))
            assert {(item["topic"], text(item)) for item in received} == {
                (topic, body) for body in wanted
            }
        poll(lambda: {(topic, body.encode()) for body in wanted} == set(got), "all are there", 60)
    scene.close()
