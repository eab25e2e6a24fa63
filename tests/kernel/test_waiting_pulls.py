# SPDX-License-Identifier: Apache-2.0
"""What a pull that waits costs with the compiled kernel: operations of the interpreter.

They come out the same however busy the machine is; `benchmarks/operations.py` says what they are.
Without the kernel, tests/benchmarks/test_journeys.py has the limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks.broker_journeys import BrokerJourneys
from benchmarks.operations import Call, Counting, cost_of
from benchmarks.sends import Sink
from tests.benchmarks.test_journeys import LEAST, of_this_version
from tests.kernel.installed import needs_kernel
from txrocketmq.broker.store.disk.descriptors import mappings
from txrocketmq.remoting.process.compiled_kernel import VARIABLE

LIMITS: Final = {"waits": 990, "woken": 2772}
"""How many operations a pull may take until it waits, and a send that wakes one."""


class Apart(BrokerJourneys):
    """A broker whose consumer and producer have connections of their own, as they mostly have."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._producer = self.broker.clock.reactor.tcpServers[0][1].buildProtocol(None)
        self._producer.makeConnection(Sink())  # type: ignore[no-untyped-call]

    def _send(self) -> None:
        self._producer.dataReceived(self._plain_send())
        self.broker.clock.reactor.advance(0)

    def waits(self) -> Iterator[Call]:
        """A pull that finds nothing, and waits."""
        yield partial(self.received, self._waiting_pull())
        self._send()

    def woken(self) -> Iterator[Call]:
        """A send, and the answer to the pull that it wakes."""
        self.received(self._waiting_pull())
        yield self._send


@needs_kernel
@of_this_version
@pytest.mark.parametrize("name", LIMITS)
def test_a_pull_that_waits_costs_no_more_than_its_limit(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "require")
    monkeypatch.setattr(mappings, "count", 0)
    broker, counting = Apart(tmp_path), Counting()
    journey: Any = getattr(broker, name)
    cost = cost_of(journey, 1, counting)
    functions = "\n".join(f"{n:>8} {each}" for each, n in counting.by_function().most_common(40))
    assert cost.operations <= LIMITS[name], f"{cost}\n{functions}"
    assert cost.operations >= LEAST * LIMITS[name], f"lower the limit: {cost}"
