# SPDX-License-Identifier: Apache-2.0
"""How answers about progress are read; see also test_config_copy.py and test_pre_online.py."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.replication import copied_progress
from txrocketmq.broker.replication.copied_progress import read_delay_offsets, read_offsets
from txrocketmq.broker.replication.copied_table import WRONG, CopyError
from txrocketmq.broker.store.disk.steps import finished
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol.body.route import DataVersion


def answer(**content: Any) -> Reply[Any]:
    return Reply(body=json.dumps(content).encode())


def test_offsets_and_their_version(parts: Parts) -> None:
    version = {"counter": 3, "stateVersion": 0, "timestamp": 9}
    told = answer(dataVersion=version, offsetTable={"T@g": {0: 5}}, lmqOffsetTable={"U@h": 1})
    held, found = finished(read_offsets(told, parts.offsets))
    assert held == {"T@g": {0: 5}, "U@h": {0: 1}}
    assert found == DataVersion(timestamp=9, counter=3)
    assert finished(read_offsets(answer(offsetTable={}), parts.offsets)) == ({}, None)


def test_offsets_that_cannot_be_understood(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copied_progress, "MOST_ENTRIES", 2)
    many = {f"T@g{each}": {0: 1} for each in range(3)}
    for wrong in (answer(), Reply(body=b"["), answer(offsetTable={"T": {0: 1}})):
        with pytest.raises((CopyError, *WRONG)):
            finished(read_offsets(wrong, parts.offsets))
    with pytest.raises(CopyError, match="more than 2 topics and groups"):
        finished(read_offsets(answer(offsetTable=many), parts.offsets))


def test_progress_of_delay_levels(parts: Parts) -> None:
    table = parts.schedule.offsets
    held, content = read_delay_offsets(answer(offsetTable={1: 4, 18: 0}), table)
    assert held == {1: 4, 18: 0}
    assert content["offsetTable"] == {"1": 4, "18": 0}
    with pytest.raises(CopyError, match="has no object offsetTable"):
        read_delay_offsets(answer(), table)
    with pytest.raises(CopyError, match="an offset below 0"):
        read_delay_offsets(answer(offsetTable={1: -1}), table)
