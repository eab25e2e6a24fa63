# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol import heartbeat


def test_headers_are_the_originals(same_headers_as_the_original: Callable[..., None]) -> None:
    same_headers_as_the_original(heartbeat)


def test_client_id_is_spelt_as_there() -> None:
    assert heartbeat.UnregisterClientRequestHeader(client_id="c").encode() == {"clientID": "c"}


def test_a_heartbeat_has_no_field_of_its_own() -> None:
    assert heartbeat.HEART_BEAT.request.decode(None) == heartbeat.HeartbeatRequestHeader()
