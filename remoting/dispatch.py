# SPDX-License-Identifier: Apache-2.0
"""Dispatch: a command's code finds its handler, the handler's reply becomes an answer.

    @serves(offset.GET_MAX_OFFSET)
    def max_offset(self, request: Request[...]) -> Reply[...]: ...

`@serves` takes one request at a time; `@serves_many` takes all commands of its codes that came in
one read, so that what costs the same for one or for fifty (a write to the log, an answer to the
socket) is paid once. Such a handler hands back the commands it would rather have served one by one,
and every code it takes must have a plain handler too.

Requests run as they are read; there are no queues in front of handlers. What bounds a peer is
backpressure: one that does not read its answers is not read from either. Counterpart of
NettyRemotingAbstract.processRequestCommand and the registerProcessor lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, overload

from txrocketmq.remoting.call import Answer, Buffer, Call, Peer, PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode, SerializeType
from txrocketmq.remoting.command import RESPONSE_FLAG, RemotingCommand
from txrocketmq.remoting.errors import HeaderError, ResponseError
from txrocketmq.remoting.frame import encode_frame
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.serialize.plain_sends import PlainSends, Received

Q = TypeVar("Q", bound=Header)
R = TypeVar("R", bound=Header)
P = TypeVar("P")

Handler = Callable[[Request[Any]], Answer]
ManyHandler = Callable[
    [Peer, list[RemotingCommand], int], tuple[list[Buffer], list[RemotingCommand]]
]
"""Takes peer, commands, now_ms; gives the answers' buffers and the commands to serve plainly."""

PlainHandler = Callable[[Peer, PlainSends, int], tuple[list[Buffer], list[RemotingCommand]]]
"""As ManyHandler, for sends that are plain."""

_MANY_BUFFERS = 32
"""Answers of pulls are large: so many buffers leave before the next request is looked at."""
_SERVES = "_serves"
_SERVES_MANY = "_serves_many"
_SERVES_PLAIN = "_serves_plain"


class Serves(Protocol[Q, R]):
    """Takes a method that fits the calls, and leaves it the type it has."""

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
    """Binds a method to calls; `vip=False` keeps it off the VIP port."""

    def mark(method: Any) -> Any:
        setattr(method, _SERVES, [*getattr(method, _SERVES, ()), *((call, vip) for call in calls)])
        return method

    return mark


def serves_many(
    *calls: Call[Any, Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Binds a method to all commands of one read that carry these codes."""

    def mark(method: Callable[..., Any]) -> Callable[..., Any]:
        setattr(method, _SERVES_MANY, calls)
        return method

    return mark


def serves_plain(method: Callable[..., Any]) -> Callable[..., Any]:
    """Binds a method to the PlainSends of one read; without one they are served as commands."""
    setattr(method, _SERVES_PLAIN, True)
    return method


@dataclass(frozen=True, slots=True)
class Binding:
    """A call and who serves it."""

    call: Call[Any, Any]
    handler: Handler
    vip: bool


class Registry:
    """All bindings of some processors; a code bound twice is an error."""

    def __init__(self, *processors: object) -> None:
        self.bindings: dict[int, Binding] = {}
        self.many: dict[int, ManyHandler] = {}
        self.plain: PlainHandler | None = None
        for processor in processors:
            self._add(processor)

    def vip(self) -> Registry:
        """The part that is served on the VIP port."""
        registry = Registry()
        registry.bindings = {c: b for c, b in self.bindings.items() if b.vip}
        registry.many = {c: h for c, h in self.many.items() if c in registry.bindings}
        registry.plain = self.plain if PlainSends.code in registry.bindings else None
        return registry

    def _add(self, processor: object) -> None:
        for name in dir(type(processor)):
            method = getattr(type(processor), name, None)
            for call, vip in getattr(method, _SERVES, ()):
                if call.code in self.bindings:
                    raise ValueError(
                        f"{call.name} is served twice, again by {type(processor).__name__}.{name}"
                    )
                self.bindings[call.code] = Binding(call, getattr(processor, name), vip)
            for call in getattr(method, _SERVES_MANY, ()):
                self.many[call.code] = getattr(processor, name)
            if getattr(method, _SERVES_PLAIN, False):
                self.plain = getattr(processor, name)


class ServerLog(Protocol):
    """What the dispatcher tells the log: failures of ours, never a peer's doing."""

    def __call__(self, command: RemotingCommand, peer: Peer, error: Exception) -> None: ...


class Dispatcher:
    """Serves the requests of one read and writes their answers at once."""

    def __init__(
        self,
        registry: Registry,
        now_ms: Callable[[], int],
        log_failure: ServerLog | None = None,
        serialize_type: int = SerializeType.JSON,
    ) -> None:
        self.use(registry)
        self._now_ms = now_ms
        self._log_failure = log_failure
        self._serialize_type = serialize_type

    def use(self, registry: Registry) -> None:
        """Serves another registry from now on: a server's port may be known before its parts."""
        self._bindings = registry.bindings
        self._many = registry.many
        self._plain = registry.plain

    def serve(self, peer: Peer, commands: Iterable[Received]) -> None:
        """Serves what came in one read; answers that are ready leave in one write, or in a few.

        A peer that does not take its answers may end `commands` early, and go on later.
        """
        out: list[Buffer] = []
        many = self._many
        now_ms = self._now_ms()
        collected: list[RemotingCommand] = []
        collector: ManyHandler | None = None
        for command in commands:
            if isinstance(command, PlainSends):
                if collector is not None:
                    out += self._serve_many(collector, peer, collected, now_ms)
                    collected, collector = [], None
                out += self._serve_plain(peer, command, now_ms)
                continue
            handler = many.get(command.code)
            if handler is None:
                out += self._serve_one(peer, command, now_ms)
                if len(out) > _MANY_BUFFERS:
                    peer.write(out)
                    out = []
                continue
            if handler is not collector and collector is not None:
                out += self._serve_many(collector, peer, collected, now_ms)
                collected = []
            collector = handler
            collected.append(command)
        if collector is not None:
            out += self._serve_many(collector, peer, collected, now_ms)
        if out:
            peer.write(out)

    def _serve_plain(self, peer: Peer, sends: PlainSends, now_ms: int) -> list[Buffer]:
        out: list[Buffer] = []
        try:
            if self._plain is None:
                rest = sends.commands()
            else:
                out, rest = self._plain(peer, sends, now_ms)
        except Exception as error:  # noqa: BLE001 - one bad request must not end the connection
            rest = []
            for command in sends.commands():
                out += self._answer(command, self._reply_to(error, command, peer))
        for command in rest:
            out += self._serve_one(peer, command, now_ms)
        return out

    def _serve_many(
        self, handler: ManyHandler, peer: Peer, commands: list[RemotingCommand], now_ms: int
    ) -> list[Buffer]:
        try:
            out, rest = handler(peer, commands, now_ms)
        except Exception as error:  # noqa: BLE001 - one bad request must not end the connection
            out, rest = [], []
            for command in commands:
                out += self._answer(command, self._reply_to(error, command, peer))
        for command in rest:
            out += self._serve_one(peer, command, now_ms)
        return out

    def _serve_one(self, peer: Peer, command: RemotingCommand, now_ms: int) -> Sequence[Buffer]:
        binding = self._bindings.get(command.code)
        if binding is None:
            remark = f" request type {command.code} not supported"
            return self._answer(
                command, Reply(code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
            )
        try:
            header = binding.call.request.decode(command.ext_fields)
            answer = binding.handler(Request(header, command, peer, now_ms))
        except Exception as error:  # noqa: BLE001 - one bad request must not end the connection
            return self._answer(command, self._reply_to(error, command, peer))
        if isinstance(answer, PendingReply):
            answer.then(lambda outcome: self._answer_late(peer, command, outcome))
            return ()
        return self._answer(command, answer) if answer is not None else ()

    def _answer_late(
        self, peer: Peer, command: RemotingCommand, outcome: Reply[Any] | Exception
    ) -> None:
        if not peer.connected:
            return
        reply = (
            self._reply_to(outcome, command, peer) if isinstance(outcome, Exception) else outcome
        )
        buffers = self._answer(command, reply)
        if buffers:
            peer.write(buffers)

    def _reply_to(self, error: Exception, command: RemotingCommand, peer: Peer) -> Reply[Any]:
        if isinstance(error, ResponseError):
            return Reply(
                error.header if isinstance(error.header, Header) else None,
                b"",
                error.code,
                error.remark,
            )
        if isinstance(error, HeaderError):
            return Reply(
                code=ResponseCode.SYSTEM_ERROR, remark=f"RemotingCommandException: {error}"
            )
        if self._log_failure is not None:
            self._log_failure(command, peer, error)
        return Reply(code=ResponseCode.SYSTEM_ERROR, remark=f"{type(error).__name__}: {error}")

    def _answer(self, command: RemotingCommand, reply: Reply[Any]) -> Sequence[Buffer]:
        if command.is_oneway:
            return ()
        ext_fields = reply.header.encode() if reply.header is not None else None
        if reply.ext_fields:
            ext_fields = {**(ext_fields or {}), **reply.ext_fields}
        response = RemotingCommand(
            reply.code,
            ext_fields,
            flag=RESPONSE_FLAG,
            opaque=command.opaque,
            remark=reply.remark,
            serialize_type=self._serialize_type,
        )
        return encode_frame(response, reply.body)
