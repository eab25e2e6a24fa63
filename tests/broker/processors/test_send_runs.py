# SPDX-License-Identifier: Apache-2.0
"""Runs of sends end after some work, so that what is new or special holds up nobody."""

from __future__ import annotations

from tests.broker.processors.send.test_send_message import header, sending
from tests.broker.processors.sends import Sending
from tests.fakes import FakePeer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.protocol.send import SEND_MESSAGE

__all__ = ["sending"]


def test_a_run_with_much_that_is_new_ends_early(sending: Sending) -> None:
    """Each topic and its queue are made before others have their turn again."""
    commands = [
        RemotingCommand(SEND_MESSAGE.code, header(f"new{each}", 0).encode(), b"x", opaque=each)
        for each in range(100)
    ]
    served, most, before = 0, 0, sending.parts.topics.count
    while served < len(commands):
        served += sending.dispatcher.serve(FakePeer(), commands[served:], lambda: False)
        most = max(most, sending.parts.topics.count - before)
        before = sending.parts.topics.count
    assert served == 100
    assert 1 < most <= 10
    assert all(f"new{each}" in sending.parts.topics.all() for each in range(100))


def test_a_run_of_messages_that_are_not_plain_ends_early(sending: Sending) -> None:
    delayed = header(properties={"DELAY": "1"})
    commands = [
        RemotingCommand(SEND_MESSAGE.code, delayed.encode(), b"x", opaque=each)
        for each in range(200)
    ]
    runs: list[int] = []
    while sum(runs) < len(commands):
        runs.append(sending.dispatcher.serve(FakePeer(), commands[sum(runs) :], lambda: False))
    assert sum(runs) == 200
    assert 50 < max(runs) < 70
    assert len(sending.stored()) == 200


def test_what_is_left_of_a_run_follows_in_the_same_turn_if_there_is_time(sending: Sending) -> None:
    commands = [
        RemotingCommand(SEND_MESSAGE.code, header(f"new{each}", 0).encode(), b"x", opaque=each)
        for each in range(100)
    ]
    answers = sending.serve(commands)
    assert [each.opaque for each in answers] == list(range(100))
