# SPDX-License-Identifier: Apache-2.0
"""What tells of a deleted topic, damaged in every way, when the topic's queues are rebuilt.

The topic was made anew after it was deleted. Its new messages are served with their new offsets,
or the start says of the file by its name that it tells nothing; the queues of other topics are as
they were. That a file is gone cannot be seen: the deleted messages are back then.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.crash.damages import DAMAGES, FOREIGN_NAMES, repair
from tests.stored import NOW_MS, SETTINGS, put_message
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreError
from txrocketmq.broker.store.formats.opening_report import Recovered
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.broker.store.queues.deleted_topics import FOLDER
from txrocketmq.remoting.message.message import decode_messages

MESSAGES = 30
STATES = ("stopped", "killed")


def opened(root: Path) -> tuple[MessageStore, Recovered]:
    store = MessageStore(StoreConfig(store_path_root_dir=str(root), **SETTINGS))
    return store, store.load(NOW_MS)


def put(store: MessageStore, topic: str, life: str) -> None:
    for number in range(MESSAGES):
        body = f"{topic} {life} {number}".encode()
        store.put([put_message(number)._replace(topic=topic, queue_id=0, body=body)], NOW_MS)


def bodies(store: MessageStore, topic: str) -> list[str]:
    found: list[str] = []
    for unit in store.queue_units(topic, 0, 0, 1000):
        record = store.message_at(unit.physical_offset, unit.size_bytes)
        assert record is not None
        found += [str(each.body, "ascii") for each in decode_messages(record)]
    return found


def expected(topic: str, life: str) -> list[str]:
    return [f"{topic} {life} {number}" for number in range(MESSAGES)]


@pytest.fixture
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A store with a topic in its second life, whose queues are gone."""
    store, _ = opened(tmp_path)
    put(store, "Again", "old")
    put(store, "Other", "only")
    assert store.delete_topic("Again")
    put(store, "Again", "new")
    assert bodies(store, "Again") == expected("Again", "new")
    job = store.flush.begin()
    assert job is not None
    job.run()
    store.flush.finish(job)
    if request.param == "stopped":
        store.stop(NOW_MS)
    else:
        store._marks.unlock()  # what the end of the process does
    shutil.rmtree(tmp_path / "consumequeue" / "Again")
    return tmp_path


@pytest.mark.parametrize("root", STATES, indirect=True)
def test_without_damage_the_former_life_stays_away(root: Path) -> None:
    store, recovered = opened(root)
    assert bodies(store, "Again") == expected("Again", "new")
    assert bodies(store, "Other") == expected("Other", "only")
    assert not [text for text in recovered.warnings if FOLDER in text]
    store.stop(NOW_MS)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("root", STATES, indirect=True)
def test_a_damaged_file(root: Path, tmp_path_factory: pytest.TempPathFactory, damage: str) -> None:
    before = tmp_path_factory.mktemp("before") / "store"
    shutil.copytree(root, before)
    path = root / FOLDER / "Again"
    DAMAGES[damage](path)
    try:
        store, recovered = opened(root)
    except StoreError as error:
        assert str(path) in str(error)
        repair(path, before / FOLDER / "Again")
        store, recovered = opened(root)
    told = [text for text in recovered.warnings if str(path) in text]
    found = bodies(store, "Again")
    assert found[-MESSAGES:] == expected("Again", "new")
    assert bodies(store, "Other") == expected("Other", "only")
    if found != expected("Again", "new"):
        assert found == expected("Again", "old") + expected("Again", "new")
        assert told or damage == "gone"
    store.stop(NOW_MS)


@pytest.mark.parametrize("name", FOREIGN_NAMES)
@pytest.mark.parametrize("root", STATES, indirect=True)
def test_a_foreign_file_beside(root: Path, name: str) -> None:
    path = root / FOLDER / name
    path.write_bytes(b"not ours")
    store, recovered = opened(root)
    assert any(str(path) in text for text in recovered.warnings)
    assert bodies(store, "Again") == expected("Again", "new")
    store.stop(NOW_MS)
    assert path.read_bytes() == b"not ours"
