# SPDX-License-Identifier: Apache-2.0
"""The official Java producer: every way to send, and every kind of message."""

import hashlib
import os
import random

import pytest

from compat_tests.java_client import JavaError, Json, body, message, text
from compat_tests.peers import Origin
from compat_tests.scene import Scene

COMPRESSION_BITS = {"LZ4": 0x100, "ZSTD": 0x200, "ZLIB": 0x300}
"""By these, since the 5.4.0 client clears the flag 0x1 when it has decompressed a body."""
MAX_BODY_BYTES = 4 * 1024 * 1024


def position(item: Json) -> tuple[int, int]:
    queue = item.get("queue", item)
    return queue["queue_id"], item["queue_offset"]


@pytest.mark.both_releases
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_sent_messages_are_where_the_results_say(scene: Scene, mode: str) -> None:
    topic = scene.topic(queues=4)
    results = scene.producer().send([message(topic, f"m{n}") for n in range(40)], mode=mode)

    assert [result["status"] for result in results] == ["SEND_OK"] * 40
    received = {position(item): item for item in scene.read(topic, 40)}
    assert len(received) == 40
    for number, result in enumerate(results):
        item = received[position(result)]
        assert text(item) == f"m{number}"
        assert item["properties"]["UNIQ_KEY"] == result["msg_id"]
        assert result["region_id"] == "DefaultRegion"
    by_queue = [position(result)[0] for result in results]
    if mode == "sync":  # async sending has several threads, each with its own round
        assert {by_queue.count(queue) for queue in range(4)} == {10}
    assert set(by_queue) == {0, 1, 2, 3}


def test_offset_message_ids_name_the_broker_and_the_place(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    first, second = scene.producer().send([message(topic, "a"), message(topic, "b")])
    sizes = [item["store_size"] for item in scene.read(topic, 2)]

    host = "7F000001" + f"{scene.broker.port:08X}"
    assert first["offset_msg_id"].startswith(host)
    assert second["offset_msg_id"].startswith(host)
    places = [int(result["offset_msg_id"][16:], 16) for result in (first, second)]
    assert places[1] - places[0] >= sizes[0]


def test_oneway_messages_arrive(scene: Scene) -> None:
    topic = scene.topic()
    results = scene.producer().send([message(topic, f"m{n}") for n in range(20)], mode="oneway")

    assert results == [None] * 20
    assert {text(item) for item in scene.read(topic, 20)} == {f"m{n}" for n in range(20)}


@pytest.mark.both_releases
def test_a_batch_is_many_messages_in_one_queue(scene: Scene, origin: Origin) -> None:
    topic = scene.topic(queues=4)
    producer = scene.producer()
    batch = [
        message(topic, f"b{n}", tags=f"t{n}", keys=f"k{n}", properties={"n": str(n)})
        for n in range(32)
    ]
    result = producer.send_batch(batch, queue=scene.queue(topic, 2))

    assert result["status"] == "SEND_OK"
    assert len(set(result["msg_id"].split(","))) == 32
    assert len(set(result["offset_msg_id"].split(","))) == 32
    ids = result["msg_id"].split(",")
    received = scene.read(topic, 32)
    if scene.jvm.release == "5.4.0" and origin.behaves_as == "4.9.7":
        # The 5.4.0 client gives the batch an id too, with which a 4.9.7 broker replaces the others.
        (id_of_batch,) = {item["msg_id"] for item in received}
        ids = [id_of_batch] * 32
    assert [position(item) for item in received] == [(2, n) for n in range(32)]
    for number, item in enumerate(received):
        assert text(item) == f"b{number}"
        assert (item["tags"], item["keys"]) == (f"t{number}", f"k{number}")
        assert item["properties"]["n"] == str(number)
        assert item["properties"]["UNIQ_KEY"] == ids[number]


@pytest.mark.both_releases
def test_a_batch_without_a_queue_is_spread_by_batches(scene: Scene) -> None:
    topic = scene.topic(queues=2)
    producer = scene.producer()
    results = producer.send_batches(
        [[message(topic, f"{b}.{n}") for n in range(3)] for b in range(4)]
    )
    queues = [result["queue"]["queue_id"] for result in results]
    assert sorted(queues) == [0, 0, 1, 1]
    bodies = [text(item) for item in scene.read(topic, 12)]
    for batch in range(4):
        start = bodies.index(f"{batch}.0")
        assert bodies[start : start + 3] == [f"{batch}.{n}" for n in range(3)]


@pytest.mark.both_releases
def test_keys_tags_flag_and_properties_come_back(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    properties = {
        "plain": "value",
        "unicode": "größe 漢字 \U0001f680",
        "ключ": "значение",
        "spaces and = ; : signs": ' " \\ \n\t{}[] ',
        "long": "x" * 8000,
    }
    sent = message(
        topic, "body", tags="tag-ü", keys="k1 k2 ключ", flag=0x7FFF_0001, properties=properties
    )
    scene.producer().send([sent])

    (item,) = scene.read(topic, 1)
    assert (item["tags"], item["keys"], item["flag"]) == ("tag-ü", "k1 k2 ключ", 0x7FFF_0001)
    assert properties.items() <= item["properties"].items()
    assert item["properties"]["CLUSTER"] == "DefaultCluster"
    assert item["reconsume_times"] == 0
    assert item["store_timestamp"] >= item["born_timestamp"]


def test_unicode_and_binary_bodies(scene: Scene) -> None:
    topic = scene.topic(queues=1)
    bodies = ["größe 漢字 \U0001f680".encode(), bytes(range(256)), b"\x00", b"\x01\x02" * 100]
    scene.producer().send([message(topic, data) for data in bodies])

    assert [body(item) for item in scene.read(topic, 4)] == bodies


@pytest.mark.parametrize("compressible", [False, True])
def test_bodies_of_all_sizes(scene: Scene, compressible: bool) -> None:
    """Below and around the compression threshold, up to the largest the client sends."""
    topic = scene.topic(queues=1)
    chance = random.Random(7)
    sizes = [1, 2, 255, 4095, 4096, 4097, 65_536, 1_048_577, MAX_BODY_BYTES - 2048]
    if compressible:
        sizes.append(MAX_BODY_BYTES)
    alphabet = b"ab" if compressible else bytes(range(256))
    bodies = [bytes(chance.choices(alphabet, k=size)) for size in sizes]
    scene.producer().send([message(topic, data) for data in bodies])

    received = scene.read(topic, len(sizes))
    assert [item["body_bytes"] for item in received] == sizes
    expected = [hashlib.sha256(data).hexdigest() for data in bodies]
    assert [item["body_sha256"] for item in received] == expected
    assert [compression_of(item) for item in received] == [
        COMPRESSION_BITS["ZLIB"] if size >= 4096 else 0 for size in sizes
    ]
    if compressible:
        assert received[-1]["store_size"] < MAX_BODY_BYTES / 2


@pytest.mark.both_releases
def test_compressed_bodies(scene: Scene) -> None:
    """What the client can do: the 4.9.7 producer has no switch for anything but zlib."""
    kinds = ["ZLIB"] if scene.jvm.release == "4.9.7" else ["ZLIB", "LZ4", "ZSTD"]
    for kind in kinds:
        topic = scene.topic(queues=1)
        data = os.urandom(64) * 1000
        settings = {} if kind == "ZLIB" else {"compression": kind}
        scene.producer(**settings).send([message(topic, data), message(topic, b"small")])

        large, small = scene.read(topic, 2)
        assert large["body_sha256"] == hashlib.sha256(data).hexdigest()
        assert compression_of(large) == COMPRESSION_BITS[kind]
        assert large["store_size"] < len(data) / 2
        assert compression_of(small) == 0


def test_uncompressed_large_body(scene: Scene) -> None:
    """The whole four megabytes through one frame."""
    topic = scene.topic(queues=1)
    data = random.Random(3).randbytes(MAX_BODY_BYTES)
    producer = scene.producer(compress_over_bytes=100_000_000)
    producer.send([message(topic, data)])

    (item,) = scene.read(topic, 1)
    assert item["body_sha256"] == hashlib.sha256(data).hexdigest()
    assert compression_of(item) == 0


@pytest.mark.both_releases
def test_the_first_message_creates_its_topic(scene: Scene) -> None:
    topic = scene.unique("created")
    producer = scene.producer()
    with pytest.raises(JavaError) as unknown:
        scene.admin().topic_route(topic)
    assert unknown.value.code == 17

    producer.send([message(topic, "first")])
    scene.wait_for_route(topic)
    producer.send([message(topic, f"m{n}") for n in range(7)])
    assert len(scene.read(topic, 8)) == 8
    assert [queue["queue_id"] for queue in scene.producer().queues(topic)] == [0, 1, 2, 3]


def test_a_selector_keeps_each_key_in_one_queue(scene: Scene) -> None:
    topic = scene.topic(queues=4)
    producer = scene.producer()
    keys = [f"order-{n}" for n in range(12)]
    sent = [message(topic, f"{key}/{step}", shard=key) for step in range(5) for key in keys]
    for mode, part in (("sync", sent[:40]), ("async", sent[40:48]), ("oneway", sent[48:])):
        producer.send(part, mode=mode)

    queues: dict[str, set[int]] = {}
    for item in scene.read(topic, 60):
        queues.setdefault(text(item).split("/")[0], set()).add(item["queue_id"])
    assert {len(of_key) for of_key in queues.values()} == {1}
    assert len({queue for of_key in queues.values() for queue in of_key}) > 1
    for key, of_key in queues.items():
        assert of_key == {abs(java_hash(key)) % 4}


def compression_of(item: Json) -> int:
    return int(item["sys_flag"]) & 0x700


def java_hash(word: str) -> int:
    """String.hashCode of ASCII text."""
    value = 0
    for letter in word:
        value = (31 * value + ord(letter)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
