# SPDX-License-Identifier: Apache-2.0
"""Errors of the client; the text says what to do where that is known.

    MQClientError                 anything the client raises on its own
    |- NoNameServer               no name server is given, or none can be reached
    |- NoRoute                    no broker has the topic
    |- BrokerNotExist             a broker of the route has no address
    |- MessageIllegal             a message, topic or group that no broker would take
    |- SendFailed                 all attempts to send failed; `attempts` says how
    |- ClientClosed               the client was stopped
    `- MQBrokerError              a broker or name server answered with an error

`code` is the number that the Java client reports (ClientErrorCode, ResponseCode). Errors of the
connection itself are txrocketmq.remoting.errors.RemotingError.
"""

from __future__ import annotations

from collections.abc import Sequence

from txrocketmq.remoting.codes import ResponseCode

CONNECT_BROKER = 10001
ACCESS_BROKER_TIMEOUT = 10002
BROKER_NOT_EXIST = 10003
NO_NAME_SERVER = 10004
NOT_FOUND_TOPIC = 10005


class MQClientError(Exception):
    """Base of the client's errors (MQClientException)."""

    code = -1


class NoNameServer(MQClientError):
    """No name server to ask."""

    code = NO_NAME_SERVER


class NoRoute(MQClientError):
    """No broker has the topic."""

    code = NOT_FOUND_TOPIC

    def __init__(self, topic: str, why: str) -> None:
        super().__init__(f"topic {topic} has no route: {why}")
        self.topic = topic


class BrokerNotExist(MQClientError):
    """A broker that no route has an address for."""

    code = BROKER_NOT_EXIST


class MessageIllegal(MQClientError):
    """What no broker would take (Validators)."""

    code = int(ResponseCode.MESSAGE_ILLEGAL)


class SendFailed(MQClientError):
    """Every attempt failed; `attempts` are the brokers' names with what went wrong."""

    def __init__(self, topic: str, attempts: Sequence[tuple[str, Exception]], code: int) -> None:
        tried = "; ".join(f"{broker}: {error}" for broker, error in attempts)
        times = f"{len(attempts)} attempt{'s' if len(attempts) > 1 else ''}"
        super().__init__(f"sending to topic {topic} failed after {times}: {tried}")
        self.attempts = tuple(attempts)
        self.code = code


class ClientClosed(MQClientError):
    """The client was stopped meanwhile."""


class MQBrokerError(MQClientError):
    """An answer that is not success (MQBrokerException)."""

    def __init__(self, code: int, remark: str | None, address: str) -> None:
        super().__init__(code, remark, address)
        self.code = code
        self.remark = remark
        self.address = address

    @property
    def code_name(self) -> str:
        """Name of the code, UNKNOWN for a number that has none."""
        try:
            return ResponseCode(self.code).name
        except ValueError:
            return "UNKNOWN"

    def __str__(self) -> str:
        remark = self.remark or "no reason given"
        return f"{self.address} answered {self.code_name} ({self.code}): {remark}"
