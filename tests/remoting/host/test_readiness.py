# SPDX-License-Identifier: Apache-2.0
"""What is told of readiness; that a server tells it is tested in test_run.py."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from txrocketmq.remoting.host.readiness import READY, ReadyFile, notify


@pytest.mark.parametrize("name", ["", "relative", "/nowhere/at/all", "@nobody-listens-here"])
def test_without_a_manager_nothing_is_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    notify(READY)
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify(READY)


def test_a_socket_without_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("")  # the system chooses an abstract name
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + manager.getsockname()[1:].decode())
        notify(READY)
        assert manager.recv(100) == b"READY=1"


def test_the_file_is_there_while_the_server_serves(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    file = ReadyFile(str(path))
    file.remove()
    file.write("a:1 b:2")
    assert path.read_text() == "a:1 b:2\n"
    assert [each.name for each in tmp_path.iterdir()] == ["ready"]
    file.remove()
    assert not path.exists()
    file.remove()


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.write_text("theirs")
    ReadyFile(str(path)).remove()
    assert path.read_text() == "theirs"


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    with pytest.raises(OSError, match="no file that could be replaced"):
        ReadyFile(str(tmp_path / "ready")).write("127.0.0.1:1")
    assert [each.is_fifo() for each in tmp_path.iterdir()] == [True]


def test_without_a_file_nothing_is_written() -> None:
    file = ReadyFile("")
    file.write("a:1")
    file.remove()
