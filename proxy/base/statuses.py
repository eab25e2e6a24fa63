# SPDX-License-Identifier: Apache-2.0
"""Statuses: the code and the text in each answer, and which errors become which.

RocketMQ's errors travel inside of answers, while the call itself ends well. A method raises
`Refused`, or lets the errors of brokers pass; `answered` makes answers of them.

Java: GrpcProxyException, ResponseBuilder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from txrocketmq.client.base.errors import (
    BackpressureTimeout,
    BrokerNotExist,
    MQBrokerError,
    MQClientError,
    NoRoute,
)
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import RemotingError, RequestTimeout, TooManyRequests

_OF_BROKERS: Final[dict[int, Code]] = {
    ResponseCode.SUCCESS: Code.OK,
    ResponseCode.SYSTEM_BUSY: Code.TOO_MANY_REQUESTS,
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: Code.NOT_IMPLEMENTED,
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: Code.CONSUMER_GROUP_NOT_FOUND,
    ResponseCode.TOPIC_NOT_EXIST: Code.TOPIC_NOT_FOUND,
    ResponseCode.NO_PERMISSION: Code.FORBIDDEN,
}
"""The code that stands for a broker's."""
_NAMES: Final = {code: code.name for code in Code}  # the attribute of an enum takes longer


class Refused(Exception):
    """The proxy refuses a request, with the status that its answer gets."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def code_of_broker(code: int) -> Code:
    """Returns the code that stands for a broker's."""
    return _OF_BROKERS.get(code, Code.INTERNAL_SERVER_ERROR)


def told(error: BaseException | None) -> tuple[Code, str] | None:
    """Returns the code and the text for an error; None for a defect, or a cancellation."""
    if isinstance(error, Refused):
        return error.code, error.text
    if isinstance(error, MQBrokerError):
        return code_of_broker(error.code), error.remark or str(error)
    if isinstance(error, NoRoute):
        return Code.TOPIC_NOT_FOUND, str(error)
    if isinstance(error, (RequestTimeout, BrokerNotExist)):
        return Code.PROXY_TIMEOUT, str(error)
    if isinstance(error, (TooManyRequests, BackpressureTimeout)):
        return Code.TOO_MANY_REQUESTS, str(error)
    if isinstance(error, (RemotingError, MQClientError)):
        return Code.INTERNAL_SERVER_ERROR, str(error)
    return None


def set_status(answer: Any, code: Code, text: str = "") -> Any:
    """Sets the status of an answer, and returns it; the text is by default the code's name."""
    status = answer.status
    status.code = code
    status.message = text or _NAMES[code]
    return answer


def set_total(answer: Any, codes: Iterable[Code]) -> Any:
    """Sets the status of an answer with several entries: their code, or MULTIPLE_RESULTS."""
    its = set(codes)
    return set_status(answer, its.pop() if len(its) == 1 else Code.MULTIPLE_RESULTS)


def refusal(error: Exception, answer: Callable[[], Any]) -> Any:
    """Returns an answer with the status of an error; a defect, or a cancellation, stays one."""
    status = told(error)
    return error if status is None else set_status(answer(), *status)


def refused(failure: Failure, answer: Callable[[], Any]) -> Any:
    """Does what `refusal` does, of a failure."""
    status = told(failure.value)
    return failure if status is None else set_status(answer(), *status)


def answered(
    answer_name: str,
) -> Callable[[Callable[..., Awaitable[Any]]], Callable[..., Deferred[Any]]]:
    """Makes a method of a coroutine; what it refuses becomes the status of an empty answer."""
    answer = message_type(answer_name)

    def declare(method: Callable[..., Any]) -> Callable[..., Deferred[Any]]:
        @wraps(method)
        def serve(self: Any, call: Any, request: Any) -> Deferred[Any]:
            begun = Deferred.fromCoroutine(method(self, call, request))
            return begun.addErrback(refused, answer)

        return serve

    return declare
