# SPDX-License-Identifier: Apache-2.0
"""What is counted about calls."""

from __future__ import annotations

from txrocketmq.proxy.grpc.counts import OTHER, Counts


def test_each_method_has_its_numbers() -> None:
    counts = Counts()
    counts.of("SendMessage").open += 1
    assert counts.of("SendMessage").open == 1
    assert counts.of(OTHER).open == 0
    assert list(counts.methods) == ["SendMessage", OTHER]
