# SPDX-License-Identifier: Apache-2.0
"""The container image in tests: a name server and a broker, with testcontainers.

    with RocketMQContainer() as rocketmq:
        producer.setNamesrvAddr(rocketmq.namesrv_addr)

Docker chooses the ports by which the container is reached, and they are known only when it runs. A
broker registers its own address, so it needs it: the container waits for a file of
settings, into which the port is written as soon as it is known. Needs `pip install
'txrocketmq[testcontainers]'`.
"""

from __future__ import annotations

import io
import socket
import tarfile
import time
from typing import Any, Final, Self

from testcontainers.core.container import DockerContainer

from txrocketmq.remoting.arguments.arguments import checked_class
from txrocketmq.remoting.settings.config_file import write_properties
from txrocketmq.testing.settings import ACCOUNT_SETTINGS, credentials_of, setting_text

__all__ = ["RocketMQContainer"]

IMAGE: Final = "txrocketmq:latest"
NAMESRV_PORT: Final = 9876
BROKER_PORT: Final = 10911
GRPC_PORT: Final = 8081
START_TIMEOUT_S: Final = 60
"""How many seconds a container may take until clients can find its broker."""

_CONF: Final = "/home/rocketmq/conf/advertised.conf"
_READY: Final = b"\nReady."
_LOOK_S: Final = 0.1
_LOG_TAIL: Final = 50


@checked_class
class RocketMQContainer(DockerContainer):
    """A name server and a broker in one container, started once clients can find the broker."""

    def __init__(self, image: str = IMAGE, **kwargs: Any) -> None:
        """Takes the keyword arguments of DockerContainer as well."""
        super().__init__(image, **kwargs)
        self._settings: dict[str, str] = {}
        self.with_exposed_ports(NAMESRV_PORT, BROKER_PORT, GRPC_PORT)
        self.with_env("ROCKETMQ_CONF", _CONF)
        self.with_env("ROCKETMQ_CONF_WAIT_SECONDS", str(START_TIMEOUT_S))

    def with_settings(self, **settings: object) -> Self:
        """Sets settings of the broker, by their names in broker.conf."""
        self._settings |= {key: setting_text(value) for key, value in settings.items()}
        return self

    def with_accounts(self) -> Self:
        """Makes clients need an account; `access_key` is one that may do everything."""
        return self.with_settings(**ACCOUNT_SETTINGS)

    @property
    def access_key(self) -> str:
        """The account that may do everything, after `with_accounts`; otherwise empty."""
        return credentials_of(self._settings).get("access_key", "")

    @property
    def secret_key(self) -> str:
        """The secret of that account."""
        return credentials_of(self._settings).get("secret_key", "")

    @property
    def namesrv_addr(self) -> str:
        """The address of the name server, as "host:port"."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(NAMESRV_PORT)}"

    @property
    def broker_addr(self) -> str:
        """The address of the broker that the name server gives to clients."""
        return f"{self._host()}:{self.get_exposed_port(BROKER_PORT)}"

    @property
    def grpc_endpoint(self) -> str:
        """The address for clients that speak gRPC, as "host:port"."""
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(GRPC_PORT)}"

    def start(self) -> Self:
        """Starts the container; returns when clients can find the broker.

        Raises RuntimeError if the container ends before that, and TimeoutError.
        """
        super().start()
        try:
            self._tell_address()
            self._await_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def _host(self) -> str:
        """Returns the IP address of the machine whose ports lead to the container.

        It replaces the machine's name, which may mean nothing inside the container.
        """
        return socket.gethostbyname(self.get_container_host_ip())

    def _tell_address(self) -> None:
        address = {"brokerIP1": self._host(), "advertisedPort": self.get_exposed_port(BROKER_PORT)}
        text = write_properties(
            {key: str(value) for key, value in address.items()} | self._settings
        )
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as files:
            entry = tarfile.TarInfo(_CONF.removeprefix("/"))
            entry.size = len(text)
            files.addfile(entry, io.BytesIO(text.encode()))
        self.get_wrapped_container().put_archive("/", archive.getvalue())

    def _await_ready(self) -> None:
        container = self.get_wrapped_container()
        deadline = time.monotonic() + START_TIMEOUT_S
        while _READY not in container.logs(stdout=True, stderr=False):
            container.reload()
            if container.status == "exited":
                raise RuntimeError(f"the container has ended: {self._log()}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"not ready after {START_TIMEOUT_S} s: {self._log()}")
            time.sleep(_LOOK_S)

    def _log(self) -> str:
        return str(self.get_wrapped_container().logs(tail=_LOG_TAIL).decode(errors="replace"))
