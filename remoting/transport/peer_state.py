# SPDX-License-Identifier: Apache-2.0
"""The states of a connection and the events that change them, as one table.

A connection is in one state at a time, and what may be done with it follows from the state alone.
Nobody keeps flags beside it, and nobody asks two questions where the state answers one:

    state     written to   requests that come   meaning
    NEW       no           cannot come          made, and not connected yet
    OPEN      yes          are served           it reads what it is sent
    WAITING   yes          are held             others come first; then it has its turn
    PAUSED    yes          are held             it does not read, so it is not read from either;
                                                but a server is (asking/)
    CROWDED   yes          are held             too much is held for all peers, and much for it
    CLOSING   yes          are dropped          ended by us; what was written may still be leaving
    ABORTED   no           are dropped          ended by us at once; what was written is lost
    LOST      no           cannot come          gone

Things happen in any order: a peer may be lost while it is paused, and Twisted may resume one that
we have ended. So the table is total: every event has its place in every state, and where nothing is
to happen it leads back to the state itself. PAUSED has no special way to CLOSING: one that is
ended is not read from again, whether it reads or not. It comes before the other two states that
hold requests: one that reads again asks for its turn, whatever else delayed it before. Nothing
leads out of LOST.

The form is that of h11's table of states, the reasons are those of Netty's channel: isActive,
isWritable and close().
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Event(Enum):
    """What can happen to a connection."""

    CONNECT = auto()
    """The connection is made and has its transport."""
    PAUSE = auto()
    """More bytes wait to be sent than the transport is to hold."""
    RESUME = auto()
    """The bytes that waited have been sent, so the transport takes more."""
    WAIT = auto()
    """Its requests have taken their part of this turn of the reactor, and there are more."""
    TURN = auto()
    """It has its next turn."""
    CROWD = auto()
    """It holds more than others, while too much is held for all peers together."""
    ROOM = auto()
    """There is room for what is held again."""
    CLOSE = auto()
    """This side closes the connection."""
    ABORT = auto()
    """This side gives the connection up, with all that waits."""
    LOSE = auto()
    """The transport reports that the connection is gone."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A state of a connection: a row of the table in the module's docstring."""

    name: str
    is_connected: bool = False
    """Whether answers and requests may be sent to the peer."""
    serves: bool = False
    """Whether requests that arrive are served."""
    holds: bool = False
    """Whether requests that arrive are kept until they may be served."""
    reads: bool = False
    """Whether the peer reads what it is sent, as far as is known."""


NEW: Final = State("NEW")
OPEN: Final = State("OPEN", is_connected=True, serves=True, reads=True)
WAITING: Final = State("WAITING", is_connected=True, holds=True, reads=True)
PAUSED: Final = State("PAUSED", is_connected=True, holds=True)
CROWDED: Final = State("CROWDED", is_connected=True, holds=True, reads=True)
CLOSING: Final = State("CLOSING", is_connected=True)
ABORTED: Final = State("ABORTED")
LOST: Final = State("LOST")


def _row(state: State, **others: State) -> Mapping[Event, State]:
    """Returns where events lead from a state: back to it, but for the `others`."""
    return {event: others.pop(event.name.lower(), state) for event in Event}


_ENDS: Final = {"close": CLOSING, "abort": ABORTED, "lose": LOST}

TRANSITIONS: Final[Mapping[State, Mapping[Event, State]]] = {
    # If it is not connected, there is nothing to end: who connects asks whether it is still needed.
    NEW: _row(NEW, connect=OPEN, lose=LOST),
    OPEN: _row(OPEN, wait=WAITING, pause=PAUSED, crowd=CROWDED, **_ENDS),
    WAITING: _row(WAITING, turn=OPEN, pause=PAUSED, crowd=CROWDED, **_ENDS),
    PAUSED: _row(PAUSED, resume=OPEN, **_ENDS),
    CROWDED: _row(CROWDED, room=WAITING, pause=PAUSED, **_ENDS),
    CLOSING: _row(CLOSING, abort=ABORTED, lose=LOST),
    ABORTED: _row(ABORTED, lose=LOST),
    LOST: _row(LOST),
}
