# SPDX-License-Identifier: Apache-2.0
"""A whole broker when something fails or there is too much: what else there is goes on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from tests.broker.test_service import Client, Scene
from txrocketmq.broker.store.disk.mapped_file import MappedFile
from txrocketmq.broker.store.message_store import PutMessage, PutStatus
from txrocketmq.broker.work.json_file import JsonFileError
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

    scene.broker.parts.offsets.commit("g", "T", 0, 1)
    scene.registered()
    monkeypatch.setattr(scene.broker.parts.offsets._file, "_save", full)
    assert scene.stop() == [None]
    assert not (scene.folder / "abort").exists()
    assert "TBW102" in scene.saved("topics.json")["topicConfigTable"]


def test_it_stops_though_the_disk_has_failed(scene: Scene) -> None:
    scene.registered()
    scene.broker.parts.store.flush.error = OSError("Input/output error")
    assert scene.stop() == [None]
    assert (scene.folder / "abort").exists()


def test_offsets_that_could_not_be_saved_are_saved_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("No space left on device")

    scene.broker.parts.offsets.commit("g", "T", 0, 1)
    with monkeypatch.context() as patched:
        patched.setattr(scene.broker.parts.offsets._file, "_save", full)
        scene.pass_ms(5_100)
    assert not (scene.folder / "config" / "consumerOffset.json").exists()
    scene.pass_ms(5_000)
    assert scene.saved("consumerOffset.json")["offsetTable"] == {"T@g": {0: 1}}


def test_pulls_end_though_the_store_is_in_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[int] = []

    def fail(now_ms: int, steady_ms: int) -> None:
        failed.append(now_ms)
        raise OSError("Operation not permitted")

    scene = Scene(tmp_path)
    monkeypatch.setattr(scene.broker.parts.store, "tick", fail)
    scene.start()
    consumer = Client(scene)
    scene.broker.parts.topics.update(TopicConfig(topic_name="T"))
    consumer.pull()
    scene.pass_ms(16_000, 500)
    assert [answer.code for answer in consumer.heard()] == [ResponseCode.PULL_NOT_FOUND]
    assert len(failed) == 16


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
    assert len(scene.broker.parts.consumers.groups()) == 1_000
    assert synced == []
    scene.pass_ms(2_000, 500)
    assert 1 <= len(synced) <= 4
    assert "g999" in scene.saved("subscriptionGroup.json")["subscriptionGroupTable"]
    assert "%RETRY%g999" in scene.saved("topics.json")["topicConfigTable"]


def texts(events: Sequence[Any], about: str) -> list[str]:
    said = [event["log_format"].format_map(event) for event in events if event.get("log_format")]
    return [text for text in said if about in text]


def test_what_fails_again_and_again_is_said_once_and_so_is_its_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with capturedLogs() as events:
        scene.broker.parts.offsets.commit("g", "T", 0, 1)
        with monkeypatch.context() as patched:
            patched.setattr(scene.broker.parts.offsets._file, "_save", fail)
            scene.pass_ms(20_100, 500)
        assert texts(events, "consumerOffset.json") == [
            "writing consumerOffset.json failed: [Errno 24] Too many open files; it is tried again"
        ]
        scene.pass_ms(5_000, 500)
    assert texts(events, "consumerOffset.json")[1:] == ["writing consumerOffset.json works again"]
    assert scene.saved("consumerOffset.json")["offsetTable"] == {"T@g": {0: 1}}


def test_without_a_thread_syncing_goes_on_when_there_is_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_: object) -> None:
        raise RuntimeError("can't start new thread")

    flush, client = scene.broker.parts.store.flush, Client(scene)
    with capturedLogs() as events:
        with monkeypatch.context() as patched:
            patched.setattr(scene.broker.clock, "in_thread", none)
            assert client.send().code == ResponseCode.SUCCESS
            scene.pass_ms(3_000, 500)
            assert flush.flushed_offset == 0
            assert client.send().code == ResponseCode.SUCCESS
        scene.pass_ms(1_000, 500)
    assert flush.flushed_offset == flush.appended_offset > 0
    assert len(texts(events, "syncing the store failed: ")) == 1
    assert texts(events, "syncing the store works again")


def test_expired_files_are_unlinked_in_a_thread(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []
    monkeypatch.setattr(scene.broker.parts.store._files, "remove", removed.append)
    waiting: list[Callable[[], object]] = []
    done: list[Deferred[object]] = []

    def in_thread(work: Callable[[], object]) -> Deferred[object]:
        waiting.append(work)
        done.append(Deferred())
        return done[-1]

    file = MappedFile(scene.broker.parts.store._files, str(scene.folder / "old"), 4096)
    monkeypatch.setattr(scene.broker.clock, "in_thread", in_thread)
    scene.broker.parts.store.removals.add([file])
    scene.pass_ms(3_000, 500)
    assert removed == []
    assert not scene.broker.parts.store.removals.is_empty
    for work, outcome in zip(waiting, done, strict=True):
        outcome.callback(work())
    assert removed == [file.path]
    assert scene.broker.parts.store.removals.is_empty


def put(scene: Scene, topic: str) -> None:
    host = bytes([127, 0, 0, 1]) + bytes(4)
    message = PutMessage(topic, 0, b"body", b"", 0, 1, host, host, "", None, None)
    (result,) = scene.broker.parts.store.put([message], 1)
    assert result.status is PutStatus.PUT_OK


def test_the_files_of_deleted_topics_are_unlinked_in_a_thread(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, files = scene.broker.parts.store, scene.broker.parts.store._files
    calls, now_in = list[tuple[str, str]](), ["reactor"]
    remove = files.remove

    def recorded(path: str) -> None:
        calls.append((now_in[0], path.rpartition("/consumequeue/")[2].partition("/")[0]))
        remove(path)

    def in_thread(work: Callable[[], object]) -> Deferred[object]:
        now_in[0] = "thread"
        done: Deferred[object] = Deferred()
        done.callback(work())
        now_in[0] = "reactor"
        return done

    for topic in ("T", "U", "V"):
        put(scene, topic)
    monkeypatch.setattr(files, "remove", recorded)
    monkeypatch.setattr(scene.broker.clock, "in_thread", in_thread)
    store.delete_topic("T")
    store.delete_topic("U")
    assert store.topics() == ["V"]
    assert calls == []
    scene.pass_ms(1_000, 500)
    assert calls == [("thread", "T"), ("thread", "U")]
    assert [path.name for path in (scene.folder / "consumequeue").iterdir()] == ["V"]


def test_files_that_may_not_be_unlinked_are_told_once_and_go_at_the_end_at_the_latest(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: str) -> None:
        raise PermissionError("not yours")

    store = scene.broker.parts.store
    put(scene, "T")
    store.delete_topic("T")
    with capturedLogs() as events:
        with monkeypatch.context() as patched:
            patched.setattr(store._files, "remove", refuse)
            scene.pass_ms(60_000, 500)
        assert texts(events, "removing files") == [
            "removing files of the store failed: not yours; it is tried again"
        ]
        scene.pass_ms(20_000, 500)
    assert texts(events, "removing files")[1:] == ["removing files of the store works again"]
    assert not (scene.folder / "consumequeue" / "T").exists()
    put(scene, "T")
    store.delete_topic("T")
    scene.registered()
    assert scene.stop() == [None]
    assert not (scene.folder / "consumequeue" / "T").exists()


def test_it_stops_though_a_job_gets_no_thread(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_: object) -> Deferred[object]:
        return Deferred()

    scene.registered()
    put(scene, "T")
    scene.broker.parts.offsets.commit("g", "T", 0, 1)
    monkeypatch.setattr(scene.broker.clock, "in_thread", never)
    scene.pass_ms(6_000, 500)
    ended = scene.stop()
    assert ended == []
    scene.reactor.advance(10)
    assert ended == [None]
    assert scene.saved("consumerOffset.json")["offsetTable"] == {"T@g": {0: 1}}
    assert not (scene.folder / "abort").exists()
