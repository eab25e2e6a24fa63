# SPDX-License-Identifier: Apache-2.0
"""Events as the log shows them."""

from __future__ import annotations

from txrocketmq.namesrv.routes.route_events import (
    BrokerJoined,
    BrokerLeft,
    MinIdChanged,
    RegistrationIgnored,
)


def test_events_read_as_sentences() -> None:
    assert [
        str(event)
        for event in (
            BrokerJoined("c1", "a", 1, "10.0.0.1:1", 7),
            BrokerLeft("c1", "a", "10.0.0.1:1", "it unregistered"),
            RegistrationIgnored("a", "10.0.0.1:1", "10.0.0.2:1"),
            MinIdChanged("a", 2, "10.0.0.3:1", None, None, ()),
        )
    ] == [
        "broker a (1) of c1 at 10.0.0.1:1 joined with 7 topics",
        "broker a of c1 at 10.0.0.1:1 left: it unregistered",
        "ignored the registration of 10.0.0.1:1 as a: 10.0.0.2:1 holds its id with a later term",
        "the smallest id of a is now 2, 10.0.0.3:1",
    ]
