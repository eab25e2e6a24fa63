# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.store.index.query_result import BrokenIndexChain, QueryOffsetResult


def test_a_broken_chain_says_where() -> None:
    error = BrokenIndexChain("/index/1", 88)
    assert (error.path, error.position) == ("/index/1", 88)
    assert str(error) == "/index/1 is damaged at byte 88"


def test_a_result_is_whole_unless_it_says_what_is_broken() -> None:
    assert QueryOffsetResult([1], 2, 3).broken == ()
