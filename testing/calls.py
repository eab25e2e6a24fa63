# SPDX-License-Identifier: Apache-2.0
"""The methods of a test server: clients, state, faults.

The state is looked up in the broker itself and not requested, so faults do not affect it.
"""

from __future__ import annotations

import base64
import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Final, Self, TypeVar, overload

from txrocketmq.client import (
    ConsumeFrom,
    ConsumeOrderlyStatus,
    ConsumeStatus,
    LitePullConsumer,
    MessageExt,
    Producer,
    PushConsumer,
    SendResult,
    new_message,
)
from txrocketmq.client.consumer.listening.listener import Listener, OrderlyListener
from txrocketmq.remoting.arguments.arguments import checked_methods
from txrocketmq.remoting.message.message import decode_message
from txrocketmq.testing.process import Paused

GROUP: Final = "testing"
"""The group of producers and consumers that are given no other."""
WAIT_S: Final = 10.0
LOOK_S: Final = 0.02
PERSIST_MS: Final = 100
"""How many ms pass between two reports of a test's consumers on how far they have come."""
MAX_MESSAGES: Final = 100_000
"""How many messages `messages` returns at most."""
_MAX_TOLD: Final = 8

_STATUSES: Final = (ConsumeStatus, ConsumeOrderlyStatus)
L = TypeVar("L", bound=Callable[..., Any])


class WrongAnswer(TypeError):
    """A listener has returned something that is no status."""


class ListenerErrors:
    """The first error of the listeners of each group since the last call of `check` or `forget`.

    A listener runs elsewhere, where its errors only lead to another delivery. A test that waits
    until all is consumed fails with such an error, and neither succeeds nor times out without it.
    """

    def __init__(self) -> None:
        self._first: dict[str, Exception] = {}

    def watched(self, group: str, listener: L) -> L:
        """Returns a listener that does the same, and whose errors are noted."""
        called: Any
        is_coroutine = inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
            getattr(listener, "__call__", None)  # noqa: B004 - of an object's class
        )
        if is_coroutine:

            @wraps(listener)
            async def called(*arguments: Any) -> Any:
                try:
                    answer = await listener(*arguments)
                except Exception as error:
                    self._first.setdefault(group, error)
                    raise
                self._look_at(group, answer)
                return answer

        else:

            @wraps(listener)
            def called(*arguments: Any) -> Any:
                try:
                    answer = listener(*arguments)
                except Exception as error:
                    self._first.setdefault(group, error)
                    raise
                self._look_at(group, answer)
                return answer

        return called  # type: ignore[no-any-return]

    def _look_at(self, group: str, answer: object) -> None:
        """Notes an answer that is no status, as an error: its messages are delivered again."""
        if answer is None or hasattr(answer, "__await__") or isinstance(answer, _STATUSES):
            return
        error = WrongAnswer(
            f"the listener of group {group} returned {answer!r:.80}, so its messages are delivered"
            " again: it should return None, or a member of ConsumeStatus or ConsumeOrderlyStatus"
        )
        self._first.setdefault(group, error)

    def check(self, group: str) -> None:
        """Raises the error of a listener of the group, if there is one that was not raised yet."""
        error = self._first.pop(group, None)
        if error is not None:
            if not isinstance(error, WrongAnswer):
                error.add_note(f"A listener of the group {group} has raised this.")
            raise error

    def forget(self, group: str) -> None:
        """Forgets the error of a group."""
        self._first.pop(group, None)


@checked_methods
class Fault:
    """A fault that lasts until `end` is called or its `with` statement ends."""

    def __init__(self, server: ServerCalls, number: int) -> None:
        self._server = server
        self._number = number

    @property
    def count(self) -> int:
        """How many requests the fault has refused."""
        return int(self._server.ask("count", self._number))

    def end(self) -> None:
        """Ends the fault; a second call does nothing."""
        self._server.ask("end", self._number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class StartedProducer(Producer):
    """A producer that has started; it is shut down at the end of the test or of its block."""

    def __enter__(self) -> Self:
        return self


class StartedPushConsumer(PushConsumer):
    """A consumer with a listener that has started; it is shut down in the same way."""

    def __enter__(self) -> Self:
        return self


class StartedLitePullConsumer(LitePullConsumer):
    """A consumer to be polled that has started; it is shut down in the same way."""

    def __enter__(self) -> Self:
        return self


@checked_methods
class ServerCalls(ABC):
    """The methods that tests call; a kind of server says how it is asked, and how it lives."""

    namesrv_addr: str
    """Address of the name server, "host:port"."""
    broker_addr: str
    """Address of the broker."""
    grpc_endpoint: str = ""
    """Address for clients of RocketMQ 5.x that speak gRPC; empty without txrocketmq[grpc]."""

    def __init__(self, credentials: Mapping[str, str] | None = None) -> None:
        self.access_key = (credentials or {}).get("access_key", "")
        """The account that may do everything, which the clients below have by default; empty if
        nobody needs an account."""
        self.secret_key = (credentials or {}).get("secret_key", "")
        """The secret of that account."""
        self._clients: list[Any] = []
        self._sender: StartedProducer | None = None
        self.listener_errors = ListenerErrors()

    @abstractmethod
    def ask(self, name: str, *arguments: Any) -> Any:
        """Calls a method of `BrokerState` or `Faults` in the server, and returns its result.

        Raises ValueError with the text of the method's error, and ServerError.
        """

    # --------------------------------------------------------------- clients

    def producer(self, group: str = GROUP, **settings: Any) -> StartedProducer:
        """Returns a started producer; `settings` are those of `txrocketmq.client.Producer`."""
        made = StartedProducer(group, **self.client_settings(settings))
        self._clients.append(made.start())
        return made

    @overload
    def consumer(
        self, topic: str, listener: None = None, *, group: str = ..., expression: Any = ...,
        **settings: Any,
    ) -> StartedLitePullConsumer: ...  # fmt: skip

    @overload
    def consumer(
        self, topic: str, listener: Listener | OrderlyListener, *, group: str = ...,
        expression: Any = ..., **settings: Any,
    ) -> StartedPushConsumer: ...  # fmt: skip

    def consumer(
        self,
        topic: str,
        listener: Listener | OrderlyListener | None = None,
        *,
        group: str = GROUP,
        expression: Any = "*",
        **settings: Any,
    ) -> Any:
        """Returns a started consumer, which by default begins with the first message of the topic.

        With a listener it is a PushConsumer, otherwise a LitePullConsumer, which can be polled or
        iterated over. If the topic does not exist, it is created, provided that sends may create
        it.
        """
        self.ask("ensure_topic", topic)
        settings = self.consumer_settings(settings)
        made: Any
        if listener is None:
            made = StartedLitePullConsumer(group, {topic: expression}, **settings)
        else:
            watched = self.listener_errors.watched(group, listener)
            made = StartedPushConsumer(group, {topic: expression}, watched, **settings)
        self._clients.append(made.start())
        return made

    def send(self, topic: str, body: bytes | str = b"", **message: Any) -> SendResult:
        """Sends a message; the other arguments are those of `txrocketmq.client.new_message`."""
        if self._sender is None:
            self._sender = self.producer()
        return self._sender.send(new_message(topic, body, **message))

    def client_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Returns the settings with which a client finds this server."""
        own = {"namesrv_addr": self.namesrv_addr}
        if self.access_key:
            own |= {"access_key": self.access_key, "secret_key": self.secret_key}
        return {**own, **settings}

    def consumer_settings(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Returns settings of a consumer that begins with the first message and commits often."""
        own = {"consume_from": ConsumeFrom.FIRST_OFFSET, "persist_interval_ms": PERSIST_MS}
        return self.client_settings({**own, **settings})

    # ----------------------------------------------------------------- state

    def create_topic(self, topic: str, queues: int = 4, message_type: str | None = None) -> None:
        """Creates a topic, or changes its number of queues. Clients find it when this returns.

        Clients that speak gRPC send only messages of the topic's `message_type`: "NORMAL", which
        counts where none is given, "FIFO", "DELAY", "TRANSACTION" or "PRIORITY". Raises ValueError.
        """
        self.ask("create_topic", topic, queues, message_type)

    def create_account(
        self, name: str, secret: str, policies: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, str]:
        """Creates an account of a server with `accounts=True`; returns the settings of its clients.

        `policies` are the actions that it may do, by resource, as in {"Topic:Orders": ["Pub"]}.
        Raises ValueError.
        """
        its = {resource: list(actions) for resource, actions in (policies or {}).items()}
        self.ask("create_account", name, secret, its)
        return {"access_key": name, "secret_key": secret}

    def topics(self) -> list[str]:
        """Returns the topics that clients have created, sorted by name."""
        return list(self.ask("topics"))

    def groups(self) -> list[str]:
        """Returns the consumer groups of the broker, sorted by name."""
        return list(self.ask("groups"))

    def messages(self, topic: str) -> list[MessageExt]:
        """Returns all messages of a topic, in the order in which they were stored.

        Raises ValueError if the topic does not exist or has more than 100,000 messages.
        """
        found: list[MessageExt] = []
        for queue_id in self.ask("queue_ids", topic):
            offset = -1
            page: dict[str, Any] = {"next": 0}
            while page["next"] != offset:
                offset = page["next"]
                page = self.ask("records", topic, queue_id, offset)
                found += _decoded(base64.b64decode(page["records"]))
                if len(found) > MAX_MESSAGES:
                    raise ValueError(f"topic {topic} has more than {MAX_MESSAGES} messages")
        return sorted(found, key=lambda message: message.commit_log_offset)

    def lag(self, group: str, topic: str | None = None) -> int:
        """Returns how many messages a group has yet to consume, of one topic or of all.

        Messages that it gave back count when they are due again. Raises ValueError if the group
        consumes no topic, or not this one.
        """
        rows = self._rows(group, topic)
        return sum(end - offset for queues in rows.values() for _, offset, end in queues)

    def wait_consumed(
        self,
        group: str,
        topic: str | None = None,
        *,
        timeout_s: float = WAIT_S,
        ignore_errors: bool = False,
    ) -> None:
        """Waits until a group has consumed everything; TimeoutError says what is left.

        If a listener that was given to `consumer` raises an error, the wait ends with this error,
        once, unless `ignore_errors` is set. Consumers report their progress to the broker from time
        to time: those made by `consumer` every 100 ms, others by default every 5 s.
        """
        deadline_s = time.monotonic() + timeout_s
        while (why := self.why_not_consumed(group, topic, ignore_errors=ignore_errors)) is not None:
            if time.monotonic() >= deadline_s:
                raise TimeoutError(f"after {timeout_s:g} s {why}")
            time.sleep(LOOK_S)

    def why_not_consumed(
        self, group: str, topic: str | None = None, *, ignore_errors: bool = False
    ) -> str | None:
        """Returns what a group has yet to consume as text, or None if there is nothing.

        Raises the error of a listener of the group, unless they are ignored.
        """
        try:
            rows = self._rows(group, topic)
        except ValueError as error:
            return str(error)
        finally:  # after the look, as a message whose listener fails counts as consumed
            if ignore_errors:
                self.listener_errors.forget(group)
            self.listener_errors.check(group)
        left = [
            f"{name} queue {queue_id} at {offset} of {end}"
            for name, queues in rows.items()
            for queue_id, offset, end in queues
            if offset < end
        ]
        if not left:
            return None
        more = f" and {len(left) - _MAX_TOLD} queues more" if len(left) > _MAX_TOLD else ""
        return f"group {group} has not consumed all: {'; '.join(left[:_MAX_TOLD])}{more}"

    def _rows(self, group: str, topic: str | None) -> dict[str, Sequence[tuple[int, int, int]]]:
        rows: dict[str, Any] = self.ask("lag", group)
        if topic is None:
            return rows
        if topic not in rows:
            raise ValueError(f"group {group} does not consume {topic}, but {', '.join(rows)}")
        return {topic: rows[topic]}

    # ---------------------------------------------------------------- faults

    def refuse(
        self,
        code: int | str = "SYSTEM_BUSY",
        *,
        of: str = "send",
        topic: str | None = None,
        times: int | None = None,
        remark: str | None = None,
    ) -> Fault:
        """Makes the broker answer requests with a response code, given as a number or a name.

        `of` says which requests: "send", "pull", "all", or the name of a request code. `topic`
        limits them to a topic, and `times` their number.
        """
        return Fault(self, self.ask("refuse", code, of, topic, times, remark))

    def delay_ms(self, ms: int) -> Fault:
        """Delays everything that the broker sends, by up to a minute."""
        return Fault(self, self.ask("delay", ms))

    def drop_connections(self) -> int:
        """Closes all connections of clients to the broker; returns how many there were."""
        return int(self.ask("drop_connections"))

    # ------------------------------------------------------------------ life

    @abstractmethod
    def advance(self, ms: int) -> None:
        """Moves the broker's clock forward, so that whatever is due by then happens.

        Raises ServerError.
        """

    @abstractmethod
    def restart(self) -> None:
        """Stops the server in order, if it runs, and starts it with the same store and addresses.

        After `kill` it recovers as after a crash. Clients that were connected find it again.
        """

    @abstractmethod
    def kill(self) -> None:
        """Kills the server, as a crash would; `restart` starts it again."""

    @abstractmethod
    def pause(self) -> Paused:
        """Stops the server from answering, while connections stay open.

        Until `resume`, or the end of a with statement over the result.
        """

    @abstractmethod
    def resume(self) -> None:
        """Lets the server answer again after `pause`."""

    @abstractmethod
    def reset(self) -> None:
        """Empties the store: no topics, messages, groups or faults are left, and the time is real.

        Producers and consumers that this object has created are shut down.
        """

    @property
    def has_clients(self) -> bool:
        """Whether there are producers or consumers that this object has created."""
        return bool(self._clients)

    def shut_down_clients(self) -> None:
        """Shuts down the producers and consumers that this object has created."""
        clients, self._clients, self._sender = self._clients, [], None
        for each in reversed(clients):
            each.shutdown()


def _decoded(records: bytes) -> Iterator[MessageExt]:
    offset = 0
    while offset < len(records):
        message, offset = decode_message(records, offset)
        yield message
