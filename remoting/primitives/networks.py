# SPDX-License-Identifier: Apache-2.0
"""Networks: sets of addresses, and addresses with a port, as settings name them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

_PLACE = re.compile(r"(?:[^\s:]+|\[[0-9a-fA-F:.]+\]):([0-9]{1,5})")


def is_host_and_port(text: str) -> bool:
    """Whether this looks like 192.168.0.1:9876, name:9876 or [::1]:9876."""
    found = _PLACE.fullmatch(text)
    return found is not None and 0 < int(found[1]) < 65_536


class Networks:
    """The addresses in some networks, such as "10.1.0.0/16", "2001:db8::/32" or "10.0.0.5".

    An IPv4 address that is mapped into IPv6 counts as the IPv4 address. Raises ValueError, with the
    text, for one that is neither a network nor an address.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._networks = tuple(_network(text) for text in texts)

    def __bool__(self) -> bool:
        """Whether there are any networks."""
        return bool(self._networks)

    def __contains__(self, host: str) -> bool:
        if not self._networks:
            return False
        try:
            address: IPv4Address | IPv6Address = ip_address(host.partition("%")[0])
        except ValueError:  # no address, such as the path of a socket in the file system
            return False
        if isinstance(address, IPv6Address):
            address = address.ipv4_mapped or address
        return any(address in network for network in self._networks)


def is_loopback(host: str) -> bool:
    """Returns whether only programs on this machine reach a listener on this address."""
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text.strip(), strict=False)
    except ValueError:
        raise ValueError(text) from None
