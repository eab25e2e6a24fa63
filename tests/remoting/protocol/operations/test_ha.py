# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol.operations import ha


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    # These have values in a new object of the original, so nobody misses them.
    same_headers_as_the_original(
        ha,
        lenient="ElectMasterRequestHeader.clusterName ElectMasterRequestHeader.brokerName"
        " ElectMasterRequestHeader.brokerId ElectMasterRequestHeader.designateElect",
    )


def test_a_slave_asks_with_no_field() -> None:
    assert ha.ExchangeHAInfoRequestHeader().encode() == {}
