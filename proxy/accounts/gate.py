# SPDX-License-Identifier: Apache-2.0
"""The gate in front of the methods: serves a call if its account may, and answers it otherwise.

Without accounts there is none, and no call pays for it. A refusal is an answer with the code
UNAUTHORIZED, whether it is unknown who calls or that may not: clients of all versions know this
one. Nothing of a call that is refused has been done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from txrocketmq.access.audit import Audit
from txrocketmq.access.authority import Refusal
from txrocketmq.client.base.errors import MQClientError
from txrocketmq.proxy.accounts.authority import CallAuthority, ProvenUser
from txrocketmq.proxy.base.statuses import Refused, set_status
from txrocketmq.proxy.grpc.call import Call
from txrocketmq.proxy.grpc.service import Conversation, Kind, Rpc
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.messages import message_type
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.host.clock import Clock, Repeating
from txrocketmq.remoting.process.log_limit import Seldom, and_more
from txrocketmq.remoting.transport.client import as_deferred

LOOK_MS: Final = 1_000
"""After which time it is looked again whether an account may still do what it did."""

FAILED: Final = "Authentication failed. Please verify the credentials and try again."
"""What the original says if the brokers cannot say who somebody is."""
UNREACHABLE: Final = "the brokers cannot be asked who calls: try again"

Method = Callable[..., Any]
Refuse = Callable[[Call, Code, str], Any]
"""Answers a call with a code and a text."""

log = Logger()


class Gate:
    """Guards methods. `audit` tells of refusals."""

    def __init__(self, clock: Clock, authority: CallAuthority, audit: Audit) -> None:
        self._clock = clock
        self._authority = authority
        self._audit = audit
        self._seldom = Seldom(5)
        self._looking: Repeating | None = None
        self.refused: Counter[tuple[str, str]] = Counter()
        """How often calls were refused, by method and reason."""

    def start(self) -> None:
        """Begins to look again."""
        self._looking = self._clock.every(LOOK_MS, self._authority.forget)

    def stop(self) -> None:
        """Ends that."""
        if self._looking is not None:
            self._looking.cancel()

    def guarded(self, its: Rpc, method: Method) -> Method:
        """Returns a method that serves what is allowed."""
        if its.request_name in self._authority.unsigned:
            return method
        if its.kind is Kind.CONVERSATION:
            return lambda call: _GuardedConversation(self, its, call, method(call))
        answer = message_type(f"{its.name}Response")
        is_stream = its.kind is Kind.STREAM

        def refuse(call: Call, code: Code, text: str) -> Any:
            its_answer = set_status(answer(), code, text)
            if not is_stream:
                return its_answer
            call.write(its_answer)
            return None

        def serve(call: Call, request: Any) -> Any:
            return self.serve(its, call, request, method, refuse)

        return serve

    def serve(self, its: Rpc, call: Call, request: Any, method: Method, refuse: Refuse) -> Any:
        """Returns what the method returns, or what `refuse` does, or a Deferred of that."""
        caller = self._authority.caller(call.headers)
        if caller is None:
            return Deferred.fromCoroutine(self._ask_and_serve(its, call, request, method, refuse))
        return self._serve(caller, its, call, request, method, refuse)

    async def _ask_and_serve(
        self, its: Rpc, call: Call, request: Any, method: Method, refuse: Refuse
    ) -> Any:
        try:
            caller = await self._authority.asked_caller(call.headers)
        except (Refused, MQClientError, RemotingError) as error:
            return refuse(call, *self._unknown(error))
        outcome = self._serve(caller, its, call, request, method, refuse)
        if isinstance(outcome, PendingReply):
            outcome = as_deferred(outcome)
        return await outcome if isinstance(outcome, Deferred) else outcome

    def _unknown(self, error: Exception) -> tuple[Code, str]:
        """Returns the answer to a call of which nobody can say who makes it, and logs why."""
        if isinstance(error, Refused):
            return error.code, error.text
        more = self._seldom.more(self._clock.steady_ms(), type(error).__name__)
        if more is not None:
            log.warn(
                "brokers cannot be asked who calls: {e}{more}", e=str(error), more=and_more(more)
            )
        if isinstance(error, RemotingError):
            return Code.PROXY_TIMEOUT, UNREACHABLE
        return Code.UNAUTHORIZED, FAILED

    def _serve(
        self,
        caller: ProvenUser | Refusal,
        its: Rpc,
        call: Call,
        request: Any,
        method: Method,
        refuse: Refuse,
    ) -> Any:
        if isinstance(caller, Refusal):
            refusal: Refusal | None = caller
        else:
            refusal = self._authority.refusal(caller, its, request, call.peer)
            call.account, call.caller = caller.name, caller
        if refusal is None:
            return method(call, request)
        self.refused[its.name, refusal.reason] += 1
        self._audit.tell_refusal(its.name, self._authority.host(call.peer), refusal)
        return refuse(call, Code.UNAUTHORIZED, refusal.remark)


class _GuardedConversation:
    """A conversation of which each message needs an account; one that is refused ends it."""

    def __init__(self, gate: Gate, its: Rpc, call: Call, inner: Conversation) -> None:
        self._gate = gate
        self._its = its
        self._call = call
        self._inner = inner

    def received(self, message: Any) -> Any:
        """Passes a message on, if it is allowed."""
        return self._gate.serve(self._its, self._call, message, self._take, self._refuse)

    def ended(self, reason: str) -> None:
        """Passes on that no more messages come."""
        self._inner.ended(reason)

    def _take(self, _: Call, message: Any) -> Any:
        return self._inner.received(message)

    def _refuse(self, call: Call, code: Code, text: str) -> None:
        call.write(set_status(message_type(self._its.request_name)(), code, text))
        call.end()
