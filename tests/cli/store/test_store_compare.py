# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.stored import MESSAGES, NOW_MS, SETTINGS, contents, filled_store, put_message, spoil
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.message_store import MessageStore
from txrocketmq.cli.store.store import main


def opened(root: Path, **settings: Any) -> MessageStore:
    given = {**SETTINGS, **settings}
    store = MessageStore(StoreConfig(store_path_root_dir=str(root), **given))
    store.load(NOW_MS)
    return store


def continued(root: Path, numbers: range, now_ms: int = NOW_MS + 10_000) -> int:
    """Puts more messages into a store; returns where its log ended before."""
    store = opened(root)
    end = store.max_physical_offset
    for number in numbers:
        store.put([put_message(number)], now_ms)
    store.stop(now_ms)
    return end


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """Two stores with the same messages."""
    first, second = tmp_path / "first", tmp_path / "second"
    filled_store(first)
    shutil.copytree(first, second)
    return first, second


def compared(*stores: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, Any]:
    """Compares twice; returns the exit code, the text and the JSON."""
    before = [contents(store) for store in stores]
    code = main(["compare", *map(str, stores)])
    said = capsys.readouterr()
    assert said.err == ""
    assert main(["compare", "--json", *map(str, stores)]) == code
    report = json.loads(capsys.readouterr().out)
    assert [contents(store) for store in stores] == before
    return code, said.out, report


def test_stores_that_are_the_same(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, report = compared(*pair, capsys=capsys)
    end = opened(pair[0]).max_physical_offset
    assert code == 0
    assert f"They are the same from 0 to {end}." in said
    assert said.count("has nothing.") == 2
    assert (report["equal"], report["equalTo"]) == (True, end)


def test_one_that_has_more(pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    end = continued(pair[1], range(5))
    code, said, report = compared(*pair, capsys=capsys)
    assert code == 0
    assert f"the same from 0 to {end}.\nBehind that, {pair[0]} has nothing.\n" in said
    assert f"Behind that, {pair[1]} has 5 messages, " in said
    assert "first difference" not in said
    assert [each["messagesBehind"] for each in report["stores"]] == [0, 5]


@pytest.mark.parametrize("counts", [(1, 1), (3, 200), (150, 2)])
def test_the_first_message_that_differs(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str], counts: tuple[int, int]
) -> None:
    end = continued(pair[0], range(10, 10 + counts[0]))
    continued(pair[1], range(11, 11 + counts[1]))
    code, said, report = compared(*pair, capsys=capsys)
    assert code == 1
    assert f"The first difference is at {end}:\n  {pair[0]} has 2023-" in said
    assert f" {end}+135 Topic0/1@" in said
    assert "unique-10\n" in said
    assert "unique-11\n" in said
    assert f"store cut {pair[0]} --at {end}, or {pair[1]} likewise" in said
    assert [each["messagesBehind"] for each in report["stores"]] == list(counts)
    assert report["equalTo"] == report["stores"][1]["differs"]["offset"] == end
    assert report["stores"][1]["differs"]["topic"] == "Topic1"


def test_a_file_that_ends_earlier(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    store = opened(pair[0])
    room = 8192 - store.max_physical_offset % 8192
    long = put_message(1)._replace(body=b"x" * room)
    store.put([long], NOW_MS + 10_000)
    store.stop(NOW_MS + 10_000)
    end = continued(pair[1], range(1))
    code, said, report = compared(*pair, capsys=capsys)
    assert code == 1
    assert f"{pair[0]} has the end of a file of the log" in said
    assert report["equalTo"] == end
    assert "differs" not in report["stores"][0]


def test_a_damaged_message_is_told_from_another_one(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = min((pair[0] / "commitlog").iterdir())
    at = path.read_bytes().index(b"body-7")
    spoil(path, at, b"B")
    code, said, report = compared(*pair, capsys=capsys)
    assert code == 1
    shown = [line for line in said.splitlines() if "(damaged: wrong CRC)" in line]
    assert len(shown) == 1
    assert shown[0].startswith(f"  {pair[0]} has ")
    assert [each["differs"]["isSound"] for each in report["stores"]] == [False, True]
    assert report["stores"][0]["messagesBehind"] == MESSAGES - 7


def test_what_has_expired_in_one_is_left_out(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    store = opened(pair[0], file_reserved_time=0)
    before = store.min_physical_offset
    for second in range(2):
        store.delete_expired(1 << 43, second)
        job = store.removals.begin()
        if job is not None:
            job.run()
            store.removals.finish(job)
    start = store.min_physical_offset
    store.stop(NOW_MS)
    assert start > before
    code, said, _ = compared(*pair, capsys=capsys)
    assert code == 0
    assert f"They are the same from {start} to" in said


def test_nothing_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    filled_store(first)
    opened(second).stop(NOW_MS)
    code, said, report = compared(first, second, capsys=capsys)
    assert code == 1
    assert "They have nothing in common, as there is nothing in one of them." in said
    assert (report["equal"], report["hasCommon"]) == (False, False)


def test_what_cannot_be_compared(
    tmp_path: Path, pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(pair[0]), str(tmp_path / "none")]) == 2
    assert "there is no directory" in capsys.readouterr().err
    held = opened(pair[1])
    assert main(["compare", *map(str, pair)]) == 2
    assert "another broker uses this store" in capsys.readouterr().err
    held._marks.unlock()
