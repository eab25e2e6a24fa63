# SPDX-License-Identifier: Apache-2.0
"""Names of topics, groups, brokers and clusters, with which a shell completes a line.

The cluster that the line names is asked over blocking sockets, without a reactor. What it says is
kept in $XDG_CACHE_HOME (~/.cache) for some seconds: a shell asks again at each press of the key. If
the cluster does not answer in a moment, what is kept is offered, however old it is, or nothing.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click
import orjson

from txrocketmq.cli.command_line import Servers, servers_of
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.route import ClusterInfo
from txrocketmq.remoting.protocol.body.topic import SubscriptionGroupWrapper
from txrocketmq.remoting.protocol.route import GET_BROKER_CLUSTER_INFO
from txrocketmq.remoting.protocol.topic import (
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    GetAllSubscriptionGroupRequestHeader,
)
from txrocketmq.remoting.routing.addresses import MASTER_ID

if TYPE_CHECKING:
    from txrocketmq.spark.live.wire.cluster import Cluster

TIMEOUT_MS: Final = 500
"""How long each server may take to answer."""
FRESH_MS: Final = 10_000
"""How long names are offered without asking again."""
MAX_BROKERS: Final = 8
"""How many masters are asked for groups."""
MAX_NAMES: Final = 2_000
"""How many names are kept and offered."""
MAX_CACHE_BYTES: Final = 1 << 20


Complete = Callable[[click.Context, click.Parameter, str], list[str]]
"""What click calls to complete a word."""


def completion_of(kind: str) -> Complete:
    """Returns what completes names of a kind; it offers nothing if anything fails.

    Topics of retries and of dead letters are offered only if something was typed.
    """

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        try:
            names = Names(servers_of(ctx)).get(kind)
        except Exception:  # noqa: BLE001 - whatever it is, a shell must not show it in a line
            return []
        return [
            name
            for name in names
            if name.startswith(incomplete) and (incomplete or not name.startswith("%"))
        ]

    return complete


topics: Final = completion_of("topics")
groups: Final = completion_of("groups")
brokers: Final = completion_of("brokers")
clusters: Final = completion_of("clusters")


class _Kept(NamedTuple):
    time_ms: int
    names: list[str]


class Names:
    """The names that a cluster has."""

    def __init__(self, servers: Servers, now_ms: Callable[[], int] | None = None) -> None:
        """Raises ClickException for a context that cannot be used."""
        self._config = servers.config()
        self._now_ms = now_ms or (lambda: int(time.time() * 1000))
        where = f"{self._config.namesrv_addr} {self._config.access_key}"
        digest = hashlib.sha256(where.encode()).hexdigest()[:16]
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._folder = home / "txrocketmq" / f"names-{digest}"

    def get(self, kind: str) -> list[str]:
        """Returns the names of a kind, from the cache or the cluster."""
        from txrocketmq.spark.arrow.errors import SparkSourceError

        now_ms = self._now_ms()
        kept = self._kept(kind)
        if kept is not None and 0 <= now_ms - kept.time_ms < FRESH_MS:
            return kept.names
        if self._config.tls_check_name:  # which this small client cannot do, so it asks nobody
            return []
        try:
            names = sorted(_ASK[kind](self._cluster()))[:MAX_NAMES]
        except SparkSourceError:
            return kept.names if kept is not None else []
        self._keep(kind, _Kept(now_ms, names))
        return names

    def _cluster(self) -> Cluster:
        from txrocketmq.spark.live.wire.cluster import Cluster
        from txrocketmq.spark.live.wire.security import Security

        config = self._config
        security = Security(
            config.access_key,
            config.secret_key,
            config.security_token,
            config.use_tls,
            str(config.tls_trust_cert_path),
            str(config.tls_cert_path),
            str(config.tls_key_path),
        )
        return Cluster(config.namesrv_addr, timeout_ms=TIMEOUT_MS, attempts=1, security=security)

    # ------------------------------------------------------------------ cache

    def _kept(self, kind: str) -> _Kept | None:
        try:
            with (self._folder / kind).open("rb") as file:
                time_ms, names = orjson.loads(file.read(MAX_CACHE_BYTES))
        except (OSError, ValueError):
            return None
        is_sound = isinstance(time_ms, int) and isinstance(names, list)
        return _Kept(time_ms, [str(name) for name in names]) if is_sound else None

    def _keep(self, kind: str, kept: _Kept) -> None:
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            new = self._folder / f"{kind}.{os.getpid()}"
            new.write_bytes(orjson.dumps([kept.time_ms, kept.names]))
            new.replace(self._folder / kind)


def _topics(cluster: Cluster) -> Iterable[str]:
    return cluster.topics()


def _info(cluster: Cluster) -> ClusterInfo:
    """Returns the brokers that are registered at a name server. Raises ClusterError."""
    from txrocketmq.spark.arrow.errors import ClusterError

    failed = ClusterError("there is no name server")
    for address in cluster.name_servers:
        try:
            reply = cluster.connection(address).ask(
                GET_BROKER_CLUSTER_INFO, NoHeader(), timeout_ms=TIMEOUT_MS
            )
        except ClusterError as error:
            failed = error
        else:
            return ClusterInfo.decode(reply.body_bytes)
    raise failed


def _brokers(cluster: Cluster) -> Iterable[str]:
    return _info(cluster).broker_addr_table


def _clusters(cluster: Cluster) -> Iterable[str]:
    return _info(cluster).cluster_addr_table


def _groups(cluster: Cluster) -> Iterable[str]:
    found: set[str] = set()
    brokers = _info(cluster).broker_addr_table.values()
    masters = [each.broker_addrs[MASTER_ID] for each in brokers if MASTER_ID in each.broker_addrs]
    for address in masters[:MAX_BROKERS]:
        reply = cluster.connection(address).ask(
            GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
            GetAllSubscriptionGroupRequestHeader(),
            timeout_ms=TIMEOUT_MS,
        )
        found.update(SubscriptionGroupWrapper.decode(reply.body_bytes).subscription_group_table)
    return found


_ASK: Final[Mapping[str, Callable[[Cluster], Iterable[str]]]] = {
    "topics": _topics,
    "groups": _groups,
    "brokers": _brokers,
    "clusters": _clusters,
}
