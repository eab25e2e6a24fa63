# SPDX-License-Identifier: Apache-2.0
"""The container image: what runs in it, how it is configured, who finds it, how it stops."""

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from docker.errors import DockerException
from docker.models.containers import Container

from compat_tests.debian import NotInstalled, install
from compat_tests.docker_engine import PYTHON, DockerEngine
from compat_tests.image import ROOT
from compat_tests.java_client import ClientJvm, Producer, PushConsumer, message
from compat_tests.probe import free_ports
from compat_tests.scene import poll

pytestmark = pytest.mark.timeout(1200)  # the first one builds the image

_START_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 60
_PROJECT = "txrocketmq-"
"""How the names of what Docker Compose makes begin; a process number follows."""
Run = Callable[..., Container]


@pytest.fixture
def run(docker_engine: DockerEngine, image: str) -> Iterator[Run]:
    """Starts containers of the image, which go when the test ends."""
    started: list[Container] = []

    def start(*command: str, **options: Any) -> Container:
        options = {"detach": True, "labels": {"txrocketmq.compat.pid": str(os.getpid())}, **options}
        started.append(docker_engine.client.containers.run(image, list(command), **options))
        return started[-1]

    yield start
    for container in started:
        with contextlib.suppress(DockerException):
            container.remove(force=True, v=True)


def log(container: Container) -> str:
    return str(container.logs().decode(errors="replace"))


def await_ready(container: Container) -> None:
    def ready() -> bool:
        container.reload()
        assert container.status in ("created", "running"), log(container)
        return "\nReady." in log(container)

    poll(ready, "the container is ready", _START_TIMEOUT_S)


def mapped(*ports: int) -> dict[str, Any]:
    """Each to the same port of this machine."""
    return {"ports": {f"{port}/tcp": ("127.0.0.1", port) for port in ports}}


def txrocketmq(command: str, port: int, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command of the client on this machine, outside any container."""
    line = [sys.executable, "-m", "txrocketmq.cli", command, "-n", f"127.0.0.1:{port}", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)


def standalone(run: Run, **options: Any) -> tuple[Container, int]:
    """A server whose ports are mapped to the same ones; the name server's port."""
    namesrv, broker = free_ports([0]), free_ports([-2, 0])
    ports = ("--namesrv-port", str(namesrv), "--broker-port", str(broker))
    container = run(*ports, **mapped(namesrv, broker, broker - 2), **options)
    await_ready(container)
    return container, namesrv


def test_it_serves_clients_outside_and_stops_in_order(
    run: Run, docker_engine: DockerEngine
) -> None:
    volume = docker_engine.client.volumes.create()
    try:
        mount = {volume.name: {"bind": "/home/rocketmq/store", "mode": "rw"}}
        container, namesrv = standalone(run, volumes=mount)
        sent = txrocketmq("send", namesrv, "T", "one")
        assert sent.returncode == 0, sent.stderr
        container.stop(timeout=_STOP_TIMEOUT_S)
        assert container.wait()["StatusCode"] == 0
        assert "it unregistered" in log(container)
        container.remove()

        _, namesrv = standalone(run, volumes=mount)
        tail = txrocketmq("tail", namesrv, "T", "--from", "first", "--count", "1")
        assert tail.stdout.endswith("one\n"), tail.stderr
    finally:
        for container in docker_engine.client.containers.list(
            all=True, filters={"volume": volume.name}
        ):
            container.remove(force=True)
        volume.remove()


def test_nobody_in_it_has_privileges(run: Run) -> None:
    """Not even those that Docker gives: no capability, a file system that is read only."""
    container, namesrv = standalone(
        run,
        read_only=True,
        tmpfs={"/home/rocketmq/conf": "uid=3000"},
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
    )
    assert container.exec_run(["id", "-u"]).output == b"3000\n"
    owner = container.exec_run(["stat", "-c", "%u:%g", "/home/rocketmq/store"])
    assert owner.output == b"3000:3000\n"
    assert txrocketmq("send", namesrv, "T", "one").returncode == 0


def test_the_environment_counts(run: Run) -> None:
    _, namesrv = standalone(run, environment={"ROCKETMQ_BROKER_autoCreateTopicEnable": "false"})
    assert txrocketmq("send", namesrv, "T", "one").returncode == 1


def test_its_health_says_whether_it_answers(run: Run, docker_engine: DockerEngine) -> None:
    container = run(
        healthcheck={"interval": 1_000_000_000, "timeout": 10_000_000_000, "retries": 1}
    )

    def is_so(health: str) -> bool:
        container.reload()
        return bool(container.attrs["State"]["Health"]["Status"] == health)

    poll(lambda: is_so("healthy"), "the container is healthy", _START_TIMEOUT_S)
    docker_engine.client.api.kill(container.id, "SIGSTOP")
    poll(lambda: is_so("unhealthy"), "a server that stands still is not", _START_TIMEOUT_S)
    docker_engine.client.api.kill(container.id, "SIGCONT")
    poll(lambda: is_so("healthy"), "it has gone on", _START_TIMEOUT_S)


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "said"),
    [
        ([], {"ROCKETMQ_BROKER_autoCreateTopic": "false"}, 1,
         "did you mean ROCKETMQ_BROKER_autoCreateTopicEnable?"),
        (["mqbroker"], {"ROCKETMQ_BROKER_aclEnable": "true"}, 1, "is not served"),
        (["mqproxy"], {}, 2, "there is no 'mqproxy'"),
    ],
)  # fmt: skip
def test_what_is_not_served_is_refused(
    run: Run, arguments: list[str], environment: Mapping[str, str], code: int, said: str
) -> None:
    container = run(*arguments, environment=environment)
    assert container.wait(timeout=_START_TIMEOUT_S)["StatusCode"] == code
    assert said in log(container)


def test_a_mounted_file_counts(run: Run, docker_engine: DockerEngine) -> None:
    """Copied before the start here: an engine elsewhere sees no folder of this machine."""
    container = docker_engine.client.containers.create("txrocketmq:latest", ["mqbroker", "-p"])
    try:
        text = b"brokerName=of-the-file\nflushDiskType=SYNC_FLUSH\n"
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as files:
            entry = tarfile.TarInfo("etc/rocketmq/broker.conf")
            entry.size = len(text)
            files.addfile(entry, io.BytesIO(text))
        container.put_archive("/", archive.getvalue())
        container.start()
        assert container.wait(timeout=_START_TIMEOUT_S)["StatusCode"] == 0
        shown = log(container).splitlines()
        assert {"brokerName=of-the-file", "flushDiskType=SYNC_FLUSH"} <= set(shown)
    finally:
        container.remove(force=True)


def test_the_vip_port_is_found_two_below_the_advertised_one(run: Run, first_jvm: ClientJvm) -> None:
    """Official clients, by ports that are mapped to others."""
    namesrv, broker = free_ports([0]), free_ports([-2, 0])
    ports = {"9876/tcp": namesrv, "10911/tcp": broker, "10909/tcp": broker - 2}
    container = run(environment={"ROCKETMQ_BROKER_advertisedPort": str(broker)}, ports=ports)
    await_ready(container)
    address = f"127.0.0.1:{namesrv}"
    producer = Producer(first_jvm, "image-producer", address, vip=True)
    consumer = None
    try:
        results = producer.send([message("Mapped", f"m{n}") for n in range(10)])
        assert {result["status"] for result in results} == {"SEND_OK"}
        consumer = PushConsumer(
            first_jvm, "image-consumer", address, topic="Mapped", group="image", vip=True
        )
        consumer.wait_for(10)
    finally:
        producer.stop()
        if consumer is not None:
            consumer.stop()


def test_it_is_small(docker_engine: DockerEngine, image: str) -> None:
    images = docker_engine.client.images
    added = images.get(image).attrs["Size"] - images.get(PYTHON.name).attrs["Size"]
    assert added < 80_000_000


@pytest.fixture
def compose(docker_engine: DockerEngine) -> str:
    """Docker Compose, of any kind."""
    _remove_networks_of_ended_runs(docker_engine)
    found = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if found.returncode == 0:
        return "docker compose"
    if shutil.which("docker-compose") is None:
        try:
            install("docker-compose", print)
        except NotInstalled as error:
            pytest.skip(str(error))
    return "docker-compose"


def _remove_networks_of_ended_runs(engine: DockerEngine) -> None:
    """A run that was killed leaves its network, and an engine has addresses for some thirty."""
    for network in engine.client.networks.list(names=[_PROJECT]):
        pid = network.name.removeprefix(_PROJECT).split("_")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            with contextlib.suppress(DockerException):
                network.remove()


def test_compose_runs_a_name_server_and_two_brokers(
    compose: str, image: str, tmp_path: Path
) -> None:
    """The file as it stands, but for the ports of this machine, which others may use."""
    namesrv, first, second = free_ports([0]), free_ports([-2, 0]), free_ports([-2, 0])
    text = (ROOT / "compose.yaml").read_text("utf-8")
    name = "ROCKETMQ_BROKER_brokerName: broker-a"
    for old, new in (
        ("9876:9876", f"{namesrv}:9876"),
        ("10911:10911", f"{first}:10911"),
        ("10909:10909", f"{first - 2}:10909"),
        ("20911:10911", f"{second}:10911"),
        ("20909:10909", f"{second - 2}:10909"),
        ('"20911"', f'"{second}"'),
        (f"{name}\n", f'{name}\n      ROCKETMQ_BROKER_advertisedPort: "{first}"\n'),
    ):
        assert old in text
        text = text.replace(old, new)
    file = tmp_path / "compose.yaml"
    file.write_text(text, "utf-8")
    command = [*compose.split(), "-p", f"{_PROJECT}{os.getpid()}", "-f", str(file)]
    try:
        up = subprocess.run([*command, "up", "-d"], capture_output=True, text=True, check=False)
        assert up.returncode == 0, up.stderr
        said: list[str] = []

        def both_serve() -> bool:
            sent = txrocketmq("send", namesrv, "T", *(f"m{n}" for n in range(16)))
            said[:] = [sent.stdout, sent.stderr]
            return "broker-a/" in sent.stdout and "broker-b/" in sent.stdout

        try:
            poll(both_serve, "both brokers take messages", _START_TIMEOUT_S)
        except AssertionError as error:
            logs = subprocess.run([*command, "logs"], capture_output=True, text=True, check=False)
            raise AssertionError("\n".join([str(error), *said, logs.stdout])) from error
    finally:
        down = [*command, "down", "--volumes", "--timeout", str(_STOP_TIMEOUT_S)]
        subprocess.run(down, capture_output=True, check=False)
