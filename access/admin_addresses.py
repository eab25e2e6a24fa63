# SPDX-License-Identifier: Apache-2.0
"""Requests that destroy something are served to some addresses only, if `adminAddresses` is set.

That is for servers without accounts, on which everybody may do everything: whoever deletes topics,
changes settings or takes brokers from the routes has to be near. It counts from where the
connection comes, never what a header of the PROXY protocol says. Other requests do not pay for
this, since only the handlers of these are replaced. The original has nothing like it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final

from txrocketmq.remoting.call import Answer, Peer, Request
from txrocketmq.remoting.codes import RequestCode as C
from txrocketmq.remoting.codes import ResponseCode, code_name
from txrocketmq.remoting.dispatch import Binding, Registry
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.primitives.networks import Networks

DANGEROUS: Final = frozenset(
    (
        C.UPDATE_BROKER_CONFIG,
        C.DELETE_SUBSCRIPTIONGROUP,
        C.DELETE_TOPIC_IN_BROKER,
        C.INVOKE_BROKER_TO_RESET_OFFSET,
        C.CLONE_GROUP_OFFSET,
        C.CLEAN_EXPIRED_CONSUMEQUEUE,
        C.CLEAN_UNUSED_TOPIC,
        C.DELETE_EXPIRED_COMMITLOG,
        C.SWITCH_TIMER_ENGINE,
        C.RESET_MASTER_FLUSH_OFFSET,
        C.POP_ROLLBACK,
        C.AUTH_CREATE_USER,
        C.AUTH_UPDATE_USER,
        C.AUTH_DELETE_USER,
        C.AUTH_CREATE_ACL,
        C.AUTH_UPDATE_ACL,
        C.AUTH_DELETE_ACL,
        C.UPDATE_AND_CREATE_ACL_CONFIG,
        C.DELETE_ACL_CONFIG,
        C.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
        C.PUT_KV_CONFIG,
        C.DELETE_KV_CONFIG,
        C.UNREGISTER_BROKER,
        C.WIPE_WRITE_PERM_OF_BROKER,
        C.ADD_WRITE_PERM_OF_BROKER,
        C.DELETE_TOPIC_IN_NAMESRV,
        C.REGISTER_TOPIC_IN_NAMESRV,
        C.UPDATE_NAMESRV_CONFIG,
    )
)
"""Requests by which messages, offsets, settings or routes of others are lost, or by which somebody
gets an account: users can be made before authenticationEnabled asks for them."""
_PORT_BYTES: Final = 4


def near(registry: Registry, networks: Networks) -> Registry:
    """Returns a registry whose dangerous requests are served to these networks only.

    Without any network, it is the same registry. A broker may always unregister itself.
    """
    if not networks:
        return registry
    guarded = Registry()
    guarded.bindings = {
        code: _near(binding, networks) if code in DANGEROUS else binding
        for code, binding in registry.bindings.items()
    }
    return guarded


def _near(binding: Binding, networks: Networks) -> Binding:
    serve = binding.handler
    if serve is None:
        raise ValueError(f"{binding.call.name} is served in runs, so its address is not looked at")

    def handler(request: Request[Any]) -> Answer:
        host = connected_from(request.peer)
        if host in networks or _is_of_itself(request, host):
            return serve(request)
        raise ResponseError(
            ResponseCode.NO_PERMISSION,
            f"{code_name(request.command.code)} is not served to {host}: send it from one of the"
            " adminAddresses of this server, or add the address to them",
        )

    return replace(binding, handler=handler)


def _is_of_itself(request: Request[Any], host: str) -> bool:
    """Whether a broker unregisters, as it does at its end, under the address it comes from."""
    if request.command.code != C.UNREGISTER_BROKER:
        return False
    address = (request.command.ext_fields or {}).get("brokerAddr", "")
    return address.rpartition(":")[0].strip("[]") == host


def connected_from(peer: Peer) -> str:
    """Returns the address that a connection comes from."""
    return _text(bytes(peer.remote_host[:-_PORT_BYTES]))


@lru_cache(maxsize=256)
def _text(address: bytes) -> str:
    try:
        return str(ip_address(address))
    except ValueError:
        return ""
