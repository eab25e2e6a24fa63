# SPDX-License-Identifier: Apache-2.0
"""Key-values and their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from txrocketmq.namesrv import kv_config
from txrocketmq.namesrv.kv_config import KvConfig, KvConfigError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "namesrv" / "kvConfig.json"


def test_values_survive_a_restart(path: Path) -> None:
    kv = KvConfig(path)
    kv.load()
    kv.put("ns", "k", "ä")
    kv.put("ns", "other", "2")
    kv.delete("ns", "other")
    again = KvConfig(path)
    again.load()
    assert again.get("ns", "k") == "ä"
    assert again.get("ns", "other") is None
    assert again.namespace("ns") == {"k": "ä"}


def test_the_file_is_the_original_one(path: Path) -> None:
    kv = KvConfig(path)
    kv.put("ORDER_TOPIC_CONFIG", "T1", "broker-a:4")
    kv.put("ORDER_TOPIC_CONFIG", "T1", "broker-a:8")
    assert path.read_text("utf-8") == '{"configTable":{"ORDER_TOPIC_CONFIG":{"T1":"broker-a:8"}}}'
    backup = path.with_name("kvConfig.json.bak")
    assert backup.read_text("utf-8") == '{"configTable":{"ORDER_TOPIC_CONFIG":{"T1":"broker-a:4"}}}'
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, backup.name]


def test_what_is_not_there(path: Path) -> None:
    kv = KvConfig(path)
    assert kv.get("ns", "k") is None
    assert kv.namespace("ns") is None
    kv.delete("ns", "k")
    assert not path.exists()


def test_an_emptied_namespace_stays_known(path: Path) -> None:
    kv = KvConfig(path)
    kv.put("ns", "k", "v")
    kv.delete("ns", "k")
    assert kv.namespace("ns") == {}


@pytest.mark.parametrize("content", [b"", b" \n", b'{"configTable":{}}'])
def test_an_empty_file_is_no_values(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    kv = KvConfig(path)
    kv.load()
    assert kv.namespace("ns") is None


@pytest.mark.parametrize("left", [None, b"", b"{"])
def test_the_one_before_stands_in(path: Path, left: bytes | None) -> None:
    kv = KvConfig(path)
    kv.put("ns", "k", "1")
    kv.put("ns", "k", "2")
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    again = KvConfig(path)
    assert "kvConfig.json.bak was read instead" in again.load()
    assert again.get("ns", "k") == "1"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"[]", "it has no table configTable"),
        (b"{}", "it has no table configTable"),
        (b'{"configTable":null}', "it has no table configTable"),
        (b'{"configTable":{"ns":"x"}}', "it has no table configTable"),
    ],
)
def test_a_broken_file_is_named(path: Path, content: bytes, why: str) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(KvConfigError, match=f"{path} is not a kvConfig.json: {why}"):
        KvConfig(path).load()


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(KvConfigError, match=f"{tmp_path}: Is a directory. Repair the file"):
        KvConfig(tmp_path).load()


def test_one_that_is_no_json_without_one_before(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"{")
    with pytest.raises(KvConfigError, match=f"{path}: no JSON at character 1.*Repair the file"):
        KvConfig(path).load()


def test_a_value_that_cannot_be_written_does_not_count(path: Path) -> None:
    kv = KvConfig(path)
    kv.put("ns", "k", "1")
    path.with_name("kvConfig.json.tmp").mkdir()
    with pytest.raises(KvConfigError, match=f"cannot write {path}: Is a directory"):
        kv.put("ns", "k", "2")
    assert kv.get("ns", "k") == "1"
    assert "1" in path.read_text("utf-8")


def test_the_file_is_not_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_config, "MAX_BYTES", 200)
    kv = KvConfig(tmp_path / "kv.json")
    kv.put("n", "a", "x" * 100)
    before = kv.path.read_bytes()
    for key in ("a", "b"):
        with pytest.raises(
            KvConfigError, match=r"kv\.json would have \d+ bytes, and has at most 200"
        ):
            kv.put("n", key, "x" * 190)
    assert kv.namespace("n") == {"a": "x" * 100}
    assert kv.path.read_bytes() == before
    kv.put("n", "b", "y")
    monkeypatch.setattr(kv_config, "MAX_BYTES", 20)
    kv.delete("n", "b")
    assert kv.namespace("n") == {"a": "x" * 100}, "what is too long can become shorter"


def test_the_keys_are_not_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_config, "MAX_KEYS", 3)
    kv = KvConfig(tmp_path / "kv.json")
    for namespace, key in (("n", "a"), ("n", "b"), ("m", "c")):
        kv.put(namespace, key, "1")
    with pytest.raises(KvConfigError, match=r"kv\.json would have 4 keys, and has at most 3"):
        kv.put("m", "d", "1")
    kv.put("n", "a", "2")
    monkeypatch.setattr(kv_config, "MAX_KEYS", 1)
    kv.delete("n", "b")
    kv.put("n", "a", "3")
    assert kv.namespace("n") == {"a": "3"}
