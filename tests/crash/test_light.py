# SPDX-License-Identifier: Apache-2.0
"""Light queues (LMQ): kills, power cuts and damages; they have all that lists them, each once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.crash.damages import DAMAGES, FOREIGN_NAMES, folder_gone
from tests.crash.ledger import Ledger, Shape
from tests.crash.life import TINY, Life
from tests.crash.rounds import Round
from tests.crash.test_damage import SETTINGS, STATES, Case, Made, MakeStore
from tests.crash.test_power import CLOCK_STEPS_MS, LIVES, next_disk
from tests.disk import NOW_MS, MemoryFiles
from txrocketmq.broker.store.formats.config import ASYNC_FLUSH, SYNC_FLUSH, StoreConfig
from txrocketmq.broker.store.formats.put_message import MULTI_DISPATCH, PutMessage, PutStatus

LIGHT: Final[dict[str, Any]] = {"enable_lmq": True, "enable_multi_dispatch": True}
ONE: Final = "consumequeue/%LMQ%1/0"
FILES: Final = {"first": 0, "middle": 1, "last": -1}
FOLDERS: Final = ("consumequeue", "consumequeue/%LMQ%1", ONE)


@pytest.mark.share(0.2)
@pytest.mark.parametrize("flush", [SYNC_FLUSH, ASYNC_FLUSH])
def test_light_queues_survive_kills_and_power_cuts(crash_round: Round, flush: str) -> None:
    random = crash_round.random
    ledger = Ledger(Shape(crash_round.seed, light=3))
    settings = {**TINY, **LIGHT, "enable_consume_queue_ext": random.random() < 0.5}
    config = StoreConfig(store_path_root_dir="/store", flush_disk_type=flush, **settings)

    def live(life: Life, _: MemoryFiles) -> None:
        for __ in range(random.randrange(80)):
            life.step(random, deletes_topics=random.random() < 0.1)
        life.set_clock(random.choice(CLOCK_STEPS_MS))

    live_often(crash_round, config, ledger, live)


@pytest.mark.share(0.2)
def test_many_new_ones_at_once_and_what_is_refused(crash_round: Round) -> None:
    """Some messages are the first of hundreds of light queues; others name them, and are refused,
    or find no room. What is there in the end are the queues of what was taken, and no others.
    """
    random = crash_round.random
    ledger = Ledger(Shape(crash_round.seed, light=random.choice((40, 150))))
    config = StoreConfig(store_path_root_dir="/store", **{**TINY, **LIGHT})

    def live(life: Life, disk: MemoryFiles) -> None:
        for number in range(random.randrange(30)):
            life.step(random)
            refused(life, number)
            if random.random() < 0.2:
                disk.room_bytes = random.choice((0, 4_096, 20_000))
                life.put(random.randint(1, 5))
                disk.room_bytes = None
        assert not [name for name in life.store.topics() if "refused" in name]

    disk = live_often(crash_round, config, ledger, live)
    assert not [path for path in [*disk.maps, *disk.directories] if "refused" in path]


def live_often(
    crash_round: Round,
    config: StoreConfig,
    ledger: Ledger,
    live: Callable[[Life, MemoryFiles], None],
) -> MemoryFiles:
    """Starts one life after the other, and judges each before it goes on; returns the last disk."""
    random = crash_round.random
    disk, now_ms = MemoryFiles(), NOW_MS
    for _ in range(LIVES):
        life = Life(config, ledger, now_ms, disk)
        life.start()
        crash_round.judge(life.judge, life.said)
        # Were nothing of the log durable, a cut could leave queues without one: that is refused.
        life.put(1)
        life.flush()
        ledger.durable(life.store.flush.flushed_offset)
        live(life, disk)
        end = random.choice(("cut", "cut", "kill", "kill", "stop"))
        disk = next_disk(disk, life, random, end)
        now_ms = life.now_ms + 5_000
    crash_round.acknowledged(ledger)
    return disk


def refused(life: Life, number: int) -> None:
    """Puts a message that names new light queues and is too large."""
    names = ",".join(f"%LMQ%refused{number}-{each}" for each in range(50))
    message = PutMessage(
        "Topic0", 0, bytes(5_000_000), f"INNER_MULTI_DISPATCH\x01{names}\x02".encode(), 0, 1,
        bytes(8), bytes(8), None, None, None, 0, MULTI_DISPATCH,
    )  # fmt: skip
    (appended,) = life.store.put([message], life.now_ms)
    assert appended.status is not PutStatus.PUT_OK


class LightCase(Case):
    """A copy of a store with light queues."""

    def life(self) -> Life:
        config = StoreConfig(store_path_root_dir=str(self.root), **SETTINGS, **LIGHT)
        return Life(config, self.ledger, self.now_ms)


@pytest.fixture(scope="module")
def made_light(tmp_path_factory: pytest.TempPathFactory) -> MakeStore:
    """By state: a store with three light queues of several files."""
    stores: dict[str, Made] = {}

    def make(state: str) -> Made:
        if state not in stores:
            root = tmp_path_factory.mktemp(state)
            ledger = Ledger(Shape(7, topics=2, queues=2, least=200, most=500, light=3))
            config = StoreConfig(store_path_root_dir=str(root), **SETTINGS, **LIGHT)
            life = Life(config, ledger, NOW_MS)
            life.start()
            for _ in range(50):
                life.put(10)
                life.tick(5_000)
                life.flush()
            stores[state] = Made(root, ledger)
            if state == "stopped":
                life.stop()
            else:
                life.store._marks.unlock()  # what the end of the process does
        return stores[state]

    return make


@pytest.fixture
def case(request: pytest.FixtureRequest, made_light: MakeStore, tmp_path: Path) -> Case:
    """A copy of it in the state asked for."""
    return LightCase(made_light(request.param), tmp_path / "store")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("case", STATES, indirect=True)
def test_a_damaged_file_of_a_light_queue(case: Case, kind: str, damage: str) -> None:
    path = sorted((case.root / ONE).iterdir())[FILES[kind]]
    DAMAGES[damage](path)
    case.judge(path, None)


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("case", STATES, indirect=True)
def test_a_folder_of_light_queues_that_is_gone(case: Case, folder: str) -> None:
    folder_gone(case.root / folder)
    case.judge(case.root / folder, None)


@pytest.mark.parametrize("name", FOREIGN_NAMES)
@pytest.mark.parametrize("case", STATES, indirect=True)
def test_a_foreign_file_beside_a_light_queue(case: Case, name: str) -> None:
    path = case.root / ONE / name
    path.write_bytes(b"not ours")
    case.judge(path, None)
