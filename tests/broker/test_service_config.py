# SPDX-License-Identifier: Apache-2.0
"""What a broker says of config files that were lost, and does about it: see test_service.py."""

from __future__ import annotations

import shutil
from pathlib import Path

from twisted.logger import capturedLogs, formatEvent

from tests.broker.test_service import Client, Scene
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.message.message import decode_messages


def stopped(folder: Path) -> None:
    """Leaves the files of a broker with one message, and a group that has an offset."""
    scene = Scene(folder).start()
    client = Client(scene)
    client.beat()
    client.heard()
    client.send()
    scene.broker.parts.offsets.commit("g", "T", 0, 1)
    scene.pass_ms(200)
    scene.registered()
    scene.stop()


def warnings_of_start(folder: Path) -> tuple[Scene, list[str]]:
    """The warnings but those of open ports (tests/remoting/settings/test_open_ports.py)."""
    with capturedLogs() as events:
        scene = Scene(folder).start()
    said = [str(formatEvent(e)) for e in events if e["log_level"].name == "warn"]
    return scene, [each for each in said if not each.startswith("everybody who reaches port")]


def test_a_start_as_it_should_be_warns_of_nothing(tmp_path: Path) -> None:
    assert warnings_of_start(tmp_path)[1] == []
    stopped(tmp_path / "used")
    assert warnings_of_start(tmp_path / "used")[1] == []


def test_a_lost_topics_json_loses_no_messages(tmp_path: Path) -> None:
    stopped(tmp_path)
    for path in (tmp_path / "config").glob("topics.json*"):
        path.unlink()
    scene, warnings = warnings_of_start(tmp_path)
    assert warnings == [
        (
            "config: topics.json did not name 1 topics that have queues in the store: they were"
            " created again, with default permissions and as many queues as have had messages"
        )
    ]
    client = Client(scene)
    client.pull()
    (answer,) = client.heard()
    assert answer.code == ResponseCode.SUCCESS
    assert len(decode_messages(answer.body)) == 1
    assert "T" in scene.registered()[0].topic_config_serialize_wrapper.topic_config_table


def test_lost_offsets_are_told(tmp_path: Path) -> None:
    stopped(tmp_path)
    for path in (tmp_path / "config").glob("consumerOffset.json*"):
        path.write_bytes(b"")
    _, warnings = warnings_of_start(tmp_path)
    assert [text for text in warnings if "the groups begin like new ones" in text] == [
        (
            "config: consumerOffset.json holds no offsets, though there are 1 groups and 1 queues"
            " with messages: the groups begin like new ones"
        )
    ]


def test_a_lost_folder_is_told_file_by_file(tmp_path: Path) -> None:
    stopped(tmp_path)
    shutil.rmtree(tmp_path / "config")
    scene, warnings = warnings_of_start(tmp_path)
    assert warnings[1:] == [
        (
            "config: subscriptionGroup.json is missing, and so is its .bak: the 0 groups that have"
            " offsets, and all others that existed, are created again with default settings when"
            " their consumers connect"
        ),
        (
            "config: consumerOffset.json holds no offsets, though there are 0 groups and 1 queues"
            " with messages: the groups begin like new ones"
        ),
    ]
    scene.pass_ms(2_000)
    scene.registered()
    scene.stop()
    assert warnings_of_start(tmp_path)[1] == []


def test_lost_groups_are_counted_by_their_offsets(tmp_path: Path) -> None:
    stopped(tmp_path)
    for path in (tmp_path / "config").glob("subscriptionGroup.json*"):
        path.unlink()
    (warning,) = warnings_of_start(tmp_path)[1]
    assert "subscriptionGroup.json is missing, and so is its .bak: the 1 groups" in warning


def test_lost_progress_of_delayed_messages_is_told(tmp_path: Path) -> None:
    scene = Scene(tmp_path).start()
    for level in ("1", "1", "2"):
        assert Client(scene).send(DELAY=level).code == ResponseCode.SUCCESS
    scene.pass_ms(3_000, 100)
    scene.registered()
    scene.stop()
    for path in (tmp_path / "config").glob("delayOffset.json*"):
        path.unlink()
    (warning,) = warnings_of_start(tmp_path)[1]
    assert "delayOffset.json is missing, and so is its .bak: all 3 messages of 2 delay" in warning


def test_a_backup_that_was_used_is_told(tmp_path: Path) -> None:
    stopped(tmp_path)
    path = tmp_path / "config" / "topics.json"
    path.replace(path.with_name("topics.json.bak"))
    path.write_text("{")
    _, warnings = warnings_of_start(tmp_path)
    assert any("topics.json.bak was read instead" in text for text in warnings)


def test_config_without_the_log_that_it_tells_of_is_told(tmp_path: Path) -> None:
    stopped(tmp_path)
    for path in tmp_path.iterdir():
        if path.name != "config":
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    _, warnings = warnings_of_start(tmp_path)
    (warning,) = [text for text in warnings if "is another volume mounted there" in text]
    assert "the store has no log" in warning
