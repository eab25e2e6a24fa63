# SPDX-License-Identifier: Apache-2.0
"""What a container is told and when it has started; compat_tests runs real ones."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest
from testcontainers.core.container import DockerContainer

from txrocketmq.cli.servers.standalone import configure
from txrocketmq.remoting.settings.config_file import read_properties
from txrocketmq.testing import container
from txrocketmq.testing.container import RocketMQContainer


class Wrapped:
    """Docker's container: it has a log and takes files."""

    def __init__(self, log: bytes, status: str = "running") -> None:
        self.files: dict[str, str] = {}
        self.log = log
        self.status = status

    def put_archive(self, path: str, data: bytes) -> None:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for entry in archive:
                content = archive.extractfile(entry)
                assert content is not None
                self.files[path + entry.name] = content.read().decode()

    def logs(self, **_: object) -> bytes:
        return self.log

    def reload(self) -> None:
        """Nothing changes."""


@pytest.fixture
def wrapped(monkeypatch: pytest.MonkeyPatch) -> Wrapped:
    """Takes the place of Docker."""
    it = Wrapped(b"\nReady.\n")
    ports = {9876: 32_768, 10911: 32_769, 8081: 32_770}
    monkeypatch.setattr(DockerContainer, "__init__", lambda self, image, **_: init(self, image))
    monkeypatch.setattr(DockerContainer, "start", lambda self: self)
    monkeypatch.setattr(DockerContainer, "stop", stop)
    monkeypatch.setattr(DockerContainer, "get_wrapped_container", lambda _: it)
    monkeypatch.setattr(DockerContainer, "get_exposed_port", lambda _, port: ports[port])
    monkeypatch.setattr(DockerContainer, "get_container_host_ip", lambda _: "localhost")
    stopped.clear()
    return it


stopped: list[object] = []


def stop(self: object) -> None:
    stopped.append(self)


def init(self: Any, image: str) -> None:
    self.image, self.env, self.ports = image, {}, {}


def told(wrapped: Wrapped, environment: dict[str, str]) -> dict[str, str]:
    """The settings in the file that the container waits for."""
    assert list(wrapped.files) == [environment["ROCKETMQ_CONF"]]
    (text,) = wrapped.files.values()
    assert text.endswith("\n"), "it is not waited for any longer"
    return read_properties(text)


def test_the_broker_is_told_the_port_that_docker_chose(wrapped: Wrapped) -> None:
    with RocketMQContainer() as rocketmq:
        assert rocketmq.namesrv_addr == "localhost:32768"
        assert rocketmq.broker_addr == "127.0.0.1:32769"
        assert rocketmq.grpc_endpoint == "localhost:32770"
    settings = told(wrapped, rocketmq.env)
    assert settings == {"brokerIP1": "127.0.0.1", "advertisedPort": "32769"}
    assert configure(settings)[1] == []
    assert {int(port) for port in rocketmq.ports} == {9876, 10911, 8081}
    assert int(rocketmq.env["ROCKETMQ_CONF_WAIT_SECONDS"]) == container.START_TIMEOUT_S
    assert stopped == [rocketmq]


def test_settings_are_spelled_as_in_the_file(wrapped: Wrapped) -> None:
    rocketmq = RocketMQContainer().with_settings(autoCreateTopicEnable=False, fileReservedTime=1)
    rocketmq.start()
    settings = told(wrapped, rocketmq.env)
    assert (settings["autoCreateTopicEnable"], settings["fileReservedTime"]) == ("false", "1")


def test_one_that_ends_says_why_and_is_removed(wrapped: Wrapped) -> None:
    wrapped.log, wrapped.status = b"aclEnable=true: ... is not served", "exited"
    rocketmq = RocketMQContainer()
    with pytest.raises(
        RuntimeError, match="the container has ended: aclEnable=true: .* not served"
    ):
        rocketmq.start()
    assert stopped == [rocketmq]


def test_one_that_takes_too_long_is_given_up(
    wrapped: Wrapped, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped.log = b"still recovering"
    monkeypatch.setattr(container, "START_TIMEOUT_S", -1)
    with pytest.raises(TimeoutError, match="not ready after -1 s: still recovering"):
        RocketMQContainer().start()
