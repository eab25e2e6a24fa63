# SPDX-License-Identifier: Apache-2.0
"""What a pair refuses; tests/process/test_pair.py runs one."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from txrocketmq.testing.replication import pair as module
from txrocketmq.testing.replication.pair import Pair


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"brokerId": 3}, "a pair chooses brokerId by itself"),
        ({"listenPort": 3, "brokerName": "b"}, "a pair chooses listenPort, brokerName by itself"),
        ({"brokerRole": "SLAVE"}, "SYNC_MASTER or ASYNC_MASTER, not SLAVE"),
        ({"noSuchSetting": 3}, "noSuchSetting"),
        ({"flushDiskType": "x"}, "flushDiskType"),
    ],
)
def test_settings_that_it_refuses(
    settings: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.Popen", None)
    with pytest.raises(ValueError, match=said):
        Pair.start(**settings)


def test_ports_are_free_with_those_beside_them() -> None:
    port = module._free_port()
    for each in (port - 2, port, port + 1):
        socket.create_server(("127.0.0.1", each)).close()
