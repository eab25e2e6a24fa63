# SPDX-License-Identifier: Apache-2.0
"""Dispatch: the code of a command determines its handler, whose reply becomes the answer.

    @serves(offset.GET_MAX_OFFSET)
    def max_offset(self, request: Request[...]) -> Reply[...]: ...

`@serves` takes one request at a time. A handler of runs (`run_bindings`) takes the consecutive
requests of its codes in one read and answers all of them, in their order, so that what costs the
same for one or for fifty (a write to the log, an answer to the socket) is paid once. A code has one
handler of either kind.

Before a request is looked at, the guards see it (guards.py): each may refuse it.

Requests run as they are read; there are no queues in front of handlers. What bounds a peer is
backpressure: one that does not read its answers is not read from either, and one whose requests
take long waits for its next turn (transport/turns.py). Counterpart of
NettyRemotingAbstract.processRequestCommand, the registerProcessor lists.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, overload

from txrocketmq.remoting.call import Answer, Buffer, Call, Peer, PendingReply, Reply, Request
from txrocketmq.remoting.codes import RequestCode, ResponseCode, SerializeType
from txrocketmq.remoting.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.errors import FrameTooLong, HeaderError, ResponseError
from txrocketmq.remoting.frame.frame import bare_answers, encode_frame
from txrocketmq.remoting.guards import Guard, ask, knows_of, recognized
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.primitives.plain_text import shortened
from txrocketmq.remoting.rpc_times import RpcTimes

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)
P = TypeVar("P")

Handler = Callable[[Request[Any]], Answer]
_MANY_BUFFERS = 32
_MANY_BYTES = 128 * 1024
"""If more buffers or more bytes than this are to be written, they are written before the next
request is served: whoever does not read them is then paused."""
_HELD = frozenset(
    {
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.POP_MESSAGE,
        RequestCode.NOTIFICATION,
    }
)
"""Requests that may wait for messages: a late answer does not mean a slow server."""
_SERVES = "_serves"
MOST_REMARK = 1024
"""How many characters a remark has at most, since it often repeats what was asked for."""


class Run:
    """Consecutive requests of one read for one handler: commands of one peer, in their order."""

    __slots__ = ("_answer", "_told", "commands", "later", "now_ms", "peer", "work")

    def __init__(
        self,
        peer: Peer,
        commands: list[RemotingCommand],
        now_ms: int,
        answer: Callable[[Peer, RemotingCommand, Reply[Any] | Exception], Sequence[Buffer]],
        told: Callable[[Sequence[RemotingCommand], int], None] | None = None,
    ) -> None:
        self.peer = peer
        self.commands = commands
        self.now_ms = now_ms
        self.later: Sequence[RemotingCommand] = ()
        """Those of the commands whose answers the handler will pass to `write_later`."""
        self.work = 0
        """How much there was to do, as the handler counts it: it may end the run by that."""
        self._answer = answer
        self._told = told

    def end_at(self, at: int) -> None:
        """Ends the run before the command with this index: those before it are work enough."""
        self.commands = self.commands[:at]

    def answer(self, command: RemotingCommand, reply: Reply[Any] | Exception) -> Sequence[Buffer]:
        """Returns the buffers of an answer to one of the commands, if it is not prepared."""
        return self._answer(self.peer, command, reply)

    def alone(self, command: RemotingCommand, now_ms: int) -> Run:
        """Returns a run of one command that is answered later; pass its answer to `write_later`."""
        return Run(self.peer, [command], now_ms, self._answer)

    @property
    def is_timed(self) -> bool:
        """Whether it is measured how long requests take, so that the handler has to set `later`."""
        return self._told is not None

    def write_later(self, buffers: Sequence[Buffer], code: int = ResponseCode.SUCCESS) -> None:
        """Sends answers that were not ready when the handler returned, unless the peer has gone."""
        if buffers and self.peer.connected:
            self.peer.write(buffers)
            if self._told is not None:
                self._told(self.later, code)


def _always() -> bool:
    return True


RunHandler = Callable[[Run], list[Buffer]]
"""Serves a run; returns the buffers of the answers that are ready, in the order of its commands."""


def _refused(run: Run, error: Exception) -> list[Buffer]:
    """Returns the answers of a run whose handler has raised."""
    return [buffer for command in run.commands for buffer in run.answer(command, error)]


class Serves(Protocol[Q, R]):
    """A decorator for methods that fit the calls; it leaves them the type that they have."""

    @overload
    def __call__(
        self, method: Callable[[P, Request[Q]], Reply[R]], /
    ) -> Callable[[P, Request[Q]], Reply[R]]: ...

    @overload
    def __call__(
        self, method: Callable[[P, Request[Q]], PendingReply], /
    ) -> Callable[[P, Request[Q]], PendingReply]: ...

    @overload
    def __call__(
        self, method: Callable[[P, Request[Q]], Reply[R] | PendingReply | None], /
    ) -> Callable[[P, Request[Q]], Reply[R] | PendingReply | None]: ...


def serves(*calls: Call[Q, R], vip: bool = True) -> Serves[Q, R]:
    """Binds a method to calls; with `vip=False` they are not served on the VIP port."""

    def mark(method: Any) -> Any:
        setattr(method, _SERVES, [*getattr(method, _SERVES, ()), *((call, vip) for call in calls)])
        return method

    return mark


@dataclass(frozen=True, slots=True)
class Binding:
    """A call and its handler, which serves single requests or runs."""

    call: Call[Any, Any]
    handler: Handler | None
    vip: bool
    run_handler: RunHandler | None = None


def run_bindings(handler: RunHandler, *calls: Call[Any, Any]) -> list[Binding]:
    """Binds a handler of runs to calls, for the `bindings` of a processor."""
    return [Binding(call, None, vip=True, run_handler=handler) for call in calls]


class Registry:
    """All bindings of some processors, or what they list as `bindings`; none may be twice."""

    def __init__(self, *processors: object) -> None:
        self.bindings: dict[int, Binding] = {}
        for processor in processors:
            self._add(processor)

    def vip(self) -> Registry:
        """Returns a registry of those calls that are served on the VIP port."""
        registry = Registry()
        registry.bindings = {c: b for c, b in self.bindings.items() if b.vip}
        return registry

    def runs(self) -> dict[int, RunHandler]:
        """Returns the handlers of those codes that are served in runs."""
        return {c: b.run_handler for c, b in self.bindings.items() if b.run_handler is not None}

    def _add(self, processor: object) -> None:
        for binding in getattr(processor, "bindings", ()):
            self._bind(binding, processor, "bindings")
        for name in dir(type(processor)):
            method = getattr(type(processor), name, None)
            for call, vip in getattr(method, _SERVES, ()):
                self._bind(Binding(call, getattr(processor, name), vip), processor, name)

    def _bind(self, binding: Binding, processor: object, name: str) -> None:
        call = binding.call
        if call.code in self.bindings:
            raise ValueError(
                f"{call.name} is served twice, again by {type(processor).__name__}.{name}"
            )
        self.bindings[call.code] = binding


class ServerLog(Protocol):
    """Logs failures of the server, never those of a peer."""

    def __call__(self, command: RemotingCommand, peer: Peer, error: Exception) -> None: ...


class Dispatcher:
    """Serves the requests of one read and writes their answers at once."""

    def __init__(
        self,
        registry: Registry,
        now_ms: Callable[[], int],
        steady_ms: Callable[[], int],
        log_failure: ServerLog | None = None,
        serialize_type: int = SerializeType.JSON,
    ) -> None:
        self.guards: list[Guard] = []
        """Called with each request before it is served, in this order; see `Guard`."""
        self.on_refusal: list[Callable[[Peer, RemotingCommand, ResponseError], None]] = []
        """Each is called when a request is refused with a ResponseError."""
        self.times: RpcTimes | None = None
        """Counts how long requests take; None if this is not wanted."""
        self.served: tuple[Peer, RemotingCommand] | None = None
        """The peer and its request that is served now, or the first of a run; or None."""
        self._guarded: list[Guard] = []
        """The guards of which `_knows` is, which recognizes a request that comes alone."""
        self._knows = knows_of(self._guarded)
        self.use(registry)
        self._now_ms = now_ms
        self._steady_ms = steady_ms
        self._log_failure = log_failure
        self._serialize_type = serialize_type
        self._success = bare_answers(ResponseCode.SUCCESS, serialize_type)

    def use(self, registry: Registry) -> None:
        """Serves another registry from now on.

        A server's port may have to be known before the parts that serve its requests can be made.
        """
        self._bindings = registry.bindings
        self._runs = registry.runs()

    def knows(self, codes: Collection[int]) -> bool:
        """Whether any of these codes is served."""
        return any(code in self._bindings for code in codes)

    def serve(
        self, peer: Peer, commands: list[RemotingCommand], goes_on: Callable[[], bool] = _always
    ) -> int:
        """Serves requests until `goes_on` says no; returns how many of them were served.

        Requests are served, and those that are ready are answered, in the order in which they came;
        answers that are ready leave in one write, or in a few. `goes_on` is asked after each run
        and after each request that is no part of one, never before the first. Whoever calls keeps
        the rest, and passes it to another call.
        """
        count = len(commands)
        if self.guards:
            if count != 1:
                passed = recognized(self.guards, peer, commands)
                if passed < count:
                    return self._serve_guarded(peer, commands, goes_on, passed)
            else:
                if self.guards != self._guarded:
                    self._look_at_guards()
                if not self._knows(peer, commands[0]):
                    return self._serve_guarded(peer, commands, goes_on, 0)
        runs, now_ms = self._runs, self._now_ms()
        if count == 1:  # it needs nothing of what follows
            out: Sequence[Buffer]
            if (only := runs.get(commands[0].code)) is None:
                out = self._serve_one(peer, commands[0], now_ms)
            else:
                out, count = self._serve_run(only, peer, commands, now_ms)
            self.served = None
            if out:
                peer.write(out)
            return count
        return self._serve_many(peer, commands, goes_on, now_ms)

    def _serve_many(
        self, peer: Peer, commands: list[RemotingCommand], goes_on: Callable[[], bool], now_ms: int
    ) -> int:
        """Does the same for any number of requests, which the guards have seen."""
        out: list[Buffer] = []
        out_bytes, at, runs, count = 0, 0, self._runs, len(commands)
        while at < count:
            command = commands[at]
            handler = runs.get(command.code)
            if handler is None:
                buffers = self._serve_one(peer, command, now_ms)
                out += buffers
                out_bytes += sum(map(len, buffers))
                at += 1
            else:
                end = at + 1
                while end < count and runs.get(commands[end].code) is handler:
                    end += 1
                run = commands if end - at == count else commands[at:end]
                buffers, served = self._serve_run(handler, peer, run, now_ms)
                out += buffers
                at += served
            if at == count:
                break
            if len(out) > _MANY_BUFFERS or out_bytes > _MANY_BYTES:
                peer.write(out)
                out, out_bytes = [], 0
            if not goes_on():  # perhaps because of what was written
                break
        self.served = None
        if out:
            peer.write(out)
        return at

    def _look_at_guards(self) -> None:
        self._guarded, self._knows = list(self.guards), knows_of(self.guards)

    def _serve_guarded(
        self, peer: Peer, commands: list[RemotingCommand], goes_on: Callable[[], bool], passed: int
    ) -> int:
        """Does the same for requests that the guards have to be asked about, but for those before
        `passed`. A run may end before those that they have seen, and they see each request once.
        """
        out: list[Buffer] = []
        at, refusal = 0, None
        runs, count = self._runs, len(commands)
        now_ms = self._now_ms()
        while at < count:
            handler, end = runs.get(commands[at].code), at + 1
            if handler is not None:
                while end < count and runs.get(commands[end].code) is handler:
                    end += 1
            if passed < end and refusal is None:
                passed, refusal = ask(self.guards, peer, commands, passed, end)
            if passed > at and handler is None:
                out += self._serve_one(peer, commands[at], now_ms)
                at = end
            elif passed > at and handler is not None:
                run = commands[at : min(end, passed)]
                buffers, served = self._serve_run(handler, peer, run, now_ms)
                out += buffers
                at += served
            if refusal is not None and passed == at:
                out += self._answer_to(peer, commands[at], refusal)
                at = passed = at + 1
                refusal = None
            if at == count:
                break
            if len(out) > _MANY_BUFFERS or sum(map(len, out)) > _MANY_BYTES:
                peer.write(out)
                out = []
            if not goes_on():
                break
        self.served = None
        if out:
            peer.write(out)
        return at

    def _serve_run(
        self, handler: RunHandler, peer: Peer, commands: list[RemotingCommand], now_ms: int
    ) -> tuple[list[Buffer], int]:
        """Returns the answers of a run, and the number of those that were served."""
        self.served = peer, commands[0]
        if self.times is not None:
            return self._serve_timed(self.times, handler, peer, commands, now_ms)
        run = Run(peer, commands, now_ms, self._answer_to)
        try:
            return handler(run), len(run.commands)
        except Exception as error:  # noqa: BLE001 - one bad request must not end the connection
            return _refused(run, error), len(run.commands)

    def _serve_timed(
        self, times: RpcTimes, handler: RunHandler, peer: Peer, commands: list[RemotingCommand],
        now_ms: int,
    ) -> tuple[list[Buffer], int]:  # fmt: skip
        """Serves a run, and counts how long it took."""
        started_ms = self._steady_ms()
        apart: set[int] = set()
        """The identities of those commands that are not answered together with the others."""

        def answer_to(
            peer: Peer, command: RemotingCommand, outcome: Reply[Any] | Exception
        ) -> Sequence[Buffer]:
            apart.add(id(command))
            return self._answer_to(peer, command, outcome, started_ms)

        def told(answered: Sequence[RemotingCommand], code: int) -> None:
            times.add_run(answered, self._steady_ms() - started_ms, code)

        run = Run(peer, commands, now_ms, answer_to, told)
        try:
            out = handler(run)
        except Exception as error:  # noqa: BLE001 - as above
            out = _refused(run, error)
        if run.later:
            apart.update(map(id, run.later))
        commands = run.commands
        rest = [each for each in commands if id(each) not in apart] if apart else commands
        times.add_run(rest, self._steady_ms() - started_ms)
        return out, len(commands)

    def _serve_one(self, peer: Peer, command: RemotingCommand, now_ms: int) -> Sequence[Buffer]:
        binding = self._bindings.get(command.code)
        if binding is None or binding.handler is None:
            remark = f" request type {command.code} not supported"
            return self._answer(
                command, Reply(code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
            )
        self.served = peer, command
        started_ms = self._steady_ms()
        try:
            header = binding.call.request.decode(command.ext_fields)
            answer = binding.handler(Request(header, command, peer, now_ms, started_ms))
        except Exception as error:  # noqa: BLE001 - one bad request must not end the connection
            return self._answer_to(peer, command, error, started_ms)
        if isinstance(answer, PendingReply):
            self._answer_later(peer, command, answer, started_ms)
            return ()
        return self._answer_to(peer, command, answer, started_ms) if answer is not None else ()

    def belated(
        self, peer: Peer, command: RemotingCommand, header: Header, started_ms: int
    ) -> tuple[Request[Any], PendingReply]:
        """Returns a request that waited before it became one, and what takes its late answer."""
        pending = PendingReply()
        self._answer_later(peer, command, pending, started_ms)
        return Request(header, command, peer, self._now_ms(), started_ms), pending

    def _answer_later(
        self, peer: Peer, command: RemotingCommand, answer: PendingReply, started_ms: int
    ) -> None:
        waits = not answer.done
        if waits:
            (peer.begin_work if answer.is_work else peer.begin_wait)()

        def answer_late(outcome: Reply[Any] | Exception) -> None:
            if peer.connected:
                buffers = self._answer_to(peer, command, outcome, started_ms, is_late=True)
                if buffers:
                    peer.write(buffers)
            if waits:
                (peer.end_work if answer.is_work else peer.end_wait)()

        answer.then(answer_late)

    def _answer_to(
        self, peer: Peer, command: RemotingCommand, outcome: Reply[Any] | Exception,
        started_ms: int | None = None, *, is_late: bool = False,
    ) -> Sequence[Buffer]:  # fmt: skip
        if isinstance(outcome, Exception):
            outcome = self._reply_to(outcome, command, peer)
        if self.times is not None and started_ms is not None:
            is_held = is_late and command.code in _HELD
            kind = command.code, outcome.code, is_held, command.is_oneway
            self.times.add(kind, self._steady_ms() - started_ms)
        return self._answer(command, outcome)

    def _reply_to(self, error: Exception, command: RemotingCommand, peer: Peer) -> Reply[Any]:
        if isinstance(error, ResponseError):
            for heard in self.on_refusal:
                heard(peer, command, error)
            header = error.header if isinstance(error.header, Header) else None
            return Reply(header, b"", error.code, error.remark)
        if isinstance(error, HeaderError):
            remark = f"RemotingCommandException: {error}"
            return Reply(code=ResponseCode.SYSTEM_ERROR, remark=remark)
        if self._log_failure is not None:
            self._log_failure(command, peer, error)
        return Reply(code=ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")

    def _answer(self, command: RemotingCommand, reply: Reply[Any]) -> Sequence[Buffer]:
        if command.flag & ONEWAY_FLAG:
            return ()
        header, remark = reply.header, reply.remark
        if (
            header is None
            and remark is None
            and reply.code == ResponseCode.SUCCESS
            and not reply.ext_fields
            and not reply.body
        ):
            return (self._success(command.opaque),) if reply.frame is None else reply.frame
        ext_fields = header.encode() if header is not None else None
        if reply.ext_fields:
            ext_fields = {**(ext_fields or {}), **reply.ext_fields}
        if remark is not None and len(remark) > MOST_REMARK:
            remark = shortened(remark, MOST_REMARK)
        response = RemotingCommand(
            reply.code,
            ext_fields,
            flag=RESPONSE_FLAG,
            opaque=command.opaque,
            remark=remark,
            serialize_type=self._serialize_type,
        )
        try:
            return encode_frame(response, reply.body)
        except FrameTooLong as error:
            remark = f"the answer is too long: {error}; ask for less"
            return self._answer(command, Reply(code=ResponseCode.SYSTEM_ERROR, remark=remark))
