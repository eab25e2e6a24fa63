# SPDX-License-Identifier: Apache-2.0
"""Store and servers where nothing is that only Linux has, as on macOS: as far as it can be played.

Every process of these tests is told to be on macOS before anything is imported, and loses what
Python has on Linux alone: calls, constants, /proc and /dev/shm.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

MACOS = '''
import builtins, ctypes, errno, io, mmap, os, select, signal, socket, sys, sysconfig, types

GONE = {
    os: """
        copy_file_range eventfd fdatasync getrandom memfd_create pidfd_open posix_fadvise
        posix_fallocate POSIX_FADV_DONTNEED POSIX_FADV_RANDOM preadv2 RWF_NOWAIT
        sched_getaffinity sched_setaffinity splice O_TMPFILE O_DIRECT pipe2
    """,
    mmap: "MADV_REMOVE MADV_HUGEPAGE MADV_DONTFORK MADV_POPULATE_WRITE MAP_POPULATE MAP_DENYWRITE",
    select: "epoll EPOLLIN EPOLLOUT poll",
    signal: "sigtimedwait sigwaitinfo",
    socket: "SO_INCOMING_CPU TCP_QUICKACK TCP_USER_TIMEOUT TCP_KEEPIDLE accept4 SOCK_CLOEXEC",
}
for module, names in GONE.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)


class Without:
    def __getattr__(self, name):
        if name in ("mallopt", "mincore"):
            raise AttributeError(name)
        return super().__getattr__(name)


ctypes.CDLL = type("CDLL", (Without, ctypes.CDLL), {})
ctypes.PyDLL = type("PyDLL", (Without, ctypes.PyDLL), {})
proxies = types.ModuleType("_scproxy")
proxies._get_proxies = proxies._get_proxy_settings = dict
sys.modules["_scproxy"] = proxies
sysconfig.get_config_vars()  # where this Python was built, which stays


def without_linux(function):
    def call(path, *arguments, **named):
        if isinstance(path, (str, os.PathLike)):
            text = os.fspath(path)
            if isinstance(text, str) and text.startswith(("/proc", "/dev/shm", "/sys")):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)
        return function(path, *arguments, **named)
    return call


builtins.open = io.open = without_linux(io.open)
os.open, os.stat, os.listdir = map(without_linux, (os.open, os.stat, os.listdir))
sys.platform = "darwin"
'''


@pytest.fixture
def macos(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that takes this for macOS."""
    folder = tmp_path / "macos"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(MACOS)
    return {**os.environ, "PYTHONPATH": str(folder), "PYTHONUNBUFFERED": "1"}


def run(
    macos: dict[str, str], *command: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *command],
        env=macos, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


class Server:
    """`txrocketmq standalone` as a process."""

    def __init__(self, macos: dict[str, str], store: Path, *options: str) -> None:
        ports = ("--namesrv-port", "0", "--broker-port", "0")
        line = ["-m", "txrocketmq.cli", "standalone", *ports, "--store", str(store), *options]
        self.process = subprocess.Popen(
            [sys.executable, *line],
            env=macos, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.said = ""
        self.namesrv = self._find(r"^  name server +(\S+)$")

    def _find(self, pattern: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            found = re.search(pattern, line)
            if found:
                return found[1]
        pytest.fail(self.said)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=60)
        self.said += rest
        return self.process.returncode


@pytest.fixture
def servers(macos: dict[str, str], tmp_path: Path) -> Iterator[list[Server]]:
    started: list[Server] = []
    yield started
    for server in started:
        server.process.kill()
        server.process.communicate()


def test_the_play_is_one(macos: dict[str, str]) -> None:
    """What a process is told: else all this would prove nothing."""
    program = (
        "import os, sys, select, mmap\n"
        "from txrocketmq.remoting.host.run import reactor\n"
        "print(sys.platform, type(reactor).__name__, hasattr(os, 'posix_fallocate'),"
        " hasattr(select, 'epoll'), hasattr(mmap, 'MADV_REMOVE'), os.path.exists('/proc/self'))"
    )
    assert run(macos, "-c", program).stdout == "darwin SelectReactor False False False False\n"


def test_messages_survive_stops_and_kills(
    macos: dict[str, str], tmp_path: Path, servers: list[Server]
) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("flushDiskType=SYNC_FLUSH\nmappedFileSizeCommitLog=1048576\n")
    options: Sequence[str] = ("-c", str(conf))
    expected = []
    for number, ending in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGTERM)):
        servers.append(Server(macos, tmp_path / "store", *options))
        client = ("-m", "txrocketmq.cli")
        where = ("--namesrv", servers[-1].namesrv)
        bodies = [f"{number}-{each}-{'x' * 100_000}" for each in range(8)]
        run(macos, *client, "send", "T", *where, *bodies)
        expected += bodies
        count = ("--from", "first", "--count", str(len(expected)), "--json")
        tail = run(macos, *client, "tail", "T", *where, *count)
        assert sorted(json.loads(line)["body"] for line in tail.stdout.splitlines()) == expected
        code = servers[-1].end(ending)
        assert code == (0 if ending == signal.SIGTERM else -signal.SIGKILL), servers[-1].said
        assert "Traceback" not in servers[-1].said
    assert not (tmp_path / "store" / "abort").exists()


@pytest.mark.parametrize("module", ["broker", "namesrv"])
def test_each_server_shows_its_settings(macos: dict[str, str], module: str) -> None:
    assert "listenPort=" in run(macos, "-m", f"txrocketmq.{module}", "-p").stdout


def test_a_server_for_tests_starts_and_ends(macos: dict[str, str]) -> None:
    program = (
        "from txrocketmq.testing.server import running\n"
        "with running() as server:\n"
        "    server.advance(1000)\n"
        "    print(bool(server.namesrv_addr))"
    )
    assert run(macos, "-c", program).stdout == "True\n"


def test_a_store_is_read_by_the_ingest(
    macos: dict[str, str], tmp_path: Path, servers: list[Server]
) -> None:
    servers.append(Server(macos, tmp_path / "store"))
    where = ("--namesrv", servers[-1].namesrv)
    run(macos, "-m", "txrocketmq.cli", "send", "T", *where, "one", "two")
    servers[-1].end(signal.SIGTERM)
    table = str(tmp_path / "table")
    run(macos, "-m", "txrocketmq.cli", "ingest", "--store", str(tmp_path / "store"), "--out", table)
    assert list(Path(table).rglob("*.parquet"))
