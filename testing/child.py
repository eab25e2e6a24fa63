# SPDX-License-Identifier: Apache-2.0
"""The program of a test server's process, which takes commands on standard input.

The argument is a JSON object: `settings` are the broker's, `namesrv_port` is the port of the name
server and `grpc_port` that for gRPC (0 for a free one), and `ahead_ms` says how far the broker's
clock is ahead from the start. When clients can find the broker, a JSON object with all addresses is
written to standard output. After that comes the answer to each command, which is a name and its
arguments in JSON:

    advance 10000               puts the broker's clock forward by so many ms; answers "ok"
    lag ["stock"]               calls a method of `BrokerState`; answers "ok" and its result
    refuse ["SYSTEM_BUSY"]      calls a method of `Faults`
    reset                       begins anew at the same addresses, with an empty store

What cannot be done is answered with "error" and a reason. The server ends when its input ends, so
it does not outlive the test. Its log goes to standard error.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TextIO

import orjson
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.cli.servers.standalone import Options, Standalone
from txrocketmq.proxy.needs import missing
from txrocketmq.remoting.host.run import run_service, stop_running
from txrocketmq.testing.broker_state import BrokerState
from txrocketmq.testing.clock import HurriedClock
from txrocketmq.testing.faults import Faults

OF_STATE: Final = (
    "create_topic",
    "ensure_topic",
    "create_account",
    "topics",
    "groups",
    "lag",
    "queue_ids",
    "records",
)
OF_FAULTS: Final = ("refuse", "delay", "drop_connections", "count", "end")

log = Logger()


class Runs:
    """The running server, which a reset replaces by another one at the same addresses."""

    def __init__(self, options: Options, ahead_ms: int = 0) -> None:
        self._options = options
        self.clock = HurriedClock()
        self.clock.advance(ahead_ms)
        self.service = Standalone(options, self.clock)

    def start(self) -> None:
        """Starts the server. Raises ValueError and OSError, whose texts say what to do."""
        self.service.start()

    def stop(self) -> Deferred[Any]:
        """Stops the server in order."""
        return self.service.stop()

    def reset(self) -> Deferred[None]:
        """Begins anew with an empty store and the right time.

        Fires when clients can find the broker. Raises OSError if it cannot begin.
        """
        settings, folder = dict(self._options.settings), self._options.settings["storePathRootDir"]
        settings["listenPort"] = self.service.broker_addr.rpartition(":")[2]
        port = int(self.service.namesrv_addr.rpartition(":")[2])
        grpc_port = self.service.door.port or None

        def begin(_: Any) -> Deferred[None]:
            shutil.rmtree(folder, ignore_errors=True)
            self.clock = HurriedClock()
            options = dataclasses.replace(
                self._options, namesrv_port=port, grpc_port=grpc_port, settings=settings
            )
            self.service = Standalone(options, self.clock)
            self.service.start()
            return self.service.ready

        return self.service.stop().addCallback(begin)


class Control:
    """Carries out commands and writes the answers to `answers`."""

    def __init__(self, runs: Runs, answers: TextIO) -> None:
        self._runs = runs
        self._answers = answers
        self._calls: Mapping[str, Callable[..., Any]] = {}

    def ready(self, _: object) -> None:
        """Writes both addresses to the answers; from now on commands can be answered."""
        service = self._runs.service
        self._join()
        addresses = {
            "namesrv": service.namesrv_addr,
            "broker": service.broker_addr,
            "grpc": service.grpc_endpoint,
        }
        self._answer(orjson.dumps(addresses).decode())

    def _join(self) -> None:
        service, clock = self._runs.service, self._runs.clock.unhurried
        if service.broker is not None:
            self._calls = calls_of(BrokerState(service, clock), Faults(service.broker, clock))

    def failed(self, failure: Failure) -> None:
        """Logs why the server cannot start, and ends it, which the parent process notices."""
        log.error("{error}", error=failure.getErrorMessage())
        stop_running(self._runs.clock.reactor)

    def obey(self, line: str) -> None:
        """Carries out one command; an invalid one is answered with "error" and a reason."""
        name, _, argument = line.strip().partition(" ")
        if name == "advance" and argument.isdecimal():
            clock = self._runs.clock
            clock.advance(int(argument))
            clock.unhurried.later(0, self._answer, "ok")
            return
        if (name, argument) == ("reset", ""):
            reset = maybeDeferred(self._runs.reset).addCallback(lambda _: self._join())
            reset.addCallbacks(self._done, self._refused)
            return
        try:
            call, arguments = self._calls[name], orjson.loads(argument)
        except (KeyError, ValueError):
            self._answer(f"error no command: {line.strip()}")
            return
        maybeDeferred(call, *arguments).addCallbacks(self._done, self._refused)

    def read(self, commands: TextIO) -> None:
        """Passes commands to the reactor's thread until the input ends; runs in another thread."""
        reactor = self._runs.clock.reactor
        for line in commands:
            reactor.callFromThread(self.obey, line)
        reactor.callFromThread(stop_running, reactor)

    def _done(self, result: Any) -> None:
        self._answer("ok" if result is None else f"ok {orjson.dumps(result).decode()}")

    def _refused(self, failure: Failure) -> None:
        if failure.check(ValueError) is None:
            log.failure("a command failed", failure)
        self._answer(f"error {failure.getErrorMessage()}".replace("\n", " "))

    def _answer(self, text: str) -> None:
        print(text, file=self._answers, flush=True)


def calls_of(state: BrokerState, faults: Faults) -> dict[str, Callable[..., Any]]:
    """Returns the commands that call a method of an object."""
    calls = {name: getattr(state, name) for name in OF_STATE}
    return calls | {name: getattr(faults, name) for name in OF_FAULTS}


def main() -> int:
    """Runs the server until standard input ends; returns the exit code."""
    given: dict[str, Any] = orjson.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever is printed is log
    options = Options(
        namesrv_port=given["namesrv_port"],
        settings=given["settings"],
        grpc_port=None if missing() else given["grpc_port"],
    )
    runs = Runs(options, given["ahead_ms"])
    control = Control(runs, answers)
    runs.service.ready.addCallbacks(control.ready, control.failed)
    reader = threading.Thread(target=control.read, args=(sys.stdin,), daemon=True)
    runs.clock.reactor.callWhenRunning(reader.start)
    return run_service("test server", runs)


if __name__ == "__main__":
    sys.exit(main())
