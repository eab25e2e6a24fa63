# SPDX-License-Identifier: Apache-2.0
"""Turns: what is served in one turn of the reactor is bounded, in order, and fair.

Time is made up: each request costs what the test says, and nothing else takes any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from twisted.internet.task import Clock as TaskClock

from tests.examples import examples
from tests.remoting.transport.wires import FarEnd
from txrocketmq.remoting.call import Buffer, Reply, Request
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Binding, Dispatcher, Registry, Run, run_bindings, serves
from txrocketmq.remoting.frame.frame import FrameDecoder, encode_frame
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.process.log_limit import Seldom
from txrocketmq.remoting.protocol import heartbeat, offset
from txrocketmq.remoting.transport.held_bytes import HeldBytes
from txrocketmq.remoting.transport.peer import PORTION_COMMANDS, TcpPeer
from txrocketmq.remoting.transport.peer_state import CLOSING, CROWDED, OPEN, PAUSED, WAITING
from txrocketmq.remoting.transport.strangers import Shared
from txrocketmq.remoting.transport.turns import ENDLESS, SHARE_S, TURN_S, Turns

ALONE, TOGETHER = heartbeat.CHECK_CLIENT_CONFIG, offset.SEARCH_OFFSET_BY_TIMESTAMP
COST_S = 0.0001


def wire_bytes(*commands: RemotingCommand) -> bytes:
    return b"".join(bytes(part) for each in commands for part in encode_frame(each))


class Scene:
    """A server without sockets. `served` has the peers and opaques in the order of serving."""

    def __init__(self, cost_s: float = COST_S) -> None:
        self.now_s = 0.0
        self.cost_s = cost_s
        self.later: list[Callable[[], None]] = []
        self.served: list[tuple[TcpPeer, int]] = []
        self.failures: list[Exception] = []
        self.turns = Turns(lambda: self.now_s, self.later.append, self.failures.append)
        clock, seldom = Clock(TaskClock()), Seldom(5)
        self.held = HeldBytes(lambda: 1 << 30, seldom, clock.steady_ms)
        self.shared = Shared(self.turns, self.held, seldom)
        self.clock = clock
        self.on_serve: Callable[[TcpPeer, int], None] = lambda peer, opaque: None
        self.dispatcher = Dispatcher(Registry(self), lambda: 0, lambda: 0)

    def connect(self) -> FarEnd:
        end = FarEnd(TcpPeer(self.clock, self.dispatcher.serve, shared=self.shared))
        end.wire.abortConnection = lambda: None
        return end

    @serves(ALONE)
    def alone(self, request: Request[NoHeader]) -> Reply[NoHeader]:
        self._serve(request.peer, request.command)
        return Reply()

    @property
    def bindings(self) -> list[Binding]:
        return run_bindings(self.together, TOGETHER)

    def together(self, run: Run) -> list[Buffer]:
        out: list[Buffer] = []
        for command in run.commands:
            self._serve(run.peer, command)
            out += run.answer(command, Reply())
        return out

    def _serve(self, peer: Any, command: RemotingCommand) -> None:
        self.now_s += self.cost_s
        self.served.append((peer, command.opaque))
        self.on_serve(peer, command.opaque)

    def turn(self) -> float:
        """Runs a turn of the reactor in which nothing arrives; returns how long it took."""
        began_s = self.now_s
        due, self.later[:] = list(self.later), []
        for call in due:
            call()
        return self.now_s - began_s

    def all_turns(self) -> list[float]:
        """Runs turns until nothing is due."""
        took = []
        while self.later:
            took.append(self.turn())
        return took


def requests(count: int, code: int = ALONE.code) -> list[RemotingCommand]:
    return [RemotingCommand(code, {}, opaque=opaque) for opaque in range(count)]


def opaques(commands: list[RemotingCommand]) -> list[int]:
    return [each.opaque for each in commands]


def test_requests_of_a_read_are_served_in_several_turns() -> None:
    scene = Scene()
    end = scene.connect()
    answers = end.tell(*requests(400))
    assert len(answers) == 50
    assert end.protocol.state is WAITING
    assert end.wire.producerState == "paused", "what comes meanwhile stays in the socket"
    took = scene.all_turns()
    assert max(took) <= TURN_S + COST_S
    assert len(took) >= 7
    assert opaques(answers + end.heard()) == list(range(400))
    assert end.protocol.state is OPEN
    assert end.wire.producerState == "producing"
    assert scene.turns.waiting == scene.held.total == 0


def test_runs_are_cut_by_their_number_and_bytes() -> None:
    scene = Scene(cost_s=0.0)
    end = scene.connect()
    runs: list[int] = []
    scene.on_serve = lambda _, opaque: None
    serve = scene.together

    def counted(run: Run) -> list[Buffer]:
        runs.append(len(run.commands))
        return serve(run)

    scene.dispatcher._runs = {TOGETHER.code: counted}
    end.tell(*requests(1_000, TOGETHER.code))
    assert max(runs) <= PORTION_COMMANDS
    assert len(runs) == 4, "and no more than needed"
    runs.clear()
    large = [RemotingCommand(TOGETHER.code, {}, bytes(120_000), opaque=at) for at in range(9)]
    end.tell(*large)
    assert runs == [3, 3, 3]


def test_a_run_that_took_the_turn_lets_others_come_first() -> None:
    scene = Scene()
    end = scene.connect()
    end.tell(*requests(600, TOGETHER.code))
    assert len(scene.served) == PORTION_COMMANDS
    assert end.protocol.state is WAITING
    scene.all_turns()
    assert opaques([RemotingCommand(0, opaque=at) for _, at in scene.served]) == list(range(600))


def test_one_request_does_not_wait_for_ten_thousand() -> None:
    scene = Scene()
    crowd = [scene.connect() for _ in range(100)]
    for each in crowd:
        each.tell(*requests(100))
    for _ in range(5):
        scene.turn()
    one = scene.connect()
    before_s = scene.now_s
    one.tell(RemotingCommand(ALONE.code, {}, opaque=7))
    turns = 0
    while not one.heard():
        scene.turn()
        turns += 1
    assert turns <= 2
    assert scene.now_s - before_s <= 2 * (TURN_S + COST_S)


def test_those_with_little_come_first() -> None:
    scene = Scene()
    much = scene.connect()
    much.tell(*requests(400))
    others = [scene.connect() for _ in range(20)]
    for each in others:
        each.tell(*requests(1))
    scene.served.clear()
    scene.turn()
    assert [peer for peer, _ in scene.served[:20]] == [each.protocol for each in others]
    assert 49 <= len(scene.served) <= 51, "the rest of the turn is for the one with much"


def test_all_who_sent_much_go_on_at_the_same_pace() -> None:
    scene = Scene()
    crowd = [scene.connect() for _ in range(10)]
    for each in crowd:
        each.tell(*requests(200))
    for _ in range(10):
        scene.turn()
    shares = [sum(peer is each.protocol for peer, _ in scene.served) for each in crowd]
    assert max(shares[1:]) - min(shares[1:]) <= SHARE_S / COST_S
    scene.all_turns()
    for each in crowd:
        assert [at for peer, at in scene.served if peer is each.protocol] == list(range(200))


@pytest.mark.parametrize("cost_s", [COST_S, 2 * TURN_S])
def test_those_who_sent_much_are_served_however_many_others_come(cost_s: float) -> None:
    scene = Scene(cost_s)
    much = scene.connect()
    much.tell(*requests(200))
    others = [scene.connect() for _ in range(40)]
    for turn in range(300):
        for each in others:
            if each.protocol.state is OPEN:  # its last request was answered
                each.tell(RemotingCommand(ALONE.code, {}, opaque=turn))
        scene.turn()
        if much.protocol.state is OPEN:
            break
    assert len([peer for peer, _ in scene.served if peer is much.protocol]) == 200
    assert turn < (80 if cost_s == COST_S else 210)


def test_a_request_longer_than_a_turn_is_served_alone() -> None:
    scene = Scene(cost_s=0.02)
    first, second = scene.connect(), scene.connect()
    first.tell(*requests(3))
    second.tell(*requests(3))
    assert len(scene.served) == 1, "the turn is over, so the second is not even looked at"
    assert all(took <= 0.02 * 2.001 for took in scene.all_turns()), "one of either row"
    assert len(scene.served) == 6


def test_time_that_is_over_is_found_out_without_a_call_for_each_read() -> None:
    scene = Scene(cost_s=TURN_S / 20)
    end = scene.connect()
    for _ in range(4):
        end.tell(*requests(1))
    assert scene.later == []
    end.tell(*requests(1))
    assert len(scene.later) == 1
    scene.turn()
    assert scene.turns.spent_s == 0
    assert scene.later == []


def test_what_was_held_while_a_peer_was_paused_takes_turns() -> None:
    scene = Scene()
    end = scene.connect()
    end.wire.producer.pauseProducing()
    end.tell(*requests(300))
    assert scene.served == []
    end.wire.producer.resumeProducing()
    assert len(scene.served) == 50
    assert end.protocol.state is WAITING
    assert max(scene.all_turns()) <= TURN_S + COST_S
    assert opaques(end.heard()) == list(range(300))


def test_one_that_reads_again_when_the_turn_is_over_waits() -> None:
    scene = Scene()
    paused, other = scene.connect(), scene.connect()
    paused.wire.producer.pauseProducing()
    paused.tell(*requests(2))
    other.tell(*requests(200))
    paused.wire.producer.resumeProducing()
    assert paused.protocol.state is WAITING
    assert paused.heard() == []
    scene.all_turns()
    assert opaques(paused.heard()) == [0, 1]


def test_one_that_is_paused_while_it_waits_loses_its_turn_and_nothing_else() -> None:
    scene = Scene()
    end = scene.connect()
    answers = end.tell(*requests(100))
    end.wire.producer.pauseProducing()
    assert end.protocol.state is PAUSED
    assert scene.turns.waiting == 0
    scene.all_turns()
    assert len(scene.served) == 50
    end.wire.producer.resumeProducing()
    scene.all_turns()
    assert opaques(answers + end.heard()) == list(range(100))


@pytest.mark.parametrize("how", ["close", "abort", "connectionLost"])
def test_requests_of_one_that_goes_while_it_waits_are_not_served(how: str) -> None:
    scene = Scene()
    end = scene.connect()
    end.tell(*requests(300))
    getattr(end.protocol, how)()
    assert scene.turns.waiting == 0
    scene.all_turns()
    assert len(scene.served) == 50


def test_what_is_no_frame_ends_a_connection_when_its_requests_are_served() -> None:
    scene = Scene()
    end = scene.connect()
    end.protocol.dataReceived(wire_bytes(*requests(120)) + b"\0\0\0\0\0\0\0\0")
    assert end.protocol.state is WAITING
    scene.all_turns()
    assert opaques(end.heard()) == list(range(120))
    assert end.protocol.state is CLOSING


def test_a_turn_that_fails_ends_one_connection_and_no_other() -> None:
    scene = Scene()
    bad, good = scene.connect(), scene.connect()
    bad.tell(*requests(100))
    good.tell(*requests(100))

    def fail(*_: object) -> int:
        raise MemoryError

    bad.protocol._serve = fail
    scene.all_turns()
    assert [type(each) for each in scene.failures] == [MemoryError]
    assert not bad.protocol.connected
    assert opaques(good.heard()) == list(range(100))


def test_peers_that_are_no_strangers_are_served_at_once() -> None:
    served: list[int] = []

    def serve(_: Any, commands: list[RemotingCommand], goes_on: Callable[[], bool]) -> int:
        for each in commands:
            served.append(each.opaque)
            assert goes_on()
        return len(commands)

    FarEnd(TcpPeer(Clock(TaskClock()), serve)).tell(*requests(5_000))
    assert served == list(range(5_000))
    assert ENDLESS.waiting == 0


class AnyTurns(RuleBasedStateMachine):
    """Peers that send, pause, read again and go; turns of the reactor; all in any order.

    Whatever happens, requests of a peer are served once and in their order, and none is forgotten
    unless its peer has gone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene()
        self.ends = [self.scene.connect() for _ in range(4)]
        self.sent = {id(end.protocol): 0 for end in self.ends}
        self.unsent = {id(end.protocol): b"" for end in self.ends}
        self.gone: set[int] = set()

    @rule(
        at=st.integers(0, 3),
        count=st.integers(1, 400),
        cost_us=st.sampled_from([0, 10, 100, 3_000]),
        together=st.lists(st.booleans(), min_size=1, max_size=5),
        cut=st.integers(0, 60),
    )
    def send(self, at: int, count: int, cost_us: int, together: list[bool], cut: int) -> None:
        peer = self.ends[at].protocol
        if id(peer) in self.gone:
            return
        self.scene.cost_s = cost_us / 1e6
        first = self.sent[id(peer)]
        self.sent[id(peer)] += count
        data = self.unsent[id(peer)] + wire_bytes(
            *(
                RemotingCommand(
                    (TOGETHER if together[number % len(together)] else ALONE).code,
                    {},
                    opaque=first + number,
                )
                for number in range(count)
            )
        )
        end = len(data) - cut
        self.unsent[id(peer)] = data[end:]
        peer.dataReceived(data[:end])

    @rule(at=st.integers(0, 3))
    def send_the_rest(self, at: int) -> None:
        peer = self.ends[at].protocol
        if id(peer) not in self.gone and self.unsent[id(peer)]:
            data, self.unsent[id(peer)] = self.unsent[id(peer)], b""
            peer.dataReceived(data)

    @rule(at=st.integers(0, 3))
    def pause(self, at: int) -> None:
        if self.ends[at].wire.producer is not None:
            self.ends[at].protocol.pauseProducing()

    @rule(at=st.integers(0, 3))
    def resume(self, at: int) -> None:
        self.ends[at].protocol.resumeProducing()

    @rule(at=st.integers(0, 3))
    def crowd(self, at: int) -> None:
        self.ends[at].protocol.crowd()

    @rule(at=st.integers(0, 3))
    def room(self, at: int) -> None:
        self.ends[at].protocol.has_room()

    @rule(at=st.integers(0, 3), how=st.sampled_from(["close", "abort", "leave"]))
    def go(self, at: int, how: str) -> None:
        end = self.ends[at]
        if id(end.protocol) in self.gone:
            return
        self.gone.add(id(end.protocol))
        if how == "leave":
            end.leave()
        else:
            getattr(end.protocol, how)()

    @rule(cost_us=st.sampled_from([0, 10, 100, 3_000]))
    def turn(self, cost_us: int) -> None:
        self.scene.cost_s = cost_us / 1e6
        most = TURN_S + 2 * PORTION_COMMANDS * self.scene.cost_s
        assert self.scene.turn() <= most + 1e-9

    @invariant()
    def nothing_is_served_twice_or_out_of_order(self) -> None:
        for end in self.ends:
            served = [at for peer, at in self.scene.served if peer is end.protocol]
            assert served == list(range(len(served)))

    @invariant()
    def what_is_held_is_counted(self) -> None:
        assert self.scene.held.total == sum(end.protocol.held_bytes for end in self.ends)
        for end in self.ends:
            state = end.protocol.state
            assert self.scene.turns.waits(end.protocol) == (state is WAITING)
            if state is OPEN:
                assert not end.protocol._decoder.is_behind

    def teardown(self) -> None:
        self.scene.cost_s = COST_S
        for at in range(4):
            end = self.ends[at]
            if id(end.protocol) in self.gone:
                continue
            for _ in range(200):
                if end.protocol.state is PAUSED:
                    end.protocol.resumeProducing()
                if end.protocol.state is CROWDED:
                    end.protocol.has_room()
                self.scene.all_turns()
            self.send_the_rest(at)
            self.scene.all_turns()
            assert end.protocol.state is OPEN
            served = [at for peer, at in self.scene.served if peer is end.protocol]
            assert len(served) == self.sent[id(end.protocol)]
            end.leave()
        for end in self.ends:
            if end.protocol.state is CLOSING:
                end.leave()
        assert self.scene.failures == []
        assert self.scene.held.total == self.scene.turns.waiting == 0


def test_whatever_happens_requests_are_served_once_and_in_order() -> None:
    these = settings(max_examples=examples(20), stateful_step_count=30, deadline=None)
    run_state_machine_as_test(AnyTurns, settings=these)


@given(st.binary(max_size=200), st.lists(st.integers(0, 40)))
def test_kept_bytes_are_received_as_others_are(junk: bytes, cuts: list[int]) -> None:
    data = wire_bytes(*requests(3)) + junk
    whole = FrameDecoder(portion_bytes=1 << 30)  # with portions, headers are limited
    expected = opaques(whole.receive(data))
    while whole.is_behind:
        expected += opaques(whole.receive(b""))
    decoder = FrameDecoder(portion_commands=1, portion_bytes=30)
    found: list[int] = []
    at = 0
    for number, size in enumerate([*cuts, len(data)]):
        piece = data[at : at + size]
        at += size
        if number % 2:
            decoder.keep(piece)
        else:
            found += opaques(decoder.receive(piece))
    while decoder.is_behind:
        found += opaques(decoder.receive(b""))
    assert found == expected
    assert str(decoder.error) == str(whole.error)
