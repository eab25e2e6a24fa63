# SPDX-License-Identifier: Apache-2.0
"""The parent's side of a test server, with a child that is a few lines of Python.

A real server is started in tests/process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.testing import server
from txrocketmq.testing.server import Server, ServerError, running

ADDRESSES = """print('{"namesrv":"n:1","broker":"b:2"}', flush=True)"""
ECHO = f"""
import sys
{ADDRESSES}
for line in sys.stdin:
    print("ok" if line == "advance 5\\n" else "error " + line.strip(), flush=True)
"""


@pytest.fixture
def children(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], list[subprocess.Popen[bytes]]]:
    """Children run this program in place of a server; they are listed as they start."""
    popen = subprocess.Popen
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def use(program: str) -> list[subprocess.Popen[bytes]]:
        started: list[subprocess.Popen[bytes]] = []

        def start(arguments: list[str], **options: Any) -> subprocess.Popen[bytes]:
            assert arguments[1:3] == ["-m", "txrocketmq.testing.child"]
            started.append(popen([sys.executable, "-S", "-c", program], **options))
            return started[-1]

        monkeypatch.setattr("subprocess.Popen", start)
        return started

    return use


def test_a_server_tells_its_addresses_and_is_gone_after_the_block(
    children: Any, tmp_path: Path
) -> None:
    started = children(ECHO)
    with running() as it:
        assert (it.namesrv_addr, it.broker_addr) == ("n:1", "b:2")
        assert it.log_path.exists()
        assert it.pid == started[0].pid
        it.advance(5)
        with pytest.raises(ValueError, match="forward"):
            it.advance(-5)
    assert started[0].returncode == 0
    assert list(tmp_path.iterdir()) == []
    it.stop()


def test_a_refused_command_is_an_error(children: Any) -> None:
    children(ECHO)
    with running() as it, pytest.raises(ServerError, match="answered 'error advance 6'"):
        it.advance(6)


def test_a_server_that_does_not_start_shows_its_log(children: Any, tmp_path: Path) -> None:
    started = children("import sys; sys.exit('the disk is full')")
    with pytest.raises(ServerError, match="the server has ended; its log ends:\nthe disk is full"):
        Server.start()
    assert started[0].returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_says_nothing_is_given_up(
    children: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "START_TIMEOUT_S", 0.0)
    started = children("import sys; sys.stdin.read()")
    with pytest.raises(ServerError, match="the server did not answer within 0 s"):
        Server.start()
    assert started[0].returncode == 0


def test_a_server_that_does_not_stop_is_killed(
    children: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STOP_TIMEOUT_S", 0.0)
    started = children(f"{ADDRESSES}\nimport threading; threading.Event().wait()")
    with running():
        pass
    assert started[0].returncode == -9


def test_a_server_that_died_is_told(children: Any) -> None:
    started = children(f"import sys\n{ADDRESSES}\nsys.stderr.write('out of memory')")
    with running() as it:
        started[0].wait(10)
        with pytest.raises(ServerError, match="ended; its log ends:\nout of memory"):
            it.advance(5)
