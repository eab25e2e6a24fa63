# SPDX-License-Identifier: Apache-2.0
"""The methods of a gRPC service, each declared beside the function that serves it.

`@rpc` says the name of the method and of the type of its requests; `Rpcs` collects what was
declared, so that no table of methods is written by hand. There are three kinds:

- UNARY: `method(call, request)` returns the answer, or a Deferred or a PendingReply of it.
- STREAM: `method(call, request)` writes its answers with `call.write`. The call ends when it has
  returned, or when the Deferred that it returns has fired.
- CONVERSATION: `method(call)` returns a `Conversation`, which is given each message that comes.

A method raises GrpcError, or its Deferred fails with that, to end the call with another status than
OK. Any other exception is a defect: it is logged, and the caller gets INTERNAL. A Deferred is
cancelled when its call is, after the listeners in `call.on_cancel` were called. A PendingReply,
which costs less, has only these listeners; it may be resolved all the same, or never be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Protocol, TypeVar

M = TypeVar("M", bound=Callable[..., Any])
_MARK: Final = "_rpc"
MOST_BYTES: Final = 1024 * 1024
"""How many bytes a message may have that carries no bodies: in a longer one a stranger could send
millions of entries."""


class Kind(Enum):
    """How many messages a call has."""

    UNARY = auto()
    """One request and one answer."""
    STREAM = auto()
    """One request, and answers that are written one after another."""
    CONVERSATION = auto()
    """Messages both ways, until one side ends the call."""


class Conversation(Protocol):
    """The server's side of a call with messages both ways; it writes with its call."""

    def received(self, message: Any) -> Any:
        """Is given a message. If it returns a Deferred, the next one comes when that has fired."""

    def ended(self, reason: str) -> None:
        """Is told once that no more messages come, and why.

        The reason is empty if the client has said so; then the call ends with OK right after this.
        Otherwise it was cancelled, and nothing can be written any more.
        """


class MessageClass(Protocol):
    """A type of messages of protobuf."""

    def FromString(self, data: bytes) -> Any:  # noqa: N802 - protobuf's name
        """Returns a message. Raises google.protobuf.message.DecodeError."""


@dataclass(frozen=True, slots=True)
class Rpc:
    """What `@rpc` declares about a method."""

    name: str
    request_name: str
    kind: Kind
    most_bytes: int | None = None
    bodies: tuple[int, ...] = ()
    rights: Any = None


def rpc(
    name: str,
    *,
    request_name: str | None = None,
    kind: Kind = Kind.UNARY,
    most_bytes: int | None = MOST_BYTES,
    bodies: Sequence[int] = (),
    rights: Any = None,
) -> Callable[[M], M]:
    """Declares that a method serves the calls of this name.

    `request_name` is the type of the messages that come, by default the name with `Request`, and
    `most_bytes` is how long they may be; None means as long as the settings of the port allow. Then
    `bodies` are the numbers of the fields that lead to what makes them long (see weight.py).
    `rights` say what an account needs for it, to whoever asks for accounts (base/rights.py).
    """

    def declare(method: M) -> M:
        setattr(
            method,
            _MARK,
            Rpc(name, request_name or f"{name}Request", kind, most_bytes, tuple(bodies), rights),
        )
        return method

    return declare


@dataclass(frozen=True, slots=True)
class Served:
    """One method of the service: what was declared, how requests are decoded, and who serves."""

    rpc: Rpc
    parse: Callable[[bytes], Any]
    method: Callable[..., Any]


class Rpcs:
    """The methods of a service by their path. `message_class` returns a type by its name.

    With `guarded`, methods are what it makes of them, such as one that asks for accounts first.
    Raises ValueError if two of the parts serve one method.
    """

    def __init__(
        self,
        service: str,
        message_class: Callable[[str], MessageClass],
        *parts: object,
        guarded: Callable[[Rpc, Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> None:
        self.service = service
        self._by_path: dict[str, Served] = {}
        for part in parts:
            for its, method in _declared(part):
                path = f"/{service}/{its.name}"
                if path in self._by_path:
                    raise ValueError(f"{its.name} is served twice, by {method} as well")
                parse = message_class(its.request_name).FromString
                its_method = method if guarded is None else guarded(its, method)
                self._by_path[path] = Served(its, parse, its_method)

    def __iter__(self) -> Iterator[Served]:
        return iter(self._by_path.values())

    def find(self, path: str) -> Served | None:
        """Returns the method with this path, such as `/apache.rocketmq.v2.MessagingService/X`."""
        return self._by_path.get(path)


def _declared(part: object) -> Iterator[tuple[Rpc, Callable[..., Any]]]:
    for name in dir(type(part)):
        its = getattr(getattr(type(part), name), _MARK, None)
        if isinstance(its, Rpc):
            yield its, getattr(part, name)
