# SPDX-License-Identifier: Apache-2.0
"""Dispatch: codes to handlers, replies to answers, errors to codes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.fakes import FakePeer
from txrocketmq.remoting.call import Buffer, Peer, PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.dispatch import (
    Binding,
    Dispatcher,
    Registry,
    Run,
    run_bindings,
    serves,
)
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame import frame
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.guards import Guard
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol import heartbeat, offset
from txrocketmq.remoting.protocol.offset import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
)
from txrocketmq.remoting.rpc_times import RpcTimes

SEARCH, EARLIEST = offset.SEARCH_OFFSET_BY_TIMESTAMP, offset.GET_EARLIEST_MSG_STORETIME
MAX, MIN, BEAT = offset.GET_MAX_OFFSET, offset.GET_MIN_OFFSET, heartbeat.CHECK_CLIENT_CONFIG
FIELDS = {"topic": "T", "queueId": "1"}


class Processor:
    """Answers at once, later, never, and with errors."""

    def __init__(self) -> None:
        self.pending = PendingReply()
        self.error: Exception | None = None
        self.answers_later = self.is_silent = False

    @serves(MAX)
    def max_offset(
        self, request: Request[GetMaxOffsetRequestHeader]
    ) -> Reply[GetMaxOffsetResponseHeader] | PendingReply | None:
        if self.error is not None:
            raise self.error
        if self.is_silent:
            return None
        if self.answers_later:
            return self.pending
        return Reply(
            GetMaxOffsetResponseHeader(offset=request.header.queue_id),
            [b"ab", memoryview(b"c")],
            ext_fields={"MSG_REGION": "r"},
        )

    @serves(MIN, vip=False)
    def min_offset(
        self, request: Request[GetMinOffsetRequestHeader]
    ) -> Reply[GetMinOffsetResponseHeader]:
        return Reply(GetMinOffsetResponseHeader(offset=request.now_ms))


class Runs:
    """Takes the least-offset requests of a read together; refuses those of topic "wrong"."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []
        self.error: Exception | None = None
        self.later: list[Run] = []

    @property
    def bindings(self) -> list[Binding]:
        return run_bindings(self.take, SEARCH, EARLIEST)

    def take(self, run: Run) -> list[Buffer]:
        self.seen.append([command.opaque for command in run.commands])
        if self.error is not None:
            raise self.error
        out: list[Buffer] = []
        for command in run.commands:
            topic = (command.ext_fields or {}).get("topic")
            if topic == "wrong":
                out += run.answer(command, ResponseError(17, "no topic"))
            elif topic == "later":
                run.later = [command]
                self.later.append(run)
            else:
                out += run.answer(command, Reply(remark=f"at {run.now_ms}"))
        return out


class Scene:
    def __init__(self, *others: object) -> None:
        self.processor = Processor()
        self.peer: Any = FakePeer()
        self.failures: list[str] = []
        registry = Registry(self.processor, *others)
        self.dispatcher = Dispatcher(registry, lambda: 42, lambda: 7, self._failed)

    def _failed(self, command: RemotingCommand, peer: Peer, error: Exception) -> None:
        self.failures.append(f"{command.code} {error}")

    def ask(self, *commands: RemotingCommand) -> list[RemotingCommand]:
        self.dispatcher.serve(self.peer, list(commands))
        return self.answers()

    def answers(self) -> list[RemotingCommand]:
        answers = FrameDecoder().receive(b"".join(self.peer.written))
        self.peer.written = []
        return answers


def request(code: int = MAX.code, opaque: int = 7, flag: int = 0, **fields: str) -> RemotingCommand:
    return RemotingCommand(code, {**FIELDS, **fields}, opaque=opaque, flag=flag)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_reply_becomes_an_answer(scene: Scene) -> None:
    (answer,) = scene.ask(request())
    assert (answer.code, answer.flag, answer.opaque) == (0, RESPONSE_FLAG, 7)
    assert answer.ext_fields == {"offset": "1", "MSG_REGION": "r"}
    assert answer.body == b"abc"


def test_the_time_is_given(scene: Scene) -> None:
    (answer,) = scene.ask(request(MIN.code))
    assert answer.ext_fields == {"offset": "42"}


def test_an_unknown_code_is_not_supported(scene: Scene) -> None:
    (answer,) = scene.ask(request(4711))
    assert (answer.code, answer.remark) == (3, " request type 4711 not supported")
    assert scene.failures == []


def test_a_missing_field_is_named(scene: Scene) -> None:
    (answer,) = scene.ask(RemotingCommand(MAX.code, {"topic": "T"}))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "the custom field <queueId> is null" in str(answer.remark)
    assert scene.failures == []


def test_an_error_of_a_handler_carries_its_code(scene: Scene) -> None:
    header = GetMaxOffsetResponseHeader(offset=3)
    scene.processor.error = ResponseError(17, "no topic", header)
    (answer,) = scene.ask(request())
    assert (answer.code, answer.remark, answer.ext_fields) == (17, "no topic", {"offset": "3"})
    assert scene.failures == []


def test_another_error_is_logged_and_hurts_nobody_else(scene: Scene) -> None:
    scene.processor.error = KeyError("gone")
    broken, good = scene.ask(request(), request(MIN.code, opaque=8))
    assert (broken.code, broken.remark) == (1, "KeyError: 'gone'")
    assert good.code == 0
    assert scene.failures == ["30 'gone'"]


def test_one_way_requests_are_never_answered(scene: Scene) -> None:
    scene.processor.error = KeyError("gone")
    assert scene.ask(request(flag=ONEWAY_FLAG), request(4711, flag=ONEWAY_FLAG)) == []


def test_none_is_no_answer(scene: Scene) -> None:
    scene.processor.is_silent = True
    assert scene.ask(request()) == []


def test_an_answer_may_come_later(scene: Scene) -> None:
    scene.processor.answers_later = True
    assert scene.ask(request()) == []
    assert scene.peer.waits == 1, "it takes memory meanwhile"
    scene.processor.pending.resolve(Reply(code=19, remark="NO_MESSAGE"))
    assert scene.peer.waits == 0
    (answer,) = scene.answers()
    assert (answer.code, answer.remark, answer.opaque) == (19, "NO_MESSAGE", 7)


def test_later_may_be_an_error(scene: Scene) -> None:
    scene.processor.answers_later = True
    scene.ask(request())
    scene.processor.pending.resolve(ResponseError(17, "no topic"))
    assert [a.code for a in scene.answers()] == [17]


def test_later_may_be_too_late(scene: Scene) -> None:
    scene.processor.answers_later = True
    scene.ask(request())
    scene.peer.close()
    scene.processor.pending.resolve(Reply())
    assert scene.answers() == []


def told(answers: list[RemotingCommand]) -> list[tuple[int, int]]:
    return [(answer.opaque, answer.code) for answer in answers]


def test_consecutive_requests_go_together_and_order_is_kept() -> None:
    runs = Runs()
    scene = Scene(runs)
    codes: list[Any] = [SEARCH, EARLIEST, MAX, SEARCH, SEARCH, MIN, EARLIEST]
    answers = scene.ask(*(request(call.code, opaque=n) for n, call in enumerate(codes)))
    assert runs.seen == [[0, 1], [3, 4], [6]]
    assert told(answers) == [(n, 0) for n in range(7)]
    assert answers[0].remark == "at 42"


def test_a_refused_request_is_answered_in_its_place() -> None:
    scene = Scene(Runs())
    topics = ["T", "wrong", "T", "wrong"]
    answers = scene.ask(
        *(request(SEARCH.code, opaque=n, topic=each) for n, each in enumerate(topics))
    )
    assert told(answers) == [(0, 0), (1, 17), (2, 0), (3, 17)]
    assert scene.failures == []


def test_answers_of_a_run_may_come_later() -> None:
    runs = Runs()
    scene = Scene(runs)
    assert told(scene.ask(request(SEARCH.code, opaque=1, topic="later"))) == []
    (run,) = runs.later
    run.write_later(run.answer(run.commands[0], Reply()))
    assert told(scene.answers()) == [(1, 0)]
    scene.peer.close()
    run.write_later(run.answer(run.commands[0], Reply()))
    assert scene.answers() == []


def refuses_topic(name: str) -> Guard:
    def guard(peer: Peer, command: RemotingCommand) -> None:
        if (command.ext_fields or {}).get("topic") == name:
            raise ResponseError(ResponseCode.NO_PERMISSION, f"not {name}")

    return guard


def test_a_guard_is_obeyed_in_every_way_in() -> None:
    runs = Runs()
    scene = Scene(runs)
    scene.dispatcher.guards.append(refuses_topic("secret"))
    codes: list[Any] = [SEARCH, SEARCH, SEARCH, MAX, MAX, SEARCH]
    topics = ["T", "secret", "T", "secret", "T", "secret"]
    answers = scene.ask(
        *(
            request(call.code, opaque=n, topic=topic)
            for n, (call, topic) in enumerate(zip(codes, topics, strict=True))
        )
    )
    assert told(answers) == [(0, 0), (1, 16), (2, 0), (3, 16), (4, 0), (5, 16)]
    assert answers[1].remark == "not secret"
    assert runs.seen == [[0], [2]]


def test_guards_are_asked_in_their_order_and_one_that_fails_lets_nobody_in(scene: Scene) -> None:
    def broken(peer: Peer, command: RemotingCommand) -> None:
        raise KeyError("who")

    scene.dispatcher.guards += [refuses_topic("T"), broken]
    assert told(scene.ask(request(opaque=1), request(opaque=2, topic="U"))) == [(1, 16), (2, 1)]
    assert scene.failures == ["30 'who'"]


def test_a_guard_may_refuse_by_peer(scene: Scene) -> None:
    def guard(peer: Peer, command: RemotingCommand) -> None:
        if peer is scene.peer:
            raise ResponseError(ResponseCode.SYSTEM_BUSY, "too many of you")

    scene.dispatcher.guards.append(guard)
    assert told(scene.ask(request(opaque=1), request(opaque=2, flag=ONEWAY_FLAG))) == [(1, 2)]


def test_many_answers_leave_before_all_are_made(scene: Scene) -> None:
    written: list[int] = []
    scene.peer.write = lambda buffers: written.append(len(buffers))
    requests = [request(opaque=opaque) for opaque in range(100)]
    # Once it does not read them, the rest comes another time.
    served = scene.dispatcher.serve(scene.peer, requests, lambda: sum(written) <= 60)
    assert 20 < served < 50
    assert sum(written) == 3 * served  # an answer is a head and two pieces of body


def test_long_answers_leave_one_by_one(scene: Scene) -> None:
    """So a peer is paused by the first that it does not read."""

    class Long:
        @serves(BEAT)
        def answer(self, request: Request[NoHeader]) -> Reply[NoHeader]:
            return Reply(body=bytes(200_000))

    written: list[int] = []
    scene.dispatcher.use(Registry(Long()))
    scene.peer.write = lambda buffers: written.append(sum(map(len, buffers)))
    scene.dispatcher.serve(scene.peer, [request(BEAT.code)] * 3)
    assert len(written) == 3


@pytest.mark.parametrize("guards", [[], [lambda peer, command: None]], ids=["", "guarded"])
def test_serving_ends_behind_each_request_and_each_run(guards: list[Guard]) -> None:
    runs = Runs()
    scene = Scene(runs)
    scene.dispatcher.guards = guards
    codes = [SEARCH.code, EARLIEST.code, MAX.code, MAX.code, SEARCH.code]
    requests = [request(code, opaque=at) for at, code in enumerate(codes)]
    ends = []
    at = 0
    while at < len(requests):
        at += scene.dispatcher.serve(scene.peer, requests[at:], lambda: False)
        ends.append(at)
        assert scene.dispatcher.served is None
    assert ends == [2, 3, 4, 5]
    assert [each.opaque for each in scene.answers()] == [0, 1, 2, 3, 4]


def test_a_guard_sees_each_request_once() -> None:
    seen: list[int] = []

    def guard(_: Peer, command: RemotingCommand) -> None:
        seen.append(command.opaque)
        if command.opaque % 3 == 2:
            raise ResponseError(16, "no")

    scene = Scene(Runs())
    scene.dispatcher.guards.append(guard)
    requests = [request(SEARCH.code, opaque=at) for at in range(10)]
    at = 0
    while at < len(requests):
        at += scene.dispatcher.serve(scene.peer, requests[at:], lambda: False)
    assert seen == list(range(10))
    assert [each.opaque for each in scene.answers()] == list(range(10))


def test_a_refusal_may_have_a_header(scene: Scene) -> None:
    header = GetMaxOffsetResponseHeader(offset=7)
    scene.processor.error = ResponseError(ResponseCode.NO_PERMISSION, "no", header)
    (answer,) = scene.ask(request())
    assert (answer.code, answer.remark, answer.ext_fields) == (16, "no", {"offset": "7"})


def test_a_number_that_is_none_is_named(scene: Scene) -> None:
    (answer,) = scene.ask(request(queueId="x"))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == (
        'RemotingCommandException: the custom field <queueId>: For input string: "x"'
    )
    assert scene.failures == []


def test_a_run_that_fails_answers_all() -> None:
    runs = Runs()
    runs.error = KeyError("gone")
    scene = Scene(runs)
    commands = [request(SEARCH.code, opaque=n, flag=ONEWAY_FLAG * (n == 2)) for n in (1, 2, 3)]
    assert told(scene.ask(*commands)) == [(1, 1), (3, 1)]
    assert len(scene.failures) == 3


def test_the_vip_port_serves_a_part() -> None:
    registry = Registry(Processor(), Runs()).vip()
    assert set(registry.bindings) == {MAX.code, SEARCH.code, EARLIEST.code}
    assert set(registry.runs()) == {SEARCH.code, EARLIEST.code}


def test_a_code_is_served_one_by_one_or_in_runs() -> None:
    runs = SimpleNamespace(bindings=run_bindings(lambda _: [], MAX))
    with pytest.raises(ValueError, match="GET_MAX_OFFSET is served twice"):
        Registry(Processor(), runs)


def test_a_code_bound_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"GET_MAX_OFFSET is served twice, again by Processor\."):
        Registry(Processor(), Processor())


def test_another_registry_may_take_over(scene: Scene) -> None:
    class Late:
        @serves(BEAT)
        def beat(self, request: Request[NoHeader]) -> Reply[NoHeader]:
            return Reply()

    scene.dispatcher.use(Registry(Late()))
    answers = scene.ask(request(BEAT.code), request())
    assert [a.code for a in answers] == [0, 3]


def test_a_refusal_is_told_to_whoever_listens(scene: Scene) -> None:
    heard: list[tuple[Peer, int, int]] = []
    scene.dispatcher.on_refusal.append(
        lambda peer, command, error: heard.append((peer, command.code, error.code))
    )
    scene.ask(request())
    assert heard == []
    scene.processor.error = ResponseError(ResponseCode.NO_PERMISSION, "no")
    scene.ask(request())
    assert heard == [(scene.peer, MAX.code, ResponseCode.NO_PERMISSION)]


def test_whose_request_is_being_served_is_known(scene: Scene) -> None:
    served: list[Any] = []

    class Watching:
        @serves(MAX)
        def max_offset(self, request: Request[GetMaxOffsetRequestHeader]) -> None:
            served.append(dispatcher.served)

        @property
        def bindings(self) -> list[Binding]:
            return run_bindings(self.min_offset, MIN)

        def min_offset(self, run: Run) -> list[Buffer]:
            served.append(dispatcher.served)
            return []

    dispatcher = Dispatcher(Registry(Watching()), lambda: 0, lambda: 0)
    commands = [request(), request(MIN.code), request(MIN.code)]
    dispatcher.serve(scene.peer, commands)
    assert served == [(scene.peer, commands[0]), (scene.peer, commands[1])]
    assert dispatcher.served is None


def counted(times: RpcTimes) -> dict[tuple[int, int, bool, bool], tuple[int, int]]:
    """How many requests of each kind, and how long all of them took."""
    return {kind: (sum(its.counts), its.total) for kind, its in times.kinds.items()}


def test_requests_are_timed_where_that_is_wanted() -> None:
    runs = Runs()
    scene = Scene(runs)
    times = scene.dispatcher.times = RpcTimes()
    now_ms = 0
    scene.dispatcher._steady_ms = lambda: now_ms
    topics = ["T", "wrong", "later", "T"]
    scene.ask(*(request(SEARCH.code, opaque=n, topic=each) for n, each in enumerate(topics)))
    assert counted(times) == {
        (SEARCH.code, 17, False, False): (1, 0),
        (SEARCH.code, 0, False, False): (2, 0),
    }
    (run,) = runs.later
    now_ms = 30
    run.write_later([b"answer"], ResponseCode.FLUSH_DISK_TIMEOUT)
    late = counted(times)[SEARCH.code, ResponseCode.FLUSH_DISK_TIMEOUT, False, False]
    assert late == (1, 30)


def test_requests_that_are_answered_together_are_timed_together() -> None:
    one_for_all = run_bindings(lambda _: [b"all"], SEARCH)
    scene = Scene(SimpleNamespace(bindings=one_for_all))
    times = scene.dispatcher.times = RpcTimes()
    scene.dispatcher.serve(scene.peer, [request(SEARCH.code)] * 3)
    assert counted(times) == {(SEARCH.code, 0, False, False): (3, 0)}


def test_single_requests_are_timed_until_they_are_answered() -> None:
    scene = Scene()
    times = scene.dispatcher.times = RpcTimes()
    now_ms = 0
    scene.dispatcher._steady_ms = lambda: now_ms
    scene.ask(request(MAX.code), request(MAX.code, flag=ONEWAY_FLAG))
    scene.processor.answers_later = True
    scene.ask(request(MAX.code))
    now_ms = 700
    scene.processor.pending.resolve(ResponseError(ResponseCode.TOPIC_NOT_EXIST, "no"))
    assert counted(times) == {
        (MAX.code, 0, False, False): (1, 0),
        (MAX.code, 0, False, True): (1, 0),
        (MAX.code, ResponseCode.TOPIC_NOT_EXIST, False, False): (1, 700),
    }


def test_an_answer_that_fits_in_no_frame_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "MAX_FRAME_BYTES", 500)
    processor, peer = Processor(), FakePeer()
    processor.answers_later = True
    dispatcher = Dispatcher(Registry(processor), lambda: 0, lambda: 0)
    dispatcher.serve(peer, [RemotingCommand(MAX.code, FIELDS, opaque=7)])
    processor.pending.resolve(Reply(body=[bytes(300), bytes(300)]))
    (answer,) = FrameDecoder().receive(b"".join(peer.written))
    assert (answer.code, answer.opaque, answer.body) == (ResponseCode.SYSTEM_ERROR, 7, b"")
    assert "the answer is too long" in (answer.remark or "")


@pytest.mark.parametrize("error", [ResponseError(29, "x" * 10_000), ValueError("x" * 10_000)])
def test_a_remark_has_only_the_beginning_of_a_long_text(scene: Scene, error: Exception) -> None:
    scene.processor.error = error
    remark = scene.ask(request())[0].remark or ""
    assert 1_024 < len(remark) < 1_060
