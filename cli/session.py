# SPDX-License-Identifier: Apache-2.0
"""Runs a command of the client: the reactor runs for as long as its coroutine takes.

Ctrl-C cancels the coroutine, which still takes leave of the brokers. A reader that has gone
(`| head`) ends the command in silence. Errors that have a text for users are one line on standard
error; for a name that no broker has, it also says which name of the cluster is like it.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, TextIO

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from txrocketmq.cli.ending import INTERRUPTED, forget_stdout
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import GroupNotFound, MQClientError, NoNameServer, NoRoute
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.console_log import start_logging
from txrocketmq.remoting.host.run import run_until_signal, stop_running
from txrocketmq.remoting.primitives.plain_text import plain

_LINE_END: Final = "\n"
HOW_TO_START: Final = (
    "start servers with 'txrocketmq standalone', or name those of a cluster with --namesrv or"
    " $NAMESRV_ADDR"
)
"""What helps if no name server is reached."""
ClientWork = Callable[[ClientInstance], Awaitable[int]]


def run(
    prog: str, config: ClientConfig, command: ClientWork, *, interrupted: int = INTERRUPTED
) -> int:
    """Runs the command with a client; returns its exit code, or `interrupted` after Ctrl-C."""
    start_logging(sys.stderr)
    clock = Clock()
    reactor = clock.reactor
    codes: list[int] = []

    def done(outcome: int | Failure) -> None:
        codes.append(outcome if isinstance(outcome, int) else exit_code(prog, outcome, interrupted))
        stop_running(reactor)

    def begin() -> None:
        task = Deferred.fromCoroutine(_with_client(clock, config, command))

        def shut_down() -> Deferred[Any]:
            task.cancel()
            return task

        reactor.addSystemEventTrigger("before", "shutdown", shut_down)
        task.addBoth(done)

    reactor.callWhenRunning(begin)
    run_until_signal(reactor)
    return codes[0] if codes else interrupted


async def _with_client(clock: Clock, config: ClientConfig, command: ClientWork) -> int:
    client = ClientInstance(config, clock)
    client.start()
    try:
        return await command(client)
    except (GroupNotFound, NoRoute) as error:
        if near := await _near(client, error):
            error.add_note(f"did you mean {near}?")
        raise
    except NoNameServer as error:
        error.add_note(HOW_TO_START)
        raise
    finally:
        await client.stop()


async def _near(client: ClientInstance, error: GroupNotFound | NoRoute) -> str | None:
    """Returns the name of the cluster's groups or topics that is most like the unknown one."""
    admin = Admin(client)
    try:
        if isinstance(error, GroupNotFound):
            name, known = error.group, await admin.groups()
        else:
            name, known = error.topic, await admin.topics()
    except (MQClientError, RemotingError):  # what is printed is the error of the command
        return None
    return next(iter(difflib.get_close_matches(name, known, 1)), None)


def exit_code(prog: str, failure: Failure, interrupted: int, errors: TextIO | None = None) -> int:
    """Returns the exit code of a failed command; prints the reason if users should know it."""
    error = failure.value
    errors = errors or sys.stderr
    if isinstance(error, CancelledError):
        return interrupted
    if isinstance(error, BrokenPipeError):
        forget_stdout()
        return 0
    if isinstance(error, (MQClientError, RemotingError, ValueError, OSError)):
        text = "; ".join((_reason(error), *getattr(error, "__notes__", ())))
        print(f"{prog}: {plain(text, keep=_LINE_END)}", file=errors)
        return 1
    trace = plain(failure.getTraceback(), keep=_LINE_END)
    print(f"{prog}: a defect of this program:\n{trace}", file=errors)
    return 1


def _reason(error: BaseException) -> str:
    """Returns what an error says, without the number of an error of the system."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)
