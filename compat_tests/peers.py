# SPDX-License-Identifier: Apache-2.0
"""Name servers and brokers, ours and the original's, behind one interface.

``Ours`` and ``Original`` know how to run the programs. ``NameServer`` and ``Broker`` are one server
each, with its configuration file, port and store, which can be stopped, killed and started again.
``Proxy`` is the gRPC proxy, ours or the original's, in front of either of them. All of them listen
on the loopback interface, on free ports, and have their files in a given folder.
"""

import json
import shutil
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, Self

from compat_tests import probe
from compat_tests.engine import Engine, JavaProcess, LocalProcess
from compat_tests.jars import RELEASES, SERVERS, resolve
from compat_tests.logback import logging_configuration

ORIGINALS_OF_5 = ("original-5.4.0", "original-5.5.0")
"""The names of origins that do what neither 4.9.7 nor ours does."""
READY_TIMEOUT_S = 120.0
PROXY_READY_TIMEOUT_S = 180.0
"""The proxy makes itself a certificate, and starts some hundred threads."""
STOP_TIMEOUT_S = 30.0
_NO_ADDRESS = "NetworkUtil.normalizeHostAddress"
"""Where an original fails that has found no address of this machine."""

BROKER_SETTINGS = {
    "brokerClusterName": "DefaultCluster",
    "brokerId": "0",
    "brokerIP1": "127.0.0.1",
    "mappedFileSizeCommitLog": str(64 * 1024 * 1024),
    "mappedFileSizeConsumeQueue": str(20 * 20_000),
    "maxHashSlotNum": "50000",
    "maxIndexNum": "200000",
}
"""Settings of every broker in these tests; files are small, since each start allocates the next."""

_JAVA_OPTIONS = (
    "-Xms256m",
    "-Xmx768m",
    "-XX:MaxDirectMemorySize=512m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)


class PeerFailed(Exception):
    """A server did not start, or ended; the message has the end of its log."""


class Origin(Protocol):
    """Whose programs are run; `release` says which release they behave like."""

    name: str
    behaves_as: str
    broker_settings: Mapping[str, str]

    def with_properties(self, properties: Mapping[str, str]) -> Self:
        """Returns the same programs, run with these Java system properties."""

    def name_server(self, configuration: Path, folder: Path) -> JavaProcess: ...

    def broker(self, configuration: Path, name_servers: str, folder: Path) -> JavaProcess: ...


class Ours:
    """Runs the commands of this package in the tests' own Python environment."""

    name = "ours"
    behaves_as = "5.4.0"
    broker_settings: Mapping[str, str] = {}

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._environment = {"JAVA_OPT": " ".join(_options(properties))} if properties else {}

    def with_properties(self, properties: Mapping[str, str]) -> Self:
        return type(self)(properties)

    def name_server(self, configuration: Path, folder: Path) -> JavaProcess:
        command = [_command("mqnamesrv"), "-c", str(configuration)]
        return self._run("mqnamesrv", command, folder)

    def broker(self, configuration: Path, name_servers: str, folder: Path) -> JavaProcess:
        command = [_command("mqbroker"), "-n", name_servers, "-c", str(configuration)]
        return self._run("mqbroker", command, folder)

    def _run(self, name: str, command: list[str], folder: Path) -> JavaProcess:
        environment = {"ROCKETMQ_HOME": str(folder), **self._environment}
        return LocalProcess(name, command, environment, folder)


def _options(properties: Mapping[str, str] | None) -> Sequence[str]:
    return [f"-D{key}={value}" for key, value in (properties or {}).items()]


def _command(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise PeerFailed(f"the command {name} is not installed beside {sys.executable}")
    return found


class Original:
    """Runs Apache RocketMQ of one release, from its jars.

    By default its broker refuses requests that have waited for 200 ms, and on a busy machine many
    have.
    """

    broker_settings: Mapping[str, str] = {"brokerFastFailureEnable": "false"}

    def __init__(
        self, release: str, engine: Engine, properties: Mapping[str, str] | None = None
    ) -> None:
        self.release = release
        self.behaves_as = SERVERS[release]
        self.name = f"original-{release}"
        self._engine = engine
        self._options = _options(properties)

    def with_properties(self, properties: Mapping[str, str]) -> Self:
        return type(self)(self.release, self._engine, properties)

    def name_server(self, configuration: Path, folder: Path) -> JavaProcess:
        main = "org.apache.rocketmq.namesrv.NamesrvStartup"
        return self.java("namesrv", folder, [main, "-c", str(configuration)])

    def broker(self, configuration: Path, name_servers: str, folder: Path) -> JavaProcess:
        main = "org.apache.rocketmq.broker.BrokerStartup"
        return self.java("broker", folder, [main, "-n", name_servers, "-c", str(configuration)])

    def java(self, name: str, folder: Path, arguments: list[str]) -> JavaProcess:
        """Runs a class of the servers' jars, whose name is the first of the arguments."""
        conf = logging_configuration(folder)
        jars = resolve(self.release, "server")
        options = [*_JAVA_OPTIONS, *self._options, f"-Duser.home={folder}"]
        options += ["-cp", f"{conf}:{jars}/*"]
        return self._engine.start(
            f"{name}-{self.release}", [*options, *arguments], {"ROCKETMQ_HOME": str(folder)}
        )


class Server:
    """What name servers and brokers have in common: settings, a port, a process, a log.

    With `tls`, the tests encrypt their own connections to it.
    """

    def __init__(
        self,
        origin: Origin,
        folder: Path,
        port: int,
        settings: Mapping[str, str],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.origin = origin
        self.folder = folder
        self.port = port
        self.tls = tls
        self.settings = {"listenPort": str(port), **settings}
        self.process: JavaProcess | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def is_running(self) -> bool:
        """Returns whether its process is running."""
        return self.process is not None and self.process.alive()

    def stop(self) -> None:
        """Stops the server in order, with SIGTERM."""
        if self.process is not None:
            self.process.terminate(STOP_TIMEOUT_S)

    def kill(self) -> None:
        """Kills the process with SIGKILL."""
        if self.process is not None:
            self.process.kill()

    def log_tail(self, lines: int = 40) -> str:
        """Returns the end of the server's log."""
        said = "" if self.process is None else self.process.log(lines)
        return f"--- {self.origin.name} {self.address}\n{said}"

    def close(self) -> None:
        """Ends the server: ours stops in order, the original's is killed, as it stops slowly."""
        if isinstance(self.origin, Ours):
            self.stop()
        else:
            self.kill()

    def configuration(self) -> Path:
        """Writes the configuration file again, and returns its path."""
        file = self.folder / f"{type(self).__name__.lower()}.conf"
        file.write_text("".join(f"{key}={value}\n" for key, value in self.all_settings().items()))
        return file

    def all_settings(self) -> Mapping[str, str]:
        """Returns the settings in that file."""
        return self.settings

    def run_until(self, run: Callable[[], JavaProcess], ready: Callable[[], bool]) -> None:
        """Runs the process and waits until it is ready. Raises PeerFailed as `wait_until` does.

        A network interface that goes while an original looks for the address of this machine, such
        as that of another test's container, ends it before it has begun: then it is run again.
        """
        self.process = run()
        try:
            self.wait_until(ready, self.process)
        except PeerFailed as failed:
            if _NO_ADDRESS not in str(failed):
                raise
            self.process = run()
            self.wait_until(ready, self.process)

    def wait_until(
        self,
        ready: Callable[[], bool],
        process: JavaProcess,
        timeout_s: float = READY_TIMEOUT_S,
    ) -> None:
        """Polls until ready. PeerFailed if the process ends, or time is up, when it is killed."""
        deadline = time.monotonic() + timeout_s
        last: Exception | None = None
        while time.monotonic() < deadline:
            if not process.alive():
                raise PeerFailed(f"{process.name} has ended\n{self.log_tail()}")
            try:
                if ready():
                    return
            except (OSError, ValueError) as error:
                last = error
            time.sleep(0.05)
        failed = PeerFailed(f"{process.name} is not ready: {last!r}\n{self.log_tail()}")
        self.kill()  # it would keep its files from the next one
        raise failed


class NameServer(Server):
    """A name server: its tables are in memory, its key-values in the folder."""

    def __init__(self, origin: Origin, folder: Path, tls: ssl.SSLContext | None = None) -> None:
        port = probe.free_ports([0])
        files = {
            "kvConfigPath": str(folder / "kvConfig.json"),
            "configStorePath": str(folder / "namesrv.properties"),
        }
        super().__init__(origin, folder, port, files, tls)

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        configuration = self.configuration()
        self.run_until(
            lambda: self.origin.name_server(configuration, self.folder),
            lambda: self.cluster_info() is not None,
        )

    def cluster_info(self) -> bytes:
        """Returns the body of GET_BROKER_CLUSTER_INFO: the brokers that it knows."""
        return probe.request(self.port, probe.GET_BROKER_CLUSTER_INFO, tls=self.tls)[1]


class Broker(Server):
    """A broker with a store in its folder, registered with one name server."""

    def __init__(
        self,
        origin: Origin,
        folder: Path,
        name_server: NameServer,
        name: str,
        settings: Mapping[str, str],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self.name_server = name_server
        self.store = folder / "store"
        port = probe.free_ports([-2, 0, 1])  # VIP, main, HA
        own = {
            "brokerName": name,
            "namesrvAddr": name_server.address,
            "storePathRootDir": str(self.store),
            "storePathCommitLog": str(self.store / "commitlog"),
        }
        super().__init__(origin, folder, port, {**BROKER_SETTINGS, **own, **settings}, tls)

    def all_settings(self) -> Mapping[str, str]:
        return {**self.origin.broker_settings, **self.settings}

    def under(self, origin: Origin) -> "Broker":
        """Returns the same broker, run by the programs of another origin on the same store."""
        other = Broker(origin, self.folder, self.name_server, self.name, self.settings, self.tls)
        other.port = self.port
        other.settings["listenPort"] = str(self.port)
        return other

    def start(self) -> None:
        """Starts it on its store, and waits until it is registered and answers."""
        address, configuration = self.name_server.address, self.configuration()
        self.run_until(
            lambda: self.origin.broker(configuration, address, self.folder), self._registered
        )

    def ensure_running(self) -> None:
        """Starts the broker if a failed test has left it stopped."""
        if not self.is_running():
            self.start()

    def _registered(self) -> bool:
        probe.request(self.port, probe.GET_BROKER_CONFIG, tls=self.tls)
        return self.address.encode() in self.name_server.cluster_info()


class Proxy(Server):
    """A proxy for gRPC clients: ours, or the original's in cluster mode."""

    def __init__(
        self,
        engine: Engine | None,
        folder: Path,
        name_server: NameServer,
        own: Mapping[str, object] | None = None,
    ) -> None:
        """`engine` runs the original's; without one, it is ours. `own` are settings of the proxy,
        as in rmq-proxy.json.
        """
        origin: Origin = Ours() if engine is None else Original(RELEASES[-1], engine)
        port = probe.free_ports([0, 1])  # gRPC, remoting
        settings = {"rocketMQClusterName": BROKER_SETTINGS["brokerClusterName"]}
        self._own = own or {}
        self.profile: Path | None = None
        """If given, ours runs under cProfile and leaves its statistics in this file."""
        super().__init__(origin, folder, port, settings)
        self._engine = engine
        self._name_server = name_server

    def configuration(self) -> Path:
        """Writes the file of settings, which is JSON and not properties; returns its path."""
        file = self.folder / "rmq-proxy.json"
        ports = {"grpcServerPort": self.port, "remotingListenPort": self.port + 1}
        cluster = self.settings["rocketMQClusterName"]
        file.write_text(json.dumps({"rocketMQClusterName": cluster, **ports, **self._own}))
        return file

    def start(self) -> None:
        """Starts the proxy and waits until it says that it is ready."""
        home = {"RMQ_PROXY_HOME": str(self.folder), "ROCKETMQ_HOME": str(self.folder)}
        options = ("-n", self._name_server.address, "-pc", str(self.configuration()))
        if self._engine is None:
            command = [_command("txrocketmq"), "proxy", *options]
            if self.profile is not None:
                command = [sys.executable, "-m", "cProfile", "-o", str(self.profile), *command]
            process: JavaProcess = LocalProcess("txrocketmq-proxy", command, home, self.folder)
            says = "the proxy listens on"
        else:
            conf = logging_configuration(self.folder)
            arguments = [
                *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                f"-Duser.home={self.folder}",
                *("-cp", f"{conf}:{resolve(RELEASES[-1], 'proxy')}/*"),
                *("org.apache.rocketmq.proxy.ProxyStartup", "-pm", "cluster", *options),
            ]
            process = self._engine.start("proxy", arguments, home)
            says = "rocketmq-proxy startup successfully"
        self.process = process
        self.wait_until(lambda: says in process.log(), process, PROXY_READY_TIMEOUT_S)


@contextmanager
def running(name_server: NameServer, broker: Broker) -> Iterator[None]:
    """Starts both servers, and closes them in the end."""
    try:
        name_server.start()
        broker.start()
        yield
    finally:
        broker.close()
        name_server.close()
