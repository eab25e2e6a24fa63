# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.tables.attributes import AttributeChangeError
from txrocketmq.broker.tables.topic import Topics, validate_group, validate_topic
from txrocketmq.broker.work.json_file import JsonFile, JsonFileError
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.serialize.json import encode_pretty


def topics_of(folder: Path, **settings: object) -> Topics:
    return Topics(BrokerConfig(**settings), JsonFile(folder / "topics.json"), lambda: 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["T", "a-b_c%d|e", "T" * 127, "%RETRY%" + "g" * 248, "%DLQ%g"])
def test_good_names(name: str) -> None:
    assert validate_topic(name) is None


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "The specified topic is blank."),
        ("  ", "The specified topic is blank."),
        ("a.b", "contains illegal characters"),
        ("ä", "contains illegal characters"),
        ("a\n", "contains illegal characters"),
        ("T" * 128, "is longer than topic max length: 127"),
        ("%RETRY%" + "g" * 249, "DLQ or Retry topic"),
    ],
)
def test_bad_names(name: str, why: str) -> None:
    assert why in (validate_topic(name) or "")


def test_group_names() -> None:
    assert validate_group("g" * 120) is None
    assert "longer than group max length: 120" in (validate_group("g" * 121) or "")
    assert validate_group(" ") == "The specified group is blank."
    assert "illegal characters" in (validate_group("g@h") or "")


def test_a_new_broker_has_the_topics_of_the_original(tmp_path: Path) -> None:
    topics = topics_of(tmp_path, broker_name="b", broker_cluster_name="C")
    seen = {
        name: (topic.read_queue_nums, topic.write_queue_nums, topic.perm)
        for name, topic in topics.all().items()
    }
    assert seen == {
        "SELF_TEST_TOPIC": (1, 1, 6),
        "TBW102": (8, 8, 7),
        "BenchmarkTest": (1024, 1024, 6),
        "C": (16, 16, 7),
        "b": (1, 1, 7),
        "OFFSET_MOVED_EVENT": (1, 1, 6),
        "SCHEDULE_TOPIC_XXXX": (18, 18, 6),
        "C_REPLY_TOPIC": (1, 1, 6),
        "rmq_sys_REVIVE_LOG_C": (8, 8, 6),
        "rmq_sys_SYNC_BROKER_MEMBER_b": (1, 1, 1),
        "RMQ_SYS_TRANS_HALF_TOPIC": (1, 1, 6),
        "RMQ_SYS_TRANS_OP_HALF_TOPIC": (1, 1, 6),
        "rmq_sys_wheel_timer": (1, 1, 6),
    }
    assert all(topics.is_system(name) for name in seen)
    assert topics.is_system("rmq_sys_anything")
    assert not topics.is_system("T")


def test_settings_take_system_topics_away_or_add_them(tmp_path: Path) -> None:
    topics = topics_of(
        tmp_path,
        auto_create_topic_enable=False,
        cluster_topic_enable=False,
        broker_topic_enable=False,
        trace_topic_enable=True,
    )
    assert topics.get("TBW102") is None
    assert topics.is_system("TBW102")
    assert [topics.all()[name].perm for name in ("DefaultCluster", "DEFAULT_BROKER")] == [1, 1]
    assert topics.all()["RMQ_SYS_TRACE_TOPIC"].read_queue_nums == 1


def sent_to(topics: Topics, *, queues: int = 4, sys_flag: int = 0) -> TopicConfig | None:
    """Stores a message for topic T; returns the topic."""
    topics.drafts.begin()
    made = topics.draft_in_send("T", "TBW102", queues, sys_flag)
    topics.drafts.end(0, 1)
    topics.drafts.make(())
    return made


def test_a_send_makes_a_topic_after_the_default_one(parts: Parts) -> None:
    told: list[str] = []
    parts.topics.on_change.append(told.append)
    before = parts.topics.data_version
    parts.now_ms += 5
    made = sent_to(parts.topics, sys_flag=1)
    assert made == TopicConfig(
        topic_name="T", read_queue_nums=4, write_queue_nums=4, perm=6, topic_sys_flag=1
    )
    assert parts.topics.get("T") is made
    assert told == ["T"]
    assert parts.topics.data_version.counter == before.counter + 1
    assert parts.topics.data_version.timestamp == parts.now_ms
    assert sent_to(parts.topics, queues=8) is made
    assert told == ["T"]


@pytest.mark.parametrize(("wanted", "given"), [(4, 4), (8, 8), (16, 8), (0, 0), (-1, 0)])
def test_no_more_queues_than_the_default_topic_has(parts: Parts, wanted: int, given: int) -> None:
    made = parts.topics.draft_in_send("T", "TBW102", wanted, 0)
    assert made is not None
    assert (made.read_queue_nums, made.write_queue_nums) == (given, given)


def test_other_topics_can_be_the_model_if_they_are_inherited(parts: Parts) -> None:
    parts.topic("plain")
    assert parts.topics.draft_in_send("T", "plain", 4, 0) is None
    assert parts.topics.draft_in_send("T", "unknown", 4, 0) is None
    parts.topics.update(
        TopicConfig(
            topic_name="model",
            read_queue_nums=3,
            write_queue_nums=2,
            perm=7,
            topic_filter_type="MULTI_TAG",
        )
    )
    made = parts.topics.draft_in_send("T", "model", 4, 0)
    assert made is not None
    assert (made.read_queue_nums, made.perm, made.topic_filter_type) == (2, 6, "MULTI_TAG")


def test_no_topic_without_auto_creation(tmp_path: Path) -> None:
    first = topics_of(tmp_path)
    sent_to(first)
    later = topics_of(tmp_path, auto_create_topic_enable=False)
    later.load()  # the file still has TBW102
    assert later.get("T") is not None
    assert later.draft_in_send("U", "TBW102", 4, 0) is None


def test_what_gets_messages_is_on_disk_and_what_heartbeats_make_waits(tmp_path: Path) -> None:
    topics = topics_of(tmp_path)
    path = tmp_path / "topics.json"
    topics.create_in_heartbeat("%RETRY%g", 1)
    assert not path.exists()
    topics.create_in_send_back("%RETRY%g", 1)
    assert "%RETRY%g" in path.read_text()
    topics.create_in_heartbeat("%RETRY%h", 1)
    assert "%RETRY%h" not in path.read_text()
    topics.saving.begin()
    assert "%RETRY%h" in path.read_text()


def test_retry_topics_are_made_once(parts: Parts) -> None:
    made = parts.topics.create_in_send_back("%RETRY%g", 1, sys_flag=2)
    assert made is not None
    assert (made.read_queue_nums, made.perm, made.topic_sys_flag) == (1, 6, 2)
    assert parts.topics.create_in_send_back("%RETRY%g", 3) is made


def test_an_update_that_changes_nothing_is_none(parts: Parts) -> None:
    parts.topic("T", 4)
    version = parts.topics.data_version
    wanted = TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4)
    assert not parts.topics.update(wanted)
    assert parts.topics.data_version == version


def test_an_update_changes_attributes(parts: Parts) -> None:
    def update(**attributes: str) -> None:
        changes = {name.replace("add_", "+").replace("_", "."): v for name, v in attributes.items()}
        parts.topics.update(TopicConfig(topic_name="T", attributes=changes))

    update(add_message_type="FIFO")
    update(add_reserve_time="-1")
    made = parts.topics.get("T")
    assert made is not None
    assert made.attributes == {"message.type": "FIFO", "reserve.time": "-1"}
    with pytest.raises(AttributeChangeError):
        update(add_queue_type="RocksDBCQ")
    assert parts.topics.get("T") is made


def test_a_deleted_topic_is_gone(parts: Parts) -> None:
    parts.topic("T")
    assert parts.topics.delete("T")
    assert parts.topics.get("T") is None
    assert not parts.topics.delete("T")


def test_order_topics_of_the_name_server_are_marked_and_others_stay(parts: Parts) -> None:
    parts.topic("A")
    parts.topics.update(TopicConfig(topic_name="B", order=True))
    version = parts.topics.data_version
    parts.topics.set_order_topics({"A", "unknown"})
    assert [parts.topics.is_order_topic(name) for name in ("A", "B", "unknown")] == [
        True,
        True,
        False,
    ]
    assert parts.topics.data_version.counter == version.counter + 1
    parts.topics.set_order_topics({"A"})
    assert parts.topics.data_version.counter == version.counter + 1


def test_topics_survive(tmp_path: Path) -> None:
    first = topics_of(tmp_path)
    sent_to(first)
    later = topics_of(tmp_path)
    later.load()
    assert later.all() == first.all()
    assert later.data_version == first.data_version


def test_the_file_is_what_the_original_reads(tmp_path: Path) -> None:
    sent_to(topics_of(tmp_path))
    content = json.loads((tmp_path / "topics.json").read_text())
    assert content["dataVersion"] == {"counter": 1, "stateVersion": 0, "timestamp": 1000}
    assert content["topicConfigTable"]["T"] == {
        "attributes": {},
        "order": False,
        "perm": 6,
        "readQueueNums": 4,
        "topicFilterType": "SINGLE_TAG",
        "topicName": "T",
        "topicSysFlag": 0,
        "writeQueueNums": 4,
    }


def test_the_file_is_written_as_the_original_writes_it(tmp_path: Path) -> None:
    topics = topics_of(tmp_path)
    topics.update(TopicConfig(topic_name="b", attributes={"+message.type": "FIFO"}))
    topics.update(TopicConfig(topic_name="a", order=True))
    topics.update(TopicConfig(topic_name="b", perm=4))
    topics.delete("TBW102")
    table = {name: topic.to_json() for name, topic in sorted(topics.all().items())}
    expected = {"dataVersion": topics.data_version.to_json(), "topicConfigTable": table}
    assert (tmp_path / "topics.json").read_bytes() == encode_pretty(expected)


def test_the_original_s_file_is_read(
    golden_store: Callable[[str], Path], golden_version: str, tmp_path: Path
) -> None:
    path = golden_store(golden_version) / "clean" / "config" / "topics.json"
    topics = Topics(BrokerConfig(), JsonFile(path), lambda: 0)
    topics.load()
    assert topics.all()["Roll"].write_queue_nums == 4
    assert topics.all()["%RETRY%golden_retry"].read_queue_nums == 1
    assert topics.data_version.counter > 0


def test_a_broken_file_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_text("{broken")
    with pytest.raises(JsonFileError, match=r"topics\.json"):
        topics_of(tmp_path).load()


def test_topics_of_a_lost_file_are_restored_from_their_queues(tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_text('{"topicConfigTable":{}}')
    topics = topics_of(tmp_path)
    topics.load()
    queue_nums = {"T": 5, "%RETRY%g": 1, "%DLQ%g": 1, "SCHEDULE_TOPIC_XXXX": 3}
    assert topics.restore(queue_nums) == 3
    restored = topics.get("T")
    assert restored is not None
    assert (restored.read_queue_nums, restored.write_queue_nums, restored.perm) == (5, 5, 6)
    delays = topics.get("SCHEDULE_TOPIC_XXXX")
    assert delays is not None
    assert delays.read_queue_nums == 18, "the broker's own are there already"
    topics.saving.begin()
    later = topics_of(tmp_path)
    later.load()
    assert later.get("%DLQ%g") is not None
    assert later.restore({"gone": 1}) == 0, "it was deleted"


def test_after_a_crash_topics_that_were_not_written_yet_are_restored(tmp_path: Path) -> None:
    first = topics_of(tmp_path)
    first.update(TopicConfig(topic_name="T"))
    again = topics_of(tmp_path)
    again.load()
    assert again.restore({"T": 1, "made just before": 2}, after_crash=True) == 1
    made = again.get("made just before")
    assert made is not None
    assert made.write_queue_nums == 2


def test_an_older_file_lacks_the_newest_topic(tmp_path: Path) -> None:
    topics = topics_of(tmp_path)
    for name in ("T1", "T2"):
        topics.update(TopicConfig(topic_name=name))
    (tmp_path / "topics.json").write_bytes(b"")
    later = topics_of(tmp_path)
    later.load()
    assert later.get("T2") is None
    assert later.restore({"T1": 4, "T2": 4}) == 1


def test_topics_are_known_when_there_are_others_than_the_systems(parts: Parts) -> None:
    assert parts.topics.known() is None
    parts.topics.update(TopicConfig(topic_name="T", read_queue_nums=1, write_queue_nums=1))
    known = parts.topics.known()
    assert known is not None
    assert {"T", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC"} <= known


def test_light_queues_are_topics_only_where_they_are_served(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "topics.json")
    topics = Topics(BrokerConfig(), file, lambda: 0, has_light_queues=True)
    found = topics.get("%LMQ%a")
    assert found is not None
    assert (found.topic_name, found.read_queue_nums, found.write_queue_nums) == ("%LMQ%a", 1, 1)
    assert topics.get("a") is None
    assert "%LMQ%a" not in topics.all()
    assert topics.restore({"%LMQ%a": 1, "T": 2}, after_crash=True) == 1, "only T is one of a table"
    assert topics_of(tmp_path).get("%LMQ%a") is None


def test_no_more_topics_than_the_limit_by_themselves(parts: Parts) -> None:
    parts.set(auto_create_limit=parts.topics.count + 2)
    topics = parts.topics
    assert [topics.draft_in_send(name, "TBW102", 1, 0) is None for name in "ABA"] == [False] * 3
    assert topics.draft_in_send("C", "TBW102", 1, 0) is None, "two are on their way"
    assert topics.why_full("A") == topics.why_full("%RETRY%g") == ""
    parts.topic("A", 1)
    parts.topic("B", 1)
    assert f"autoCreateLimit={topics.count}" in topics.why_full("C")
    assert topics.draft_in_send("A", "TBW102", 1, 0) is topics.get("A")
    assert topics.draft_in_send("C", "TBW102", 1, 0) is None
    parts.topic("C")
    assert topics.get("C") is not None, "administrators can"
    parts.set(auto_create_limit=topics.count + 1)
    topics.drafts.clear()
    assert topics.draft_in_send("D", "TBW102", 1, 0) is not None


def test_sending_creates_topics_of_some_names_only(parts: Parts) -> None:
    parts.set(auto_create_topic_names=("orders-*", "te[s]t", "a?c"))
    topics = parts.topics
    for name in ("orders-1", "orders-", "%RETRY%g", "%DLQ%g"):
        assert topics.why_full(name) == ""
    assert topics.draft_in_send("orders-1", "TBW102", 1, 0) is not None
    for name in ("orders", "Orders-1", "test", "abc", "my-orders-1"):
        assert "autoCreateTopicNames=orders-*;te[s]t;a?c" in topics.why_full(name)
        assert topics.draft_in_send(name, "TBW102", 1, 0) is None
    parts.topic("other")
    assert topics.why_full("other") == "", "administrators can"


def test_each_kind_of_topic_has_its_own_limit(parts: Parts) -> None:
    topics = parts.topics
    parts.set(auto_create_limit=2)
    assert topics.draft_in_send("T", "TBW102", 1, 0) is None
    for prefix, kind in (("%RETRY%", "2 retry topics"), ("%DLQ%", "2 dead-letter topics")):
        first, second, third = (f"{prefix}{group}" for group in "abc")
        topics.create_in_heartbeat(first, 1)
        assert topics.draft_in_send_back(second, 1) is not None
        assert topics.draft_in_send_back(second, 1) is not None
        assert topics.draft_in_send_back(third, 1) is None
        assert kind in topics.why_full(third)
        assert topics.draft_in_send_back(first, 1) is topics.get(first)
        topics.drafts.make(())
        topics.drafts.clear()
        assert topics.draft_in_send_back(third, 1) is not None, "no message needed the other"
        topics.drafts.clear()
        topics.create_in_heartbeat(second, 1)
        assert topics.draft_in_send_back(third, 1) is None
        assert topics.delete(first)
        assert not topics.delete(first)
        assert topics.draft_in_send_back(third, 1) is not None
        topics.drafts.clear()


def test_loaded_topics_count(tmp_path: Path) -> None:
    topics = topics_of(tmp_path)
    for name in ("%RETRY%a", "%RETRY%b", "%DLQ%a", "T"):
        topics.create_in_heartbeat(name, 1)
    topics.create_in_heartbeat("T", 1)
    topics.saving.write_now()
    before, loaded = topics._counts, topics_of(tmp_path)
    loaded.load()
    assert loaded._counts == before
    assert (before["%RETRY%"], before["%DLQ%"]) == (2, 1)
