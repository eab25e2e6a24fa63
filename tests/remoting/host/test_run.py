# SPDX-License-Identifier: Apache-2.0
"""A service as a process: each in one of its own, since signals and the reactor are a process's."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SERVICE = """
import errno
import socket
import sys
from twisted.internet import reactor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import CannotListenError
from txrocketmq.remoting.host.run import run_service, stop_running

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


@pytest.mark.parametrize(("reactor", "most"), [("select", 1024), ("poll", 2048)])
def test_files_are_limited_to_what_the_reactor_can_watch(reactor: str, most: int) -> None:
    """Without epoll Twisted has others; that of macOS is select."""
    program = (
        f"import sys\nfrom twisted.internet import {reactor}reactor\n{reactor}reactor.install()"
        f"{SERVICE}"
        "    def start(self):\n"
        "        raise ValueError(str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))\n"
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (512, 2048))\n"
        "sys.exit(run_service('it', Service()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == f"it: {most}\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ('ValueError("wrong")', "name server: wrong"),
        ('OSError("no room")', "name server: no room"),
        (r'ValueError("topic T\x1b[31m")', r"name server: topic T\x1b[31m"),
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
                "name server: cannot listen on 8.8.8.8, which is not an address of this machine:"
                f" [Errno {errno.EADDRNOTAVAIL}] cannot assign."
                " Set another bindAddress in the configuration file."
            ),
        ),
        (
            'CannotListenError("nowhere", 80, socket.gaierror(-2, "Name not known"))',
            (
                "name server: cannot listen on nowhere, which is not an address of this machine:"
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
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


def started(program: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SERVICE + program], stdout=subprocess.PIPE, text=True, **options
    )


RUN = """
reactor.callWhenRunning(print, "running", flush=True)
sys.exit(run_service("name server", Service()))
"""


def test_hanging_up_is_ignored_where_it_was_at_the_start() -> None:
    process = started("import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)" + RUN)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    os.kill(process.pid, signal.SIGHUP)
    os.kill(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=30)[0] == "stopped in order\n"
    assert process.returncode == 0


def test_hanging_up_behind_another_signal_hurries_nothing() -> None:
    process = started(
        """
def stop(self):
    print("stopping", flush=True)
    done = Deferred()
    reactor.callLater(1, done.callback, None)
    done.addCallback(lambda _: print("stopped in order", flush=True))
    return done
Service.stop = stop
"""
        + RUN
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    os.kill(process.pid, signal.SIGTERM)
    assert process.stdout.readline() == "stopping\n"
    os.kill(process.pid, signal.SIGHUP)
    assert process.communicate(timeout=30)[0] == "stopped in order\n"
    assert process.returncode == 0


OPTIONS = """
from txrocketmq.remoting.settings.service_options import ServiceOptions
options = ServiceOptions("debug", log_format="json", log_file={log!r}, ready_file={ready!r})
class Serving(Service):
    def start(self):
        from twisted.logger import Logger
        Logger(namespace="txrocketmq.a").debug("detail {{n}}", n=1)
sys.exit(run_service("name server", Serving(), options, addresses=lambda: "127.0.0.1:9876"))
"""


def test_readiness_is_told_and_the_log_goes_to_its_file(tmp_path: Path) -> None:
    notified = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notified.settimeout(30)
    notified.bind(str(tmp_path / "notify"))
    ready, log = tmp_path / "ready", tmp_path / "log"
    process = started(
        OPTIONS.format(log=str(log), ready=str(ready)),
        env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")},
    )
    with notified:
        assert notified.recv(100) == b"READY=1"
        assert ready.read_text() == "127.0.0.1:9876\n"
        os.kill(process.pid, signal.SIGTERM)
        assert notified.recv(100) == b"STOPPING=1"
    assert process.communicate(timeout=30)[0] == "stopped in order\n"
    assert not ready.exists()
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["message"] == "detail 1"


def test_a_ready_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "none" / "ready"
    done = run(
        "reactor.callLater(0, lambda: reactor.callLater(0, stop_running, reactor))"
        + OPTIONS.format(log="", ready=str(path))
    )
    assert done.stderr == f"name server: cannot write {path}: No such file or directory\n"
    assert done.returncode == 0


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "none" / "log"
    done = run(OPTIONS.format(log=str(path), ready=""))
    assert (
        done.stderr == f"name server: cannot write the log to {path}: No such file or directory\n"
    )
    assert done.returncode == 1


def test_who_is_never_ready_is_never_said_to_be() -> None:
    done = run("""
ready = Deferred()
reactor.callLater(0, ready.errback, OSError("nobody answers"))
reactor.callLater(0.01, stop_running, reactor)
sys.exit(run_service("name server", Service(), addresses=print, ready=ready))
""")
    assert (done.returncode, done.stdout) == (0, "stopped in order\n")
    assert done.stderr == "name server: nobody answers\n"
