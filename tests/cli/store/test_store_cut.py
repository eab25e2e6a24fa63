# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.cli.store.test_store_compare import continued, opened, pair
from tests.stored import NOW_MS, contents, filled_store
from txrocketmq.broker.store.disk.files import OsFiles
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.opening.cut import Cut
from txrocketmq.cli.store.store import main

__all__ = ["pair"]


def test_a_store_is_cut_where_it_ceases_to_be_the_same(
    pair: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = pair
    end = continued(old, range(10, 90))
    continued(new, range(200, 230))
    before = contents(old)
    assert main(["cut", str(old), "--common-with", str(new), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert f"It would end at {end}, without the last 80 messages, " in said
    assert contents(old) == before
    assert main(["cut", str(old), "--common-with", str(new), "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"{old} ends at {end} now, and was closed in order." in said
    assert list((old / "lost").rglob(f"*.{end}"))
    assert main(["check", str(old)]) == 0
    assert main(["compare", str(old), str(new)]) == 0
    capsys.readouterr()
    assert main(["cut", str(old), "--common-with", str(new), "--yes"]) == 0
    assert f"{old} ends at {end}: there is nothing to cut." in capsys.readouterr().out


def test_what_is_left_is_served_and_continued(tmp_path: Path) -> None:
    filled_store(tmp_path)
    end = continued(tmp_path, range(10, 40))
    counts = {queue: opened_end(tmp_path, *queue) for queue in (("Topic0", 0), ("Topic1", 1))}
    assert main(["cut", str(tmp_path), "--at", str(end), "-y"]) == 0
    assert opened_end(tmp_path, "Topic0", 0) == 75 < counts["Topic0", 0]
    assert opened_end(tmp_path, "Topic1", 1) == 75 < counts["Topic1", 1]
    assert continued(tmp_path, range(4)) == end
    assert main(["check", str(tmp_path)]) == 0


def opened_end(root: Path, topic: str, queue_id: int) -> int:
    store = opened(root)
    found = store.max_offset(topic, queue_id)
    store.stop(NOW_MS + 20_000)
    return found


def test_an_offset_within_a_record_is_refused_with_its_neighbours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled_store(tmp_path)
    before = contents(tmp_path)
    assert main(["cut", str(tmp_path), "--at", "9000", "-y"]) == 1
    said = capsys.readouterr().err
    low, high = (int(said.split(text)[1].split(".")[0].split(",")[0]) for text in (
        "one begins at ", "one at "))  # fmt: skip
    assert low < 9000 < high
    assert contents(tmp_path) == before
    for place in (low, high):
        assert main(["cut", str(tmp_path), "--at", str(place), "--dry-run"]) == 0
    assert contents(tmp_path) == before


@pytest.mark.parametrize("at", ["0", "-5", "1000000000"])
def test_an_offset_outside_of_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at: str
) -> None:
    filled_store(tmp_path)
    assert main(["cut", str(tmp_path), "--at", at, "-y"]) == 1
    assert "its log runs from 0 to" in capsys.readouterr().err


def test_it_asks_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled_store(tmp_path)
    end = continued(tmp_path, range(3))
    before = contents(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["cut", str(tmp_path), "--at", str(end)]) == 1
    said = capsys.readouterr()
    assert "Nothing has been changed." in said.out
    assert "give --yes" in said.err
    assert contents(tmp_path) == before


def test_a_store_in_use_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = filled_store(tmp_path, closes=False)
    assert main(["cut", str(tmp_path), "--at", "8192", "-y"]) == 1
    assert "another broker uses this store" in capsys.readouterr().err
    store._marks.unlock()
    assert main(["cut", str(tmp_path), "--at", "8192", "-y"]) == 0


def test_a_cut_that_was_begun_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled_store(tmp_path)
    end = continued(tmp_path, range(3))
    order = Cut(OsFiles(), StoreConfig(store_path_root_dir=str(tmp_path)))
    order.order(end, NOW_MS + 10_000, NOW_MS)
    assert main(["cut", str(tmp_path), "--at", str(end), "--dry-run"]) == 0
    assert "has not been obeyed yet" in capsys.readouterr().out
    assert main(["cut", str(tmp_path), "--at", str(end)]) == 0
    assert f"ends at {end} now" in capsys.readouterr().out


def test_stores_with_nothing_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled_store(tmp_path / "one")
    opened(tmp_path / "other").stop(NOW_MS)
    arguments = [str(tmp_path / "one"), "--common-with", str(tmp_path / "other")]
    assert main(["cut", *arguments, "-y"]) == 1
    assert "begin with an empty store" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--at", "1", "--common-with", "x"]])
def test_one_place_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    assert main(["cut", str(tmp_path), *more]) == 2
    assert "either --at or --common-with" in capsys.readouterr().err
