# SPDX-License-Identifier: Apache-2.0
"""A name server and a broker for tests, in a process beside the test.

    with running(autoCreateTopicEnable=False) as server:
        producer.setNamesrvAddr(server.namesrv_addr)
        ...
        server.advance(10_000)      # a message with a delay of ten seconds arrives now

They listen on free ports of the loopback interface and keep their store in a temporary folder. At
the end they are stopped and the folder is removed. They also end when the test process is killed.
"""

from __future__ import annotations

import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import orjson

from txrocketmq.testing.settings import broker_settings

START_TIMEOUT_S: Final = 30.0
ANSWER_TIMEOUT_S: Final = 10.0
STOP_TIMEOUT_S: Final = 10.0
_LOG_TAIL_BYTES: Final = 4_000


class ServerError(Exception):
    """The server did not start or does not answer; the text ends with the last lines of its log."""


class Server:
    """A running server: `start` starts one, and `stop` ends it."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._process = process
        self._unread = b""
        self.store = folder / "store"
        """Folder of the store."""
        self.log_path = folder / "server.log"
        """The log of name server and broker."""
        self.namesrv_addr = ""
        """Address of the name server, "host:port"."""
        self.broker_addr = ""
        """Address of the broker."""

    @classmethod
    def start(cls, **settings: object) -> Self:
        """Starts a server; the arguments are settings of the broker, as named in broker.conf.

        Returns when clients can find the broker. Raises ServerError.
        """
        folder = Path(tempfile.mkdtemp(prefix="rocketmq-"))
        argument = orjson.dumps(broker_settings(str(folder / "store"), settings)).decode()
        with (folder / "server.log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "txrocketmq.testing.child", argument],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
            )
        server = cls(folder, process)
        try:
            addresses: dict[str, Any] = orjson.loads(server._read(START_TIMEOUT_S))
        except BaseException:
            server.stop()
            raise
        server.namesrv_addr = addresses["namesrv"]
        server.broker_addr = addresses["broker"]
        return server

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def advance(self, ms: int) -> None:
        """Moves the broker's clock forward by so many milliseconds; what is due by then happens.

        Raises ServerError.
        """
        if ms < 0:
            raise ValueError(f"the clock can only be moved forward, not by {ms} ms")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"advance {ms}\n".encode())
        except BrokenPipeError:
            raise ServerError(self._with_log("the server has ended")) from None
        answer = self._read(ANSWER_TIMEOUT_S)
        if answer != b"ok":
            raise ServerError(self._with_log(f"the server answered {answer.decode()!r}"))

    def stop(self) -> None:
        """Stops the server in order and removes its store. A second call does nothing."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, timeout_s: float) -> bytes:
        """The next line of the server. Raises ServerError."""
        assert self._process.stdout is not None
        deadline_s = time.monotonic() + timeout_s
        output = self._process.stdout
        while b"\n" not in self._unread:
            left_s = deadline_s - time.monotonic()
            if not select.select([output], [], [], max(left_s, 0))[0]:
                raise ServerError(
                    self._with_log(f"the server did not answer within {timeout_s:.0f} s")
                )
            chunk = output.read(4096)
            if not chunk:
                raise ServerError(self._with_log("the server has ended"))
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _with_log(self, text: str) -> str:
        try:
            log = self.log_path.read_bytes()[-_LOG_TAIL_BYTES:]
        except OSError:
            return text
        return f"{text}; its log ends:\n{log.decode('utf-8', 'replace')}"


@contextmanager
def running(**settings: object) -> Iterator[Server]:
    """A server that runs as long as the block; the arguments are settings of its broker.

    Raises ServerError.
    """
    server = Server.start(**settings)
    try:
        yield server
    finally:
        server.stop()
