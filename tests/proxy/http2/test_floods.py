# SPDX-License-Identifier: Apache-2.0
"""How many frames of a kind are taken."""

from __future__ import annotations

import pytest

from txrocketmq.proxy.http2.floods import BUCKETS, PING, SETTINGS, WINDOW_UPDATE, Floods


@pytest.mark.parametrize("kind", BUCKETS)
def test_a_bucket_overflows_once_it_is_full(kind: int) -> None:
    floods = Floods()
    most = BUCKETS[kind].most
    assert [floods.overflows(kind) for _ in range(most + 1)] == [False] * most + [True]


def test_some_runs_out_each_second() -> None:
    floods = Floods()
    for _ in range(BUCKETS[SETTINGS].most):
        floods.overflows(SETTINGS)
    floods.tick()
    each_s = BUCKETS[SETTINGS].each_s
    assert not any(floods.overflows(SETTINGS) for _ in range(each_s))
    assert floods.overflows(SETTINGS)


def test_what_is_empty_is_forgotten() -> None:
    floods = Floods()
    floods.overflows(SETTINGS)
    floods.tick()
    assert not floods._levels


def test_answers_make_room_for_pings_and_windows() -> None:
    floods = Floods()
    for _ in range(BUCKETS[PING].most * 3):
        assert not floods.overflows(PING)
        assert not floods.overflows(WINDOW_UPDATE)
        floods.made_room()
