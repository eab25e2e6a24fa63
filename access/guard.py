# SPDX-License-Identifier: Apache-2.0
"""The guard that asks an authority about each request, before it is served.

The address that counts is that of the connection. A header of the PROXY protocol changes it only
where the connection comes from a balancer that is named in `proxyProtocolFrom`.
Counterpart of AuthenticationPipeline, AuthorizationPipeline and PlainAccessValidator's RPC hook.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.access.audit import Audit
from txrocketmq.access.authority import Authority
from txrocketmq.remoting.call import Peer
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError

_MOST_HOSTS: Final = 4_096


def host_of(address: str) -> str:
    """Returns the IP of "ip:port" or "[ip6]:port", without the zone of an IPv6 address."""
    return address.rpartition(":")[0].strip("[]").partition("%")[0]


class AccessRefused(ResponseError):
    """A request that the authority refuses; the audit has told of it."""

    is_told = True


class AccessGuard:
    """A guard for the dispatcher: raises ResponseError for what the authority refuses."""

    def __init__(self, authority: Authority, audit: Audit) -> None:
        self._refusal = authority.refusal
        self._authority = authority
        self._audit = audit
        self._hosts: dict[str, str] = {}
        """By address of a peer: its host. Addresses recur with each request of a connection."""

    def __call__(self, peer: Peer, command: RemotingCommand) -> None:
        """Raises ResponseError if the request is refused."""
        address = peer.remote_address
        host = self._hosts.get(address)
        if host is None:
            if len(self._hosts) >= _MOST_HOSTS:
                self._hosts.clear()
            host = self._hosts[address] = host_of(address)
        refusal = self._refusal(command, host)
        if refusal is not None:
            self._audit.refusal(command.code, host, refusal)
            raise AccessRefused(self._authority.code, refusal.remark)
