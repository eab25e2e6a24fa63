# SPDX-License-Identifier: Apache-2.0
"""compose.yaml as it is, except for the ports of this machine, which others may use."""

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from docker.errors import DockerException

from compat_tests.debian import NotInstalled, install
from compat_tests.docker_engine import DockerEngine
from compat_tests.image import ROOT
from compat_tests.probe import free_ports
from compat_tests.python_client import GRPC, PythonClientUnavailable
from compat_tests.python_client import install as install_client
from compat_tests.python_client import run as run_client
from compat_tests.test_image import txrocketmq

pytestmark = pytest.mark.timeout(1200)  # the first one builds images

_COMMAND_TIMEOUT_S = 300
_START_TIMEOUT_S = 120.0
_PROXY_TIMEOUT_S = 240.0
_STOP_TIMEOUT_S = 60
_PAUSE_S = 0.5
_PROJECT = "txrocketmq-"
"""How the names of what Docker Compose makes begin; a process number follows."""
_BOTH = {"broker-a", "broker-b"}


@dataclass(frozen=True, slots=True)
class Compose:
    """Docker Compose of any kind, with a file of services; the ports of this machine for them."""

    command: tuple[str, ...]
    namesrv: int
    grpc: int

    def __call__(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self.command, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_TIMEOUT_S,
        )

    def up(self) -> None:
        """Starts the services, and returns when both brokers have registered and answer.

        A topic that the first message creates while there is one broker stays with that one.
        """
        done = self("up", "-d")
        assert done.returncode == 0, done.stderr
        self.await_that(self._both_answer, "both brokers are known and answer", _START_TIMEOUT_S)

    def _both_answer(self) -> bool:
        listed = txrocketmq("brokers list", self.namesrv, "--json")
        rows = map(json.loads, listed.stdout.splitlines())
        return {row["broker"] for row in rows if row["version"]} == _BOTH

    def await_that(self, so: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Asks until it is so, seldom, as each asks with a process; an error contains the logs."""
        deadline = time.monotonic() + timeout_s
        while not so():
            if time.monotonic() > deadline:
                pytest.fail(f"not within {timeout_s} s: {what}\n{self('logs').stdout}")
            time.sleep(_PAUSE_S)


@pytest.fixture
def program(docker_engine: DockerEngine) -> tuple[str, ...]:
    """The command of Docker Compose."""
    _remove_networks_of_ended_runs(docker_engine)
    found = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if found.returncode == 0:
        return ("docker", "compose")
    if shutil.which("docker-compose") is None:
        try:
            install("docker-compose", print)
        except NotInstalled as error:
            pytest.skip(str(error))
    return ("docker-compose",)


def _remove_networks_of_ended_runs(engine: DockerEngine) -> None:
    """A run that was killed leaves its network, and an engine has addresses for some thirty."""
    for network in engine.client.networks.list(names=[_PROJECT]):
        pid = network.name.removeprefix(_PROJECT).split("_")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            with contextlib.suppress(DockerException):
                network.remove()


@contextlib.contextmanager
def services(program: tuple[str, ...], folder: Path, *options: str) -> Iterator[Compose]:
    """The services, not yet started, at ports that are free; in the end nothing of them is left."""
    namesrv = free_ports(range(17))
    first, second, grpc = namesrv + 3, namesrv + 6, namesrv + 7
    master, slave = namesrv + 11, namesrv + 15
    text = (ROOT / "compose.yaml").read_text("utf-8")
    name = "ROCKETMQ_BROKER_brokerName: broker-a"
    for old, new in (
        ("9876:9876", f"{namesrv}:9876"),
        ("127.0.0.1:9876\n", f"127.0.0.1:{namesrv}\n"),
        ("10911:10911", f"{first}:10911"),
        ("10909:10909", f"{first - 2}:10909"),
        ("20911:10911", f"{second}:10911"),
        ("20909:10909", f"{second - 2}:10909"),
        ('"20911"', f'"{second}"'),
        (f"{name}\n", f'{name}\n      ROCKETMQ_BROKER_advertisedPort: "{first}"\n'),
        ("--grpc-port 8081", f"--grpc-port {grpc}"),
        ('"40911"', f'"{master}"'),
        ('"40912"', f'"{master + 1}"'),
        ('"41911"', f'"{slave}"'),
        ('"41912"', f'"{slave + 1}"'),
    ):
        assert old in text, old
        text = text.replace(old, new)
    file = folder / "compose.yaml"
    file.write_text(text, "utf-8")
    command = (*program, "-p", f"{_PROJECT}{os.getpid()}", "-f", str(file), *options)
    compose = Compose(command, namesrv, grpc)
    try:
        yield compose
    finally:
        compose("down", "--volumes", "--timeout", str(_STOP_TIMEOUT_S))


def test_a_name_server_and_two_brokers(
    program: tuple[str, ...], image: str, tmp_path: Path
) -> None:
    with services(program, tmp_path) as compose:
        compose.up()
        sent = txrocketmq("send", compose.namesrv, "T", *(f"m{n}" for n in range(16)))
        assert {line.split()[1].split("/")[0] for line in sent.stdout.splitlines()} == _BOTH
        assert "proxy" not in compose("ps").stdout


def test_a_slave_has_what_the_master_has_and_serves_it_alone(
    program: tuple[str, ...], image: str, tmp_path: Path
) -> None:
    with services(program, tmp_path, "--profile", "replication") as compose:
        done = compose("up", "-d", "namesrv", "master", "slave")
        assert done.returncode == 0, done.stderr

        def slave() -> dict[str, Any]:
            listed = txrocketmq("brokers list", compose.namesrv, "--json")
            rows = map(json.loads, listed.stdout.splitlines())
            return next((row for row in rows if row["role"] == "slave"), {})

        def copies() -> int:
            return compose("logs", "slave").stdout.count("copied the topics of the master")

        compose.await_that(
            lambda: slave().get("behindBytes") == 0 and copies() > 0,
            "the slave follows the master",
            _START_TIMEOUT_S,
        )
        before = copies()
        sent = txrocketmq("send", compose.namesrv, "T", *(f"m{n}" for n in range(16)))
        assert sent.returncode == 0, sent.stderr
        assert slave()["behindBytes"] == 0, "the sender was told so after the slave had it"
        compose.await_that(lambda: copies() > before, "the slave knows the topic", _START_TIMEOUT_S)
        stopped = compose("kill", "master")
        assert stopped.returncode == 0, stopped.stderr
        tail = txrocketmq("tail", compose.namesrv, "T", "--from", "first", "--count", "16")
        assert len(tail.stdout.splitlines()) == 16, tail.stderr


def test_grpc_clients_reach_both_brokers(
    docker_engine: DockerEngine, program: tuple[str, ...], image: str, tmp_path: Path
) -> None:
    """Through the proxy; other clients on this machine do, too."""
    try:
        python = install_client(GRPC)
    except PythonClientUnavailable as error:
        pytest.skip(str(error))
    with services(program, tmp_path, "--profile", "grpc") as compose:
        compose.up()
        compose.await_that(
            lambda: "the proxy listens" in compose("logs", "proxy").stdout,
            "the proxy is ready",
            _PROXY_TIMEOUT_S,
        )
        created = txrocketmq("topics create", compose.namesrv, "T")
        assert created.returncode == 0, created.stderr
        client = {"endpoints": f"127.0.0.1:{compose.grpc}", "topic": "T", "count": 16}
        sent = run_client(python, tmp_path, GRPC, **client, op="produce", how="normal")
        assert len({each["sent"] for each in sent}) == 16
        stored: Counter[str] = Counter()
        shown = txrocketmq("topics show", compose.namesrv, "T", "--json")
        for row in map(json.loads, shown.stdout.splitlines()):
            stored[row["broker"]] += row["messages"]
        assert stored.total() == 16
        assert {broker for broker, count in stored.items() if count} == _BOTH
        got = run_client(python, tmp_path, GRPC, **client, op="simple", group="g")
        assert sorted(int(each["number"]) for each in got) == list(range(16))
        tail = txrocketmq("tail", compose.namesrv, "T", "--from", "first", "--count", "16")
        assert len(tail.stdout.splitlines()) == 16, tail.stderr
