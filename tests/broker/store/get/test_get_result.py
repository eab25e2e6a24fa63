# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.store.get.get_result import Limits, Request
from txrocketmq.remoting.frame.frame import MAX_FRAME_BYTES


def request(max_count: int, size_bytes: int) -> Request:
    return Request(0, max_count, size_bytes, None, None)


def test_requests_are_kept_within_bounds(config: Callable[..., StoreConfig]) -> None:
    settings = config(max_transfer_bytes_on_message_in_memory=1 << 40)

    def most(size_bytes: int) -> int:
        return Limits(settings, request(1, size_bytes), 0).recent_bytes

    assert most(1) == 100
    assert most(5000) == 5000
    assert MAX_FRAME_BYTES // 2 < most(1 << 40) < MAX_FRAME_BYTES


def test_what_is_not_recent_is_given_in_smaller_parts(config: Callable[..., StoreConfig]) -> None:
    settings = config()
    assert _all(Limits(settings, request(1000, 1 << 30), 7)) == (
        7,
        settings.max_transfer_count_on_message_in_memory,
        settings.max_transfer_bytes_on_message_in_memory,
        settings.max_transfer_count_on_message_in_disk,
        settings.max_transfer_bytes_on_message_in_disk,
    )
    assert _all(Limits(settings, request(1, 200), 7)) == (7, 1, 200, 1, 200)


def _all(limits: Limits) -> tuple[int, ...]:
    return (
        limits.recent_from,
        limits.recent_count,
        limits.recent_bytes,
        limits.older_count,
        limits.older_bytes,
    )


SIZES = st.lists(st.integers(1, 50), min_size=1, max_size=12)


@given(SIZES, st.integers(-2, 14), st.integers(-2, 14), st.data())
def test_as_many_fit_as_one_after_the_other(
    sizes: list[int], recent_count: int, older_count: int, data: st.DataObject
) -> None:
    starts = [100 * at for at in range(len(sizes))]
    recent_from, *most = data.draw(
        st.tuples(st.integers(0, 1_300), st.integers(1, 300), st.integers(1, 300))
    )
    settings = StoreConfig(
        max_transfer_count_on_message_in_memory=recent_count,
        max_transfer_bytes_on_message_in_memory=most[0],
        max_transfer_count_on_message_in_disk=older_count,
        max_transfer_bytes_on_message_in_disk=most[1],
    )
    limits = Limits(settings, request(100, 1 << 20), recent_from)
    count, total = 1, sizes[0]
    while count < len(sizes) and not limits.is_full(count, total, starts[count], sizes[count]):
        total += sizes[count]
        count += 1
    assert limits.fit(starts, sizes) == count
