# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from txrocketmq.remoting.process.kept_json import KeptJson, read_kept


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.json"


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "a.json.bak"


def test_nothing_there_is_nothing(path: Path) -> None:
    assert read_kept(path) == KeptJson(path, None, "")


def test_the_file_is_read_whatever_its_backup_is(path: Path, backup: Path) -> None:
    path.write_text('{"a":1}')
    backup.write_text("{")
    assert read_kept(path) == KeptJson(path, {"a": 1}, "")


@pytest.mark.parametrize(
    ("left", "why"), [(None, "is missing"), (" \n", "is empty"), ('{"a', ": no JSON at character")]
)
def test_a_backup_that_is_used_is_told(
    path: Path, backup: Path, left: str | None, why: str
) -> None:
    backup.write_text('{"a":1}')
    if left is not None:
        path.write_text(left)
    kept = read_kept(path)
    assert (kept.path, kept.content) == (backup, {"a": 1})
    assert f"{path}" in kept.warning
    assert why in kept.warning
    assert f"{backup} was read instead" in kept.warning


def test_a_backup_that_is_not_wanted_is_not_read(path: Path, backup: Path) -> None:
    backup.write_text('{"a":1}')
    assert read_kept(path, falls_back=False) == KeptJson(path, None, "")
    path.touch()
    assert read_kept(path, falls_back=False) == KeptJson(path, None, f"{path} is empty")
    path.write_text("{")
    with pytest.raises(ValueError, match=r"a\.json: no JSON"):
        read_kept(path, falls_back=False)


def test_empty_ones_hold_nothing_and_are_told(path: Path, backup: Path) -> None:
    path.touch()
    backup.touch()
    assert read_kept(path) == KeptJson(path, None, f"{path} is empty; {backup} is empty")


def test_what_is_wrong_with_a_private_file_is_not_repeated(path: Path) -> None:
    path.write_text('{"password": hunter2}')
    path.chmod(0o600)
    with pytest.raises(ValueError, match=r"a\.json: no JSON at character 13$"):
        read_kept(path, is_private=True)


def test_what_cannot_be_read_is_an_error(path: Path, backup: Path) -> None:
    path.mkdir()
    with pytest.raises(ValueError, match=r"a\.json: Is a directory$"):
        read_kept(path)
    backup.write_text("[")
    with pytest.raises(ValueError, match=r"a\.json: Is a directory; .*a\.json\.bak: no JSON"):
        read_kept(path)


def test_zero_bytes_are_damage_wherever_they_are(path: Path, backup: Path) -> None:
    path.write_bytes(b'{"name\0\0\0":1}')
    backup.write_text('{"name":{0:1}}')
    kept = read_kept(path)
    assert kept.content == {"name": {0: 1}}
    assert f"{path} is damaged: it has zero bytes from byte 6 on; {backup} was" in kept.warning
    backup.write_bytes(b'{"a":1}\0')
    with pytest.raises(
        ValueError, match=r"from byte 6 on; .*a\.json\.bak is damaged: .* byte 7 on"
    ):
        read_kept(path)


@pytest.mark.parametrize(
    "text", [b'{0:"a"}', b"{'a':{name:1}}", b'{"a":"x\ty"}', b'{{"topic":"T","queueId":0}:1}']
)
def test_forms_of_the_original_are_no_damage(path: Path, text: bytes) -> None:
    path.write_bytes(text)
    kept = read_kept(path)
    assert kept.content
    assert not kept.warning


@pytest.mark.parametrize("name", ["a.json", "a.json.bak"])
@pytest.mark.parametrize(("mode", "is_taken"), [(0o600, True), (0o640, True), (0o604, False)])
def test_a_private_file_that_others_may_read(
    path: Path, tmp_path: Path, name: str, mode: int, *, is_taken: bool
) -> None:
    for each in ("a.json", "a.json.bak"):
        (tmp_path / each).write_text("{}")
        (tmp_path / each).chmod(0o600)
    (tmp_path / name).chmod(mode)
    assert read_kept(path).content == {}
    if is_taken:
        assert read_kept(path, is_private=True).content == {}
        return
    with pytest.raises(ValueError, match=rf"{name} holds passwords, .* run chmod 600 .*{name}$"):
        read_kept(path, is_private=True)


def test_a_private_file_that_there_is_not(path: Path) -> None:
    assert read_kept(path, is_private=True) == KeptJson(path, None, "")
