# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.formats.delay_levels import DelayLevels
from txrocketmq.remoting.settings.config_file import ConfigError


def test_levels() -> None:
    levels = DelayLevels()
    assert levels.max_level == 18
    assert [levels.delay_ms(level) for level in (1, 5, 17, 18)] == [
        1_000,
        60_000,
        3_600_000,
        7_200_000,
    ]
    assert (levels.clamp(3), levels.clamp(99)) == (3, 18)
    assert levels.deliver_ms(2, 500) == 5_500
    assert DelayLevels("2d").delay_ms(1) == 172_800_000


@pytest.mark.parametrize("text", ["", "1x", "s", "1", "-1s", "1s 2q"])
def test_levels_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError, match="messageDelayLevel"):
        DelayLevels(text)


def test_all_delays_by_level() -> None:
    delays_ms = DelayLevels("1s 2m 3h 4d").by_level()
    assert delays_ms == {1: 1_000, 2: 120_000, 3: 10_800_000, 4: 345_600_000}
    assert StoreConfig(message_delay_level="1s 2m 3h 4d").delay_levels_ms() == delays_ms
