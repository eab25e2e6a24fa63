# SPDX-License-Identifier: Apache-2.0
"""The settings of a server about its ports and those who connect to them.

Java: NettyServerConfig.
"""

from __future__ import annotations

from dataclasses import dataclass

from txrocketmq.remoting.primitives.networks import Networks
from txrocketmq.remoting.settings.config_file import ConfigError, setting
from txrocketmq.remoting.settings.metrics_config import MetricsConfig


@dataclass(frozen=True, slots=True)
class PortsConfig(MetricsConfig):
    """The settings about ports and who connects to them, which all servers have."""

    bind_address: str = setting("0.0.0.0")
    """The address to listen on."""
    proxy_protocol_from: tuple[str, ...] = setting(())
    """The load balancers that are believed when they say for whom they have opened a connection
    (PROXY protocol, versions 1 and 2): their addresses or networks, such as `10.0.0.5;10.1.0.0/16`,
    separated by semicolons. Other connections may begin with such a header as well, but count as
    those of the address they come from."""
    max_bytes_held_for_peers: int = setting(268_435_456, live=True, least=33_554_432)
    """How many bytes may be held for all connections together: unfinished frames, requests that are
    not served yet or wait for messages, answers that are not read, and the state of TLS (24 KiB or
    more for a connection). Beyond that, those with the most are not read from any more, and after
    some seconds, or at a quarter more, they are closed."""

    def __post_init__(self) -> None:
        """Raises ConfigError if the settings cannot be used."""
        MetricsConfig.__post_init__(self)  # super() finds no way out of a class with slots
        _check_networks("proxyProtocolFrom", self.proxy_protocol_from)


@dataclass(frozen=True, slots=True)
class PeersConfig(PortsConfig):
    """The settings about peers, which name servers and brokers have."""

    admin_addresses: tuple[str, ...] = setting(())
    """The addresses or networks that may send requests which destroy something, such as
    `127.0.0.1;::1;10.0.5.0/24`, separated by semicolons: those that delete topics and groups, reset
    or copy offsets, clean up, change settings or accounts, or take brokers and topics from routes.
    Others are refused; only a broker may always unregister itself. Registering is open to all.
    Empty means everybody, as in the original."""
    max_connections_per_address: int = setting(0)
    """How many connections one address may have; more are closed at once. 0 means any number."""
    server_channel_max_idle_time_seconds: int = setting(120)
    """The idle time in seconds after which a connection is closed; 0 means never. A connection is
    closed as well if one frame takes longer than this to arrive."""
    enable_shutdown_gracefully: bool = setting(False, live=True)
    """Whether clients of 5.3.2 and later are sent away (GO_AWAY) for a while before the server
    stops, so that they repeat elsewhere what was not served."""
    shutdown_wait_time_seconds: int = setting(30, live=True)
    """How many seconds clients are sent away before the server stops (enableShutdownGracefully)."""

    def __post_init__(self) -> None:
        """Raises ConfigError if the settings cannot be used."""
        PortsConfig.__post_init__(self)
        _check_networks("adminAddresses", self.admin_addresses)


def _check_networks(key: str, texts: tuple[str, ...]) -> None:
    try:
        Networks(texts)
    except ValueError as error:
        raise ConfigError(
            f"{key} must be addresses and networks like 10.0.0.5;10.1.0.0/16;2001:db8::/32, not"
            f" {str(error)!r}"
        ) from None
