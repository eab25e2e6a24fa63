# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from txrocketmq.broker.transaction.moves import MAX_COPIES, Moves


def test_a_message_is_ended_wherever_it_is() -> None:
    moves = Moves()
    moves.moved(1, 5, prepared=1)
    moves.moved(2, 6, prepared=2)
    moves.moved(5, 9, prepared=5)  # once more, and its properties do not say where it was first
    assert moves.ended(1) == [1, 5, 9]
    assert moves.ended(1) == [1]
    assert moves.ended(9) == [9]
    assert moves.ended(6) == [2, 6]
    assert moves.ended(2) == [2]
    assert moves.ended(77) == [77]


def test_it_is_ended_under_the_offset_of_any_question() -> None:
    for offset in (1, 5, 9, 12):
        moves = Moves()
        moves.moved(1, 5, prepared=1)
        moves.moved(5, 9, prepared=5)
        moves.moved(9, 12, prepared=9)
        assert moves.ended(offset) == [1, 5, 9, 12]
        assert not moves.first
        assert not moves._copies


def test_it_is_known_again_by_its_properties() -> None:
    moves = Moves()
    moves.moved(8, 12, prepared=3)
    assert moves.ended(3) == [3, 8, 12]


def test_the_oldest_are_forgotten() -> None:
    moves = Moves(max_moves=2)
    for at in range(3):
        moves.moved(at, 10 + at, prepared=at)
    assert moves.ended(0) == [0]
    assert moves.ended(1) == [1, 11]
    assert moves.ended(2) == [2, 12]
    assert not moves._copies
    assert not moves.first


def test_the_oldest_copies_are_forgotten() -> None:
    moves = Moves()
    for at in range(100):
        moves.moved(at, at + 1, prepared=0)
    assert len(moves.first) == MAX_COPIES
    assert moves.ended(100) == [0, *range(101 - MAX_COPIES, 101)]
