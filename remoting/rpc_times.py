# SPDX-License-Identifier: Apache-2.0
"""How long requests took: the metric rocketmq_rpc_latency of the original's exporter.

A request begins when it is served and ends when its answer is handed to the connection. Requests of
a run that are answered together are counted together. A dispatcher that has no RpcTimes counts
nothing, so this costs nothing unless somebody wants it.

Java: RemotingMetricsManager, NettyRemotingAbstract.writeResponse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.process.histogram import Histogram

BOUNDS_MS: Final = (1, 3, 5, 7, 10, 100, 1000, 2000, 3000)
_MOST: Final = 2_000
"""How many kinds are counted at most: peers may send any number of codes that do not exist."""
_CODE_AND_FLAG: Final = attrgetter("code", "flag")


class RpcKind(NamedTuple):
    """The kind of a request; there is a histogram for each."""

    code: int
    answer: int
    """The code of the answer."""
    is_held: bool
    """Whether the request waited for messages to come."""
    is_oneway: bool


class RpcTimes:
    """Histograms by kind of request."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[int, int, bool, bool], Histogram] = {}
        """The keys are RpcKinds."""

    def add(self, kind: tuple[int, int, bool, bool], elapsed_ms: int, times: int = 1) -> None:
        """Counts `times` requests of a kind that took `elapsed_ms` each."""
        found = self.kinds.get(kind)
        if found is None:
            if len(self.kinds) >= _MOST:
                return
            found = self.kinds[RpcKind(*kind)] = Histogram(BOUNDS_MS)
        found.add(elapsed_ms, times)

    def add_run(
        self,
        commands: Sequence[RemotingCommand],
        elapsed_ms: int,
        answer: int = ResponseCode.SUCCESS,
    ) -> None:
        """Counts requests that were answered together, with the same code."""
        if len(commands) == 1:
            (command,) = commands
            self.add((command.code, answer, False, command.flag & ONEWAY_FLAG != 0), elapsed_ms)
            return
        for (code, flag), times in Counter(map(_CODE_AND_FLAG, commands)).items():
            self.add((code, answer, False, flag & ONEWAY_FLAG != 0), elapsed_ms, times)

    def items(self) -> list[tuple[RpcKind, Histogram]]:
        """Returns all kinds that were counted, with their histograms."""
        return [(RpcKind(*kind), histogram) for kind, histogram in list(self.kinds.items())]
