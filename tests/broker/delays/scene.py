# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.broker.delays.schedule import Schedule


def deliver(
    schedule: Schedule,
    now_ms: int,
    steady_ms: int | None = None,
    is_time_up: Callable[[], bool] = lambda: False,
) -> int:
    """Has a batch of each level delivered, by both clocks; returns how many messages that were."""
    before = schedule.delivered
    schedule.tick(now_ms, now_ms if steady_ms is None else steady_ms, is_time_up)
    return schedule.delivered - before
