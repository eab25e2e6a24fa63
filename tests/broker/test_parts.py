# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.broker.conftest import STORE_HOST, Parts
from tests.fakes import NOW_MS, FakePeer
from txrocketmq.broker.intake.inner_message import InnerMessage
from txrocketmq.broker.parts import KnownAs
from txrocketmq.broker.pulls.long_polling import HeldRequest
from txrocketmq.broker.pulls.message_filter import MessageFilter
from txrocketmq.broker.store.formats.put_message import PutStatus
from txrocketmq.broker.work.json_file import JsonFileError
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.host.life import Opening
from txrocketmq.remoting.message.tags import tags_code


def test_what_changes_counts_for_all_parts(parts: Parts) -> None:
    parts.configuration.update({"longPollingEnable": "false", "maxMessageSize": "100"})
    assert parts.config.long_polling_enable is False
    assert parts.store.config.max_message_size == 100


def test_files_are_those_of_the_store(parts: Parts) -> None:
    (parts.config_folder / "consumerOffset.json").write_text('{"offsetTable":{"T@g":{0:7}}}')
    parts.load()
    assert parts.offsets.query("g", "T", 0) == 7
    (parts.config_folder / "topics.json").write_text("{broken")
    with pytest.raises(JsonFileError, match=r"topics\.json"):
        parts.load()


def test_what_the_store_of_another_broker_promises_is_told_at_the_start(parts: Parts) -> None:
    (parts.config_folder / "topics.json").write_text(
        '{"topicConfigTable":{"C":{"topicName":"C","attributes":{"cleanup.policy":"COMPACTION"}}}}'
    )
    parts.load()
    (topics,) = parts.walked().open(Opening(NOW_MS))
    assert topics.startswith("the topic C has cleanup.policy=COMPACTION, but compaction is not")


def test_a_filtered_pull_is_woken_by_its_tags_alone(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.topic("T")
    parts.store.on_arrivals.append(parts.polling.listener)
    resumed: list[str] = []
    for tag in ("A", "B"):
        wanted = frozenset([tags_code(tag)])
        resume = partial(resumed.append, tag)
        parts.polling.hold(
            HeldRequest(FakePeer(), "T", 0, 0, NOW_MS + 9_000, resume, MessageFilter(wanted))
        )
    parts.put(TAGS="B")
    parts.polling.run_woken()
    assert resumed == ["B"]
    parts.store.stop(NOW_MS)


def test_without_name_servers_no_route_is_known(parts: Parts) -> None:
    outcomes: list[object] = []
    parts.registration.ask_route("T").then(outcomes.append)
    assert isinstance(outcomes[0], ConnectError)


def test_keys_carry_the_address_that_the_broker_is_known_under() -> None:
    keys = KnownAs("127.0.0.1:10911", STORE_HOST).unique_keys()
    assert keys.create(NOW_MS).startswith("7F000001")


def test_light_queues_from_the_intake_to_pulls_that_wait(tmp_path: Path) -> None:
    light = {"enable_lmq": True, "enable_multi_dispatch": True}
    parts = Parts(tmp_path, store_settings=light)
    parts.topic("T")
    assert parts.topics.get("%LMQ%a") is not None
    assert parts.groups.find("%LMQ%g") is not None
    parts.store.on_arrivals.append(parts.polling.listener)
    resumed: list[str] = []
    for topic in ("%LMQ%a", "%LMQ%b"):
        resume = partial(resumed.append, topic)
        wanted = MessageFilter(frozenset([tags_code("A")]))
        held = HeldRequest(FakePeer(), topic, 0, 0, NOW_MS + 9_000, resume, wanted)
        parts.polling.hold(held)
    for tag in ("B", "A"):
        properties = {"INNER_MULTI_DISPATCH": "%LMQ%a", "TAGS": tag}
        host = bytes([10, 0, 0, 7]) + (40_000).to_bytes(4, "big")
        message = InnerMessage("T", 0, b"body", NOW_MS, host, STORE_HOST, properties)
        assert parts.intake.take([message], NOW_MS) == [PutStatus.PUT_OK]
        parts.polling.run_woken()
        assert resumed == (["%LMQ%a"] if tag == "A" else [])
    assert parts.stats.item("TOPIC_PUT_NUMS", "%LMQ%a") is None, "it was put once, to T"
    parts.offsets.commit("%LMQ%g", "%LMQ%a", 0, 2)
    parts.offsets.saving.begin()
    assert (parts.config_folder / "lmqConsumerOffset.json").exists()
    parts.store.stop(NOW_MS)
    without = Parts(tmp_path)
    assert without.topics.get("%LMQ%a") is None
    said = [each for each in without.walked().open(Opening()) if "light queues" in each]
    assert len(said) == 1
    assert said[0].startswith("the store has 1 light queues, but enableLmq")
