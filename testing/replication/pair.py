# SPDX-License-Identifier: Apache-2.0
"""A name server, a master and its slave for tests, each in a process beside the test.

with running_pair() as pair:
    ...                         # the program under test, at pair.namesrv_addr
    pair.wait_copied()
    pair.kill()                 # the master
    pair.promote()              # the slave becomes the master
    pair.restart()              # the old master comes back, as a slave
"""

from __future__ import annotations

import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from txrocketmq.client import Admin, MQClientError
from txrocketmq.remoting.arguments.arguments import checked_methods
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.serialize.json import decode_body
from txrocketmq.remoting.settings.config_file import write_properties
from txrocketmq.testing.process import ServerError, check_settings
from txrocketmq.testing.replication.link import Link
from txrocketmq.testing.settings import broker_settings

__all__ = ["Pair", "running_pair"]

START_TIMEOUT_S: Final = 60.0
COPY_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 20.0
_LOOK_S: Final = 0.1
_LOG_TAIL_BYTES: Final = 4_000
_PORTS: Final = range(20_000, 60_000)
_OWN: Final = ("brokerId", "brokerName", "listenPort", "haListenPort", "haMasterAddress")
"""The settings that the pair itself makes."""
_COPIED: Final = {
    "topics.json": "topicConfigTable",
    "subscriptionGroup.json": "subscriptionGroupTable",
    "consumerOffset.json": "offsetTable",
}


class Member:
    """One of the brokers of a pair."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self.port = int(settings["listenPort"])
        self.address = f"127.0.0.1:{self.port}"
        """Address of the broker, "host:port"."""
        self.store = folder / "store"
        """Folder of the store."""
        self.log_path = folder / "broker.log"
        """The log of the broker."""

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process is not None and not self.has_failed

    @property
    def has_failed(self) -> bool:
        """Whether the process has ended by itself."""
        return self._process is not None and self._process.poll() is not None

    def start(self, **role: str) -> None:
        """Starts the broker with these settings besides its own."""
        path = self._folder / "broker.conf"
        path.write_text(write_properties({**self._settings, **role}), "utf-8")
        self._process = _run("txrocketmq.broker", path, self.log_path)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ends the process, if there is one, by this signal."""
        _end(self._process, number)
        self._process = None

    def table(self, name: str, member: str) -> Any:
        """Returns what a file of `config/` contains; nothing if there is none."""
        try:
            content = (self.store / "config" / name).read_bytes()
        except FileNotFoundError:
            return {}
        return decode_body(content)[member]


@checked_methods
class Pair:
    """A master and its slave: `start` starts them, and `stop` ends them."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        names = folder / "names.conf"
        port = _free_port()
        self.namesrv_addr = f"127.0.0.1:{port}"
        """Address of the name server, "host:port"."""
        settings_of_names = {
            "bindAddress": "127.0.0.1",
            "listenPort": str(port),
            "kvConfigPath": str(folder / "kv.json"),
            "supportActingMaster": settings.get("enableSlaveActingMaster", "false"),
            "notifyMinBrokerIdChanged": "true",
        }
        names.write_text(write_properties(settings_of_names), "utf-8")
        self._names = _run("txrocketmq.namesrv", names, folder / "names.log")
        self.master = self._member("a", settings)
        """The broker that is the master, or was when it was killed."""
        self.slave = self._member("b", settings)
        """The other one."""
        self._link = Link(int(self.master.port) + 1)
        self._admin = Admin(namesrv_addr=self.namesrv_addr)

    @classmethod
    def start(cls, **settings: object) -> Self:
        """Starts a pair; the arguments are settings of both brokers, as named in broker.conf.

        `brokerRole` may be that of the master: SYNC_MASTER, which is the default, or ASYNC_MASTER.
        Returns when the slave follows the master. Raises ServerError, and ValueError for a setting
        that does not exist or has a wrong value.
        """
        role = str(settings.pop("brokerRole", "SYNC_MASTER"))
        own = [name for name in settings if name in _OWN]
        if own:
            raise ValueError(f"a pair chooses {', '.join(own)} by itself: leave it out")
        if role not in ("SYNC_MASTER", "ASYNC_MASTER"):
            raise ValueError(f"brokerRole of a pair is SYNC_MASTER or ASYNC_MASTER, not {role}")
        given = broker_settings("", settings)
        check_settings(given)
        folder = Path(tempfile.mkdtemp(prefix="rocketmq-pair-"))
        pair = cls(folder, {**given, "brokerRole": role})
        try:
            pair._begin()
        except BaseException:
            pair.stop()
            raise
        return pair

    def wait_copied(self, timeout_s: float = COPY_TIMEOUT_S) -> None:
        """Waits until the slave has all messages, topics, groups and offsets of the master.

        Messages come at once; the rest is copied every 10 s. Raises TimeoutError.
        """
        self._await(self._is_copied, timeout_s, "the slave has not all that the master has")

    def kill(self) -> None:
        """Kills the master, as a crash would."""
        self.master.end(signal.SIGKILL)

    def promote(self) -> None:
        """Stops the slave in order, and starts it as the master.

        The master has to be down; see `kill`. Returns when clients can find the new master.
        """
        if self.master.is_running:
            raise ValueError("the master runs, and there must not be two: call kill() first")
        self.slave.end()
        self._link.close()
        self.master, self.slave = self.slave, self.master
        self._link = Link(self.master.port + 1)
        self._start_master()

    def restart(self) -> None:
        """Starts the broker that is down with the store that it had.

        It is the master again, or after `promote` a slave. Returns when clients can find it.
        """
        if not self.master.is_running:
            self._start_master()
        elif not self.slave.is_running:
            self._start_slave()
        else:
            raise ValueError("both brokers run")

    @contextmanager
    def partition(self) -> Iterator[None]:
        """Cuts the link by which the slave gets messages, until the end of the with statement."""
        self._link.cut()
        try:
            yield
        finally:
            self._link.join()

    def stop(self) -> None:
        """Stops all in order, and removes their folders. A second call does nothing."""
        self._admin.shutdown()
        self.slave.end()
        self.master.end()
        _end(self._names, signal.SIGTERM)
        self._link.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # ----------------------------------------------------------------------------- its parts

    def _member(self, name: str, settings: Mapping[str, str]) -> Member:
        folder = self._folder / name
        folder.mkdir()
        port = _free_port()
        own = {
            "brokerName": "pair",
            "bindAddress": "127.0.0.1",
            "brokerIP1": "127.0.0.1",
            "namesrvAddr": self.namesrv_addr,
            "listenPort": str(port),
            "haListenPort": str(port + 1),
            "haAllowedAddresses": "127.0.0.1",
            "slaveReadEnable": "true",
            "storePathRootDir": str(folder / "store"),
        }
        return Member(folder, {**settings, **own})

    def _begin(self) -> None:
        self._admin.start()
        self._start_master()
        self._start_slave()

    def _start_master(self) -> None:
        self.master.start(brokerId="0")
        self._await(lambda: self._knows(self.master, 0), START_TIMEOUT_S, "the master is not known")

    def _start_slave(self) -> None:
        self.slave.start(brokerRole="SLAVE", brokerId="1", haMasterAddress=self._link.address)
        self._await(lambda: self._knows(self.slave, 1), START_TIMEOUT_S, "the slave is not known")

    def _knows(self, member: Member, number: int) -> bool:
        listed = {(each.broker_id, each.address) for each in self._admin.brokers()}
        if (number, member.address) not in listed:
            return False
        state = self._admin.replication(self.master.address)
        slaves = state.ha_connection_info
        return member is self.master or any(
            each.in_sync and each.slave_ack_offset == state.master_commit_log_max_offset
            for each in slaves
        )

    def _is_copied(self) -> bool:
        state = self._admin.replication(self.master.address)
        ends = [each.slave_ack_offset for each in state.ha_connection_info]
        return ends == [state.master_commit_log_max_offset] and all(
            self.master.table(*each) == self.slave.table(*each) for each in _COPIED.items()
        )

    def _await(self, so: Callable[[], bool], timeout_s: float, what: str) -> None:
        end_s = time.monotonic() + timeout_s
        while True:
            try:
                if so():
                    return
            except (MQClientError, RemotingError):
                pass  # not yet
            if time.monotonic() > end_s:
                raise TimeoutError(f"{what} after {timeout_s:g} s; {self._logs()}")
            ended = [each for each in (self.master, self.slave) if each.has_failed]
            if ended:
                raise ServerError(f"a broker has ended by itself; {self._logs()}")
            time.sleep(_LOOK_S)

    def _logs(self) -> str:
        ends = []
        for name, member in (("master", self.master), ("slave", self.slave)):
            text = member.log_path.read_bytes() if member.log_path.exists() else b""
            tail = text[-_LOG_TAIL_BYTES:].decode("utf-8", "replace")
            ends.append(f"the log of the {name} ends:\n{tail}")
        return "\n".join(ends)


@contextmanager
def running_pair(**settings: object) -> Iterator[Pair]:
    """Runs a pair for the time of a `with` block; the arguments are settings of both brokers.

    Raises ServerError, and ValueError for a setting that does not exist.
    """
    pair = Pair.start(**settings)
    try:
        yield pair
    finally:
        pair.stop()


def _run(module: str, configuration: Path, log_path: Path) -> subprocess.Popen[bytes]:
    with log_path.open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", module, "-c", str(configuration)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _end(process: subprocess.Popen[bytes] | None, number: signal.Signals) -> None:
    if process is None or process.poll() is not None:
        return
    process.send_signal(number)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    """A port that is free together with those for slaves and the VIP port."""
    while True:
        port = random.choice(_PORTS)
        try:
            for each in (port - 2, port, port + 1):
                socket.create_server(("127.0.0.1", each)).close()
        except OSError:
            continue
        return port
