# SPDX-License-Identifier: Apache-2.0
"""The process of a test server: started, stopped, killed, paused, and asked one thing at a time.

The name server and the broker listen on free ports of the loopback interface and keep their store
in a temporary folder. Ports and folder stay the same when the process is restarted; `stop` removes
the folder. The process also ends when the process of the test ends.
"""

from __future__ import annotations

import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final, Self

import orjson

from txrocketmq.cli.servers.standalone import configure
from txrocketmq.testing.settings import broker_settings, credentials_of

START_TIMEOUT_S: Final = 30.0
ANSWER_TIMEOUT_S: Final = 15.0
STOP_TIMEOUT_S: Final = 10.0
_LOG_TAIL_BYTES: Final = 4_000
_READ_BYTES: Final = 64 * 1024


class ServerError(Exception):
    """The server did not start or does not answer; the text ends with the last lines of its log."""


class ServerProcess:
    """A running server: `start` starts one, and `stop` ends it."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self._folder = folder
        self._settings = settings
        self.credentials = credentials_of(settings)
        """The account of clients that may do everything, if clients need one."""
        self._process: subprocess.Popen[bytes]
        self._asking = threading.Lock()
        self._unread = b""
        self._ahead_ms = 0
        self._why_silent = ""
        self.store = folder / "store"
        """Folder of the store."""
        self.log_path = folder / "server.log"
        """The log of name server and broker."""
        self.namesrv_addr = ""
        """Address of the name server, "host:port"."""
        self.broker_addr = ""
        """Address of the broker."""
        self.grpc_endpoint = ""
        """Address for clients that speak gRPC; empty without the packages of txrocketmq[grpc]."""

    @classmethod
    def start(cls, **settings: object) -> Self:
        """Starts a server; the arguments are settings of the broker, as named in broker.conf.

        Returns when clients can find the broker. Raises ServerError, and ValueError for a setting
        that does not exist or has a wrong value.
        """
        folder = Path(tempfile.mkdtemp(prefix="rocketmq-"))
        try:
            given = broker_settings(str(folder / "store"), settings)
            check_settings(given)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        server = cls(folder, given)
        try:
            server._launch()
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    @property
    def is_paused(self) -> bool:
        """Whether the server does not answer since `pause`."""
        return self._why_silent.startswith("is paused")

    # -------------------------------------------------------------- its life

    def advance(self, ms: int) -> None:
        """Moves the broker's clock forward, so that whatever is due by then happens.

        Raises ServerError.
        """
        if ms < 0:
            raise ValueError(f"the clock can only be moved forward, not by {ms} ms")
        self._command(f"advance {ms}")
        self._ahead_ms += ms

    def restart(self) -> None:
        """Stops the server in order, if it runs, and starts it with the same store and addresses.

        After `kill` it recovers as after a crash. Clients that were connected find it again.
        """
        self._end()
        self._launch()

    def kill(self) -> None:
        """Kills the server, as a crash would; `restart` starts it again."""
        self._process.kill()
        self._process.wait()
        self._why_silent = "was killed: call restart() first"

    def pause(self) -> Paused:
        """Stops the server from answering, while connections stay open.

        Until `resume`, or the end of a with statement over the result.
        """
        self._process.send_signal(signal.SIGSTOP)
        self._why_silent = "is paused: call resume() first"
        return Paused(self)

    def resume(self) -> None:
        """Lets the server answer again after `pause`."""
        self._process.send_signal(signal.SIGCONT)
        self._why_silent = ""

    def reset(self) -> None:
        """Empties the store: no topics, messages, groups or faults are left; the time is real."""
        self._command("reset")
        self._ahead_ms = 0

    def stop(self) -> None:
        """Stops the server in order and removes its store. A second call does nothing."""
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    # ------------------------------------------------------------- questions

    def ask(self, name: str, *arguments: Any) -> Any:
        """Calls a method of the child's `BrokerState` or `Faults`, and returns its result.

        Raises ValueError with the text of the method's error, and ServerError.
        """
        return self._command(f"{name} {orjson.dumps(arguments).decode()}")

    def _command(self, line: str) -> Any:
        with self._asking:
            if self._why_silent:
                raise ServerError(f"the server {self._why_silent}")
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(f"{line}\n".encode())
            except (BrokenPipeError, ValueError):
                raise ServerError(self._with_log("the server has ended")) from None
            answer = self._read(ANSWER_TIMEOUT_S)
        word, _, rest = answer.partition(b" ")
        if word == b"error":
            raise ValueError(rest.decode())
        if word != b"ok":
            raise ServerError(self._with_log(f"the server answered {answer.decode()!r}"))
        return orjson.loads(rest) if rest else None

    # --------------------------------------------------------------- process

    def _launch(self) -> None:
        settings = dict(self._settings)
        namesrv_port = 0
        if self.namesrv_addr:
            namesrv_port = _port_of(self.namesrv_addr)
            settings["listenPort"] = str(_port_of(self.broker_addr))
        given = {
            "settings": settings,
            "namesrv_port": namesrv_port,
            "grpc_port": _port_of(self.grpc_endpoint) if self.grpc_endpoint else 0,
            "ahead_ms": self._ahead_ms,
        }
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "txrocketmq.testing.child", orjson.dumps(given).decode()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
            )
        self._unread = b""
        self._why_silent = ""
        addresses: dict[str, str] = orjson.loads(self._read(START_TIMEOUT_S))
        self.namesrv_addr = addresses["namesrv"]
        self.broker_addr = addresses["broker"]
        self.grpc_endpoint = addresses["grpc"]

    def _end(self) -> None:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        if process.poll() is None and self._why_silent:
            self.resume()
        process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        self._why_silent = "was stopped"

    def _read(self, timeout_s: float) -> bytes:
        """Returns the next line that the server has written. Raises ServerError."""
        assert self._process.stdout is not None
        deadline_s = time.monotonic() + timeout_s
        output = self._process.stdout
        parts, chunk = [], self._unread
        while b"\n" not in chunk:
            parts.append(chunk)
            left_s = deadline_s - time.monotonic()
            if not select.select([output], [], [], max(left_s, 0))[0]:
                raise ServerError(
                    self._with_log(f"the server did not answer within {timeout_s:.0f} s")
                )
            chunk = output.read(_READ_BYTES)
            if not chunk:
                raise ServerError(self._with_log("the server has ended"))
        line, _, self._unread = chunk.partition(b"\n")
        return b"".join([*parts, line])

    def _with_log(self, text: str) -> str:
        try:
            log = self.log_path.read_bytes()[-_LOG_TAIL_BYTES:]
        except OSError:
            return text
        return f"{text}; its log ends:\n{log.decode('utf-8', 'replace')}"


class Paused:
    """A server that is paused until the end of the block."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self._server.resume()


def check_settings(settings: dict[str, str]) -> None:
    """Raises ValueError for a setting that does not exist or has a wrong value."""
    _, unknown = configure(settings)
    if unknown:
        raise ValueError(f"broker settings: {', '.join(map(str, unknown))}")


def _port_of(address: str) -> int:
    return int(address.rpartition(":")[2])
