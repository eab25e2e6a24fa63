# SPDX-License-Identifier: Apache-2.0
"""The commands of a test server's process."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

import pytest
from twisted.internet.task import Clock as ReactorClock
from twisted.python.failure import Failure

from txrocketmq.cli.standalone import Standalone
from txrocketmq.testing.child import Control
from txrocketmq.testing.clock import HurriedClock


class Loop(ReactorClock):
    """A reactor that notes that it is stopped, and runs what threads ask for at once."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = 0

    def stop(self) -> None:
        self.stopped += 1

    def callFromThread(self, call: Any, *args: Any) -> None:  # noqa: N802
        call(*args)


class Scene:
    def __init__(self) -> None:
        self.reactor = Loop()
        self.clock = HurriedClock(self.reactor)
        self.answers = io.StringIO()
        service = SimpleNamespace(namesrv_addr="n:1", broker_addr="b:2")
        self.control = Control(cast(Standalone, service), self.clock, self.answers)

    def said(self) -> str:
        self.reactor.advance(0)
        return self.answers.getvalue()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_first_line_tells_both_addresses(scene: Scene) -> None:
    scene.control.ready(None)
    assert scene.said() == '{"namesrv":"n:1","broker":"b:2"}\n'


def test_the_clock_is_put_forward_and_what_is_due_happens_before_the_answer(scene: Scene) -> None:
    scene.clock.later(10_000, lambda: scene.answers.write("due\n"))
    scene.control.obey("advance 10000\n")
    assert scene.clock.now_ms() == 10_000
    assert scene.said() == "due\nok\n"


@pytest.mark.parametrize("line", ["", "advance", "advance -1", "advance x", "stop now"])
def test_what_is_no_command_is_answered(scene: Scene, line: str) -> None:
    scene.control.obey(line + "\n")
    assert scene.said() == f"error no command: {line}\n"
    assert scene.clock.now_ms() == 0


def test_the_end_of_the_commands_is_the_end(scene: Scene) -> None:
    scene.control.read(io.StringIO("advance 1\nadvance 2\n"))
    assert scene.clock.now_ms() == 3
    assert scene.said() == "ok\nok\n"
    assert scene.reactor.stopped == 1


def test_a_server_that_cannot_be_found_ends(scene: Scene) -> None:
    scene.control.failed(Failure(OSError("not registered")))
    assert scene.reactor.stopped == 1
    assert scene.said() == ""
