# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from tests.proxy.scene import ProxyScene
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.sessions.metadata import client_id_of, left_ms, version_of


def test_headers_say_who_calls_and_until_when(scene: ProxyScene) -> None:
    call, _ = scene.new_call("X", client_id="me", deadline_ms=5_000)
    assert (client_id_of(call), version_of(call), left_ms(call)) == ("me", "5.2.1", 5_000)
    scene.advance(6_000)
    assert left_ms(call) == 0
    call, _ = scene.new_call("X", client_id="", deadline_ms=None)
    assert left_ms(call) is None
    with pytest.raises(Refused) as refused:
        client_id_of(call)
    assert refused.value.code is Code.CLIENT_ID_REQUIRED


def test_no_account_has_the_clients_of_another(scene: ProxyScene) -> None:
    ids = set()
    for account in ("", "alice", "bob"):
        call, _ = scene.new_call("X", client_id="me")
        call.account = account
        ids.add(client_id_of(call))
    assert len(ids) == 3
