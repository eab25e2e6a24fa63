# SPDX-License-Identifier: Apache-2.0
"""The metrics of a broker after a Java client has sent and consumed messages.

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
from compat_tests.pops import Popped
from compat_tests.scene import Scene, poll
from compat_tests.transactions import TransactionProducer, transactional

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "metrics-5.4.0.json"
OF_THE_PROCESS = ("process_", "python_")
COUNTED = {
    "rocketmq_messages_in_total": {"message_type": "normal", "is_system": "false"},
    "rocketmq_messages_out_total": {"is_system": "false"},
}
OF_OURS = "txrocketmq_"
"""How the names of what the original does not have begin."""
OF_PULLS_TOO = ("rocketmq_messages_out_total", "rocketmq_throughput_out_total")
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
    transactions.stop()
    assert len(told_as_the_original(port)) >= 25
    scene.close()


def test_pops_and_timers_are_counted(first_jvm: ClientJvm, observed: tuple[Broker, int]) -> None:
    """Two of six are acknowledged, four come back; three wait for a second or two."""
    broker, port = observed
    scene = Scene(first_jvm, broker)
    topic, later, group = scene.topic(queues=1), scene.topic(queues=1), scene.unique("group")
    producer = scene.producer()
    producer.send([message(topic, f"m{n}") for n in range(6)])
    scene.read(topic, 6)
    popped = Popped(broker, topic, group)
    assert len(popped.ask(invisibleTime=3_000)) == 6
    assert [popped.ack(offset)["code"] for offset in (0, 3)] == [0, 0]
    waits = {"TIMER_DELAY_MS": "2500"}
    producer.send([message(later, f"m{n}", own=waits) for n in range(3)])
    scene.read(later, 3, 60)
    own = {"consumer_group": group, "topic": topic}
    counts = {
        ("in_message", "CK"): 1,
        ("in_message", "ACK"): 2,
        ("out_message", "CK"): 1,
        ("out_message", "ACK"): 2,
    }

    def counted() -> bool:
        families = scrape(port)
        found = {
            (name, kind): value(
                families, f"rocketmq_pop_revive_{name}_total", revive_message_type=kind, **own
            )
            for name, kind in counts
        }
        back = value(
            families, "rocketmq_pop_revive_retry_messages_total", put_status="PUT_OK", **own
        )
        timers = [
            value(families, f"rocketmq_timer_{name}_total", topic=later)
            for name in ("enqueue", "dequeue")
        ]
        return found == counts and back == 4 and timers == [3, 3]

    poll(counted, "all is counted", 120)
    families = scrape(port)
    for name in ("timer_enqueue_lag", "timing_messages"):
        assert (
            value(families, f"rocketmq_{name}", **({"topic": later} if "ing" in name else {})) == 0
        )
    delays = "rocketmq_delay_message_latency_seconds"
    assert value(families, f"{delays}_count", topic=later) == 3
    told = told_as_the_original(port)
    assert len([each for each in told if each.startswith(("rocketmq_pop_", "rocketmq_tim"))]) >= 15
    scene.close()


def told_as_the_original(port: int) -> set[str]:
    """The names of all that is shown; each has the type and the labels of the original's."""
    golden = json.loads(GOLDEN.read_text())
    shown: dict[str, Any] = {
        family.name + ("_total" if family.type == "counter" else ""): {
            "type": family.type,
            "labels": sorted({name for each in family.samples for name in each.labels} - {"le"}),
        }
        for family in scrape(port)
        if not family.name.startswith((*OF_THE_PROCESS, OF_OURS))
    }
    for name in OF_PULLS_TOO:
        if name in shown:  # the original says is_retry of what is popped, and not of what is pulled
            shown[name]["labels"] = [each for each in shown[name]["labels"] if each != "is_retry"]
    assert {name: golden.get(name) for name in shown} == shown
    return set(shown)
