# SPDX-License-Identifier: Apache-2.0
"""Our client with a route that contains only a slave: it can read, and nobody can send.

In 5.x the slave may act as master. The route then lists it as the master, without the right to
write. Our name server does so for brokers of the original, as theirs does.
"""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests import probe
from compat_tests.peers import Broker, NameServer, Origin, Ours
from compat_tests.scene import poll
from txrocketmq.client import (
    Admin,
    ConsumeFrom,
    NoRoute,
    Producer,
    PushConsumer,
    new_message,
)

TOPIC, QUEUES, COUNT = "of-two", 2, 20
GET_ALL_TOPIC_CONFIG, GET_MAX_OFFSET = 21, 30
REPLICATED_S = 90.0


@pytest.fixture(params=["slave", "acting", "acting, our name server"])
def pair(
    request: pytest.FixtureRequest, origin: Origin, test_folder: Path
) -> Iterator[tuple[Broker, Broker]]:
    """A master and its slave, which may be read (slaveReadEnable)."""
    acts = request.param != "slave"
    if acts and origin.behaves_as == "4.9.7":
        pytest.skip("slaves of 4.9.7 do not act as masters")
    is_ours = request.param.endswith("our name server")
    names = NameServer(Ours() if is_ours else origin, test_folder / "pair-namesrv")
    names.settings |= {"supportActingMaster": "true"} if acts else {}
    own = {"enableSlaveActingMaster": "true"} if acts else {}
    master = {"brokerRole": "ASYNC_MASTER", **own}
    slave = {"brokerRole": "SLAVE", "brokerId": "1", "slaveReadEnable": "true", **own}
    brokers = (
        Broker(origin, test_folder / "master", names, "broker-two", master),
        Broker(origin, test_folder / "slave", names, "broker-two", slave),
    )
    try:
        names.start()
        for broker in brokers:
            broker.start()
        yield brokers
    finally:
        for broker in brokers:
            broker.close()
        names.close()


def stored(broker: Broker) -> int:
    """How many messages the topic has at a broker."""
    total = 0
    for queue_id in range(QUEUES):
        asked = {"topic": TOPIC, "queueId": str(queue_id)}
        header, _ = probe.request(broker.port, GET_MAX_OFFSET, asked)
        total += int((header.get("extFields") or {}).get("offset", 0))
    return total


def knows_topic(broker: Broker) -> bool:
    """Slaves ask for topics every 10 s, and get messages at once."""
    _, body = probe.request(broker.port, GET_ALL_TOPIC_CONFIG)
    return f'"{TOPIC}"'.encode() in body


@pytest.mark.timeout(400)
def test_a_slave_is_read_and_nobody_can_send_until_the_master_is_back(
    pair: tuple[Broker, Broker],
) -> None:
    master, slave = pair
    acts = "enableSlaveActingMaster" in slave.settings
    why = "no master is registered for broker-two"
    if acts:
        why = "if the master of broker-two is away, a slave acts for it meanwhile"
    where: Any = {"namesrv_addr": master.name_server.address}
    wanted = {f"m{number}" for number in range(COUNT)}
    seen: set[str] = set()
    changed = threading.Event()

    def listen(messages: list[Any], context: Any) -> None:
        seen.update(message.body.decode() for message in messages)
        changed.set()

    with Producer("two-producer", **where) as producer:
        with Admin(**where) as admin:
            admin.create_topic(TOPIC, queues=QUEUES)
        for body in sorted(wanted):
            producer.send(new_message(TOPIC, body))
        poll(lambda: stored(slave) == COUNT, "the slave has all messages", REPLICATED_S)
        poll(lambda: knows_topic(slave), "the slave knows the topic", REPLICATED_S)
        master.kill()
        with Admin(**where) as admin:
            poll(
                lambda: master.address not in str(admin.topic_route(TOPIC)),
                "the route has no master",
                REPLICATED_S,
            )
            (left,) = admin.topic_route(TOPIC).broker_datas
            assert left.broker_addrs == {0 if acts else 1: slave.address}
        settings: Any = {"consume_from": ConsumeFrom.FIRST_OFFSET, **where}
        with PushConsumer("two-readers", {TOPIC: "*"}, listen, **settings):
            poll(lambda: seen == wanted, "all messages come from the slave", REPLICATED_S)
            with (
                Producer("two-later", **where) as later,
                pytest.raises(NoRoute, match=why),
            ):
                later.send(new_message(TOPIC, "x"))
            master.start()
            wanted.add("back")

            def is_sent() -> bool:
                try:
                    producer.send(new_message(TOPIC, "back"))
                except Exception:  # noqa: BLE001 - whatever it is: it is tried again
                    return False
                return True

            poll(is_sent, "the producer goes on", REPLICATED_S)
            poll(lambda: seen == wanted, "and the consumer", REPLICATED_S)
