# SPDX-License-Identifier: Apache-2.0
"""Config files: what a crash or a full disk leaves is read, what is broken is named."""

from __future__ import annotations

import errno
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.broker.work.json_file import JsonFile, JsonFileError
from txrocketmq.remoting.serialize.json import encode_pretty


def loaded(path: Path) -> Any:
    with JsonFile(path).content() as content:
        return content


def test_nothing_there_is_empty(tmp_path: Path) -> None:
    assert loaded(tmp_path / "topics.json") == {}


def test_saved_is_loaded_and_the_one_before_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "config" / "offsets.json"
    file = JsonFile(path)
    file.save({"offsetTable": {"T@g": {0: 1}}})
    file.save({"offsetTable": {"T@g": {0: 2}}})
    assert loaded(path) == {"offsetTable": {"T@g": {0: 2}}}
    assert loaded(path.with_name("offsets.json.bak")) == {"offsetTable": {"T@g": {0: 1}}}


@pytest.mark.parametrize("left", [b"", b'{"a":', None])
def test_the_backup_stands_in(tmp_path: Path, left: bytes | None) -> None:
    path = tmp_path / "a.json"
    file = JsonFile(path)
    file.save({"a": 1})
    file.save({"a": 2})
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    again = JsonFile(path)
    with again.content() as content:
        assert content == {"a": 1}
    assert "a.json.bak was read instead" in again.warning


def test_what_is_as_it_should_be_needs_no_word(tmp_path: Path) -> None:
    file = JsonFile(tmp_path / "a.json")
    with file.content():
        assert file.warning == ""
    file.save({"a": 1})
    with file.content():
        assert file.warning == ""


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("topics.json", "topics that have queues are created again"),
        ("consumerOffset.json", "all groups begin like new ones"),
        ("other.json", "it begins empty"),
    ],
)
def test_what_happens_without_the_file_is_said(tmp_path: Path, name: str, truth: str) -> None:
    (tmp_path / name).write_bytes(b"{")
    with pytest.raises(JsonFileError, match=f"Repair the file.*{truth}"):
        loaded(tmp_path / name)


def test_a_full_disk_costs_neither_the_file_nor_its_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    file = JsonFile(path)
    file.save({"a": 1})
    file.save({"a": 2})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for value in (3, 4, 5):
        saving = file.saving(partial(encode_pretty, {"a": value}))
        assert not file.is_stale
        with pytest.raises(OSError, match="No space left"):
            saving()
        assert file.is_stale
    assert loaded(path) == {"a": 2}
    assert loaded(path.with_name("a.json.bak")) == {"a": 1}
    assert not path.with_name("a.json.tmp").exists()


def test_what_was_to_be_saved_before_does_not_come_after(tmp_path: Path) -> None:
    """A thread may be late; the broker's own has saved what is newer."""
    file = JsonFile(tmp_path / "a.json")
    late = file.saving(partial(encode_pretty, {"a": 1}))
    file.save({"a": 2})
    late()
    assert loaded(tmp_path / "a.json") == {"a": 2}


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
        loaded(path)


def test_what_is_no_object_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"[1]")
    with pytest.raises(JsonFileError, match=r"a\.json does not hold an object"):
        loaded(path)
