# SPDX-License-Identifier: Apache-2.0
"""Finds the address of this machine that others are given if the settings name none.

It is the one that faces the name server: loopback for a name server on this machine, the address in
the network for one elsewhere. The original takes its first address that is not loopback, which
clients on a laptop often cannot reach. Brokers tell clients this address, and clients have it in
their ids. `address_of` looks up the names of hosts.

Java: RemotingUtil.getLocalAddress, NetworkUtil.getLocalAddress, RemotingHelper.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address

from txrocketmq.remoting.message.ids import pack_host

LOOPBACK = "127.0.0.1"


def address_text(host: str, port: int) -> str:
    """Returns the address as "ip:port", with the IP in brackets if it is IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_bytes(host: str, port: int) -> bytes:
    """Returns an address as records hold it: 4 or 16 bytes of IP and 4 bytes of port.

    An IPv4 address that is mapped into IPv6 is held as IPv4.
    """
    ip = ip_address(host.partition("%")[0])
    mapped = getattr(ip, "ipv4_mapped", None)
    return pack_host((mapped or ip).packed, port)


def address_facing(namesrv_addr: str) -> str:
    """Returns our address on the way to the first name server, or loopback; sends nothing.

    It is loopback if there is no name server, or no way to it.
    """
    first = namesrv_addr.partition(";")[0].strip()
    host, _, port = first.rpartition(":")
    if not host or not port.isdigit():
        return LOOPBACK
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except (OSError, ValueError):  # no way, or no such name: connecting will report it
        return LOOPBACK


def address_here(bind_address: str) -> str:
    """Returns the address at which programs on this machine find a listener with this bind address.

    For a listener on all addresses it is loopback.
    """
    return LOOPBACK if bind_address in ("", "0.0.0.0", "::") else bind_address


def address_of(host: str, key: str) -> str:
    """Returns the IP address of a host; a name is looked up, and IPv4 is preferred, as in Java.

    Raises ValueError, whose text names the setting `key` that the host comes from.
    """
    try:
        return str(ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:
        raise ValueError(f"{key} is {host!r}, which has no address: {error}") from None
    return str(min(found, key=lambda each: each[0] != socket.AF_INET)[4][0])
