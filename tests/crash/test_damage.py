# SPDX-License-Identifier: Apache-2.0
"""Every kind of file of a store, damaged in every way, after an orderly stop and after a kill."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.crash.damages import DAMAGES, FOREIGN_NAMES, folder_gone, repair
from tests.crash.judge import Excuse, check_kept, contents
from tests.crash.ledger import Ledger, Shape
from tests.crash.life import Life
from tests.disk import NOW_MS
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError

SETTINGS: Final[dict[str, Any]] = {
    "mapped_file_size_commit_log": 16_384,
    "mapped_file_size_consume_queue": 1_000,
    "mapped_file_size_consume_queue_ext": 1_024,
    "max_hash_slot_num": 50,
    "max_index_num": 500,
    "enable_consume_queue_ext": True,
}
STATES: Final = ("stopped", "killed")
HOUR_MS: Final = 3_600_000


class Made(NamedTuple):
    """A store that was made once, to be copied."""

    root: Path
    ledger: Ledger


MakeStore = Callable[[str], Made]


@pytest.fixture(scope="module")
def made_stores(tmp_path_factory: pytest.TempPathFactory) -> MakeStore:
    """By state: a store of more log files than recovery looks at, whose clock was set twice."""
    stores: dict[str, Made] = {}

    def make(state: str) -> Made:
        if state not in stores:
            root = tmp_path_factory.mktemp(state)
            ledger = Ledger(Shape(7, topics=2, queues=2, least=200, most=500))
            life = Life(StoreConfig(store_path_root_dir=str(root), **SETTINGS), ledger, NOW_MS)
            life.start()
            for batch in range(61):
                life.put(10)
                if batch % 3 == 0:
                    life.tick(5_000)
                    life.flush()
                if batch in (20, 40):
                    life.set_clock(-HOUR_MS if batch == 20 else 2 * HOUR_MS)
            life.flush()
            stores[state] = Made(root, ledger)
            if state == "stopped":
                life.stop()
            else:
                life.store._marks.unlock()  # what the end of the process does
        return stores[state]

    return make


class Case:
    """One copy of a store, to be damaged and judged."""

    def __init__(self, made: Made, root: Path) -> None:
        shutil.copytree(made.root, root, symlinks=True)
        self.made = made
        self.root = root
        self.ledger = made.ledger.copy()
        self.now_ms = NOW_MS + 10 * HOUR_MS

    def life(self) -> Life:
        config = StoreConfig(store_path_root_dir=str(self.root), **SETTINGS)
        return Life(config, self.ledger, self.now_ms)

    def judge(self, path: Path, excuse: Excuse | None) -> None:
        """The whole rule, for a store of which this file or folder was damaged."""
        before = contents(self.root)
        life = self.life()
        try:
            life.start()
        except StoreError as error:
            self._judge_refusal(path, error)
            return
        findings = life.judge(excuse)
        for _ in range(6):
            life.put(10)
        life.flush()
        life.judge()
        life.stop()
        check_kept(findings.missing, before, self.root)
        again = self.life()
        again.start()
        again.judge()
        again.stop()

    def _judge_refusal(self, path: Path, error: StoreError) -> None:
        """It says what is wrong, and all is there again when that is put right."""
        assert path.name in str(error), f"the start refuses without naming {path.name}: {error}"
        repair(path, self.made.root / path.relative_to(self.root))
        life = self.life()
        life.start()
        life.judge()
        life.stop()


@pytest.fixture
def case(request: pytest.FixtureRequest, made_stores: MakeStore, tmp_path: Path) -> Case:
    """A copy of a store in the state asked for."""
    return Case(made_stores(request.param), tmp_path / "store")


FILES: Final = {
    "log-first": ("commitlog", 0),
    "log-middle": ("commitlog", 7),
    "log-last": ("commitlog", -1),
    "queue-first": ("consumequeue/Topic1/0", 0),
    "queue-middle": ("consumequeue/Topic1/0", 1),
    "queue-last": ("consumequeue/Topic1/0", -1),
    "ext-first": ("consumequeue_ext/Topic1/0", 0),
    "ext-last": ("consumequeue_ext/Topic1/0", -1),
    "index-first": ("index", 0),
    "index-last": ("index", -1),
    "checkpoint": ("checkpoint", None),
    "abort": ("abort", None),
    "lock": ("lock", None),
    "inventory": ("inventory", None),
}
HEADER: Final = {
    "begin-time": (0, ">q"), "end-time": (8, ">q"), "begin-offset": (16, ">q"),
    "end-offset": (24, ">q"), "slots": (32, ">i"), "items": (36, ">i"),
}  # fmt: skip
"""Of an index file: where its fields are, and how wide."""
IMPOSSIBLE: Final = {"zero": 0, "minus-one": -1, "least": None, "more": 1_000_000, "large": 1 << 30}
FOLDERS: Final = (
    "commitlog", "consumequeue", "consumequeue/Topic1", "consumequeue/Topic1/0", "consumequeue_ext",
    "consumequeue_ext/Topic1/0", "index",
)  # fmt: skip


def find(root: Path, kind: str) -> Path | None:
    folder, index = FILES[kind]
    if index is None:
        path = root / folder
        return path if path.exists() else None
    return sorted((root / folder).iterdir())[index]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("case", STATES, indirect=True)
def test_a_damaged_file(case: Case, kind: str, damage: str) -> None:
    path = find(case.root, kind)
    if path is None:
        assert kind in ("abort", "inventory"), "one of them is of stores that were stopped only"
        path = case.root / kind
        path.write_bytes(b"4711")
    first = DAMAGES[damage](path)
    excuse = None
    if kind.startswith("log"):
        names = (path.name, "commitlog")
        excuse = Excuse(names, int(path.name) + first)
    case.judge(path, excuse)


@pytest.mark.parametrize("value", IMPOSSIBLE)
@pytest.mark.parametrize("field", HEADER)
@pytest.mark.parametrize("kind", ["index-first", "index-last"])
@pytest.mark.parametrize("case", STATES, indirect=True)
def test_a_damaged_header_of_the_index(case: Case, kind: str, field: str, value: str) -> None:
    path = find(case.root, kind)
    assert path is not None
    at, form = HEADER[field]
    number = IMPOSSIBLE[value]
    least = -1 << (8 * struct.calcsize(form) - 1)
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, at, least if number is None else number)
    path.write_bytes(data)
    case.judge(path, None)


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("case", STATES, indirect=True)
def test_a_folder_that_is_gone(case: Case, folder: str) -> None:
    path = case.root / folder
    folder_gone(path)
    case.judge(path, Excuse(("commitlog",), 0) if folder == "commitlog" else None)


@pytest.mark.parametrize("name", FOREIGN_NAMES)
@pytest.mark.parametrize("folder", ["", *FOLDERS])
@pytest.mark.parametrize("case", STATES, indirect=True)
def test_a_foreign_file_beside(case: Case, folder: str, name: str) -> None:
    path = case.root / folder / name
    path.write_bytes(b"not ours")
    case.judge(path, None)


@pytest.mark.parametrize("case", STATES, indirect=True)
def test_a_store_without_damage(case: Case) -> None:
    """So that a case that finds nothing wrong does not do so because it looks at nothing."""
    life = case.life()
    life.start()
    findings = life.judge()
    assert len(findings.served) == case.made.ledger.count == 610
    assert not life.said
    life.stop()
