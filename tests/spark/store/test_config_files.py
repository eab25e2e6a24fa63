# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.stores import START_MS, Draft, StoreWriter
from txrocketmq.spark.arrow.errors import StoreError, UnsupportedLayout
from txrocketmq.spark.store.config_files import StoreConfigFiles
from txrocketmq.spark.store.files import LocalFiles


@pytest.fixture
def config(tmp_path: Path) -> StoreConfigFiles:
    (tmp_path / "config").mkdir()
    return StoreConfigFiles(LocalFiles(), str(tmp_path))


def _write(config: StoreConfigFiles, name: str, text: str) -> None:
    (Path(config.path) / "config" / name).write_text(text, "utf-8")


def test_golden_stores(golden_store: Callable[[str], Path], golden_version: str) -> None:
    config = StoreConfigFiles(LocalFiles(), str(golden_store(golden_version) / "clean"))
    assert config.consumer_offsets()["Retry", "golden_retry"] == {0: 1, 1: 1, 2: 1, 3: 1}
    assert config.delay_offsets()[1] == 3
    assert config.topics()["Orders"]["writeQueueNums"] == 4
    assert config.groups()["golden_retry"]["retryMaxTimes"] >= 0
    assert config.cluster_name() == "DefaultCluster"
    assert config.broker_name() == "broker-a"
    checkpoint = config.checkpoint()
    assert checkpoint["physic_msg_timestamp"] > START_MS


@pytest.mark.parametrize("version", ["4.9.7", "5.4.0"])
def test_what_is_written_is_read(tmp_path: Path, version: str) -> None:
    writer = StoreWriter(tmp_path / "store", version=version)
    stored = writer.put(Draft(topic="T", queue_id=5))
    writer.write_config({"T@g": {0: 7, 11: 9}, "%RETRY%g@g": {0: 1}}, {1: 3, 18: 0}, ["g"])
    config = StoreConfigFiles(LocalFiles(), str(tmp_path / "store"))
    assert list(config.topics()) == ["T"]
    assert list(config.groups()) == ["g"]
    assert config.consumer_offsets() == {("T", "g"): {0: 7, 11: 9}, ("%RETRY%g", "g"): {0: 1}}
    assert config.delay_offsets() == {1: 3, 18: 0}
    confirmed = 0 if version.startswith("4.") else writer.end
    times = (stored.store_timestamp, stored.store_timestamp, 0)
    assert tuple(config.checkpoint().values()) == (*times, 0, confirmed)


def test_an_empty_store_has_empty_tables(config: StoreConfigFiles) -> None:
    assert config.topics() == {}
    assert config.groups() == {}
    assert config.consumer_offsets() == {}
    assert config.delay_offsets() == {}
    assert config.checkpoint() == {}
    assert config.cluster_name() is None
    assert config.broker_name() is None


@pytest.mark.parametrize("broken", [None, "", " \n", '{"offsetTable":{1:', "[1]"])
def test_the_backup_counts_where_the_file_does_not(
    config: StoreConfigFiles, broken: str | None
) -> None:
    if broken is not None:
        _write(config, "delayOffset.json", broken)
    _write(config, "delayOffset.json.bak", '{"offsetTable":{1:3}}')
    assert config.delay_offsets() == {1: 3}


def test_both_broken(config: StoreConfigFiles) -> None:
    _write(config, "topics.json", "{")
    _write(config, "topics.json.bak", "[]")
    with pytest.raises(StoreError, match=r"topics\.json: .*topics\.json\.bak is no JSON object"):
        config.topics()


@pytest.mark.parametrize("kind", ["consumerOffsets", "metadata", "rdb"])
def test_tables_in_rocksdb(config: StoreConfigFiles, kind: str) -> None:
    (Path(config.path) / "config" / kind).mkdir()
    assert config.consumer_offsets() == {}  # made, but not used
    (Path(config.path) / "config" / kind / "CURRENT").write_text("MANIFEST-000001")
    with pytest.raises(UnsupportedLayout, match=rf"config/{kind} is a RocksDB.* export"):
        config.consumer_offsets()
    _write(config, "consumerOffset.json", '{"offsetTable":{"t@g":{0:5}}}')  # exported
    assert config.consumer_offsets() == {("t", "g"): {0: 5}}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"offsetTable":{"no-group":{0:1}}}', "'no-group' is not topic@group"),
        ('{"offsetTable":{"t@g":{"x":1}}}', "'x' is not a number"),
        ('{"offsetTable":{"t@g":{0:null}}}', "None is not a number"),
        ('{"offsetTable":{"t@g":5}}', "not an object of objects"),
        ('{"offsetTable":[5]}', "not an object of objects"),
    ],
)
def test_offsets_that_are_none(config: StoreConfigFiles, text: str, what: str) -> None:
    _write(config, "consumerOffset.json", text)
    with pytest.raises(StoreError, match=rf"config/consumerOffset\.json: .*{what}"):
        config.consumer_offsets()


_LIGHT = '{"lmqOffsetTable":{"%LMQ%x@%LMQ%g":3},"offsetTable":{"t@g":{0:5}}'


def test_offsets_of_a_broker_with_light_queues(config: StoreConfigFiles) -> None:
    _write(config, "lmqConsumerOffset.json", _LIGHT + "}")
    assert config.consumer_offsets() == {("%LMQ%x", "%LMQ%g"): {0: 3}, ("t", "g"): {0: 5}}


def _write_both(config: StoreConfigFiles, usual: int | None, light: int | None) -> None:
    """Writes both files of offsets, with these times in them; None: without a time, as in 4.9."""
    versions = (
        "" if ms is None else f',"dataVersion":{{"timestamp":{ms},"counter":1}}'
        for ms in (usual, light)
    )
    of_usual, of_light = versions
    _write(config, "consumerOffset.json", '{"offsetTable":{"t@g":{0:4}}' + of_usual + "}")
    _write(config, "lmqConsumerOffset.json", _LIGHT + of_light + "}")


def _set_times(config: StoreConfigFiles, usual_s: int, light_s: int) -> None:
    folder = Path(config.path) / "config"
    os.utime(folder / "consumerOffset.json", (usual_s, usual_s))
    os.utime(folder / "lmqConsumerOffset.json", (light_s, light_s))


@pytest.mark.parametrize(
    ("usual", "light", "offset"),
    [(1000, 2000, 5), (2000, 1000, 4)],
)
def test_of_two_files_of_offsets_the_newer_content_counts(
    config: StoreConfigFiles, usual: int, light: int, offset: int
) -> None:
    """The times of the files do not matter then, since a copy of a store may not keep them."""
    _write_both(config, usual, light)
    for usual_s, light_s in ((1_000_000, 2_000_000), (2_000_000, 1_000_000)):
        _set_times(config, usual_s, light_s)
        assert config.consumer_offsets()["t", "g"] == {0: offset}


@pytest.mark.parametrize("versions", [(None, None), (1000, 1000), (None, 1000), (1000, None)])
@pytest.mark.parametrize(
    ("usual_s", "light_s", "offset"),
    [(1_000_000, 2_000_000, 5), (2_000_000, 1_000_000, 4), (1_000_030, 1_000_000, 5)],
)
def test_if_the_contents_do_not_tell_the_newer_file_counts(
    config: StoreConfigFiles,
    versions: tuple[int | None, int | None],
    usual_s: int,
    light_s: int,
    offset: int,
) -> None:
    _write_both(config, *versions)
    _set_times(config, usual_s, light_s)
    assert config.consumer_offsets()["t", "g"] == {0: offset}


@pytest.mark.parametrize("table", ["[5]", '{"t@g":{"0":1}}', '{"no-group":1}'])
def test_offsets_of_light_queues_that_are_none(config: StoreConfigFiles, table: str) -> None:
    _write(config, "lmqConsumerOffset.json", '{"lmqOffsetTable":' + table + "}")
    with pytest.raises(StoreError, match=r"config/lmqConsumerOffset\.json: "):
        config.consumer_offsets()


def test_a_short_checkpoint(config: StoreConfigFiles) -> None:
    path = Path(config.path) / "checkpoint"
    path.write_bytes((1).to_bytes(8, "big") + (2).to_bytes(8, "big") + (3).to_bytes(8, "big"))
    assert tuple(config.checkpoint().values()) == (1, 2, 3, 0, 0)
    path.write_bytes(bytes(23))
    assert config.checkpoint() == {}
