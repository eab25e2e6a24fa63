# SPDX-License-Identifier: Apache-2.0
"""Logs unexpected failures with their tracebacks, a few a minute.

They are defects of ours, or of the machine, and readers of the log need to see where they happened.
If something fails for lack of memory, that is not a defect, and is logged in one sentence.
"""

from __future__ import annotations

from typing import Final

from twisted.logger import Logger
from twisted.python.failure import Failure

from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.process.log_limit import Seldom, and_more
from txrocketmq.remoting.transport.server import memory_is_short

TIMES_A_MINUTE: Final = 5
"""How many failures with one class of error are logged in a minute, for each request code."""

log = Logger()


class Failures:
    """Logs requests whose handlers fail, and failures of what a server does without a request."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seldom = Seldom(TIMES_A_MINUTE)

    def __call__(self, command: RemotingCommand, peer: Peer, error: Exception) -> None:
        """Logs that a handler raised `error` when it was given `command`."""
        if isinstance(error, MemoryError):
            memory_is_short()
            return
        more = self._more(command.code, error)
        if more is not None:
            log.failure(
                "{command} of {peer} failed: {kind}: {error}{more}",
                failure=Failure(error),
                command=command,
                peer=peer.remote_address,
                kind=type(error).__name__,
                error=error,
                more=and_more(more),
            )

    def by_itself(self, what: str, error: Exception) -> None:
        """Logs that something failed which a server does without a request, named by `what`."""
        more = self._more(what, error)
        if isinstance(error, MemoryError):
            memory_is_short()
            if more is not None:
                log.error("{what} failed: there is not enough memory for it", what=what)
        elif more is not None:
            log.failure(
                "{what} failed: {kind}: {error}{more}",
                failure=Failure(error),
                what=what,
                kind=type(error).__name__,
                error=error,
                more=and_more(more),
            )

    def _more(self, what: int | str, error: Exception) -> int | None:
        return self._seldom.more(self._clock.steady_ms(), (what, type(error)))
