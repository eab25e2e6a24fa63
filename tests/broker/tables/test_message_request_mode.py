# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

from txrocketmq.broker.tables.message_request_mode import MessageRequestModes
from txrocketmq.broker.work.json_file import JsonFile
from txrocketmq.remoting.protocol.body.pop import SetMessageRequestModeRequestBody

MODE = SetMessageRequestModeRequestBody(topic="T", consumer_group="g", mode="PULL")


def test_modes_survive(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "messageRequestMode.json")
    modes = MessageRequestModes(file)
    modes.load()
    assert modes.get("T", "g") is None
    modes.set(MODE)
    later = MessageRequestModes(JsonFile(tmp_path / "messageRequestMode.json"))
    later.load()
    assert later.get("T", "g") == MODE
    assert later.get("T", "h") is later.get("U", "g") is None


def test_the_file_is_what_the_original_reads(tmp_path: Path) -> None:
    path = tmp_path / "messageRequestMode.json"
    MessageRequestModes(JsonFile(path)).set(MODE)
    assert json.loads(path.read_text()) == {
        "messageRequestModeMap": {
            "T": {"g": {"consumerGroup": "g", "mode": "PULL", "popShareQueueNum": 0, "topic": "T"}}
        }
    }
