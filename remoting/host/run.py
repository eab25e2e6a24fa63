# SPDX-License-Identifier: Apache-2.0
"""Runs a service as a process: starts the log and the service, stops it in order on a signal.

SIGTERM, SIGINT and SIGHUP stop it. The original's servers are Java programs, which SIGHUP stops in
order like SIGTERM, unless they were started with SIGHUP ignored (nohup); it is the same here.
Settings are changed by mqadmin while a server runs, so no signal is needed to read its file anew.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError, ReactorNotRunning
from twisted.internet.selectreactor import SelectReactor
from twisted.logger import LogLevel
from twisted.python.failure import Failure

from txrocketmq.remoting.host.console_log import LogFileStream, start_logging
from txrocketmq.remoting.host.limits import WANTED_FILES, raise_file_limit
from txrocketmq.remoting.host.memory import grow_stack, reserve, settle_memory
from txrocketmq.remoting.host.readiness import READY, STOPPING, ReadyFile, notify
from txrocketmq.remoting.primitives.plain_text import plain, plain_error
from txrocketmq.remoting.settings.service_options import (
    LOG_FILE_BYTES,
    LOG_FILES_KEPT,
    ServiceOptions,
)

reactor: Any = _reactor

SELECTABLE_FILES = 1024
"""FD_SETSIZE: select(2), which is what Twisted waits with on macOS, knows no higher numbers."""


class Service(Protocol):
    """A service that `run_service` can run."""

    def start(self) -> None:
        """Starts the service. Raises ValueError, OSError or CannotListenError if it cannot."""

    def stop(self) -> Deferred[Any]:
        """Ends everything that the service does; fires when that is done."""


def run_service(
    name: str,
    service: Service,
    options: ServiceOptions | None = None,
    *,
    addresses: Callable[[], str] = str,
    ready: Deferred[Any] | None = None,
    port_setting: str = "listenPort",
) -> int:
    """Runs a service until SIGTERM, SIGINT or SIGHUP; returns the exit code of the process.

    If the service cannot start, the reason is printed and its exit code is returned. It is ready
    when `ready` fires, or without that as soon as it has started; then `addresses` are written to
    the ready file, and systemd is notified. `port_setting` names the setting that a port which is
    not free may be changed by. MemoryError is left to the command: see
    out_of_memory.py.
    """
    options = options or ServiceOptions()
    try:
        _start_logging(options)
    except OSError as error:
        why = f"cannot write the log to {options.log_file}: {error.strerror}"
        print(f"{name}: {why}", file=sys.stderr)
        return 1
    code = _started(name, service, port_setting)
    if code:
        return code
    settle_memory()
    reserve.take()
    ready_file = ReadyFile(options.ready_file)

    def serves(_: object = None) -> None:
        try:
            ready_file.write(addresses())
        except OSError as error:
            why = f"cannot write {options.ready_file}: {error.strerror}"
            print(f"{name}: {why}", file=sys.stderr)
        notify(READY)

    def failed(failure: Failure) -> None:
        why = plain(failure.getErrorMessage(), keep="\n")
        print(f"{name}: {why}", file=sys.stderr)

    def stop() -> Deferred[Any]:
        notify(STOPPING)
        ready_file.remove()
        return service.stop()

    reactor.addSystemEventTrigger("before", "shutdown", stop)
    if ready is None:
        reactor.callWhenRunning(serves)
    else:
        ready.addCallbacks(serves, failed)
    run_until_signal(reactor)
    return 0


def _started(name: str, service: Service, port_setting: str) -> int:
    """Starts the service; returns 0, or the exit code of the process if it could not start."""
    raise_file_limit(SELECTABLE_FILES if isinstance(reactor, SelectReactor) else WANTED_FILES)
    grow_stack()
    try:
        service.start()
    except CannotListenError as error:
        why = why_not_listening(
            error,
            port=f"set another {port_setting} in the configuration file",
            address="set another bindAddress in the configuration file",
        )
        print(f"{name}: {why}", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        print(f"{name}: {plain_error(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # opening a large store takes long, and the user gave up
        return 128 + signal.SIGINT
    return 0


def _start_logging(options: ServiceOptions) -> None:
    stream = None
    if options.log_file:
        stream = LogFileStream(options.log_file, LOG_FILE_BYTES, LOG_FILES_KEPT)
    start_logging(stream, LogLevel.lookupByName(options.log_level), options.log_format)


def why_not_listening(error: CannotListenError, *, port: str, address: str) -> str:
    """Returns what is wrong and what to do; `port` and `address` say how to choose another one."""
    cause = error.socketError
    number = cause.errno if isinstance(cause, OSError) else None
    if number == errno.EADDRNOTAVAIL or isinstance(cause, socket.gaierror):
        where = f"{error.interface}, which is not an address of this machine"
        return f"cannot listen on {where}: {cause}. {_sentence(address)}"
    advice = _sentence(port)
    if number == errno.EADDRINUSE:
        advice = f"Is another one running? Stop it, or {port}."
    return f"cannot listen on port {error.port}: {cause}. {advice}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def run_until_signal(reactor: Any) -> None:
    """Runs the reactor until SIGINT, SIGTERM or SIGHUP, which stops it in order.

    A second signal ends the process at once, unless one of the two is SIGHUP: that of a terminal,
    or of systemd with SendSIGHUP, may come right behind another signal.
    """
    arrived: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if arrived and number == signal.SIGHUP:
            return
        if any(each != signal.SIGHUP for each in arrived):
            os._exit(128 + number)
        arrived.append(number)
        reactor.callFromThread(stop_running, reactor)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup sets it
        numbers.append(signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        reactor.run(installSignalHandlers=False)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_running(reactor: Any) -> None:
    """Stops the reactor, unless it is being stopped already."""
    with suppress(ReactorNotRunning):
        reactor.stop()
