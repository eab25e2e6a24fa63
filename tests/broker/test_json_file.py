# SPDX-License-Identifier: Apache-2.0
"""Config files: what a crash leaves is read, what is broken is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from txrocketmq.broker.json_file import JsonFile, JsonFileError


def test_nothing_there_is_none(tmp_path: Path) -> None:
    assert JsonFile(tmp_path / "topics.json").load() is None


def test_saved_is_loaded_and_the_one_before_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "config" / "offsets.json"
    file = JsonFile(path)
    file.save({"offsetTable": {"T@g": {0: 1}}})
    file.save({"offsetTable": {"T@g": {0: 2}}})
    assert JsonFile(path).load() == {"offsetTable": {"T@g": {0: 2}}}
    assert JsonFile(path.with_name("offsets.json.bak")).load() == {"offsetTable": {"T@g": {0: 1}}}


@pytest.mark.parametrize("left", [b"", b'{"a":', None])
def test_the_backup_stands_in(tmp_path: Path, left: bytes | None) -> None:
    path = tmp_path / "a.json"
    file = JsonFile(path)
    file.save({"a": 1})
    file.save({"a": 2})
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    assert JsonFile(path).load() == {"a": 1}


def test_an_unchanged_content_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    file = JsonFile(path)
    file.save({"a": 1})
    path.write_bytes(b"mine")
    file.save({"a": 1})
    assert path.read_bytes() == b"mine"


def test_both_broken_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"{")
    path.with_name("a.json.bak").write_bytes(b"[")
    with pytest.raises(JsonFileError, match=r"a\.json: .*a\.json\.bak: "):
        JsonFile(path).load()
