# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable

from txrocketmq.remoting.protocol.body import client


def test_bodies_are_the_originals(same_bodies_as_the_original: Callable[..., None]) -> None:
    same_bodies_as_the_original(client, ClientConnection="Connection")


def test_a_language_nobody_knows_is_absent() -> None:
    text = (
        b'{"connectionSet":[{"clientId":"c","language":"COBOL"},{"language":"GO"},{"language":1}]}'
    )
    connections = client.ProducerConnection.decode(text).connection_set
    assert [connection.language for connection in connections] == [None, "GO", "CPP"]


def test_result_of_a_message_consumed_directly() -> None:
    result = client.ConsumeMessageDirectlyResult(
        consume_result="CR_SUCCESS", spent_time_mills=3, order=True
    )
    assert result.encode() == (
        b'{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":true,"spentTimeMills":3}'
    )
