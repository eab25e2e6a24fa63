# SPDX-License-Identifier: Apache-2.0
"""The container image: what runs in it, its settings, its addresses, how it stops."""

import contextlib
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from docker.errors import DockerException
from docker.models.containers import Container

from compat_tests.docker_engine import PYTHON, DockerEngine
from compat_tests.java_client import ClientJvm, Producer, PushConsumer, message
from compat_tests.probe import free_ports
from compat_tests.scene import poll

pytestmark = pytest.mark.timeout(1200)  # the first one builds the image

_START_TIMEOUT_S = 120.0
_STOP_TIMEOUT_S = 60
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
    """A command of the client, such as "topics show", on this machine, outside any container."""
    program = (sys.executable, "-m", "txrocketmq.cli", *command.split())
    line = [*program, "-n", f"127.0.0.1:{port}", *arguments]
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
            all=True, filters={"volume": volume.name}, ignore_removed=True
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
        ([], {"ROCKETMQ_BROKER_autoCreateTopicEnabled": "false"}, 1,
         "did you mean ROCKETMQ_BROKER_autoCreateTopicEnable?"),
        (["mqbroker"], {"ROCKETMQ_BROKER_enableDLegerCommitLog": "true"}, 1, "is not served"),
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
    assert added < 80_000_000, "the packages for gRPC have 4.5 MB of it"
