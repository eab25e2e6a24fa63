# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.original_keys import STORE_KEYS
from txrocketmq.remoting.settings.config_file import ConfigError, Configuration, as_properties, load


def test_keys_are_the_originals() -> None:
    keys = as_properties(StoreConfig())
    assert keys["mappedFileSizeCommitLog"] == "1073741824"
    assert keys["checkCRCOnRecover"] == "true"
    assert keys["deleteWhen"] == "04"
    assert not keys.keys() & STORE_KEYS, "a key either has an effect or has none"


def test_keys_without_effect_are_known() -> None:
    config, unknown = load(StoreConfig, {"transientStorePoolEnable": "true", "maxIndexNumm": "1"})
    assert config == StoreConfig()
    assert [(each.key, each.nearest) for each in unknown] == [("maxIndexNumm", "maxIndexNum")]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"flushDiskType": "SOON"}, "flushDiskType must be ASYNC_FLUSH or SYNC_FLUSH, not 'SOON'"),
        ({"brokerRole": "BOSS"}, "brokerRole must be one of"),
        ({"storePathCommitLog": "/a,/b"}, "one directory"),
        (
            {"mappedFileSizeCommitLog": "10"},
            "mappedFileSizeCommitLog must be at least 4096, not 10",
        ),
        ({"mappedFileSizeConsumeQueue": "0"}, "mappedFileSizeConsumeQueue"),
        ({"maxHashSlotNum": "0"}, "maxHashSlotNum"),
        ({"maxIndexNum": "1"}, "maxIndexNum"),
        ({"flushIntervalCommitLog": "0"}, "flushIntervalCommitLog must be at least 1, not 0"),
        ({"flushDelayOffsetInterval": "-1"}, "flushDelayOffsetInterval must be at least 1, not -1"),
        ({"deleteWhen": "25"}, "hours from 00 to 23"),
        ({"deleteWhen": "4 o'clock"}, "hours from 00 to 23"),
        ({"messageDelayLevel": "1s 5x"}, "not '5x'"),
        ({"messageDelayLevel": "s"}, "not 's'"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        load(StoreConfig, values)


def test_queue_files_have_whole_units() -> None:
    assert StoreConfig(mapped_file_size_consume_queue=101).consume_queue_file_bytes == 120
    assert StoreConfig().consume_queue_file_bytes == 6_000_000


def test_hours_and_delays() -> None:
    assert StoreConfig(delete_when="04;23; 5").delete_hours() == {4, 5, 23}
    assert len(StoreConfig().delay_levels_ms()) == 18


def test_sizes_do_not_change_while_running() -> None:
    config = StoreConfig()
    configuration = Configuration([config], {})
    configuration.update({"maxMessageSize": "10"})
    with pytest.raises(ConfigError, match="mappedFileSizeCommitLog cannot change while"):
        configuration.update({"maxMessageSize": "20", "mappedFileSizeCommitLog": "8192"})
    assert config.max_message_size == 10
    assert config.mapped_file_size_commit_log == 1 << 30


def test_only_a_slave_is_one() -> None:
    assert StoreConfig(broker_role="SLAVE").is_slave
    assert not StoreConfig().is_slave


@pytest.mark.parametrize("name", ["enable_lmq", "enable_multi_dispatch"])
def test_light_queues_take_both_of_their_settings(name: str) -> None:
    with pytest.raises(ConfigError, match="have an effect only together"):
        StoreConfig(**{name: True})  # type: ignore[arg-type]
