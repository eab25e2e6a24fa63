# SPDX-License-Identifier: Apache-2.0
"""Starts and stops a name server with one broker: ours, or the original's of 4.9.7 or 5.4.0.

Both get the same .conf files, fresh store directories below one home directory, and free loopback
ports. The broker may have a slave. Everything that was started is stopped, whatever happens in
between.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal

from benchmarks import official, probe

Side = Literal["ours", "kernel", "original"]
"""Whose servers they are; `kernel` are ours, too (benchmarks/run.py says with what)."""

START_DEADLINE_S: Final = 60.0
STOP_DEADLINE_S: Final = 20.0
SLAVE_DEADLINE_S: Final = 90.0
NAMESRV_MAIN: Final = "org.apache.rocketmq.namesrv.NamesrvStartup"
BROKER_MAIN: Final = "org.apache.rocketmq.broker.BrokerStartup"
# Flags with which the original's code for Java 8 runs on Java 17.
JAVA_OPENS: Final = (
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
# A heap that fits the loads; the original's own scripts ask for 8 GiB, touched at the start.
NAMESRV_HEAP: Final = ("-Xms256m", "-Xmx256m")
BROKER_HEAP: Final = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")

_BROKER_CONF = """\
brokerClusterName=DefaultCluster
brokerName=broker-a
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
namesrvAddr=127.0.0.1:{namesrv_port}
listenPort={port}
storePathRootDir={home}/{store}
storePathCommitLog={home}/{store}/commitlog
autoCreateTopicEnable=true
"""
_MASTER: Final = {"brokerId": "0"}
_SLAVE: Final = {"brokerId": "1", "brokerRole": "SLAVE"}
_FLUSH: Final = {"flushDiskType": "ASYNC_FLUSH"}
ACCOUNT: Final = {"accessKey": "bench-account", "secretKey": "bench-secret"}
"""An account that may send to all topics and consume them; it is no administrator."""
_PLAIN_ACL = """\
accounts:
- accessKey: {accessKey}
  secretKey: {secretKey}
  defaultTopicPerm: PUB|SUB
  defaultGroupPerm: SUB
"""
_AUTH: Final = "org.apache.rocketmq.auth"
ACL_1: Final = (("aclEnable", "true"),)
ACL_2: Final = (
    ("authenticationEnabled", "true"),
    (
        "authenticationProvider",
        f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
    ),
    (
        "authenticationMetadataProvider",
        f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
    ),
    ("authorizationEnabled", "true"),
    ("authorizationProvider", f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider"),
    (
        "authorizationMetadataProvider",
        f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
    ),
    ("initAuthenticationUser", '{"username":"root","password":"root-secret"}'),
    ("innerClientAuthenticationCredentials", '{"accessKey":"root","secretKey":"root-secret"}'),
    ("migrateAuthFromV1Enabled", "true"),
)
"""Settings of brokers whose clients need an account: that of plain_acl.yml, in either version."""
_NAMESRV_CONF = """\
listenPort={namesrv_port}
kvConfigPath={home}/kvConfig.json
configStorePath={home}/namesrv.properties
"""
_LOGBACK = """\
<configuration>
  <appender name="file" class="ch.qos.logback.core.FileAppender">
    <file>{file}</file>
    <encoder><pattern>%d %p %t %c{{0}} - %m%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="file"/></root>
</configuration>
"""


class ServerError(Exception):
    """A server did not start or died; the message says which one and shows its last lines."""


@dataclass(frozen=True)
class Servers:
    """A running pair of servers, and the time from the broker's start to its first send."""

    side: Side
    home: Path
    namesrv_pid: int
    broker_pid: int
    namesrv_address: str
    broker_port: int
    slave_port: int
    """The port of its slave, if there is one."""
    start_seconds: float
    slave_pid: int | None = None

    def __str__(self) -> str:
        seconds = f"{self.start_seconds:.2f} s"
        return f"broker {self.broker_pid}, first accepted send {seconds} after its start"


@contextlib.contextmanager
def running(
    side: Side,
    below: Path,
    *,
    profile: Path | None = None,
    store: Path | None = None,
    settings: Mapping[str, str] | None = None,
    release: str = official.RELEASE,
    slave: bool = False,
) -> Iterator[Servers]:
    """Runs name server and broker on free ports, in a new home of their own below a directory.

    Several runs may go on at once. At the end both are stopped and their home is removed; after an
    error only the store is removed, and the logs stay.

    With `profile` our broker runs under cProfile and leaves its statistics in that file. With
    `store` the broker opens a copy of that store directory instead of an empty one. `settings` go
    into the broker's file; without them it flushes asynchronously. `release` is the original's.
    With `slave` a second broker follows it, of the same side, which has taken over the first
    message when this returns. Raises ServerError.
    """
    below.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix=f"{side}-", dir=below))
    (home / "conf").mkdir()
    namesrv_port, broker_port, slave_port = _free_ports()
    _write_configuration(home, namesrv_port)
    _write_broker(home, "broker", namesrv_port, broker_port, {**_MASTER, **(settings or {})})
    _write_broker(home, "slave", namesrv_port, slave_port, _SLAVE)
    namesrv_command = _command(side, home, "namesrv", release)
    broker_command = _command(side, home, "broker", release, profile)
    with contextlib.ExitStack() as stack:
        for name in ("store", "slave-store"):
            stack.callback(shutil.rmtree, home / name, ignore_errors=True)
        if store is not None:
            shutil.copytree(store, home / "store")
        namesrv = stack.enter_context(_process("name server", namesrv_command, home))
        _wait_for_namesrv(namesrv, namesrv_port, home)
        started = time.monotonic()
        broker = stack.enter_context(_process("broker", broker_command, home))
        following: subprocess.Popen[bytes] | None = None
        if slave:
            following = stack.enter_context(_process("slave", _slave(side, home, release), home))
            _wait_for_slave(broker, broker_port, following, slave_port, home)
        start_seconds = _wait_for_broker(broker, broker_port, home, started)
        yield Servers(
            side=side,
            home=home,
            namesrv_pid=namesrv.pid,
            broker_pid=broker.pid,
            namesrv_address=f"127.0.0.1:{namesrv_port}",
            broker_port=broker_port,
            slave_port=slave_port,
            start_seconds=start_seconds,
            slave_pid=following.pid if following else None,
        )
    shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def following(servers: Servers) -> Iterator[int]:
    """Runs a slave beside servers that have none; yields its process id at once."""
    command = _slave(servers.side, servers.home, official.RELEASE)
    with _process("slave", command, servers.home) as process:
        yield process.pid


def _slave(side: Side, home: Path, release: str) -> list[str]:
    return _command(side, home, "slave", release)


def _command(
    side: Side, home: Path, name: str, release: str, profile: Path | None = None
) -> list[str]:
    """Returns the command of a server with the configuration of this name."""
    arguments = ["-c", str(home / f"{name}.conf")]
    is_namesrv = name == "namesrv"
    if side == "original":
        heap, main = (NAMESRV_HEAP, NAMESRV_MAIN) if is_namesrv else (BROKER_HEAP, BROKER_MAIN)
        java_home = home / name if name == "slave" else home
        options = (f"-Duser.home={java_home}", "-cp", official.server_classpath(release))
        return ["java", *heap, *JAVA_OPENS, *options, main, *arguments]
    script = str(Path(sys.executable).parent / ("mqnamesrv" if is_namesrv else "mqbroker"))
    profiler = [sys.executable, "-m", "cProfile", "-o", str(profile)] if profile else []
    return [*profiler, script, *arguments]


def _write_configuration(home: Path, namesrv_port: int) -> None:
    (home / "namesrv.conf").write_text(_NAMESRV_CONF.format(home=home, namesrv_port=namesrv_port))
    (home / "conf" / "plain_acl.yml").write_text(_PLAIN_ACL.format(**ACCOUNT))
    for name in ("namesrv", "broker"):
        logback = _LOGBACK.format(file=home / f"{name}-app.log")
        (home / "conf" / f"logback_{name}.xml").write_text(logback)


def _write_broker(
    home: Path, name: str, namesrv_port: int, port: int, settings: Mapping[str, str]
) -> None:
    store = "store" if name == "broker" else f"{name}-store"
    text = _BROKER_CONF.format(home=home, namesrv_port=namesrv_port, port=port, store=store)
    lines = [f"{key}={value}\n" for key, value in {**_FLUSH, **settings}.items()]
    (home / f"{name}.conf").write_text(text + "".join(lines))


@contextlib.contextmanager
def _process(name: str, command: list[str], home: Path) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "ROCKETMQ_HOME": str(home)}
    with _log_file(home, name).open("wb") as log:
        process = _spawn(name, command, environment, log, home)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _spawn(
    name: str, command: list[str], environment: dict[str, str], log: IO[bytes], home: Path
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=home
        )
    except FileNotFoundError as error:
        raise ServerError(f"cannot start the {name}: no command {command[0]!r}") from error


def _wait_for_namesrv(process: subprocess.Popen[bytes], port: int, home: Path) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while not probe.accepts_connections(port):
        _check_alive("name server", process, home, deadline)
        time.sleep(0.02)


def _wait_for_broker(
    process: subprocess.Popen[bytes], port: int, home: Path, started: float
) -> float:
    while not probe.accepts_send(port, (ACCOUNT["accessKey"], ACCOUNT["secretKey"])):
        _check_alive("broker", process, home, started + START_DEADLINE_S)
        time.sleep(0.005)
    return time.monotonic() - started


def _wait_for_slave(
    broker: subprocess.Popen[bytes],
    port: int,
    slave: subprocess.Popen[bytes],
    slave_port: int,
    home: Path,
) -> None:
    """Sends until the slave has a message, so that it follows when this returns."""
    deadline = time.monotonic() + SLAVE_DEADLINE_S
    while not probe.has_messages(slave_port):
        _check_alive("broker", broker, home, deadline)
        _check_alive("slave", slave, home, deadline)
        probe.accepts_send(port)
        time.sleep(0.1)


def _check_alive(name: str, process: subprocess.Popen[bytes], home: Path, deadline: float) -> None:
    code = process.poll()
    if code is None and time.monotonic() < deadline:
        return
    what = "is not ready in time" if code is None else f"ended with code {code}"
    raise ServerError(f"the {name} {what}; its last lines:\n{_last_lines(_log_file(home, name))}")


def _log_file(home: Path, name: str) -> Path:
    return home / f"{name.replace(' ', '-')}.log"


def _last_lines(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-15:])


def _free_ports() -> tuple[int, int, int]:
    """Returns free ports: of the name server, of the broker and of its slave, each of them with the
    fast port (-2) and the port for slaves (+1).
    """
    for _ in range(100):
        with contextlib.ExitStack() as stack:
            ports = [_bind(stack, 0) for _ in range(3)]
            try:
                for port in ports[1:]:
                    _bind(stack, port - 2)
                    _bind(stack, port + 1)
            except OSError:
                continue
            return ports[0], ports[1], ports[2]
    raise ServerError("no free ports on the loopback interface")


def _bind(stack: contextlib.ExitStack, port: int) -> int:
    listener = stack.enter_context(socket.socket())
    listener.bind(("127.0.0.1", port))
    bound: int = listener.getsockname()[1]
    return bound
