# SPDX-License-Identifier: Apache-2.0
"""The process of a test server: settings as its argument, commands on standard input.

The argument is a JSON object, the broker's settings. On standard output come one JSON object with
both addresses when clients find the broker, and an answer to each command:

    advance 10000       puts the broker's clock forward by so many milliseconds; answers "ok"

The end of the input ends the server, so it does not outlive the test. Its log goes to standard
error.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, TextIO

import orjson
from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.cli.standalone import Options, Standalone
from txrocketmq.remoting.transport.run import run_service, stop_running
from txrocketmq.testing.clock import HurriedClock

log = Logger()


class Control:
    """Obeys commands; `answers` is where the answers go."""

    def __init__(self, service: Standalone, clock: HurriedClock, answers: TextIO) -> None:
        self._service = service
        self._clock = clock
        self._answers = answers

    def ready(self, _: object) -> None:
        """Tells both addresses."""
        service = self._service
        addresses = {"namesrv": service.namesrv_addr, "broker": service.broker_addr}
        self._answer(orjson.dumps(addresses).decode())

    def failed(self, failure: Failure) -> None:
        """Nobody will find the broker: the log says why, and the parent sees the end."""
        log.error("{error}", error=failure.getErrorMessage())
        stop_running(self._clock.reactor)

    def obey(self, line: str) -> None:
        """One command; what is none is answered with "error" and a reason."""
        name, _, argument = line.strip().partition(" ")
        if name == "advance" and argument.isdecimal():
            self._clock.advance(int(argument))
            self._clock.unhurried.later(0, self._answer, "ok")
        else:
            self._answer(f"error no command: {line.strip()}")

    def read(self, commands: TextIO) -> None:
        """In a thread: passes commands on until their end."""
        reactor = self._clock.reactor
        for line in commands:
            reactor.callFromThread(self.obey, line)
        reactor.callFromThread(stop_running, reactor)

    def _answer(self, text: str) -> None:
        print(text, file=self._answers, flush=True)


def main() -> int:
    """Runs until the end of standard input; the exit code."""
    settings: dict[str, Any] = orjson.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever is printed is log
    clock = HurriedClock()
    service = Standalone(Options(namesrv_port=0, settings=settings), clock)
    control = Control(service, clock, answers)
    service.ready.addCallbacks(control.ready, control.failed)
    reader = threading.Thread(target=control.read, args=(sys.stdin,), daemon=True)
    clock.reactor.callWhenRunning(reader.start)
    return run_service("test server", service)


if __name__ == "__main__":
    sys.exit(main())
