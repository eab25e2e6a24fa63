# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol import route


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    same_headers_as_the_original(route)


def test_a_registration_of_4_9_is_not_compressed() -> None:
    header = route.RegisterBrokerRequestHeader.decode(
        {
            "brokerName": "b",
            "brokerAddr": "1.2.3.4:10911",
            "clusterName": "c",
            "haServerAddr": "1.2.3.4:10912",
            "brokerId": "0",
        }
    )
    assert (header.compressed, header.body_crc32, header.enable_acting_master) == (False, 0, None)
