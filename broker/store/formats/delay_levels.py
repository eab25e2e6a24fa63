# SPDX-License-Identifier: Apache-2.0
"""Delay levels (messageDelayLevel): how long a message of each level waits.

Counterpart of ScheduleMessageService.parseDelayLevel.
"""

from __future__ import annotations

import re
from typing import Final

from txrocketmq.remoting.settings.config_file import ConfigError

DEFAULT_LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_DELAY: Final = re.compile(r"([0-9]{1,12})([smhd])")
_UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DelayLevels:
    """The delays of the levels, 1 to `max_level`. Raises ConfigError for a text that names none."""

    def __init__(self, text: str = DEFAULT_LEVELS) -> None:
        self._delays_ms: list[int] = []
        for word in text.split():
            match = _DELAY.fullmatch(word)
            if match is None:
                raise ConfigError(f"messageDelayLevel must be times like 1s 5m 2h 1d, not {word!r}")
            self._delays_ms.append(int(match[1]) * _UNIT_MS[match[2]])
        if not self._delays_ms:
            raise ConfigError("messageDelayLevel names no level: write times like 1s 5m 2h 1d")

    @property
    def max_level(self) -> int:
        return len(self._delays_ms)

    def by_level(self) -> dict[int, int]:
        """All delays in milliseconds, by level."""
        return dict(enumerate(self._delays_ms, start=1))

    def clamp(self, level: int) -> int:
        """The level that applies: one that is too high means the highest."""
        return min(level, self.max_level)

    def delay_ms(self, level: int) -> int:
        """How long a message of a level waits, in ms."""
        return self._delays_ms[level - 1]

    def deliver_ms(self, level: int, stored_ms: int) -> int:
        """When a message that is stored at `stored_ms` is due, in ms."""
        return stored_ms + self._delays_ms[level - 1]
