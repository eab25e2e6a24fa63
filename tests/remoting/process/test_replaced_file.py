# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.remoting.process.replaced_file import write_replacing


def test_writing_anew_keeps_one_backup(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for content in (b"1", b"2", b"3"):
        write_replacing(path, content)
    assert path.read_bytes() == b"3"
    assert (tmp_path / "f.bak").read_bytes() == b"2"


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """As root one could replace /dev/null, so that the whole machine is without it."""
    path = tmp_path / "f"
    os.mkfifo(path)
    with pytest.raises(OSError, match="this is no file that could be replaced"):
        write_replacing(path, b"1")
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert list(tmp_path.iterdir()) == [path]


def test_writing_anew_where_there_are_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    test_writing_anew_keeps_one_backup(tmp_path)


def test_what_was_written_anew_is_durable_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    synced: list[tuple[bool, bool]] = []
    sync = os.fsync

    def look(handle: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(handle).st_mode), path.exists()))
        sync(handle)

    monkeypatch.setattr(os, "fsync", look)
    write_replacing(path, b"1")
    assert synced == [(False, False), (True, True)]


def test_a_folder_that_cannot_be_synced_is_as_good_as_it_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    test_writing_anew_keeps_one_backup(tmp_path)


def test_what_cannot_take_the_place_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "f" / "g").mkdir(parents=True)
    with pytest.raises(OSError, match="f"):
        write_replacing(tmp_path / "f", b"1")
    assert [each.name for each in tmp_path.iterdir()] == ["f"]


def test_what_cannot_be_replaced_keeps_its_backup(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f.bak").write_bytes(b"1")
    with pytest.raises(IsADirectoryError):
        write_replacing(tmp_path / "f", b"2")
    assert (tmp_path / "f.bak").read_bytes() == b"1"
    assert {each.name for each in tmp_path.iterdir()} == {"f", "f.bak"}


def test_a_file_stays_where_its_backup_cannot_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    (tmp_path / "f.bak").mkdir()
    with pytest.raises(IsADirectoryError):
        write_replacing(tmp_path / "f", b"2")
    assert (tmp_path / "f").read_bytes() == b"1"
    assert {each.name for each in tmp_path.iterdir()} == {"f", "f.bak"}


def test_at_each_moment_the_file_or_its_backup_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, backup = tmp_path / "f", tmp_path / "f.bak"
    path.write_bytes(b"damaged")
    backup.write_bytes(b"whole before")
    seen: list[tuple[bytes, bytes]] = []

    def look(move: Callable[..., Any]) -> Callable[..., Any]:
        def moved(*args: Any, **options: Any) -> Any:
            result = move(*args, **options)
            seen.append((path.read_bytes(), backup.read_bytes()))
            return result

        return moved

    monkeypatch.setattr(os, "link", look(os.link))
    monkeypatch.setattr(Path, "replace", look(Path.replace))
    monkeypatch.setattr(Path, "unlink", look(Path.unlink))
    write_replacing(path, b"whole")
    assert seen[-1] == (b"whole", b"damaged")
    assert all(b"whole" in pair[0] or b"whole" in pair[1] for pair in seen)
    assert len(seen) >= 3


def test_mode_and_owner_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"1")
    path.chmod(0o604)
    owners: list[tuple[int, int]] = []
    status = os.fstat

    def other_owner(handle: int) -> os.stat_result:
        found = list(status(handle))
        found[4] += 1
        return os.stat_result(found)

    monkeypatch.setattr(os, "fstat", other_owner)
    monkeypatch.setattr(os, "fchown", lambda handle, uid, gid: owners.append((uid, gid)))
    write_replacing(path, b"2")
    assert path.read_bytes() == b"2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert owners == [(path.stat().st_uid, path.stat().st_gid)]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_private_file_is_never_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
) -> None:
    path = tmp_path / "f"
    modes: set[int] = set()
    sync = os.fsync

    def look(handle: int) -> None:
        modes.update(stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir())
        sync(handle)

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fsync", look)
    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    before = os.umask(0)
    try:
        (tmp_path / "f.tmp").write_bytes(b"left by a crash")
        for content in (b"1", b"2", b"3"):
            write_replacing(path, content, is_private=True)
    finally:
        os.umask(before)
    assert modes == {0o600}
    assert path.read_bytes() == b"3"
