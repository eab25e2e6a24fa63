# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.engines.engine import DeliveryEngine, Engine
from txrocketmq.broker.settings.config import BrokerConfig


class Mill(DeliveryEngine):
    """Works on sacks, of which one is done in a step."""

    sacks = 3

    def work(self, now_ms: int, steady_ms: int, is_time_up: Callable[[], bool]) -> None:
        while self.sacks:
            self.sacks -= 1
            if self.sacks and is_time_up():
                self.is_behind = True
                return


def mill(folder: Path, role: str = "ASYNC_MASTER") -> Mill:
    parts = Parts(folder, store_settings={"broker_role": role})
    return Mill(parts.store, parts.patience)


def test_an_engine_is_behind_until_all_is_done(tmp_path: Path) -> None:
    engine = mill(tmp_path)
    engine.tick(0, 0, lambda: True)
    assert (engine.sacks, engine.is_behind) == (2, True)
    engine.tick(0, 0)
    assert (engine.sacks, engine.is_behind) == (0, False)


def test_an_engine_rests_on_a_slave(tmp_path: Path) -> None:
    engine = mill(tmp_path, "SLAVE")
    engine.is_behind = True
    engine.tick(0, 0)
    assert (engine.sacks, engine.is_behind) == (3, False)


@pytest.mark.parametrize("name", ["schedule", "timers", "transaction_check", "revive"])
def test_all_that_works_on_waiting_messages_is_an_engine(tmp_path: Path, name: str) -> None:
    parts = Parts(tmp_path)
    engine = parts.pop.revive if name == "revive" else getattr(parts, name)
    assert isinstance(engine, Engine)
    assert type(engine).tick is Engine.tick


def test_an_engine_forgets_once_when_a_slave_acts_no_more(tmp_path: Path) -> None:
    class Forgetful(Mill):
        forgotten = 0

        def forget(self) -> None:
            super().forget()
            self.forgotten += 1

    parts = Parts(tmp_path, store_settings={"broker_role": "SLAVE"})
    mill = Forgetful(parts.store, parts.patience)
    for acts in (False, True, True, False, False, True):
        mill.escapes = partial(bool, acts)
        mill.tick(0, 0)
    assert (mill.forgotten, mill.sacks) == (1, 0)
    parts.store.stop(parts.now_ms)


@pytest.mark.parametrize("role", ["SLAVE", "ASYNC_MASTER"])
@pytest.mark.parametrize("escapes", [False, True])
def test_only_a_slave_that_acts_delivers_elsewhere(
    tmp_path: Path, role: str, escapes: bool
) -> None:
    config = BrokerConfig(
        broker_id=1, enable_slave_acting_master=True, enable_remote_escape=escapes
    )
    parts = Parts(tmp_path, config, store_settings={"broker_role": role})
    engines = (parts.schedule, parts.transaction_check, parts.pop.revive)
    is_there = escapes and role == "SLAVE"
    for engine in engines:
        assert (engine.escape is parts.escape) is is_there
        assert not engine.escapes(), "there is a master"
    parts.acting.told(1, None)
    assert [each.escapes() for each in engines] == [is_there] * 3
    assert parts.timers.escape is None
    assert not parts.timers.escapes(), "they wait for the master"
    parts.store.stop(parts.now_ms)
