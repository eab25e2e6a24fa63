# SPDX-License-Identifier: Apache-2.0
"""The table of a connection's states, and a real peer that is led through all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock as TaskClock

from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.transport.peer import TcpPeer
from txrocketmq.remoting.transport.peer_state import (
    ABORTED,
    CLOSING,
    CROWDED,
    LOST,
    NEW,
    OPEN,
    PAUSED,
    TRANSITIONS,
    WAITING,
    Event,
    State,
)

STATES = (NEW, OPEN, WAITING, PAUSED, CROWDED, CLOSING, ABORTED, LOST)


def test_every_event_has_its_place_in_every_state() -> None:
    assert set(TRANSITIONS) == set(STATES)
    for state in STATES:
        assert set(TRANSITIONS[state]) == set(Event), state
        assert set(TRANSITIONS[state].values()) <= set(STATES)


def test_nothing_leads_back_from_the_end() -> None:
    assert set(TRANSITIONS[LOST].values()) == {LOST}
    assert set(TRANSITIONS[ABORTED].values()) == {ABORTED, LOST}
    assert set(TRANSITIONS[CLOSING].values()) == {CLOSING, ABORTED, LOST}
    assert NEW not in {
        to for state in STATES if state is not NEW for to in TRANSITIONS[state].values()
    }
    assert all(TRANSITIONS[state][Event.LOSE] is LOST for state in STATES)


def test_a_connection_can_be_ended_in_any_state_but_the_first() -> None:
    for state in STATES:
        if state.is_connected:
            assert TRANSITIONS[state][Event.CLOSE] is CLOSING
            assert TRANSITIONS[state][Event.ABORT] is ABORTED


def test_one_that_does_not_read_is_paused_whatever_else_delays_it() -> None:
    for state in (OPEN, WAITING, CROWDED):
        assert TRANSITIONS[state][Event.PAUSE] is PAUSED
    others = {Event.PAUSE, Event.RESUME, Event.CLOSE, Event.ABORT, Event.LOSE}
    assert {TRANSITIONS[PAUSED][each] for each in set(Event) - others} == {PAUSED}


def test_requests_are_served_or_held_and_only_of_those_who_can_be_answered() -> None:
    assert [state for state in STATES if state.serves] == [OPEN]
    assert [state for state in STATES if state.holds] == [WAITING, PAUSED, CROWDED]
    assert [state for state in STATES if state.reads] == [OPEN, WAITING, CROWDED]
    assert [state for state in STATES if not state.is_connected] == [NEW, ABORTED, LOST]
    assert len({state.name for state in STATES}) == len(STATES)


def test_a_peer_begins_unconnected() -> None:
    peer = TcpPeer(Clock(TaskClock()), lambda *_: 0)
    assert peer.state is NEW
    peer.close()
    peer.abort()
    peer.write([b"nobody hears that"])
    assert not peer.connected
    FarEnd(peer)
    assert peer.state is OPEN


WHAT_HAPPENS: dict[str, Event | None] = {
    "pauseProducing": Event.PAUSE,
    "resumeProducing": Event.RESUME,
    "close": Event.CLOSE,
    "abort": Event.ABORT,
    "connectionLost": Event.LOSE,
    "tell": None,
}


@given(st.lists(st.sampled_from(sorted(WHAT_HAPPENS)), max_size=12))
def test_a_peer_goes_by_the_table_whatever_happens(names: list[str]) -> None:
    served: list[int] = []

    def serve(_: TcpPeer, commands: Sequence[Any], __: Callable[[], bool]) -> int:
        served.extend(each.opaque for each in commands)
        return len(commands)

    peer = TcpPeer(Clock(TaskClock()), serve)
    end = FarEnd(peer)
    end.wire.abortConnection = lambda: None
    state: State = OPEN
    held: list[int] = []
    expected: list[int] = []
    for number, name in enumerate(names):
        event = WHAT_HAPPENS[name]
        if event is None:
            end.tell(RemotingCommand(1, opaque=number))
            if state.serves:
                expected.append(number)
            elif state.holds:
                held.append(number)
            continue
        before, state = state, TRANSITIONS[state][event]
        call: Any = getattr(peer, name)
        call()
        if state in (LOST, CLOSING, ABORTED):
            held.clear()
        if before is PAUSED and state is OPEN:
            expected += held
            held.clear()
        assert peer.state is state
        assert peer.connected is state.is_connected
    assert served == expected


@pytest.mark.parametrize("event", list(Event))
def test_one_that_is_lost_stays_so(event: Event) -> None:
    assert TRANSITIONS[LOST][event] is LOST
