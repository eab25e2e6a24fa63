# SPDX-License-Identifier: Apache-2.0
"""A service as a process: each in one of its own, since signals and the reactor are a process's."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import pytest

SERVICE = """
import errno
import socket
import sys
from twisted.internet import reactor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import CannotListenError
from txrocketmq.remoting.transport.run import run_service, stop_running

class Service:
    def start(self):
        pass

    def stop(self):
        print("stopped in order", flush=True)
        return succeed(None)
"""


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SERVICE + program],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ('ValueError("wrong")', "name server: wrong"),
        ('OSError("no room")', "name server: no room"),
        (
            'CannotListenError("", 9876, OSError(errno.EADDRINUSE, "in use"))',
            (
                f"name server: cannot listen on port 9876: [Errno {errno.EADDRINUSE}] in use."
                " Is another one running? Stop it, or set another listenPort in the"
                " configuration file."
            ),
        ),
        (
            'CannotListenError("", 80, OSError(errno.EACCES, "not allowed"))',
            (
                f"name server: cannot listen on port 80: [Errno {errno.EACCES}] not allowed."
                " Set another listenPort in the configuration file."
            ),
        ),
        (
            'CannotListenError("8.8.8.8", 80, OSError(errno.EADDRNOTAVAIL, "cannot assign"))',
            (
                "name server: cannot listen on 8.8.8.8, which is no address of this machine:"
                f" [Errno {errno.EADDRNOTAVAIL}] cannot assign."
                " Set another bindAddress in the configuration file."
            ),
        ),
        (
            'CannotListenError("nowhere", 80, socket.gaierror(-2, "Name not known"))',
            (
                "name server: cannot listen on nowhere, which is no address of this machine:"
                " [Errno -2] Name not known. Set another bindAddress in the configuration file."
            ),
        ),
    ],
)
def test_one_sentence_says_why_it_could_not_start(error: str, said: str) -> None:
    done = run(f"""
def start(self):
    raise {error}
Service.start = start
sys.exit(run_service("name server", Service()))
""")
    assert done.returncode == 1
    assert done.stderr == said + "\n"
    assert done.stdout == ""


def test_who_does_not_wait_for_the_start_sees_no_traceback() -> None:
    done = run("""
def start(self):
    raise KeyboardInterrupt
Service.start = start
sys.exit(run_service("name server", Service()))
""")
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


def test_a_mistake_of_ours_is_not_hidden() -> None:
    done = run("""
def start(self):
    raise KeyError("bug")
Service.start = start
run_service("name server", Service())
""")
    assert "KeyError: 'bug'" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(number: signal.Signals) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            SERVICE
            + """
reactor.callWhenRunning(print, "running", flush=True)
sys.exit(run_service("name server", Service()))
""",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    os.kill(process.pid, number)
    assert process.communicate(timeout=30)[0] == "stopped in order\n"
    assert process.returncode == 0


def test_a_second_signal_does_not_wait() -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            SERVICE
            + """
def stop(self):
    print("stopping", flush=True)
    return Deferred()  # for ever
Service.stop = stop
reactor.callWhenRunning(print, "running", flush=True)
run_service("name server", Service())
""",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == "stopping\n"
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


def test_what_runs_is_stopped_once() -> None:
    done = run("""
stop_running(reactor)  # not running: nothing to stop
def twice():
    stop_running(reactor)
    stop_running(reactor)
reactor.callWhenRunning(twice)
sys.exit(run_service("name server", Service()))
""")
    assert (done.returncode, done.stdout) == (0, "stopped in order\n")
