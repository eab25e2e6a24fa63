# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.broker.store.conftest import GOLDEN
from tests.crash.ledger import Ledger, Shape
from tests.crash.life import Life
from tests.stored import (
    MESSAGES,
    NOW_MS,
    SETTINGS,
    contents,
    filled_store,
    spoil,
    store_with_a_record_in_a_body,
)
from txrocketmq.broker.store.check.check import Finding, Looked, Part, StoreCheck, TopicQueue
from txrocketmq.broker.store.disk.record_head import next_head
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.errors import StoreLocked, StoreLoss


@pytest.fixture(autouse=True, params=["together", "one by one"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are looked at with numpy, and as they are without it."""
    if request.param == "one by one":
        monkeypatch.setattr("txrocketmq.broker.store.check.check.find_spec", lambda _: None)


def look(root: Path, **settings: object) -> tuple[StoreCheck, list[Looked]]:
    """A whole look, which leaves the store as it was."""
    before = contents(root)
    values = {**SETTINGS, "message_index_enable": False, **settings}
    check = StoreCheck(StoreConfig(store_path_root_dir=str(root), **values))
    looked = []
    if check.open(NOW_MS):
        looked = [check.look(part) for part in check.parts()]
        check.findings += [finding for each in looked for finding in each.findings]
        check.findings += check.finish(looked)
    check.close()
    assert contents(root) == before
    return check, looked


def findings(root: Path) -> list[Finding]:
    return look(root)[0].findings


class Found(NamedTuple):
    """What all looks at the log have found together."""

    size_bytes: int
    messages: int
    units: dict[TopicQueue, int]
    without_queue: int
    is_sound: bool


def both_ways(root: Path, most_bytes: int) -> tuple[Found, Found, list[Part]]:
    """What a look at whole files finds, and what one at pieces does; and the pieces."""
    config = StoreConfig(store_path_root_dir=str(root), message_index_enable=False, **SETTINGS)
    check = StoreCheck(config)
    check.open(NOW_MS)
    pieces = [part for part in check.parts(most_bytes) if part.kind == "log"]
    whole = [part for part in check.parts() if part.kind == "log"]
    found = found_in(check, whole), found_in(check, pieces), pieces
    check.close()
    return found


def found_in(check: StoreCheck, parts: list[Part]) -> Found:
    log, *others = looked = [check.look(part) for part in parts]
    is_sound = not any(each.findings for each in looked)
    for each in others:
        log.add(each)
    return Found(
        log.part.size_bytes,
        log.messages,
        log.units,
        log.without_queue,
        is_sound and log.is_joined,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    filled_store(tmp_path)
    return tmp_path


def record_at(root: Path, number: int) -> tuple[Path, int, int]:
    """The file, the place in it and the place in the log of a message of Topic0/0."""
    units = min((root / "consumequeue" / "Topic0" / "0").iterdir()).read_bytes()
    (offset,) = struct.unpack_from(">q", units, number * 20)
    start = offset - offset % 8192
    return root / "commitlog" / f"{start:020d}", offset - start, offset


def test_nothing_is_wrong_with_a_sound_store(root: Path) -> None:
    check, looked = look(root)
    assert check.findings == []
    assert check.refusal is None
    assert sum(each.messages for each in looked if each.part.kind == "log") == MESSAGES
    assert sum(each.messages for each in looked if each.part.kind == "index") == 2 * MESSAGES
    assert f"{MESSAGES} messages in the log from 0 to" in check.summary(looked)
    assert "4 queues; 600 items of the index" in check.summary(looked)


@pytest.mark.parametrize("most_bytes", [1, 100, 1_000, 5_000])
def test_pieces_of_a_sound_file_are_sound(root: Path, most_bytes: int) -> None:
    whole, in_pieces, log = both_ways(root, most_bytes)
    assert in_pieces == whole
    assert whole.is_sound
    assert len(log) > len(list((root / "commitlog").iterdir()))
    assert sum(part.is_last for part in log) < len(log)
    for before, after in pairwise(log):
        end = before.position + before.size_bytes
        assert after.position == (0 if before.is_last else end)


@pytest.mark.parametrize("seed", range(15))
def test_pieces_of_a_damaged_file_are_not(root: Path, seed: int) -> None:
    random = Random(seed)
    path = random.choice(sorted((root / "commitlog").iterdir())[:5])
    data = path.read_bytes()
    body = data.find(b"body-", random.randrange(4_000))
    at = body if seed % 2 else body - random.randrange(1, 90)
    spoil(path, at, bytes([data[at] ^ random.randrange(1, 256)]))
    whole, in_pieces, _ = both_ways(root, random.choice([1, 500, 3_000]))
    assert whole.is_sound == in_pieces.is_sound


def test_a_piece_that_begins_in_a_message_is_noticed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first bytes that are taken for a record are not one."""
    monkeypatch.setattr(f"{StoreCheck.__module__}.next_head", lambda *of: next_head(*of) + 1)
    whole, in_pieces, _ = both_ways(root, 2_000)
    assert whole.is_sound
    assert not in_pieces.is_sound


def test_pieces_that_do_not_join_are_noticed_though_each_is_sound(tmp_path: Path) -> None:
    position = store_with_a_record_in_a_body(tmp_path)
    whole, in_pieces, _ = both_ways(tmp_path, position + 100)
    assert whole.is_sound
    assert in_pieces.messages == whole.messages + 1, "one that is none was counted"
    assert not in_pieces.is_sound


@pytest.mark.parametrize("state", ["clean", "crashed"])
@pytest.mark.parametrize("version", ["4.9.7", "5.4.0"])
def test_nothing_is_wrong_with_those_of_original_brokers(
    golden_copy: Callable[[str, str], Path], version: str, state: str
) -> None:
    check, looked = look(golden_copy(version, state), **GOLDEN)
    assert check.findings == []
    assert sum(each.messages for each in looked if each.part.kind == "log") > 300


def test_a_store_that_is_open_is_not_looked_at(tmp_path: Path) -> None:
    store = filled_store(tmp_path, closes=False)
    with pytest.raises(StoreLocked):
        look(tmp_path)
    store.stop(NOW_MS)


def test_a_wrong_body_is_told_with_file_and_offset(root: Path) -> None:
    path, position, offset = record_at(root, 3)
    at = path.read_bytes().index(b"body-", position)
    spoil(path, at, b"B")
    (found,) = findings(root)
    assert found[0] == "crc"
    assert found[2:] == (str(path), position, offset)
    assert f"{path} at byte {position}: the body of a message (Topic0/0@3" in found.text


def test_what_is_no_record_is_told(root: Path) -> None:
    path, position, offset = record_at(root, 3)
    spoil(path, position, b"\xff" * 8)
    found = {each.kind: each for each in findings(root)}
    assert found["log"].path == str(path)
    assert found["log"].offset == offset
    assert f"has no records from byte {position} on" in found["log"].text


def test_a_wrong_unit_is_told(tmp_path: Path) -> None:
    filled_store(tmp_path)
    queue = tmp_path / "consumequeue" / "Topic0" / "0"
    path = min(queue.iterdir())
    check = StoreCheck(
        StoreConfig(store_path_root_dir=str(tmp_path), message_index_enable=False, **SETTINGS)
    )
    check.open(NOW_MS)
    mapped = check.files.map(str(path), 800)  # behind the back of the opening, which mends it
    mapped[5 * 20 : 5 * 20 + 8] = struct.pack(">q", 10)
    looked = [check.look(part) for part in check.parts()]
    found = [each for part in looked for each in part.findings]
    found += check.finish(looked)
    check.close()
    assert [each.kind for each in found] == ["queue", "queue"]
    assert "bytes at 10 as unit 5, where the log has a message of" in found[0].text
    assert found[1].text == f"{queue} has 1 units that name no message of the log."


def test_a_wrong_offset_among_right_ones_is_told(root: Path) -> None:
    path, position, offset = record_at(root, 3)
    spoil(path, position + 20, struct.pack(">q", 4))
    found = [each for each in findings(root) if "as unit 4, where the log" in each.text]
    assert [each.offset for each in found] == [offset]


def test_a_wrong_item_of_the_index_is_told(root: Path) -> None:
    path = min((root / "index").iterdir())
    at = 40 + 4 * 50 + 20 * 7 + 4
    spoil(path, at, struct.pack(">q", 13))
    (found,) = findings(root)
    assert (found.kind, found.path, found.offset) == ("index", str(path), 13)
    assert "its item names 13 of the log, where no record begins" in found.text


def test_what_opening_says_is_told(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "Topic1")
    shutil.rmtree(root / "index")
    found = findings(root)
    assert [each.kind for each in found] == ["opening", "index"]
    assert "Queues lacked 150 messages that the log has" in found[0].text
    assert found[1].text == "The index is missing; opening the store builds it from the log."


def test_why_a_broker_would_not_open_it_is_told(root: Path) -> None:
    sorted((root / "commitlog").iterdir())[2].unlink()
    check, looked = look(root)
    assert isinstance(check.refusal, StoreLoss)
    assert "lacks 1 file of the log" in check.findings[0].text
    assert "accept_loss" in check.findings[0].text
    assert sum(each.messages for each in looked if each.part.kind == "log") < MESSAGES


def test_what_cannot_be_opened_at_all_is_told(root: Path) -> None:
    check, looked = look(root, mapped_file_size_commit_log=4096)
    assert check.recovered is None
    assert looked == []
    assert "mappedFileSizeCommitLog" in str(check.refusal)


def test_light_queues_are_looked_at(tmp_path: Path) -> None:
    light = {"enable_lmq": True, "enable_multi_dispatch": True}
    ledger = Ledger(Shape(3, light=2))
    settings = {**SETTINGS, **light}
    life = Life(StoreConfig(store_path_root_dir=str(tmp_path), **settings), ledger, NOW_MS)
    life.start()
    for _ in range(10):
        life.put(20)
    life.stop()
    check, _ = look(tmp_path, **light)
    assert check.findings == []
    path = min((tmp_path / "consumequeue" / "%LMQ%1" / "0").iterdir())
    data = bytearray(path.read_bytes())
    data[8 * 20 : 9 * 20] = data[7 * 20 : 8 * 20]  # which is a unit of some message
    path.write_bytes(data)
    check, _ = look(tmp_path, **light)
    assert [each.kind for each in check.findings] == ["queue", "queue"]
    assert "%LMQ%1/0 has" in check.findings[0].text


def test_an_end_that_is_believed_is_looked_at(root: Path) -> None:
    """A store whose inventory tells another time of the last message than the log has."""
    note = root / "inventory"
    noted = json.loads(note.read_text())
    config = StoreConfig(store_path_root_dir=str(root), message_index_enable=False, **SETTINGS)
    for more_ms, is_believed in ((0, True), (1, False)):
        note.write_text(json.dumps({**noted, "last_ms": noted["last_ms"] + more_ms}))
        check = StoreCheck(config)
        assert check.open(NOW_MS, trusts=True)
        assert check.recovered is not None
        assert check.recovered.checked_messages == 0
        log = [check.look(part) for part in check.parts() if part.kind == "log"]
        check.close()
        assert all(each.is_joined for each in log) == is_believed
