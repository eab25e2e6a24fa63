# SPDX-License-Identifier: Apache-2.0
"""Failures that nobody expects, as the log tells of them."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock as TaskClock
from twisted.logger import capturedLogs, formatEvent

from tests.fakes import FakePeer
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.console_log import format_line
from txrocketmq.remoting.host.memory import MemoryReserve
from txrocketmq.remoting.protocol.operations import admin
from txrocketmq.remoting.transport import server
from txrocketmq.remoting.transport.failures import TIMES_A_MINUTE, Failures

ASKED = RemotingCommand(admin.GET_BROKER_RUNTIME_INFO.code, {})


class Broken:
    """A processor with a defect."""

    @serves(admin.GET_BROKER_RUNTIME_INFO)
    def info(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        raise ValueError("oh")


def test_a_handler_that_fails_is_logged_with_the_place_where_it_did() -> None:
    failures = Failures(Clock(TaskClock()))
    dispatcher = Dispatcher(Registry(Broken()), lambda: 0, lambda: 0, failures)
    with capturedLogs() as events:
        dispatcher.serve(FakePeer(), [ASKED])
    (event,) = events
    said = formatEvent(event)
    assert "request GET_BROKER_RUNTIME_INFO(28)" in said
    assert said.endswith("of 127.0.0.1:50000 failed: ValueError: oh")
    text = format_line(event)
    assert "test_failures.py" in text
    assert ", in info" in text
    assert text.endswith("builtins.ValueError: oh")


def test_one_kind_is_told_a_few_times_a_minute() -> None:
    reactor = TaskClock()
    failures = Failures(Clock(reactor))
    with capturedLogs() as events:
        for _ in range(20):
            failures(ASKED, FakePeer(), ValueError("oh"))
        failures(ASKED, FakePeer(), KeyError("other"))
        reactor.advance(60)
        failures(ASKED, FakePeer(), ValueError("oh"))
    # Twisted may tell here, too, of what an earlier test has left to the garbage collector.
    said = [formatEvent(each) for each in events if each["log_namespace"] == Failures.__module__]
    assert len(said) == TIMES_A_MINUTE + 2
    assert said[-1].endswith("oh (and 15 more that were not logged)")


def test_what_a_server_does_by_itself() -> None:
    with capturedLogs() as events:
        Failures(Clock(TaskClock())).by_itself("sampling the counters", ValueError("oh"))
    (event,) = events
    assert formatEvent(event) == "sampling the counters failed: ValueError: oh"
    assert "log_failure" in event


def test_short_memory_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "reserve", MemoryReserve())
    with capturedLogs() as events:
        for _ in range(2):
            Failures(Clock(TaskClock()))(ASKED, FakePeer(), MemoryError())
    (event,) = events
    assert formatEvent(event).startswith("there is no memory for some requests")
    assert "log_failure" not in event


def test_short_memory_is_no_defect_without_a_request_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "reserve", MemoryReserve())
    with capturedLogs() as events:
        Failures(Clock(TaskClock())).by_itself("sampling the counters", MemoryError())
    short, failed = events
    assert formatEvent(short).startswith("there is no memory for some requests")
    assert formatEvent(failed) == "sampling the counters failed: there is not enough memory for it"
    assert "log_failure" not in failed
