# SPDX-License-Identifier: Apache-2.0
"""Errors of the client; their texts say what to do where that is known.

    MQClientError                 anything the client raises on its own
    |- NoNameServer               no name server is given, or none can be reached
    |- NoRoute                    no broker has the topic
    |- BrokerNotExist             a broker of the route has no address
    |- MessageIllegal             a message, topic or group that no broker would take
    |- SendFailed                 all attempts to send failed; `attempts` says how
    |- RequestTimedOut            nobody answered a request in time
    |- NotARequest                a message to be answered that nobody asks with
    |- BackpressureTimeout        brokers have not answered for what was sent before
    |- ClientClosed               the client was stopped
    |- NotRunning                 the consumer was not started, or has been stopped
    |- OffsetsUnreadable          the local offsets of a consumer in broadcasting are damaged
    |- NotAssigned                a queue is not one of the consumer's own
    |- OffsetIllegal              a queue has no message there, nor will it begin there
    |- GroupNotFound              no broker has the group
    |- AccountNotFound            no broker has the account
    |- GroupOffline               no consumer of the group is connected
    |- GroupOnline                consumers of the group are connected, and would undo it
    |- MessageNotFound            no broker has the message
    |- NotKept                    a broker took a setting, and does not keep it
    |- PartlyFailed               some servers did what was asked, others not; `failures` says why
    `- MQBrokerError              a broker or name server answered with an error
       |- PopNotSupported         it is of 4.x, which has no POP
       `- AdminRefused            the same to an administrator: what was refused, and what to do

`code` is the number that the Java client reports (ClientErrorCode, ResponseCode). Errors of the
connection itself are txrocketmq.remoting.errors.RemotingError.

Java: MQClientException, MQBrokerException, ClientErrorCode.
"""

from __future__ import annotations

from collections.abc import Sequence

from txrocketmq.client.base.refusals import Refusal, refusal_of
from txrocketmq.remoting.codes import ResponseCode

CONNECT_BROKER = 10001
ACCESS_BROKER_TIMEOUT = 10002
BROKER_NOT_EXIST = 10003
NO_NAME_SERVER = 10004
NOT_FOUND_TOPIC = 10005
REQUEST_TIMEOUT = 10006
CREATE_REPLY_MESSAGE = 10007


class MQClientError(Exception):
    """The base class of the client's errors (MQClientException)."""

    code = -1


class NoNameServer(MQClientError):
    """There is no name server to ask, or none can be reached."""

    code = NO_NAME_SERVER


class NoRoute(MQClientError):
    """No broker has the topic."""

    code = NOT_FOUND_TOPIC

    def __init__(self, topic: str, why: str) -> None:
        super().__init__(f"topic {topic} has no route: {why}")
        self.topic = topic


class BrokerNotExist(MQClientError):
    """No route contains an address of the broker."""

    code = BROKER_NOT_EXIST


class MessageIllegal(MQClientError, ValueError):
    """No broker would accept this message or this name of a topic or group (Validators)."""

    code = int(ResponseCode.MESSAGE_ILLEGAL)


class SendFailed(MQClientError):
    """All attempts to send failed; `attempts` has the names of the brokers and their errors.

    It is empty if the time was over before the first attempt.
    """

    def __init__(
        self, topic: str, attempts: Sequence[tuple[str, Exception]], code: int, timeout_ms: int = 0
    ) -> None:
        times = f" after {_times(len(attempts), 'attempt')}" if attempts else ""
        why = _folded(attempts) or (
            f"the timeout of {timeout_ms} ms expired before the message was sent"
        )
        super().__init__(f"sending to topic {topic} failed{times}: {why}")
        self.attempts = tuple(attempts)
        self.code = code


def _folded(attempts: Sequence[tuple[str, Exception]]) -> str:
    """Returns the errors of attempts as text, each of them once, with the brokers that gave it."""
    brokers: dict[str, dict[str, int]] = {}
    for broker, error in attempts:
        counts = brokers.setdefault(str(error), {})
        counts[broker] = counts.get(broker, 0) + 1
    return "; ".join(
        ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in its.items())
        + f": {text}"
        for text, its in brokers.items()
    )


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}"


class RequestTimedOut(MQClientError):
    """A request was sent, but nobody replied in time (RequestTimeoutException)."""

    code = REQUEST_TIMEOUT


class NotARequest(MQClientError):
    """The message cannot be replied to, because it was not sent as a request."""

    code = CREATE_REPLY_MESSAGE


class BackpressureTimeout(MQClientError):
    """The message was not sent, as there was no room for it in time beside those on their way."""


TooMuchOnTheWay = BackpressureTimeout
"""The name of earlier releases."""


class ClientClosed(MQClientError):
    """The client was shut down meanwhile."""


class NotRunning(MQClientError):
    """The consumer was not started, or has been shut down."""


class OffsetsUnreadable(MQClientError):
    """The local file of a broadcasting consumer's offsets is damaged; the text names it."""


class NotAssigned(MQClientError):
    """The queue is not assigned to this consumer, perhaps because the group is changing."""


class OffsetIllegal(MQClientError):
    """The queue does not contain the offset."""


class MQBrokerError(MQClientError):
    """An answer that is not success (MQBrokerException); `about` names topic, queue and group."""

    def __init__(self, code: int, remark: str | None, address: str, about: str = "") -> None:
        super().__init__(code, remark, address, about)
        self.code = code
        self.remark = remark
        self.address = address
        self.about = about

    @property
    def code_name(self) -> str:
        """The name of the code, or UNKNOWN for a number without a name."""
        try:
            return ResponseCode(self.code).name
        except ValueError:
            return "UNKNOWN"

    @property
    def refusal(self) -> Refusal | None:
        """What the server says about the account, if the account is why it refused the request."""
        return refusal_of(self.code, self.remark)

    def __str__(self) -> str:
        told, refusal = self._told(), self.refusal
        if (
            self.about and refusal is None
        ):  # which names what counts, and is the same for all queues
            told += f" ({self.about})"
        advice = _ADVICE.get(self.code) if refusal is None else refusal.advice
        return f"{told}; {advice}" if advice else told

    def _told(self) -> str:
        refusal = self.refusal
        remark = self.remark if refusal is None else refusal.why.removesuffix(".")
        remark = remark or "no reason given"
        return f"{self.address} answered {self.code_name} ({self.code}): {remark}"


class AdminRefused(MQBrokerError):
    """A server refused the request of an administrator; `doing` says what was requested."""

    def __init__(self, doing: str, error: MQBrokerError) -> None:
        super().__init__(error.code, error.remark, error.address)
        self.doing = doing

    def __str__(self) -> str:
        return f"{self.doing} failed: {super().__str__()}"


_ADVICE: dict[int, str] = {
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: (
        "the server does not support this request: it may be of an older release, or a name server"
        " (9876) where a broker (10911) is meant"
    ),
    ResponseCode.NO_PERMISSION: (
        "the account may lack the right, or the server, the topic or the group is closed for this"
    ),
    ResponseCode.TOPIC_NOT_EXIST: "check the spelling of the topic, or create it first",
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: (
        "check the spelling of the group, or create it first"
    ),
    ResponseCode.SYSTEM_BUSY: "the broker is too busy, or does not serve this now: try later",
    ResponseCode.SERVICE_NOT_AVAILABLE: "look at the broker's log, and at its disk",
    ResponseCode.CONSUMER_NOT_ONLINE: "start a consumer of the group first",
    ResponseCode.CONSUME_MSG_TIMEOUT: "the consumer did not answer: it may be busy or gone",
}
"""What to do about an answer."""


class GroupNotFound(MQClientError):
    """No broker has the group."""

    code = int(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST)

    def __init__(self, group: str) -> None:
        super().__init__(f"no broker has the group {group}: check its spelling, or create it first")
        self.group = group


class AccountNotFound(MQClientError):
    """No broker has the account."""

    def __init__(self, account: str) -> None:
        super().__init__(
            f"no broker has the account {account}: check its spelling, or create it first"
        )
        self.account = account


class GroupOffline(MQClientError):
    """No consumer of the group is connected."""

    code = int(ResponseCode.CONSUMER_NOT_ONLINE)

    def __init__(self, group: str) -> None:
        super().__init__(f"no consumer of the group {group} is connected to any broker")
        self.group = group


class GroupOnline(MQClientError):
    """Consumers of the group are connected, and would undo what was requested."""

    def __init__(self, group: str, why: str) -> None:
        super().__init__(f"consumers of the group {group} are connected: {why}")
        self.group = group


class MessageNotFound(MQClientError):
    """No broker has the message."""

    code = int(ResponseCode.NO_MESSAGE)


class NotKept(MQClientError):
    """A broker accepted a setting, but does not keep it."""


class PartlyFailed(MQClientError):
    """Some servers did what was requested and others failed; `failures` has these with errors."""

    def __init__(self, doing: str, done: int, failures: Sequence[tuple[str, Exception]]) -> None:
        said = "; ".join(f"{server}: {error}" for server, error in failures)
        total = done + len(failures)
        super().__init__(f"{doing} failed at {len(failures)} of {total} servers: {said}")
        self.done = done
        self.failures = tuple(failures)


class PopNotSupported(MQBrokerError):
    """The broker does not support POP, which came with 5.0."""

    def __str__(self) -> str:
        return (
            f"the broker at {self.address} has no POP, which came with 5.0: use a PushConsumer or a"
            f" LitePullConsumer with it ({self._told()})"
        )
