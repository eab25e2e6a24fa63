# SPDX-License-Identifier: Apache-2.0
"""All journeys whose operations are counted, and the table of what they cost."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.broker_journeys import DUE, BrokerJourneys
from benchmarks.client_journeys import ClientJourneys
from benchmarks.namesrv_journeys import NamesrvJourneys
from benchmarks.operations import Cost, Counting, Journey, Server, cost_of, reproducible
from benchmarks.proxy_journeys import ProxyJourneys
from benchmarks.replica_journeys import MasterJourneys, SlaveJourneys
from benchmarks.sends import BATCH, USER, batch_send, binary_send, json_send, plain

Count = Callable[[Path], tuple[Cost, Counting]]


def _plain_send(n: int) -> bytes:
    return json_send(n, plain(n))


def _sends() -> dict[str, tuple[Journey[BrokerJourneys], int]]:
    made = {
        "send, JSON": _plain_send,
        "send, JSON, 3 properties": lambda n: json_send(n, plain(n, USER)),
        "send, binary": lambda n: binary_send(n, plain(n)),
        "send, one-way": lambda n: json_send(n, plain(n), oneway=True),
    }
    found: dict[str, tuple[Journey[BrokerJourneys], int]] = {}
    for name, make in made.items():
        found[name] = partial(BrokerJourneys.sends, make=make, count=1), 1
        found[f"{name}, of 32"] = partial(BrokerJourneys.sends, make=make, count=BATCH), BATCH
    for name, properties in {"": "", ", 3 properties": USER}.items():
        batch = partial(batch_send, properties=properties)
        found[f"batch{name}, of 32"] = partial(BrokerJourneys.sends, make=batch, count=1), BATCH
    return found


def _many() -> dict[str, tuple[Journey[BrokerJourneys], int]]:
    found: dict[str, tuple[Journey[BrokerJourneys], int]] = {}
    for name, journey in {
        "half message": BrokerJourneys.halves,
        "commit": BrokerJourneys.commits,
        "rollback": BrokerJourneys.rollbacks,
        "acknowledgement": BrokerJourneys.acknowledgements,
    }.items():
        found[name] = partial(journey, count=1), 1
        found[f"{name}, of 32"] = partial(journey, count=BATCH), BATCH
    return found


_OF_BROKERS: Final[dict[str, tuple[Journey[BrokerJourneys], int]]] = {
    **_sends(),
    **_many(),
    "op message, of 32": (BrokerJourneys.ops, BATCH),
    "check of an ended transaction": (BrokerJourneys.check_ended, BATCH),
    "check of an open transaction": (BrokerJourneys.check_open, BATCH),
    "delayed message, delivery": (BrokerJourneys.delayed, DUE),
    "message given back": (BrokerJourneys.send_back, 1),
    "pull of 32": (BrokerJourneys.pull, 1),
    "pull of 32 by tag": (BrokerJourneys.pull_tag, 1),
    "pull of 1": (BrokerJourneys.pull_one, 1),
    "pull that waits": (BrokerJourneys.wait, 1),
    "send that wakes a pull": (BrokerJourneys.wake, 1),
    "pop of 32": (BrokerJourneys.pops, 1),
    "other invisible time": (BrokerJourneys.invisible, 1),
    "heartbeat": (BrokerJourneys.heartbeat, 1),
    "progress of a consumer": (BrokerJourneys.commit_offset, 1),
    "question for progress": (BrokerJourneys.query_offset, 1),
}
_OF_MASTERS: Final[dict[str, tuple[Journey[MasterJourneys], int]]] = {
    "confirmed send": (partial(MasterJourneys.sends, make=_plain_send, count=1), 1),
    "confirmed send, of 32": (partial(MasterJourneys.sends, make=_plain_send, count=BATCH), BATCH),
}
_OF_SLAVES: Final[dict[str, tuple[Journey[SlaveJourneys], int]]] = {
    "slave: message": (partial(SlaveJourneys.follows, make=_plain_send, count=1), 1),
    "slave: message, of 32": (partial(SlaveJourneys.follows, make=_plain_send, count=BATCH), BATCH),
}
_OF_NAME_SERVERS: Final[dict[str, tuple[Journey[NamesrvJourneys], int]]] = {
    "name server: route": (NamesrvJourneys.route, 1),
    "name server: registration": (NamesrvJourneys.register, 1),
    "name server: registration, new": (NamesrvJourneys.register_new, 1),
}
_OF_CLIENTS: Final[dict[str, tuple[Journey[ClientJourneys], int]]] = {
    "client: send": (ClientJourneys.send, 1),
    "client: pulled message, of 32": (ClientJourneys.pulled, BATCH),
    "client: polled message, of 32": (ClientJourneys.polled, BATCH),
}
_IN_FLIGHT: Final = 16
_OF_PROXIES: Final[dict[str, tuple[Journey[ProxyJourneys], int]]] = {
    "proxy: send": (partial(ProxyJourneys.sends, count=1), 1),
    "proxy: send, of 16": (partial(ProxyJourneys.sends, count=_IN_FLIGHT), _IN_FLIGHT),
    "proxy: received message, of 32": (ProxyJourneys.received, BATCH),
    "proxy: acknowledgement": (partial(ProxyJourneys.acknowledged, count=1), 1),
    "proxy: acknowledgement, of 16": (
        partial(ProxyJourneys.acknowledged, count=_IN_FLIGHT),
        _IN_FLIGHT,
    ),
}


def _made(
    kind: Callable[[Path], Server], journeys: dict[str, tuple[Journey[Server], int]]
) -> dict[str, Count]:
    """Returns by name what counts a journey, which has a server or client of its own."""

    def count(journey: Journey[Server], weight: int, folder: Path) -> tuple[Cost, Counting]:
        with reproducible():
            server, counting = kind(folder), Counting()
            return cost_of(lambda: journey(server), weight, counting), counting

    return {name: partial(count, *each) for name, each in journeys.items()}


JOURNEYS: Final[dict[str, Count]] = {
    **_made(BrokerJourneys, _OF_BROKERS),
    **_made(MasterJourneys, _OF_MASTERS),
    **_made(SlaveJourneys, _OF_SLAVES),
    **_made(NamesrvJourneys, _OF_NAME_SERVERS),
    **_made(ClientJourneys, _OF_CLIENTS),
    **_made(ProxyJourneys, _OF_PROXIES),
}
"""By name: what makes a journey in a folder, and returns what it costs."""


_LINE: Final = "{name:<36}  {operations:>10,.1f}  {calls:>7,.1f}  {files:>5}"


def print_costs(where: str | None = None) -> None:
    """Prints a table of all journeys, or of the functions on one of them."""
    for name in JOURNEYS if where is None else [where]:
        folder = tempfile.mkdtemp()
        try:
            cost, counting = JOURNEYS[name](Path(folder))
        finally:
            shutil.rmtree(folder)
        print(_LINE.format(name=name, **cost._asdict()))
        if where is not None:
            for function, count in counting.by_function().most_common():
                print(f"{count:>10,}  {function}")
