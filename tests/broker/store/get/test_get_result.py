# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.get.get_result import Request, limits_of, max_bytes
from txrocketmq.remoting.frame.frame import MAX_FRAME_BYTES


def request(max_count: int, size_bytes: int) -> Request:
    return Request(0, max_count, size_bytes, None, None)


def test_requests_are_kept_within_bounds() -> None:
    assert max_bytes(request(1, 1)) == 100
    assert max_bytes(request(1, 5000)) == 5000
    assert MAX_FRAME_BYTES // 2 < max_bytes(request(1, 1 << 40)) < MAX_FRAME_BYTES


def test_what_is_not_recent_is_given_in_smaller_parts(config: Callable[..., StoreConfig]) -> None:
    settings = config()
    recent, older = limits_of(settings, request(1000, 1 << 30))
    assert recent == (
        settings.max_transfer_count_on_message_in_memory,
        settings.max_transfer_bytes_on_message_in_memory,
    )
    assert older == (
        settings.max_transfer_count_on_message_in_disk,
        settings.max_transfer_bytes_on_message_in_disk,
    )
    assert limits_of(settings, request(1, 200)) == ((1, 200), (1, 200))
