# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet import task
from twisted.internet.defer import Deferred

from txrocketmq.broker.controller.identity_file import IdentityFile
from txrocketmq.broker.controller.session import ControllerSession, InSync, Term
from txrocketmq.broker.process import BrokerProcess, ControlledProcess
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.settings.tls import TlsConfig


class FakeBroker:
    def __init__(self, number: int, *, fails: bool = False) -> None:
        self.address = f"10.0.0.1:{number}"
        self.restart: Callable[[], object] | None = None
        self.is_running = False
        self.fails = fails
        self.stopped: Deferred[None] = Deferred()

    def start(self) -> None:
        if self.fails:
            raise OSError("the port is taken")
        self.is_running = True

    def stop(self) -> Deferred[None]:
        assert self.is_running
        self.is_running = False
        return self.stopped


class Scene:
    def __init__(self, fails: tuple[int, ...] = ()) -> None:
        self.made: list[FakeBroker] = []
        self.gave_up = 0
        self.fails = fails
        make: Any = self._make
        self.process = BrokerProcess(make, self._give_up)
        self.process.start()

    def _make(self) -> FakeBroker:
        number = len(self.made)
        self.made.append(FakeBroker(number, fails=number in self.fails))
        return self.made[-1]

    def _give_up(self) -> None:
        self.gave_up += 1

    def restart(self) -> None:
        restart = self.made[-1].restart
        assert restart is not None
        restart()


def test_a_broker_is_made_anew_when_it_has_stopped() -> None:
    scene = Scene()
    scene.restart()
    scene.restart()
    assert len(scene.made) == 1, "the old one has not stopped yet"
    scene.made[0].stopped.callback(None)
    assert [each.is_running for each in scene.made] == [False, True]
    assert scene.process.address == "10.0.0.1:1"
    scene.restart()
    scene.made[1].stopped.callback(None)
    assert scene.process.address == "10.0.0.1:2"
    assert not scene.process.has_failed


def test_a_stop_stops_the_present_one() -> None:
    scene = Scene()
    done: list[object] = []
    scene.process.stop().addCallback(done.append)
    assert not done
    scene.made[0].stopped.callback(None)
    assert done == [None]
    scene.restart()
    assert len(scene.made) == 1


def test_a_stop_while_it_is_made_anew_ends_that() -> None:
    scene = Scene()
    scene.restart()
    done: list[object] = []
    scene.process.stop().addCallback(done.append)
    assert not done
    scene.made[0].stopped.callback(None)
    assert done == [None]
    assert len(scene.made) == 1


def test_one_that_cannot_start_again_ends_the_process() -> None:
    scene = Scene(fails=(1,))
    scene.restart()
    scene.made[0].stopped.callback(None)
    assert scene.gave_up == 1
    assert scene.process.has_failed
    done: list[object] = []
    scene.process.stop().addCallback(done.append)
    assert done == [None]


def test_the_first_one_says_why_it_cannot_start() -> None:
    with pytest.raises(OSError, match="the port is taken"):
        Scene(fails=(0,))


class Controlled:
    """A broker's side of a session."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.is_fitting = False

    def fits(self, term: Term) -> bool:
        self.heard.append(term)
        return self.is_fitting

    def heard_in_sync(self, found: InSync) -> None:
        self.heard.append(found)


class ControlledBroker(FakeBroker):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.parts = SimpleNamespace(controlled=Controlled())
        self.is_leaving: bool | None = None

    def stop(self, *, is_leaving: bool = True) -> Deferred[None]:
        self.is_leaving = is_leaving
        return super().stop()


def test_a_controlled_broker_is_made_anew_for_a_term(tmp_path: Path) -> None:
    sessions: list[ControllerSession] = []
    made: list[ControlledBroker] = []

    def make(session: ControllerSession) -> Any:
        sessions.append(session)
        made.append(ControlledBroker(len(made)))
        return made[-1]

    config = BrokerConfig(enable_controller_mode=True, controller_addr="127.0.0.1:1")
    identity = IdentityFile(tmp_path / "brokerIdentity", "C", "ba")
    process = ControlledProcess(
        make, lambda: None, config, identity, TlsConfig(), Clock(task.Clock())
    )
    process.start()
    [session] = sessions
    term = Term(1, 1, "10.0.0.1:0", 1)
    session.on_term(term)
    assert made[0].parts.controlled.heard == [term]
    assert made[0].is_leaving is False
    session.on_term(term)
    session.on_in_sync(InSync(frozenset({1}), 1))
    made[0].stopped.callback(None)
    assert made[1].is_running
    assert sessions == [session, session]

    own = made[1].parts.controlled
    own.is_fitting = True
    session.on_in_sync(InSync(frozenset({1, 2}), 2))
    session.on_term(term._replace(epoch=2))
    assert own.heard == [InSync(frozenset({1, 2}), 2), term._replace(epoch=2)]
    assert made[1].is_running

    process.stop()
    assert made[1].is_leaving is True
    made[1].stopped.callback(None)
