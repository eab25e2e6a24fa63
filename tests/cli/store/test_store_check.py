# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import multiprocessing
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stored import (
    MESSAGES,
    NOW_MS,
    contents,
    filled_store,
    spoil,
    store_with_a_record_in_a_body,
)
from txrocketmq.broker.store.check.check import Looked, StoreCheck
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.queues.consume_queues import KindOf
from txrocketmq.cli.store import store_check
from txrocketmq.cli.store.store import main
from txrocketmq.cli.store.store_check import config_findings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    filled_store(tmp_path)
    return tmp_path


def first_body(root: Path) -> tuple[Path, int]:
    path = min((root / "commitlog").iterdir())
    return path, path.read_bytes().index(b"body-")


@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_sound_store(root: Path, capsys: pytest.CaptureFixture[str], workers: str) -> None:
    before = contents(root)
    assert main(["check", str(root), "--workers", workers]) == 0
    said = capsys.readouterr()
    assert f"Read {MESSAGES} messages in the log from 0 to" in said.out
    assert said.out.endswith("Nothing is wrong.\n")
    assert said.err == ""
    assert contents(root) == before


@pytest.mark.parametrize("workers", ["1", "3"])
def test_a_damaged_store(root: Path, capsys: pytest.CaptureFixture[str], workers: str) -> None:
    path, at = first_body(root)
    spoil(path, at, b"B")
    assert main(["check", str(root), "--workers", workers]) == 1
    said = capsys.readouterr().out
    assert f"{path} at byte 0: the body of a message (Topic0/0@0" in said
    assert said.endswith("1 thing is wrong.\n")


def test_a_sound_store_is_read_once_and_another_as_a_broker_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_crc: list[bool] = []

    class Noted(StoreCheck):
        def __init__(self, config: StoreConfig, kind_of: KindOf) -> None:
            with_crc.append(config.check_crc_on_recover)
            super().__init__(config, kind_of)

    monkeypatch.setattr("txrocketmq.cli.store.store_check.StoreCheck", Noted)
    store = filled_store(tmp_path / "open", closes=False)
    root = tmp_path / "crashed"
    shutil.copytree(tmp_path / "open", root)
    store.stop(NOW_MS)
    assert main(["check", str(root)]) == 0
    assert with_crc == [False]
    capsys.readouterr()

    last = max(path for path in (root / "commitlog").iterdir() if any(path.read_bytes()))
    spoil(last, last.read_bytes().rindex(b"body-"), b"B")
    assert main(["check", str(root)]) == 1
    assert with_crc == [False, False, True]
    said = capsys.readouterr().out
    assert "The log ends at" in said
    assert "are lost" in said
    assert "does not have the CRC" not in said


@pytest.mark.parametrize("workers", ["1", "3"])
@pytest.mark.parametrize("damages", [(), (("x", 50),), (("body-", 200), ("body-", 9_000))])
def test_pieces_report_what_whole_files_do(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    damages: tuple[tuple[str, int], ...],
    workers: str,
) -> None:
    for what, offset in damages:
        path = root / "commitlog" / f"{offset // 8192 * 8192:020d}"
        spoil(path, path.read_bytes().index(what.encode(), offset % 8192), b"B")
    reports = []
    in_pieces: list[bool] = []
    look = store_check.look_at_parts

    def noted(*of: Any, **how: Any) -> Iterator[Looked]:
        in_pieces.append(how["in_pieces"])
        yield from look(*of, **how)

    monkeypatch.setattr(store_check, "look_at_parts", noted)
    for least_bytes in (1 << 30, 1_000):
        monkeypatch.setattr(store_check, "_LEAST_PIECE_BYTES", least_bytes)
        assert main(["check", str(root), "--json", "--workers", workers]) == (1 if damages else 0)
        reports.append(json.loads(capsys.readouterr().out) | {"seconds": 0})
    assert reports[0] == reports[1]
    assert in_pieces == ([True, False] * 2 if damages else [True] * 2)


def test_a_wrong_guess_is_looked_at_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    position = store_with_a_record_in_a_body(tmp_path)
    reports = []
    for least_bytes in (1 << 30, position + 100):
        monkeypatch.setattr(store_check, "_PIECES_A_WORKER", 1 << 30)
        monkeypatch.setattr(store_check, "_LEAST_PIECE_BYTES", least_bytes)
        assert main(["check", str(tmp_path), "--json"]) == 0
        reports.append(json.loads(capsys.readouterr().out) | {"seconds": 0})
    assert reports[0] == reports[1]


def test_an_interrupted_look_ends_its_processes(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> Iterator[object]:
        raise KeyboardInterrupt

    monkeypatch.setattr(store_check, "as_completed", interrupted)
    assert main(["check", str(root), "--workers", "2"]) == 130
    assert capsys.readouterr().err == "txrocketmq store check: interrupted\n"
    assert multiprocessing.active_children() == []


def test_as_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, at = first_body(root)
    spoil(path, at, b"B")
    max((root / "commitlog").iterdir()).unlink()
    assert main(["check", str(root), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["sound"]
    assert not said["canBeOpened"]
    assert said["wasClosed"]
    assert 0 < said["messages"] < MESSAGES
    crc = [each for each in said["findings"] if each["kind"] == "crc"]
    assert [(each["path"], each["position"], each["offset"]) for each in crc] == [(str(path), 0, 0)]


def test_a_store_that_a_broker_has_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = filled_store(tmp_path, closes=False)
    assert main(["check", str(tmp_path)]) == 1
    assert "another broker uses this store" in capsys.readouterr().err
    store.stop(NOW_MS)


def test_files_of_the_configuration_are_looked_at(root: Path) -> None:
    folder = root / "config"
    folder.mkdir()
    (folder / "topics.json").write_text('{"a": 1}')
    (folder / "topics.json.bak").write_text("{")
    (folder / "consumerOffset.json").write_text("{")
    (folder / "delayOffset.json.bak").write_text("{}")
    (folder / "subscriptionGroup.json").write_text("[]")
    (folder / "transactionMetrics").write_text("[")
    (folder / "broker.properties").write_text("brokerId=0")
    found = {Path(each.path).name: each.text for each in config_findings(root)}
    assert sorted(found) == [
        "consumerOffset.json", "delayOffset.json", "subscriptionGroup.json", "transactionMetrics",
    ]  # fmt: skip
    assert "delayOffset.json is missing" in found["delayOffset.json"]
    assert "holds no JSON object" in found["subscriptionGroup.json"]
    assert main(["check", str(root)]) == 1
