# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.stored import MESSAGES, contents, filled_store
from txrocketmq.cli.store.store import main


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store that lacks a file of its log."""
    filled_store(tmp_path)
    max((tmp_path / "commitlog").iterdir()).unlink()
    return tmp_path


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_it_says_what_it_will_do_and_asks(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(root)
    for answer, asked in ((io.StringIO(), False), (Terminal("n\n"), True)):
        monkeypatch.setattr(sys, "stdin", answer)
        assert main(["repair", str(root)]) == 1
        said = capsys.readouterr()
        assert "queues refer to" in said.out
        assert "the start went on without it" in said.out
        assert ("Repair the store like this?" in said.out) is asked
        assert ("give --yes" in said.err) is not asked
        assert contents(root) == before
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert main(["repair", str(root)]) == 0


def test_what_is_left_can_be_opened_afterwards(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "commitlog" / f"{1 << 30:020d}").write_bytes(b"behind the end" + bytes(8178))
    assert main(["repair", "--yes", str(root)]) == 0
    said = capsys.readouterr().out
    assert "a broker can open it" in said
    moved = list((root / "lost").rglob(f"{1 << 30:020d}"))
    assert len(moved) == 1
    assert f"would move {root / 'commitlog' / moved[0].name} to" in said
    assert not (root / "accept_loss").exists()
    assert main(["check", str(root)]) == 0
    assert main(["repair", str(root)]) == 0
    assert "There is nothing to repair." in capsys.readouterr().out


def test_what_was_left_open_is_closed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = filled_store(tmp_path, closes=False)
    assert main(["repair", "--yes", str(tmp_path)]) == 1
    assert "another broker uses this store" in capsys.readouterr().err
    store._marks.unlock()  # what the end of the process does
    assert main(["repair", "--yes", str(tmp_path)]) == 0
    assert f"{MESSAGES} messages of it were checked" in capsys.readouterr().out
    assert not (tmp_path / "abort").exists()
    assert main(["check", str(tmp_path)]) == 0


def test_another_configuration_is_no_matter_of_repair(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("mappedFileSizeCommitLog=4096\nmappedFileSizeConsumeQueue=800\n")
    before = contents(root)
    assert main(["repair", "--yes", "-c", str(file), str(root)]) == 1
    assert "set mappedFileSizeCommitLog to what this store was created" in capsys.readouterr().out
    assert contents(root) == before


def test_foreign_names_do_nothing_to_a_terminal(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "commitlog" / "red\x1b[31m").write_bytes(b"x")
    assert main(["repair", "--yes", str(root)]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert r"red\x1b[31m" in said
