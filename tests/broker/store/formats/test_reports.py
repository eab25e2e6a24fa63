# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.store.formats.damage import Damage, DamagedRecords


def damage(offset: int) -> Damage:
    return Damage(offset, 100, "/log/0", offset, "T/0", offset)


class Listening:
    def __init__(self) -> None:
        self.damaged = DamagedRecords()
        self.told: list[tuple[int, int]] = []
        self.damaged.listeners.append(lambda each, more: self.told.append((each[0], more)))


@pytest.fixture
def listening() -> Listening:
    return Listening()


def test_a_place_is_told_once_with_the_next_tick(listening: Listening) -> None:
    for _ in range(3):
        listening.damaged.found(damage(7))
        assert listening.damaged.count == 1
    assert listening.told == []
    for _ in range(3):
        listening.damaged.tick()
        listening.damaged.found(damage(7))
    assert listening.told == [(7, 0)]


def test_many_are_told_slowly_and_very_many_as_a_number(listening: Listening) -> None:
    for offset in range(1000):
        listening.damaged.found(damage(offset))
    assert listening.damaged.count == 1000
    listening.damaged.tick()
    assert len(listening.told) == 10
    for _ in range(60):
        listening.damaged.tick()
    assert len(listening.told) == 20
    for _ in range(600):
        listening.damaged.tick()
    assert [more for _, more in listening.told] == [0] * 63 + [1000 - 64]


def test_what_is_remembered_is_limited(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening.damaged._known, "most", 2)
    for offset in (1, 2, 3, 3, 2, 1):
        listening.damaged.found(damage(offset))
    assert listening.damaged.count == 4
