# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from txrocketmq.cli.store.store import main


def test_a_directory_that_is_no_store_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("check", "repair", "dump"):
        assert main([command, str(tmp_path)]) == 1
        assert f"{tmp_path} is not a store: it has neither commitlog" in capsys.readouterr().err
        assert main([command, str(tmp_path / "none")]) == 1
        assert f"there is no directory {tmp_path / 'none'}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["dump", "x", "--key", "k"],
        ["dump", "x", "--queue", "1"],
        ["dump", "x", "--topic", "T", "--key", "k", "--offset", "0"],
        ["dump", "x", "--count", "0"],
        ["check"],
    ],
)
def test_what_is_missing_in_a_command_is_told(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line) == 2
    assert "Usage: txrocketmq store" in capsys.readouterr().err
