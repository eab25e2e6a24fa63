# SPDX-License-Identifier: Apache-2.0
"""The states of a connection and the events that change them, as one table.

A connection is in one state at a time, and what may be done with it follows from the state alone.
Nobody keeps flags beside it, and nobody asks two questions where the state answers one:

    state     written to   requests that come   meaning
    NEW       no           cannot come          made, and not connected yet
    OPEN      yes          are served           it reads what it is sent
    PAUSED    yes          are held             it does not read, so it is not read from either
    CLOSING   yes          are dropped          ended by us; what was written may still be leaving
    LOST      no           cannot come          gone

Things happen in any order: a peer may be lost while it is paused, and Twisted may resume one that
we have ended. So the table is total: every event has its place in every state, and where nothing is
to happen it leads back to the state itself. PAUSED knows no special way to CLOSING: one that is
ended is not read from again, whether it reads or not. Nothing leads out of LOST.

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
    """More bytes wait to be sent than the transport wants to hold."""
    RESUME = auto()
    """The bytes that waited have been sent, so the transport takes more."""
    CLOSE = auto()
    """This side closes the connection."""
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
    """Whether requests that arrive are kept until the peer reads again."""


NEW: Final = State("NEW")
OPEN: Final = State("OPEN", is_connected=True, serves=True)
PAUSED: Final = State("PAUSED", is_connected=True, holds=True)
CLOSING: Final = State("CLOSING", is_connected=True)
LOST: Final = State("LOST")

TRANSITIONS: Final[Mapping[State, Mapping[Event, State]]] = {
    NEW: {
        Event.CONNECT: OPEN,
        Event.PAUSE: NEW,
        Event.RESUME: NEW,
        Event.CLOSE: NEW,  # there is nothing to end; who connects asks whether it is still wanted
        Event.LOSE: LOST,
    },
    OPEN: {
        Event.CONNECT: OPEN,
        Event.PAUSE: PAUSED,
        Event.RESUME: OPEN,
        Event.CLOSE: CLOSING,
        Event.LOSE: LOST,
    },
    PAUSED: {
        Event.CONNECT: PAUSED,
        Event.PAUSE: PAUSED,
        Event.RESUME: OPEN,
        Event.CLOSE: CLOSING,
        Event.LOSE: LOST,
    },
    CLOSING: {
        Event.CONNECT: CLOSING,
        Event.PAUSE: CLOSING,
        Event.RESUME: CLOSING,
        Event.CLOSE: CLOSING,
        Event.LOSE: LOST,
    },
    LOST: dict.fromkeys(Event, LOST),
}
