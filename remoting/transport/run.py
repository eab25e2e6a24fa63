# SPDX-License-Identifier: Apache-2.0
"""Running a service as a process: log to the console, start, stop in order on a signal."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError, ReactorNotRunning

from txrocketmq.remoting.transport.console_log import start_logging
from txrocketmq.remoting.transport.limits import raise_file_limit
from txrocketmq.remoting.transport.memory import settle_memory

reactor: Any = _reactor


class Service(Protocol):
    """What can be run."""

    def start(self) -> None:
        """Raises ValueError, OSError or CannotListenError when it cannot."""

    def stop(self) -> Deferred[Any]:
        """Ends everything; fires when that is done."""


def run_service(name: str, service: Service) -> int:
    """Runs until SIGTERM or SIGINT; 1 when it could not start, with one sentence why."""
    start_logging()
    raise_file_limit()
    try:
        service.start()
    except CannotListenError as error:
        why = why_not_listening(
            error,
            port="set another listenPort in the configuration file",
            address="set another bindAddress in the configuration file",
        )
        print(f"{name}: {why}", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # a large store takes its time, and the user does not
        return 128 + signal.SIGINT
    settle_memory()
    reactor.addSystemEventTrigger("before", "shutdown", service.stop)
    run_until_signal(reactor)
    return 0


def why_not_listening(error: CannotListenError, *, port: str, address: str) -> str:
    """What is wrong and what to do; `port` and `address` say how to have another."""
    cause = error.socketError
    number = cause.errno if isinstance(cause, OSError) else None
    if number == errno.EADDRNOTAVAIL or isinstance(cause, socket.gaierror):
        where = f"{error.interface}, which is no address of this machine"
        return f"cannot listen on {where}: {cause}. {_sentence(address)}"
    advice = _sentence(port)
    if number == errno.EADDRINUSE:
        advice = f"Is another one running? Stop it, or {port}."
    return f"cannot listen on port {error.port}: {cause}. {advice}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def run_until_signal(reactor: Any) -> None:
    """Runs the reactor. SIGINT or SIGTERM stops it in order; a second one ends the process."""
    arrived: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        arrived.append(number)
        if len(arrived) > 1:
            os._exit(128 + number)
        reactor.callFromThread(stop_running, reactor)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        reactor.run(installSignalHandlers=False)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_running(reactor: Any) -> None:
    """Stops the reactor, unless it stops already."""
    with suppress(ReactorNotRunning):
        reactor.stop()
