# SPDX-License-Identifier: Apache-2.0
"""The commands of a test server's process."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock as ReactorClock
from twisted.python.failure import Failure

from txrocketmq.cli.servers.standalone import Options
from txrocketmq.testing import child
from txrocketmq.testing.child import OF_FAULTS, OF_STATE, Control, Runs
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


class StandIn:
    """In place of name server and broker."""

    made: list[StandIn] = []  # noqa: RUF012 - emptied by each scene

    def __init__(self, options: Options, clock: HurriedClock) -> None:
        self.options, self.clock = options, clock
        self.namesrv_addr, self.broker_addr, self.grpc_endpoint = "n:1", "b:2", "g:3"
        self.door = SimpleNamespace(port=3)
        self.ready: Deferred[None] = succeed(None)
        self.happened: list[str] = []
        self.broker = SimpleNamespace(guards=[], server=SimpleNamespace(choose=None, peers=[]))
        self.made.append(self)

    def start(self) -> None:
        self.happened.append("start")

    def stop(self) -> Deferred[None]:
        self.happened.append("stop")
        return succeed(None)


class Scene:
    def __init__(self, folder: Path) -> None:
        self.answers = io.StringIO()
        StandIn.made = []
        settings = {"storePathRootDir": str(folder / "store"), "listenPort": "0"}
        self.runs = Runs(Options(namesrv_port=0, settings=settings), 7)
        self.clock = self.runs.clock
        self.control = Control(self.runs, self.answers)

    def said(self) -> str:
        loop: Any = self.clock.reactor
        loop.advance(0)
        return self.answers.getvalue()


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    loop = Loop()
    monkeypatch.setattr(child, "HurriedClock", lambda: HurriedClock(loop))
    monkeypatch.setattr(child, "Standalone", StandIn)
    return Scene(tmp_path)


def test_the_first_line_tells_all_addresses(scene: Scene) -> None:
    scene.control.ready(None)
    assert scene.said() == '{"namesrv":"n:1","broker":"b:2","grpc":"g:3"}\n'


def test_the_clock_is_ahead_from_the_start_by_as_much_as_is_said(scene: Scene) -> None:
    assert scene.clock.now_ms() == 7


def test_the_clock_is_put_forward_and_what_is_due_happens_before_the_answer(scene: Scene) -> None:
    scene.clock.later(10_000, lambda: scene.answers.write("due\n"))
    scene.control.obey("advance 10000\n")
    assert scene.clock.now_ms() == 10_007
    assert scene.said() == "due\nok\n"


@pytest.mark.parametrize(
    "line",
    ["", "advance", "advance -1", "advance x", "stop now", "lag", "lag [", "obey []", "reset 1"],
)
def test_what_is_no_command_is_answered(scene: Scene, line: str) -> None:
    scene.control.ready(None)
    before = scene.said()
    scene.control.obey(line + "\n")
    assert scene.said() == f"{before}error no command: {line}\n"
    assert scene.clock.now_ms() == 7


def test_commands_call_faults_and_say_what_came_of_it(scene: Scene) -> None:
    scene.control.ready(None)
    before = len(scene.said())
    for line in (
        'refuse ["SYSTEM_BUSY"]',
        "count [1]",
        "end [1]",
        'refuse ["SYSTEM_BUZY"]',
        "delay [-1]",
    ):
        scene.control.obey(line)
    assert scene.said()[before:].splitlines() == [
        "ok 1",
        "ok 0",
        "ok",
        "error 'SYSTEM_BUZY' is not a response code (did you mean SYSTEM_BUSY?)",
        "error an answer can be late by 0 to 60000 ms, not -1",
    ]
    (guard,) = StandIn.made[0].broker.guards
    assert guard.__self__ is not None


def test_a_failure_of_our_own_is_an_answer_of_one_line(scene: Scene) -> None:
    scene.control.ready(None)
    before = len(scene.said())
    scene.control.obey("refuse []")
    (line,) = scene.said()[before:].splitlines()
    assert line.startswith("error ")
    assert "needs the argument code" in line


def test_all_commands_are_there() -> None:
    names = set(child.calls_of(_Any(), _Any()))  # type: ignore[arg-type]
    assert names == {*OF_STATE, *OF_FAULTS}
    assert len(names) == len(OF_STATE) + len(OF_FAULTS)


class _Any:
    def __getattr__(self, name: str) -> Any:
        return name


def test_a_reset_begins_anew_at_the_same_addresses(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    scene.control.ready(None)
    scene.said()
    scene.control.obey("reset\n")
    assert scene.said().endswith("}\nok\n")
    first, second = StandIn.made
    assert (first.happened, second.happened) == (["stop"], ["start"])
    assert not (tmp_path / "store").exists()
    assert second.options.namesrv_port == 1
    assert second.options.settings["listenPort"] == "2"
    assert second.clock.now_ms() == 0  # the right time again
    assert len(second.broker.guards) == 1
    scene.control.obey('refuse ["SYSTEM_BUSY"]')
    assert scene.said().endswith("ok\nok 1\n")


def test_the_end_of_the_commands_is_the_end(scene: Scene) -> None:
    scene.control.read(io.StringIO("advance 1\nadvance 2\n"))
    assert scene.clock.now_ms() == 10
    assert scene.said() == "ok\nok\n"
    loop: Any = scene.clock.reactor
    assert loop.stopped == 1


def test_a_server_that_cannot_be_found_ends(scene: Scene) -> None:
    scene.control.failed(Failure(OSError("not registered")))
    loop: Any = scene.clock.reactor
    assert loop.stopped == 1
    assert scene.said() == ""
