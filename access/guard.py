# SPDX-License-Identifier: Apache-2.0
"""The guard that asks an authority about each request, before it is served.

The address that counts is that of the connection. A header of the PROXY protocol changes it only
where the connection comes from a balancer that is named in `proxyProtocolFrom`.
Counterpart of AuthenticationPipeline, AuthorizationPipeline and PlainAccessValidator's RPC hook.
"""

from __future__ import annotations

from txrocketmq.access.audit import Audit
from txrocketmq.access.authority import Authority
from txrocketmq.access.known import host_of
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError


class AccessRefused(ResponseError):
    """A request that the authority refuses; the audit has told of it."""

    is_told = True


class AccessGuard:
    """A guard for the dispatcher: raises ResponseError for what the authority refuses."""

    def __init__(self, authority: Authority, audit: Audit) -> None:
        self._refusal = authority.refusal
        self.knows, self.passed = authority.known.knows, authority.known.passed
        """Return whether, and how far, requests are like those that were allowed; see `Guard`."""
        self.known = authority.known
        """What is known of requests that are allowed."""
        self.origin = authority.known.origin
        """Returns a number for the address of a peer."""
        self._authority = authority
        self._audit = audit

    def __call__(self, peer: Peer, command: RemotingCommand) -> None:
        """Raises ResponseError if the request is refused."""
        host = host_of(peer.remote_address)
        refusal = self._refusal(command, host)
        if refusal is not None:
            self._audit.refusal(command.code, host, refusal)
            raise AccessRefused(self._authority.code, refusal.remark)
