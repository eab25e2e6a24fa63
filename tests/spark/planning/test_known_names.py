# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.spark.stores import Draft, StoreWriter
from txrocketmq.spark.arrow.errors import OptionError
from txrocketmq.spark.columns.output import Output
from txrocketmq.spark.options.options import SourceOptions
from txrocketmq.spark.planning import known_names
from txrocketmq.spark.planning.known_names import check_queues, check_topics
from txrocketmq.spark.planning.plan import stores_of
from txrocketmq.spark.planning.reading import Reading


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two brokers with Orders, of which only one has Payments; Deleted is in a log alone."""
    for name, topics in (("a", ("Orders", "Payments", "Deleted")), ("b", ("Orders",))):
        writer = StoreWriter(tmp_path / name)
        writer.put_all(Draft(topic, n) for topic in topics for n in range(2))
        writer.close()
    shutil.rmtree(tmp_path / "a" / "consumequeue" / "Deleted")
    topics_file = tmp_path / "a" / "config" / "topics.json"
    text = topics_file.read_text().replace("Deleted", "Other")
    own = "".join(
        f'"{name}":{{"topicName":"{name}","writeQueueNums":1,"perm":7}},'
        for name in ("a", "DefaultCluster", "DefaultCluster_REPLY_TOPIC", "TBW102")
    )
    topics_file.write_text(re.sub(r'("topicConfigTable":\s*{)', rf"\1{own}", text))
    return tmp_path


def _check(root: Path, **given: str) -> None:
    options = SourceOptions.of({"storePath": f"{root}/a,{root}/b", **given})
    stores = stores_of(options)
    check_queues(stores, options)
    check_topics(stores, options)


@pytest.mark.parametrize(
    "given",
    [
        {"topic": "Orders,Payments"},
        {"topic": "Deleted"},
        {"topic": "%RETRY%g,%DLQ%g,%LMQ%q,SCHEDULE_TOPIC_XXXX"},
        {"assign": '{"Orders": [0]}'},
        {"topicPattern": "Ord"},
        {"topic": "TBW102,DefaultCluster,a"},
        {"topic": "Ordrs", "allowUnknownTopics": "true"},
        {"where": "topic IN ('Orders', 'Deleted')"},
        {"where": "topic = 'Orders' AND topic = 'Ordrs'"},
        {"where": "topic = 'Ordrs'", "allowUnknownTopics": "true"},
        {},
    ],
)
def test_topics_that_may_be_named(root: Path, given: dict[str, str]) -> None:
    _check(root, **given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": "Orders,Ordrs"}, "no topic Ordrs: did you mean Orders[?] .*allowUnknownTopics"),
        ({"topic": "orders"}, "no topic orders: did you mean Orders[?]"),
        ({"where": "topic = 'Ordrs'"}, "no topic Ordrs: did you mean Orders[?]"),
        ({"where": "topic IN ('Orders', 'Paymnts')"}, "no topic Paymnts: did you mean Payments"),
        ({"assign": '{"Payment": [0]}'}, "no topic Payment: did you mean Payments[?]"),
        ({"topic": "Else"}, "no topic Else: its topics are Orders, Other, Payments[.]"),
    ],
)
def test_misspelt_topics_are_an_error_that_suggests_others(
    root: Path, given: dict[str, str], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        _check(root, **given)


def test_a_log_too_long_to_be_searched(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then only a name that resembles another one is an error."""
    monkeypatch.setattr(known_names, "_SEARCHED_BYTES", 0)
    _check(root, topic="Deleted")
    assert "has no topic Deleted, unless the older part of the log has messages" in caplog.text
    with pytest.raises(OptionError, match="did you mean Orders"):
        _check(root, topic="Ordrs")


def test_a_store_that_knows_no_topic_says_nothing_of_names(tmp_path: Path) -> None:
    StoreWriter(tmp_path / "a").close()
    StoreWriter(tmp_path / "b").close()
    _check(tmp_path, topic="Orders")


def test_offsets_on_each_broker_count_where_the_queue_is(root: Path) -> None:
    given = {"storePath": f"{root}/a,{root}/b", "columns": "brokerName,topic,queueId"}
    text = '{"Payments": {"0": 1}, "Orders": {"1": -1, "b": {"0": 1}}}'
    options = SourceOptions.of({**given, "startingOffsets": text})
    reading = Reading(options, Output.of(options))
    rows = [
        row
        for part in reading.parts()
        for batch in reading.batches(part)
        for row in batch.to_pylist()
    ]
    assert sorted(tuple(row.values()) for row in rows) == [
        ("a", "Deleted", 0),
        ("a", "Deleted", 1),
        ("a", "Orders", 0),
        ("a", "Payments", 1),
    ]


def test_a_queue_that_no_broker_has(root: Path) -> None:
    with pytest.raises(OptionError, match="endingOffsets: queue 9 of Orders on any broker is not"):
        _check(root, topic="Orders", endingOffsets='{"Orders": {"9": 5}}')
