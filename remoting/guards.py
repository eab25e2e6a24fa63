# SPDX-License-Identifier: Apache-2.0
"""Guards: whoever may refuse requests before they are served, by peer or command.

Most requests are like others that a guard has let pass, so it may recognize them, many at a time,
quicker than it decides about each. Counterpart of RPCHook.doBeforeRequest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.command import RemotingCommand

Guard = Callable[[Peer, RemotingCommand], None]
"""Refuses a request by raising a ResponseError, which is then its answer.

The first guard may have a method `passed(peer, commands, at, end)`, which returns how far requests,
from one index on and before another, are such that it lets them pass, whatever is served of them in
between; so it recognizes none that changes what it goes by. It is not called for these. With a
method `knows(peer, command)` besides, which never fails, it says the same of one request at less
cost.
"""


class SigningGuard(Protocol):
    """A guard that lets requests pass by their signatures.

    Handlers of requests from bytes may check these themselves (raw_connection.py): once they have
    learned that a request passes, others from the same origin need only the right signature.
    """

    def __call__(self, peer: Peer, command: RemotingCommand, /) -> None: ...

    @property
    def origin(self) -> Callable[[Peer], int]:
        """Returns a number above 0 for where a peer asks from."""


Knows = Callable[[Peer, RemotingCommand], bool]
"""Says whether a request that comes alone passes."""
Asked = tuple[int, Exception | None]
"""How many requests of a read have passed, and why the next has not, if one is refused."""

AHEAD: Final = 32
"""How many requests a guard may recognize before the first of them is served; those that have to
wait for another turn are looked at again."""


def knows_of(guards: Sequence[Guard]) -> Knows:
    """Returns the way in which the only guard recognizes a request that comes alone."""
    knows: Knows | None = getattr(guards[0], "knows", None) if len(guards) == 1 else None
    return _none if knows is None else knows


def _none(_: Peer, __: RemotingCommand) -> bool:
    return False


def recognized(guards: Sequence[Guard], peer: Peer, commands: Sequence[RemotingCommand]) -> int:
    """Returns how many requests at the beginning of a read pass, as the only guard recognizes."""
    recognizes = getattr(guards[0], "passed", None)
    if recognizes is None or len(guards) > 1:
        return 0
    try:
        passed: int = recognizes(peer, commands, 0, min(len(commands), AHEAD))
    except Exception:  # noqa: BLE001 - `ask` refuses what it fails for
        return 0
    return passed


def ask(
    guards: Sequence[Guard], peer: Peer, commands: Sequence[RemotingCommand], at: int, end: int
) -> Asked:
    """Asks the guards about the requests from `at` on and before `end`; returns the index of the
    first that one of them refuses, and why, or the end.
    """
    others = guards[1:]
    recognizes = getattr(guards[0], "passed", None) if guards else None
    try:
        while at < end:
            known = at if recognizes is None else recognizes(peer, commands, at, end)
            if others:
                while at < known:
                    for guard in others:
                        guard(peer, commands[at])
                    at += 1
            at = known
            if at < end:
                for guard in guards:
                    guard(peer, commands[at])
                at += 1
    except Exception as error:  # noqa: BLE001 - a guard that fails lets nobody in
        return at, error
    return at, None
