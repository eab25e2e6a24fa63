# SPDX-License-Identifier: Apache-2.0
"""A store of many small log files that loses queues and index: all is served again, and told."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.crash.ledger import Ledger, Shape
from tests.crash.life import Life
from tests.crash.test_damage import STATES, Case, Made, MakeStore
from tests.disk import NOW_MS
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.queues.units import UNIT_BYTES

MANY: Final = 30_000
SETTINGS: Final[dict[str, Any]] = {
    "mapped_file_size_commit_log": 131_072,
    "mapped_file_size_consume_queue": 40_000,
    "max_hash_slot_num": 10_000,
    "max_index_num": 40_000,
}


class ManyFiles(Case):
    """A copy of that store."""

    def life(self) -> Life:
        config = StoreConfig(store_path_root_dir=str(self.root), **SETTINGS)
        return Life(config, self.ledger, self.now_ms)


@pytest.fixture(scope="module")
def made_many(tmp_path_factory: pytest.TempPathFactory) -> MakeStore:
    """By state: 30,000 messages in some fifty files of the log."""
    stores: dict[str, Made] = {}

    def make(state: str) -> Made:
        if state not in stores:
            root = tmp_path_factory.mktemp(state)
            ledger = Ledger(Shape(11, topics=3, queues=3, least=1, most=60, delayed=False))
            life = Life(StoreConfig(store_path_root_dir=str(root), **SETTINGS), ledger, NOW_MS)
            life.start()
            for _ in range(MANY // 500):
                life.put(500)
                life.tick()
            life.flush()
            stores[state] = Made(root, ledger)
            if state == "stopped":
                life.stop()
            else:
                life.store._marks.unlock()  # what the end of the process does
        return stores[state]

    return make


def all_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue")
    shutil.rmtree(root / "index")


def topic_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "Topic1")


def queue_gone(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "Topic1" / "2")


def file_gone(root: Path) -> None:
    min((root / "consumequeue" / "Topic1" / "2").iterdir()).unlink()


def files_gone(root: Path) -> None:
    min((root / "consumequeue" / "Topic1" / "1").iterdir()).unlink()
    min((root / "consumequeue" / "Topic1" / "2").iterdir()).unlink()


def units_zeroed(root: Path) -> None:
    path = min((root / "consumequeue" / "Topic1" / "2").iterdir())
    data = bytearray(path.read_bytes())
    data[100 * UNIT_BYTES : 300 * UNIT_BYTES] = bytes(200 * UNIT_BYTES)
    path.write_bytes(data)


def unit_within_a_record(number: int) -> Callable[[Path], None]:
    """A unit that points into the middle of a record: the first of its file, the last, another."""

    def damage(root: Path) -> None:
        path = min((root / "consumequeue" / "Topic1" / "2").iterdir())
        data = bytearray(path.read_bytes())
        at = number % (len(data) // UNIT_BYTES) * UNIT_BYTES
        (offset,) = struct.unpack_from(">q", data, at)
        struct.pack_into(">q", data, at, offset + 40)
        path.write_bytes(data)

    return damage


DAMAGES: Final[dict[str, Callable[[Path], None]]] = {
    "all-gone": all_gone,
    "topic-gone": topic_gone,
    "queue-gone": queue_gone,
    "file-gone": file_gone,
    "files-gone": files_gone,
    "units-zeroed": units_zeroed,
    "first-unit-within-a-record": unit_within_a_record(0),
    "last-unit-within-a-record": unit_within_a_record(-1),
    "unit-within-a-record": unit_within_a_record(777),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("state", STATES)
def test_all_is_served_again(made_many: MakeStore, tmp_path: Path, state: str, damage: str) -> None:
    case = ManyFiles(made_many(state), tmp_path / "store")
    assert len(list((case.root / "commitlog").iterdir())) > 40
    DAMAGES[damage](case.root)
    life = case.life()
    life.start()
    assert life.recovered is not None
    findings = life.judge()
    assert len(findings.served) == MANY
    assert not findings.unfound
    assert life.recovered.dispatched_messages > 0
    if state == "stopped":
        assert any("Queues lacked" in text for text in life.said), life.said
    else:
        assert "put into their queues again" in str(life.recovered)
    life.stop()


def test_they_say_that_the_index_is_built_again(made_many: MakeStore, tmp_path: Path) -> None:
    case = ManyFiles(made_many("stopped"), tmp_path / "store")
    shutil.rmtree(case.root / "index")
    life = case.life()
    life.start()
    assert life.said == ["The index is missing; it is built from the log."]
    assert not life.judge().unfound
    life.stop()
