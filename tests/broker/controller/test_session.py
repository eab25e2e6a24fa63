# SPDX-License-Identifier: Apache-2.0
"""What a broker asks controllers, and what it makes of the answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.controller.controllers import BROKER, ONE, OTHER, TWO, FakeController, Seat
from txrocketmq.broker.controller.session import NOTIFIED_MS, InSync, Term
from txrocketmq.remoting.codes import RequestCode, ResponseCode

FIND = RequestCode.CONTROLLER_GET_METADATA_INFO
NEXT = RequestCode.CONTROLLER_GET_NEXT_BROKER_ID
APPLY = RequestCode.CONTROLLER_APPLY_BROKER_ID
ENROL = RequestCode.CONTROLLER_REGISTER_BROKER
ELECT = RequestCode.CONTROLLER_ELECT_MASTER
LOOK = RequestCode.CONTROLLER_GET_REPLICA_INFO
ALTER = RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET


@pytest.fixture
def controller() -> FakeController:
    return FakeController()


@pytest.fixture
def seat(tmp_path: Path, controller: FakeController) -> Seat:
    return Seat(tmp_path, controller)


def test_a_new_broker_enrols_and_is_elected(seat: Seat, controller: FakeController) -> None:
    seat.pass_s()
    assert controller.codes() == [FIND, NEXT, APPLY, ENROL, ELECT]
    assert seat.path.read_text("utf-8") == "C#pair#1"
    assert seat.terms == [Term(1, 1, BROKER, 1)]
    assert seat.terms[0].is_master
    assert seat.sets == [InSync(frozenset({1}), 1)]


def test_it_lives_for_all_controllers(seat: Seat, controller: FakeController) -> None:
    seat.pass_s(2)
    assert [address for address, _ in controller.beats] == [ONE, TWO, ONE, TWO]
    header = controller.beats[-1][1]
    assert (header.broker_id, header.epoch, header.max_offset) == (1, 3, 700)
    assert (header.confirm_offset, header.heartbeat_timeout_mills) == (600, 10_000)
    assert header.election_priority == 2_147_483_647


def test_it_keeps_its_id_over_a_restart(seat: Seat, controller: FakeController) -> None:
    seat.pass_s()
    controller.codes()
    seat.restart()
    seat.pass_s()
    assert controller.codes() == [FIND, ENROL, LOOK]
    assert seat.terms == [Term(1, 1, BROKER, 1)] * 2


def test_an_id_that_was_being_applied_for_is_applied_for_again(
    seat: Seat, controller: FakeController
) -> None:
    controller.refuses[APPLY] = ResponseCode.CONTROLLER_JRAFT_INTERNAL_ERROR
    seat.pass_s()
    code = controller.headers[-1].register_check_code
    assert code.startswith(f"{BROKER};")
    controller.refuses.clear()
    controller.next_id = 9
    seat.restart()
    controller.codes()
    seat.pass_s()
    assert controller.codes()[:2] == [FIND, APPLY]
    assert seat.session.identity.broker_id == 1
    assert not seat.path.with_name("brokerIdentity-temp").exists()


def test_an_id_that_another_one_has_is_given_up(seat: Seat, controller: FakeController) -> None:
    controller.refuses[APPLY] = ResponseCode.CONTROLLER_BROKER_ID_INVALID
    seat.pass_s()
    controller.refuses.clear()
    controller.next_id = 2
    seat.pass_s()
    assert seat.session.identity.broker_id == 2


def test_a_slave_hears_who_is_master(seat: Seat, controller: FakeController) -> None:
    controller.master = 7, OTHER, 5
    seat.pass_s()
    assert seat.terms == [Term(5, 7, OTHER, 1)]
    assert ELECT not in controller.codes()
    assert seat.sets == []


def test_it_asks_again_and_again(seat: Seat, controller: FakeController) -> None:
    seat.pass_s(4)
    controller.codes()
    controller.master = 7, OTHER, 5
    seat.pass_s(5)
    assert LOOK in controller.codes()
    assert seat.terms[-1] == Term(5, 7, OTHER, 1)


def test_a_notification_has_it_ask_at_once(seat: Seat, controller: FakeController) -> None:
    seat.pass_s(2)
    controller.codes()
    controller.master = 7, OTHER, 5
    seat.session.notified(seat.steady_ms)
    assert controller.codes() == [LOOK]
    assert seat.terms[-1] == Term(5, 7, OTHER, 1)


@pytest.mark.parametrize("epoch", [0, 1])
def test_an_older_term_changes_nothing(seat: Seat, controller: FakeController, epoch: int) -> None:
    seat.pass_s()
    controller.master = 7, OTHER, epoch
    seat.session.notified(seat.steady_ms)
    assert seat.terms == [Term(1, 1, BROKER, 1)]


def test_a_master_that_has_moved_is_followed(seat: Seat, controller: FakeController) -> None:
    controller.master = 7, OTHER, 5
    seat.pass_s()
    controller.master = 7, BROKER, 5
    controller.codes()
    for _ in range(2):
        seat.steady_ms += NOTIFIED_MS
        seat.session.notified(seat.steady_ms)
    assert seat.terms == [Term(5, 7, OTHER, 1), Term(5, 7, BROKER, 1)]
    controller.master = 8, OTHER, 5
    seat.steady_ms += NOTIFIED_MS
    seat.session.notified(seat.steady_ms)
    assert controller.codes() == [LOOK] * 3
    assert len(seat.terms) == 2


def test_who_notifies_it_all_the_time_has_it_ask_a_few_times(
    seat: Seat, controller: FakeController
) -> None:
    seat.pass_s()
    controller.codes()
    for _ in range(100):
        seat.steady_ms += 5
        seat.session.notified(seat.steady_ms)
    assert controller.codes() == [LOOK] * 3
    controller.master = 7, OTHER, 5
    seat.session.notified(seat.steady_ms)
    assert seat.terms[-1].epoch == 1
    seat.pass_s()
    assert seat.terms[-1] == Term(5, 7, OTHER, 1)


def test_each_term_begins_with_its_own_set(seat: Seat, controller: FakeController) -> None:
    seat.pass_s()
    controller.version, controller.in_sync = 0, frozenset({1, 4})
    controller.master = 1, BROKER, 2
    seat.session.notified(seat.steady_ms)
    assert seat.session.in_sync == InSync(frozenset({1, 4}), 0)


def test_without_a_master_it_has_one_elected(seat: Seat, controller: FakeController) -> None:
    seat.pass_s()
    controller.codes()
    controller.master = None
    controller.refuses[ELECT] = ResponseCode.CONTROLLER_ELECT_MASTER_FAILED
    seat.session.notified(seat.steady_ms)
    assert controller.codes() == [LOOK, ELECT]
    assert seat.terms == [Term(1, 1, BROKER, 1)]


@pytest.mark.parametrize("down", [{ONE}, {TWO}, {ONE, TWO}])
def test_it_goes_on_when_controllers_are_back(
    seat: Seat, controller: FakeController, down: set[str]
) -> None:
    controller.down = down
    seat.pass_s(3)
    assert bool(seat.terms) is (TWO not in down)
    controller.down = set()
    seat.pass_s(1)
    assert seat.terms == [Term(1, 1, BROKER, 1)]


def test_it_follows_the_leadership(seat: Seat, controller: FakeController) -> None:
    seat.pass_s(2)
    controller.leader = ONE
    controller.master = 7, OTHER, 5
    seat.session.notified(seat.steady_ms)
    assert seat.terms[-1].epoch == 1
    seat.pass_s()
    seat.session.notified(seat.steady_ms)
    assert seat.terms[-1] == Term(5, 7, OTHER, 1)


def test_no_leader_is_no_reason_to_stop(seat: Seat, controller: FakeController) -> None:
    controller.leader = None
    seat.pass_s(3)
    assert set(controller.codes()) == {FIND}
    controller.leader = "somewhere"
    seat.pass_s()
    assert set(controller.codes()) == {FIND}


def test_a_controller_that_has_forgotten_it_is_told_again(
    seat: Seat, controller: FakeController
) -> None:
    seat.pass_s()
    controller.codes()
    controller.refuses[LOOK] = ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST
    seat.session.notified(seat.steady_ms)
    seat.pass_s()
    assert controller.codes() == [LOOK, ENROL]


def test_a_broker_that_has_moved_says_so(seat: Seat, controller: FakeController) -> None:
    seat.pass_s()
    controller.codes()
    seat.session.lives_at(BROKER)
    seat.pass_s()
    assert ENROL not in controller.codes()
    seat.session.lives_at(OTHER)
    seat.pass_s()
    assert ENROL in controller.codes()
    assert [each for each in controller.headers if hasattr(each, "broker_address")][
        -1
    ].broker_address == OTHER


def test_a_question_is_asked_once(seat: Seat, controller: FakeController) -> None:
    controller.held = []
    seat.pass_s(5)
    assert controller.codes() == [FIND]


def test_a_master_proposes_who_is_in_sync(seat: Seat, controller: FakeController) -> None:
    seat.pass_s()
    done: list[int] = []
    seat.session.propose(frozenset({1, 2}), lambda: done.append(1))
    assert seat.sets[-1] == InSync(frozenset({1, 2}), 2)
    controller.refuses[ALTER] = ResponseCode.CONTROLLER_BROKER_NOT_ALIVE
    seat.session.propose(frozenset({1, 2, 3}), lambda: done.append(2))
    assert seat.sets[-1] == InSync(frozenset({1, 2}), 2)
    controller.down = {TWO}
    seat.session.propose(frozenset({1}), lambda: done.append(3))
    assert done == [1, 2, 3]
    assert seat.session.in_sync.ids == {1, 2}


def test_a_slave_proposes_nobody(seat: Seat, controller: FakeController) -> None:
    controller.master = 7, OTHER, 5
    seat.pass_s()
    done: list[int] = []
    seat.session.propose(frozenset({1}), lambda: done.append(1))
    assert done == [1]
    assert ALTER not in controller.codes()
