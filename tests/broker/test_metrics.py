# SPDX-License-Identifier: Apache-2.0
"""What a broker tells Prometheus, beside what an original broker told after the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.broker.conftest import Parts
from tests.fakes import NOW_MS, FakePeer
from tests.namesrv.conftest import table_with
from tests.namesrv.test_metrics import gauges_of
from txrocketmq.access.authority import Refusal
from txrocketmq.broker.metrics import BrokerMetrics
from txrocketmq.broker.pop import records
from txrocketmq.broker.pop.check_points import Taken
from txrocketmq.broker.pop.metrics import ACK
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.damage import Damage
from txrocketmq.broker.store.get.jumps import GROUP, Jump
from txrocketmq.broker.tables.clients import Client
from txrocketmq.namesrv.metrics import NamesrvMetrics
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.host.exporter import exposition
from txrocketmq.remoting.message.tags import SubscriptionData
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.rpc_times import RpcTimes

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics-5.4.0.json"
DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana" / "txrocketmq.json"
OF_PROMETHEUS = {"job", "instance", "__name__"}
"""Labels that Prometheus itself gives to whatever it scrapes, and its own for the name."""
_OF_HISTOGRAM = re.compile("_(bucket|count|sum)$")
V5_4_0 = 493

Key = tuple[str, frozenset[tuple[str, str]]]


def families(parts: Parts, times: RpcTimes | None = None, **labels: str) -> list[Any]:
    gauges = parts.walked().gauges()
    metrics = BrokerMetrics(parts, labels, lambda: NOW_MS + 5_000, times, gauges)
    text = exposition(metrics.collect()).decode()
    return list(text_string_to_metric_families(text))


def value(found: list[Any], name: str, **labels: str) -> float:
    """Of the one sample of this name with these labels, and others."""
    (sample,) = [
        sample
        for family in found
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return float(sample.value)


@pytest.fixture
def busy(parts: Parts) -> Parts:
    """Ten messages in a topic; a group was given seven and has consumed four of them."""
    parts.topic("T")
    parts.stats.sizes = {}
    for _ in range(10):
        parts.put("T", queue_id=1, body=b"body")
    parts.stats.put("T", 10, 2_000)
    parts.stats.sized("T", [200] * 9 + [2_000])
    parts.stats.put("SCHEDULE_TOPIC_XXXX", 1, 300)
    parts.stats.got("g", "T", 4, 800)
    consumer, producer = FakePeer(), FakePeer()
    parts.consumers.register(
        Client(consumer, "c", "JAVA", V5_4_0, 0),
        "g", "CONSUME_PASSIVELY", "CLUSTERING", "x",
        [SubscriptionData("T"), SubscriptionData("%RETRY%g")],
    )  # fmt: skip
    parts.producers.register("p", Client(producer, "c", "GO", 407, 0))
    parts.offsets.commit("g", "T", 1, 4)
    parts.offsets.pulled("g", "T", 1, 7)
    parts.stats.died("g", "T")
    for _ in range(3):
        parts.transaction_metrics.add("T", 1)
    parts.transaction_metrics.ended("T", [7], 7_000, is_committed=True)
    parts.transaction_metrics.ended("T", [7], 7_000, is_committed=False)
    _pop_and_wait(parts)
    return parts


def _pop_and_wait(parts: Parts) -> None:
    """Two messages were popped, one of them came back; one timer message waits, one does not."""
    key = records.MergeKey("T", "g", 0, 0, NOW_MS, "broker")
    assert parts.pop.check_points.add([Taken(key, (0, 1), 2)], 5_000, 0, NOW_MS) == [True]
    parts.pop.revive.tick(NOW_MS, 0)
    parts.pop.metrics.wrote(key, ACK, "PUT_OK")
    parts.pop.metrics.retried(key, "PUT_OK")
    parts.timers.metrics.entered("T", 90_000)
    parts.timers.metrics.entered("T", 30_000)
    parts.timers.metrics.left("T")
    parts.timers.metrics.add("T", 1)


@pytest.fixture
def times() -> RpcTimes:
    """Of three sends, and of a pull that was held."""
    made = RpcTimes()
    made.add_run([RemotingCommand(310)] * 3, 4)
    made.add((11, ResponseCode.PULL_NOT_FOUND, True, False), 15_000)
    return made


def test_names_labels_and_types_are_those_of_the_original(busy: Parts, times: RpcTimes) -> None:
    golden = orjson.loads(GOLDEN.read_bytes())
    found = families(busy, times)
    ours = {
        family.name + ("_total" if family.type == "counter" else ""): {
            "type": family.type,
            "labels": sorted({name for each in family.samples for name in each.labels} - {"le"}),
        }
        for family in found
        if not family.name.startswith(("process_", "python_", "txrocketmq_"))
    }
    assert len(ours) == 42
    assert {name: golden.get(name) for name in ours} == ours
    assert all(family.samples for family in found)


def test_values(busy: Parts) -> None:
    found = families(busy)
    assert value(found, "rocketmq_messages_in_total", topic="T", message_type="normal") == 10
    assert value(found, "rocketmq_throughput_in_total", topic="T", is_system="false") == 2_000
    assert value(found, "rocketmq_messages_in_total", message_type="delay", is_system="true") == 1
    assert value(found, "rocketmq_messages_out_total", topic="T", consumer_group="g") == 4
    assert value(found, "rocketmq_throughput_out_total", topic="T", consumer_group="g") == 800
    assert value(found, "rocketmq_consumer_lag_messages", consumer_group="g") == 6
    late_ms = value(found, "rocketmq_consumer_lag_latency_milliseconds", topic="T")
    stored_ms = busy.store.store_time_at("T", 1, 4)
    assert late_ms == NOW_MS + 5_000 - stored_ms
    assert value(found, "rocketmq_consumer_connections", version="v5_4_0", language="java") == 1
    assert value(found, "rocketmq_producer_connections", version="v4_9_7", language="go") == 1
    assert value(found, "rocketmq_broker_permission") == 6
    assert value(found, "rocketmq_topic_number") == busy.topics.count
    assert value(found, "rocketmq_consumer_group_number") == busy.groups.count
    assert value(found, "rocketmq_storage_size_bytes") == busy.store.max_physical_offset > 0
    assert value(found, "process_start_time_seconds") > 0


def test_damaged_messages(busy: Parts) -> None:
    name = "txrocketmq_storage_damaged_messages_total"
    found = families(busy)
    assert value(found, name, damage="no_record") == value(found, name, damage="wrong_body") == 0
    assert busy.store.message_at(0, 17) is None
    for offset in (0, 200):
        busy.store.wrong_bodies.found(Damage(offset, 200, "/log", offset, "T/1", 0))
    found = families(busy)
    assert value(found, name, damage="no_record", storage_medium="disk") == 1
    assert value(found, name, damage="wrong_body", cluster=busy.config.broker_cluster_name) == 2


def test_jumped_messages(busy: Parts) -> None:
    name = "txrocketmq_storage_jumped_messages_total"
    busy.store.jumps.found(Jump(GROUP, "T", 0, 3, 10, 7, "g"))
    found = families(busy)
    assert value(found, name, reader="group", cluster=busy.config.broker_cluster_name) == 7
    assert value(found, name, reader="delay_level") == 0


def test_values_of_pops_and_timers(busy: Parts) -> None:
    found = families(busy)
    own = {"consumer_group": "g", "topic": "T"}
    written, read = "rocketmq_pop_revive_in_message_total", "rocketmq_pop_revive_out_message_total"
    for kind in ("CK", "ACK"):
        more = {"revive_message_type": kind, "put_status": "PUT_OK"}
        assert value(found, written, **own, **more) == 1
    assert value(found, read, revive_message_type="CK", queue_id="0", **own) == 1
    assert value(found, "rocketmq_pop_revive_retry_messages_total", **own) == 1
    assert value(found, "rocketmq_pop_offset_buffer_size") == 1
    assert value(found, "rocketmq_pop_checkpoint_buffer_size") == 0
    assert value(found, "rocketmq_pop_revive_lag_milliseconds", queue_id="0") == 0
    assert value(found, "rocketmq_pop_revive_latency_milliseconds", queue_id="0") == 0
    assert value(found, "rocketmq_timer_enqueue_total", topic="T") == 2
    assert value(found, "rocketmq_timer_dequeue_total", topic="T") == 1
    assert value(found, "rocketmq_timing_messages", topic="T") == 1
    delays = "rocketmq_delay_message_latency_seconds"
    assert value(found, f"{delays}_sum", topic="T") == 120
    assert value(found, f"{delays}_bucket", topic="T", le="60.0") == 1
    assert value(found, "rocketmq_timer_message_snapshot", timer_bound_s="60") == 0
    late = [family for family in families(busy) if "enqueue_lag" in family.name]
    assert late[0].samples[0].labels["storage_medium"] == "disk"


def test_values_of_consumers(busy: Parts) -> None:
    found = families(busy)
    assert value(found, "rocketmq_consumer_inflight_messages", consumer_group="g") == 3
    assert value(found, "rocketmq_consumer_ready_messages", consumer_group="g", topic="T") == 3
    waits_ms = value(found, "rocketmq_consumer_queueing_latency_milliseconds", topic="T")
    assert waits_ms == NOW_MS + 5_000 - busy.store.store_time_at("T", 1, 7)
    dead = value(found, "rocketmq_send_to_dlq_messages_total", consumer_group="g", topic="T")
    assert dead == 1


def test_values_of_transactions(busy: Parts) -> None:
    found = families(busy)
    assert value(found, "rocketmq_half_messages", topic="T") == 1
    assert value(found, "rocketmq_commit_messages_total", topic="T") == 1
    assert value(found, "rocketmq_rollback_messages_total", topic="T") == 1
    name = "rocketmq_finish_message_latency_milliseconds"
    assert value(found, f"{name}_bucket", le="5.0") == 0
    assert value(found, f"{name}_bucket", le="60.0") == value(found, f"{name}_count") == 1
    assert value(found, f"{name}_sum") == 7, "seconds, as the original has it under this name"


def test_values_of_messages_and_requests(busy: Parts, times: RpcTimes) -> None:
    found = families(busy, times)
    assert value(found, "rocketmq_message_size_sum", topic="T", message_type="normal") == 3_800
    assert value(found, "rocketmq_message_size_bucket", topic="T", le="1024.0") == 9
    assert value(found, "rocketmq_message_size_bucket", topic="T", le="+Inf") == 10
    labels = {"request_code": "send_message_v2", "response_code": "success", "result": "success"}
    name = "rocketmq_rpc_latency_milliseconds"
    assert value(found, f"{name}_bucket", le="3.0", **labels) == 0
    assert value(found, f"{name}_bucket", le="5.0", is_long_polling="false", **labels) == 3
    assert value(found, f"{name}_sum", protocol_type="remoting", **labels) == 12
    held = value(found, f"{name}_count", request_code="pull_message", is_long_polling="true")
    assert held == 1


def test_values_of_refusals(tmp_path: Path) -> None:
    config = BrokerConfig(authentication_enabled=True)
    secured = Parts(tmp_path, config)
    secured.access.audit.refusal(310, "10.0.0.1", Refusal("no", "wrong signature", "alice"))
    secured.access.audit.refusal(-5, "10.0.0.1", Refusal("no", "no account is named"))
    found = families(secured)
    name = "txrocketmq_access_refused_total"
    assert value(found, name, code="SEND_MESSAGE_V2", why="wrong signature") == 1
    assert value(found, name, code="UNKNOWN", why="no account is named") == 1
    assert not [sample for family in found for sample in family.samples if "user" in sample.labels]


def test_labels_of_the_settings_are_added_to_all(busy: Parts) -> None:
    found = families(busy, instance_id="i")
    for family in found:
        if family.name.startswith("rocketmq_"):
            assert all(sample.labels["instance_id"] == "i" for sample in family.samples)


def test_a_group_that_has_consumed_all_is_not_late(busy: Parts) -> None:
    busy.offsets.commit("g", "T", 1, 10)
    found = families(busy)
    assert value(found, "rocketmq_consumer_lag_messages", consumer_group="g") == 0
    assert value(found, "rocketmq_consumer_lag_latency_milliseconds", consumer_group="g") == 0


def test_no_piece_grows_with_what_there_is(parts: Parts) -> None:
    for number in range(1_000):
        parts.topics._topics[f"T{number}"] = TopicConfig(topic_name=f"T{number}")
        parts.stats.put(f"T{number}", 1, 1)
        parts.stats.got("g", f"T{number}", 1, 1)
        client = Client(FakePeer(), "c", "JAVA", V5_4_0, 0)
        subscribed = [SubscriptionData(f"T{number}")]
        parts.consumers.register(
            client, f"g{number}", "CONSUME_PASSIVELY", "CLUSTERING", "x", subscribed
        )
    pieces: list[Any] = list(
        BrokerMetrics(parts, {}, lambda: NOW_MS, gauges=parts.walked().gauges()).collect()
    )
    assert max(len(piece.samples) for piece in pieces) == 32
    found = families(parts)
    names = [family.name for family in found]
    assert len(names) == len(set(names)), "pieces of one name are one metric"
    counts = {family.name: len(family.samples) for family in found}
    assert counts["rocketmq_messages_in"] == counts["rocketmq_throughput_out"] == 1_000
    assert counts["rocketmq_consumer_lag_messages"] == 1_000
    assert counts["rocketmq_consumer_lag_latency_milliseconds"] == 1_000
    assert counts["rocketmq_consumer_connections"] == 1_000


def dashboard_expressions() -> list[str]:
    board = orjson.loads(DASHBOARD.read_bytes())
    panels = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    variables = [each["query"] for each in board["templating"]["list"] if each["type"] == "query"]
    return [*panels, *variables]


def test_the_dashboard_asks_for_what_there_is(busy: Parts, times: RpcTimes) -> None:
    """Each metric of each panel is in a scrape, with the labels that the panel goes by."""
    shown: dict[str, set[str]] = {}
    namesrv = NamesrvMetrics(gauges_of(table_with()), {}).collect()
    for family in [
        *families(busy, times),
        *text_string_to_metric_families(exposition(namesrv).decode()),
    ]:
        for sample in family.samples:
            shown.setdefault(sample.name, set()).update(sample.labels)
    expressions = dashboard_expressions()
    assert len(expressions) > 20
    asked: set[str] = set()
    for expression in expressions:
        names = set(re.findall(r"\b(?:tx)?(?:rocketmq|process)_\w+", expression))
        assert names, expression
        asked |= names
        labels = set(re.findall(r"(\w+)(?:=~|=|!=)", expression))
        labels |= {
            label.strip()
            for by in re.findall(r"by \(([^)]*)\)", expression)
            for label in by.split(",")
        }
        for name in names:
            assert name in shown, f"{expression}: there is no {name}"
            missing = labels - shown[name] - OF_PROMETHEUS
            assert not missing, f"{expression}: {name} has no {missing}"
    ours = {_OF_HISTOGRAM.sub("", name) for name in shown}
    ours = {name for name in ours if name.startswith(("rocketmq_", "txrocketmq_"))}
    asked = {_OF_HISTOGRAM.sub("", name) for name in asked}
    assert ours - asked == set(), "what is shown and in no panel"
