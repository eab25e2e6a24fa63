# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.engines.engine import DeliveryEngine, Engine


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
