# SPDX-License-Identifier: Apache-2.0
"""What a broker tells Prometheus after a Java client has sent and consumed.

Each metric that the broker under test shows has a name, a type and labels that an original 5.4.0
broker showed, as kept in tests/golden; with ``--server original-5.4.0`` that list proves itself.
The exporter is one of 5.x, so an original 4.9.7 is passed over.
"""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from compat_tests import probe
from compat_tests.java_client import ClientJvm, message
from compat_tests.peers import Broker, NameServer, Origin, running
from compat_tests.scene import Scene, poll
from compat_tests.transactions import TransactionProducer, transactional

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "metrics-5.4.0.json"
OF_THE_PROCESS = ("process_", "python_")
COUNTED = {
    "rocketmq_messages_in_total": {"message_type": "normal", "is_system": "false"},
    "rocketmq_messages_out_total": {"is_system": "false"},
}

OF_TRANSACTIONS = (
    "rocketmq_commit_messages_total",
    "rocketmq_rollback_messages_total",
    "rocketmq_half_messages",
)


@pytest.fixture(scope="module")
def observed(origin: Origin, work_folder: Path) -> Iterator[tuple[Broker, int]]:
    """A broker with metrics, and the port of them."""
    if origin.behaves_as.startswith("4."):
        pytest.skip("the exporter came with 5.0")
    port = probe.free_ports([0])
    settings = {
        "metricsExporterType": "PROM",
        "metricsPromExporterPort": str(port),
        "metricsPromExporterHost": "127.0.0.1",
    }
    names = NameServer(origin, work_folder / "metrics-namesrv")
    broker = Broker(origin, work_folder / "metrics-broker", names, "broker-metrics", settings)
    with running(names, broker):
        yield broker, port


def scrape(port: int) -> list[Any]:
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return list(text_string_to_metric_families(answer.read().decode()))


def value(families: list[Any], name: str, **labels: str) -> float:
    return sum(
        float(sample.value)
        for family in families
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_names_types_and_labels_are_the_originals(
    first_jvm: ClientJvm, observed: tuple[Broker, int]
) -> None:
    broker, port = observed
    scene = Scene(first_jvm, broker)
    topic, group = scene.topic(), scene.unique("group")
    consumer = scene.push_consumer(topic, group)
    scene.producer().send([message(topic, f"m{n}") for n in range(20)])
    consumer.wait_for(20)
    transactions = TransactionProducer(first_jvm, scene.unique("transactions"), scene.namesrv)
    ends = ("commit", "rollback", "unknown")
    other = scene.topic()
    transactions.send([transactional(other, end, end) for end in ends])

    def counted() -> bool:
        families = scrape(port)
        own = {"topic": topic}
        lag = value(families, "rocketmq_consumer_lag_messages", consumer_group=group, **own)
        has_lag = any(
            sample.labels.get("consumer_group") == group
            for family in families
            if family.name == "rocketmq_consumer_lag_messages"
            for sample in family.samples
        )
        ended = [value(families, name, topic=other) for name in OF_TRANSACTIONS]
        counts = [value(families, name, **own, **more) for name, more in COUNTED.items()]
        return counts == [20, 20] and has_lag and lag == 0 and ended == [1, 1, 1]

    poll(counted, "everything is counted and nothing is left", 60)
    golden = json.loads(GOLDEN.read_text())
    shown = {
        family.name + ("_total" if family.type == "counter" else ""): {
            "type": family.type,
            "labels": sorted({name for each in family.samples for name in each.labels} - {"le"}),
        }
        for family in scrape(port)
        if not family.name.startswith(OF_THE_PROCESS)
    }
    transactions.stop()
    assert len(shown) >= 25
    assert {name: golden.get(name) for name in shown} == shown
    scene.close()
