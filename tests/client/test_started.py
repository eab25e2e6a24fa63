# SPDX-License-Identifier: Apache-2.0
"""What was begun."""

from __future__ import annotations

from twisted.internet.defer import succeed

from txrocketmq.client.started import Started


def test_it_holds_its_result_and_is_not_waited_for() -> None:
    begun = Started(succeed(5))
    assert begun.result.result == 5
    assert not hasattr(begun, "__await__")
