# SPDX-License-Identifier: Apache-2.0
"""The parent's side of a test server's process, with a child that is a few lines of Python.

A real server is started in tests/process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.testing import process
from txrocketmq.testing.process import ServerError, ServerProcess

ADDRESSES = """print('{"namesrv":"n:1","broker":"b:2","grpc":"g:3"}', flush=True)"""
ECHO = f"""
import sys
{ADDRESSES}
for line in sys.stdin:
    line = line.strip()
    if line == "long []":
        print("ok", '"' + "x" * 200_000 + '"', flush=True)
    elif line == "empty []":
        print("ok", flush=True)
    elif line.startswith("echo "):
        print("ok", line[5:], flush=True)
    else:
        print("ok" if line in ("advance 5", "reset") else "error no " + line, flush=True)
"""
Started = list[subprocess.Popen[bytes]]


@pytest.fixture
def children(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[str], tuple[Started, list[dict[str, Any]]]]:
    """Children run this program in place of a server; they are listed with what they were given."""
    popen = subprocess.Popen
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def use(program: str) -> tuple[Started, list[dict[str, Any]]]:
        started: Started = []
        given: list[dict[str, Any]] = []

        def start(arguments: list[str], **options: Any) -> subprocess.Popen[bytes]:
            assert arguments[1:3] == ["-m", "txrocketmq.testing.child"]
            given.append(json.loads(arguments[3]))
            started.append(popen([sys.executable, "-S", "-c", program], **options))
            return started[-1]

        monkeypatch.setattr("subprocess.Popen", start)
        return started, given

    return use


def test_a_server_tells_its_addresses_and_is_gone_at_the_end(children: Any, tmp_path: Path) -> None:
    started, _ = children(ECHO)
    it = ServerProcess.start()
    assert (it.namesrv_addr, it.broker_addr, it.grpc_endpoint) == ("n:1", "b:2", "g:3")
    assert it.log_path.exists()
    assert it.pid == started[0].pid
    it.advance(5)
    with pytest.raises(ValueError, match="forward"):
        it.advance(-5)
    it.stop()
    assert started[0].returncode == 0
    assert list(tmp_path.iterdir()) == []
    it.stop()
    with pytest.raises(ServerError, match="the server was stopped"):
        it.ask("empty")


def test_what_is_asked_is_answered_however_long_the_answer(children: Any) -> None:
    children(ECHO)
    it = ServerProcess.start()
    assert it.ask("echo", "a", 1, None) == ["a", 1, None]
    assert it.ask("empty") is None
    assert it.ask("long") == "x" * 200_000
    with pytest.raises(ValueError, match=r"no lag \[\]"):
        it.ask("lag")
    it.stop()


def test_a_setting_that_there_is_not_is_told_before_anything_starts(
    children: Any, tmp_path: Path
) -> None:
    started, _ = children(ECHO)
    with pytest.raises(
        ValueError,
        match=r"unknown key autoCreateTopicEnabled \(did you mean autoCreateTopicEnable\?\)",
    ):
        ServerProcess.start(autoCreateTopicEnabled=False)
    with pytest.raises(ValueError, match="listenPort"):
        ServerProcess.start(listenPort="many")
    assert started == []
    assert list(tmp_path.iterdir()) == []


def test_another_process_has_the_same_store_addresses_and_time(children: Any) -> None:
    started, given = children(ECHO)
    it = ServerProcess.start()
    it.advance(5)
    it.restart()
    assert [each.returncode for each in started] == [0, None]
    first, second = given
    assert (first["namesrv_port"], first["settings"]["listenPort"]) == (0, "0")
    assert (second["namesrv_port"], second["settings"]["listenPort"]) == (1, "2")
    assert first["settings"]["storePathRootDir"] == second["settings"]["storePathRootDir"]
    assert (first["ahead_ms"], second["ahead_ms"]) == (0, 5)
    it.reset()
    it.restart()
    assert given[-1]["ahead_ms"] == 0
    it.stop()


def test_nothing_is_asked_of_a_server_that_was_killed_or_is_paused(children: Any) -> None:
    started, _ = children(ECHO)
    it = ServerProcess.start()
    with it.pause(), pytest.raises(ServerError, match=r"is paused: call resume\(\) first"):
        it.ask("empty")
    assert it.ask("empty") is None
    it.kill()
    assert started[0].returncode == -9
    with pytest.raises(ServerError, match=r"was killed: call restart\(\) first"):
        it.ask("empty")
    it.restart()
    assert it.ask("empty") is None
    it.pause()
    it.stop()
    assert started[1].returncode == 0


def test_an_answer_that_is_none_is_an_error(children: Any) -> None:
    children(f"import sys\n{ADDRESSES}\nfor line in sys.stdin: print('what?', flush=True)")
    it = ServerProcess.start()
    with pytest.raises(ServerError, match=r"answered 'what\?'"):
        it.ask("empty")
    it.stop()


def test_a_server_that_does_not_start_shows_its_log(children: Any, tmp_path: Path) -> None:
    started, _ = children("import sys; sys.exit('the disk is full')")
    with pytest.raises(ServerError, match="the server has ended; its log ends:\nthe disk is full"):
        ServerProcess.start()
    assert started[0].returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_says_nothing_is_given_up(
    children: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "START_TIMEOUT_S", 0.0)
    started, _ = children("import sys; sys.stdin.read()")
    with pytest.raises(ServerError, match="the server did not answer within 0 s"):
        ServerProcess.start()
    assert started[0].returncode == 0


def test_a_server_that_does_not_stop_is_killed(
    children: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STOP_TIMEOUT_S", 0.0)
    started, _ = children(f"{ADDRESSES}\nimport threading; threading.Event().wait()")
    ServerProcess.start().stop()
    assert started[0].returncode == -9


def test_a_server_that_died_is_told(children: Any) -> None:
    started, _ = children(f"import sys\n{ADDRESSES}\nsys.stderr.write('out of memory')")
    it = ServerProcess.start()
    started[0].wait(10)
    with pytest.raises(ServerError, match="ended; its log ends:\nout of memory"):
        it.advance(5)
    it.stop()


def test_no_global_reactor_is_taken() -> None:
    """Programs under test may want another one, or none."""
    imports = "import sys, txrocketmq.testing.server, txrocketmq.testing.process"
    code = f"{imports}; sys.exit('twisted.internet.reactor' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
