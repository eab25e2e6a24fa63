# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.remoting.process.log_limit import MAX_KINDS, Seldom, and_more


def test_the_first_of_each_kind_are_told_and_the_others_counted() -> None:
    seldom = Seldom(2)
    assert [seldom.more(t, "a") for t in (0, 1, 2, 3)] == [0, 0, None, None]
    assert seldom.more(3, "b") == 0
    assert seldom.more(59_999, "a") is None
    assert [seldom.more(60_000, "a"), seldom.more(60_001, "a"), seldom.more(60_002, "a")] == [
        3,
        0,
        None,
    ]


def test_kinds_are_limited() -> None:
    seldom = Seldom(1)
    for kind in range(MAX_KINDS * 3):
        assert seldom.more(0, kind) == 0
    assert len(seldom._kinds) <= MAX_KINDS


def test_words() -> None:
    assert and_more(0) == ""
    assert and_more(3) == " (and 3 more that were not logged)"
