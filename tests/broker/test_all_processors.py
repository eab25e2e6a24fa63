# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.broker.conftest import Parts
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.dispatch import Registry

LATER = {
    # static topics, RocksDB, cold data
    354, 355, 513, 2001, 2002, 2003, 2004,
}  # fmt: skip
"""What a broker of 4.9.7 or 5.4.0 serves, and this one answers as not supported."""

SERVED = {
    10, 11, 12, 14, 15, 17, 18, 21, 25, 26, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 41, 42, 43,
    45, 46, 50, 51, 52, 53, 54, 60, 61, 200, 201, 202, 203, 204, 207, 208, 215, 222, 223, 225, 300,
    303, 305, 306, 307,
    308, 309, 310, 314, 315, 316, 317, 320, 321, 323, 324, 325, 328, 329, 343, 345, 351, 352, 353,
    361, 370, 400, 401, 402, 905, 906, 907, 908, 1007, 1008, *range(3001, 3011), 5001, 200050,
    200051, 200052, 200053, 200054, 200055, 200056, 200151,
}  # fmt: skip


@pytest.fixture
def registry(parts: Parts) -> Registry:
    return Registry(*all_processors(parts))


def test_what_is_served(registry: Registry) -> None:
    assert set(registry.bindings) == SERVED
    assert not SERVED & LATER
    assert {RequestCode(code) for code in LATER}, "they all exist"


def test_pulls_are_kept_off_the_vip_port(registry: Registry) -> None:
    assert SERVED - set(registry.vip().bindings) == {
        11, 361, 200050, 200052, 200054, 200055,
    }  # fmt: skip


def test_sends_are_served_in_runs(registry: Registry) -> None:
    assert set(registry.runs()) == {10, 37, 310, 320, 200051}
