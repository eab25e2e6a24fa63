# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.work.in_thread import at_once


def test_what_is_done_at_once_tells_how_it_ended() -> None:
    told: list[Exception | None] = []
    error = ValueError("no")

    def fail() -> None:
        raise error

    at_once(lambda: None, told.append)
    at_once(fail, told.append)
    assert told == [None, error]
