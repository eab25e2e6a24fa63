# SPDX-License-Identifier: Apache-2.0
"""The client's log: which lines reach Python's loggers, and which Twisted."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from twisted.logger import Logger, globalLogBeginner, globalLogPublisher
from twisted.python.failure import Failure

from txrocketmq.client.thread import python_log
from txrocketmq.client.thread.python_log import THREAD, PythonLog

PROGRAM = """
import logging, sys
from twisted.logger import Logger, globalLogBeginner, textFileLogObserver
from txrocketmq.client.thread import python_log

python_log.begin(in_thread=sys.argv[1] == "thread")
python_log.begin(in_thread=False)
logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", stream=sys.stdout)

def fail(namespace):
    try:
        raise ValueError(namespace)
    except ValueError:
        Logger(namespace).failure("it failed")

fail("txrocketmq.client.x")
fail("somebody.else")
globalLogBeginner.beginLoggingTo([textFileLogObserver(sys.stderr)], redirectStandardIO=False)
fail("txrocketmq.client.y")
"""


@pytest.fixture
def observer(monkeypatch: pytest.MonkeyPatch) -> Iterator[PythonLog]:
    made = PythonLog()
    globalLogPublisher.addObserver(made)
    yield made
    globalLogPublisher.removeObserver(made)


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int, str]]:
    return [(each.name, each.levelno, each.getMessage()) for each in caplog.records]


def test_lines_keep_their_names_and_levels(
    observer: PythonLog, caplog: pytest.LogCaptureFixture
) -> None:
    globalLogPublisher.removeObserver(python_log._observer)
    observer.is_for_threads = True
    log = Logger("txrocketmq.client.x")
    with caplog.at_level(logging.DEBUG, "txrocketmq"):
        for level in ("debug", "info", "warn", "error", "critical"):
            getattr(log, level)("at {what} 100 %", what=level)
        Logger("somebody.else").error("not ours")
    assert said(caplog) == [
        ("txrocketmq.client.x", logging.DEBUG, "at debug 100 %"),
        ("txrocketmq.client.x", logging.INFO, "at info 100 %"),
        ("txrocketmq.client.x", logging.WARNING, "at warn 100 %"),
        ("txrocketmq.client.x", logging.ERROR, "at error 100 %"),
        ("txrocketmq.client.x", logging.ERROR, "at critical 100 %"),
    ]


def test_what_happens_in_the_clients_thread_is_the_clients(
    observer: PythonLog, caplog: pytest.LogCaptureFixture
) -> None:
    globalLogPublisher.removeObserver(python_log._observer)
    observer.is_for_threads = True

    def run() -> None:
        log = Logger("twisted.internet.defer")
        log.info("the main loop ends")
        log.failure("Unhandled error in Deferred:", Failure(LookupError("x")))

    thread = threading.Thread(target=run, name=THREAD)
    with caplog.at_level(logging.DEBUG, "txrocketmq"):
        thread.start()
        thread.join()
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("txrocketmq.twisted.internet.defer", logging.ERROR)
    assert record.exc_info is not None
    assert record.exc_info[0] is LookupError


def test_a_client_for_twisted_logs_to_a_log_of_twisted_that_has_begun(
    observer: PythonLog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    globalLogPublisher.removeObserver(python_log._observer)
    first: list[Any] = []
    for begun, expected in ((None, 0), (first.append, 1)):
        monkeypatch.setattr(globalLogBeginner, "_temporaryObserver", begun)
        with caplog.at_level(logging.DEBUG, "txrocketmq"):
            Logger("txrocketmq.client.x").error("it failed")
        assert len(caplog.records) == expected


@pytest.mark.parametrize("where", ["thread", "reactor"])
def test_each_failure_is_written_once(where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, where],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.count("ERROR txrocketmq.client.x: it failed") == 1
    assert done.stdout.count("ValueError: txrocketmq.client.x") == 1
    assert done.stdout.count("txrocketmq.client.y: it failed") == (where == "thread")
    assert done.stderr.count("ValueError: somebody.else") == 2, "as Twisted always does"
    assert done.stderr.count("ValueError: txrocketmq.client.y") == 1
    assert "txrocketmq.client.x" not in done.stderr
