# SPDX-License-Identifier: Apache-2.0
"""A whole broker when something fails or there is too much: what else there is goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.broker.test_service import Client, Scene
from txrocketmq.broker.json_file import JsonFileError
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.protocol.body.route import TopicConfig


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path).start()


def test_what_fails_at_the_end_holds_up_nothing_else(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    scene.broker.offsets.commit("g", "T", 0, 1)
    scene.registered()
    monkeypatch.setattr(scene.broker.offsets._file, "_save", full)
    assert scene.stop() == [None]
    assert not (scene.folder / "abort").exists()
    assert "TBW102" in scene.saved("topics.json")["topicConfigTable"]


def test_it_stops_though_the_disk_has_failed(scene: Scene) -> None:
    scene.registered()
    scene.broker.store.flush.error = OSError("Input/output error")
    assert scene.stop() == [None]
    assert (scene.folder / "abort").exists()


def test_offsets_that_could_not_be_saved_are_saved_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    scene.broker.offsets.commit("g", "T", 0, 1)
    with monkeypatch.context() as patched:
        patched.setattr(scene.broker.offsets._file, "_save", full)
        scene.pass_ms(5_100)
    assert not (scene.folder / "config" / "consumerOffset.json").exists()
    scene.pass_ms(5_000)
    assert scene.saved("consumerOffset.json")["offsetTable"] == {"T@g": {0: 1}}


def test_pulls_end_though_the_store_is_in_trouble(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError("Operation not permitted")

    monkeypatch.setattr(scene.broker.store, "tick", fail)
    consumer = Client(scene)
    scene.broker.topics.update(TopicConfig(topic_name="T"))
    consumer.pull()
    scene.pass_ms(16_000, 500)
    assert [answer.code for answer in consumer.heard()] == [ResponseCode.PULL_NOT_FOUND]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("consumerOffset.json", '{"offsetTable":[1]}'),
        ("consumerOffset.json", '{"offsetTable":{"T@g":{"0":"abc"}}}'),
        ("consumerOffset.json", '{"offsetTable":{"T@g":{"0":1e999}}}'),
        ("delayOffset.json", '{"offsetTable":{"1":null}}'),
        ("topics.json", '{"topicConfigTable":{"T":5}}'),
        ("subscriptionGroup.json", '{"forbiddenTable":5}'),
        ("messageRequestMode.json", '{"messageRequestModeMap":5}'),
    ],
)
def test_a_file_that_holds_something_else_is_named(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / name).write_text(content)
    with pytest.raises(JsonFileError, match=f"config/{name} does not hold what it should: "):
        Scene(tmp_path).start()


def test_a_thousand_new_groups_cost_a_write_or_two(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    client = Client(scene)
    client.beat(*(f"g{number}" for number in range(1_000)))
    assert len(scene.broker.consumers.groups()) == 1_000
    assert synced == []
    scene.pass_ms(2_000, 500)
    assert 1 <= len(synced) <= 4
    assert "g999" in scene.saved("subscriptionGroup.json")["subscriptionGroupTable"]
    assert "%RETRY%g999" in scene.saved("topics.json")["topicConfigTable"]
