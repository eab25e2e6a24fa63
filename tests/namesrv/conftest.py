# SPDX-License-Identifier: Apache-2.0
"""A name server without its wire: table, key-values, settings and the handlers on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.fakes import NOW_MS, FakePeer
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.namesrv.kv_config import KvConfig
from txrocketmq.namesrv.processors.config import ConfigProcessor
from txrocketmq.namesrv.processors.register import RegisterProcessor
from txrocketmq.namesrv.processors.route import RouteProcessor
from txrocketmq.namesrv.processors.topic import TopicProcessor
from txrocketmq.namesrv.routes.registration import Registration
from txrocketmq.namesrv.routes.route_table import RouteTable
from txrocketmq.namesrv.turns import Turns
from txrocketmq.remoting.call import Call, Reply, Request
from txrocketmq.remoting.codes import MQVersion
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Registry
from txrocketmq.remoting.header import Header
from txrocketmq.remoting.protocol.body.route import DataVersion, TopicConfig
from txrocketmq.remoting.settings.config_file import Configuration, load


class Answer(NamedTuple):
    """The answer of a handler, with its body in one piece."""

    code: int
    header: Any
    body: bytes


class Names:
    """A name server without its port; `notes` is what it would log."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        own = {
            "kvConfigPath": str(folder / "kvConfig.json"),
            "configStorePath": str(folder / "namesrv.properties"),
        }
        given = {**own, **settings}
        config, unknown = load(NamesrvConfig, given)
        assert not unknown
        self.configuration = Configuration((config,), given)
        self.table = RouteTable(self.configuration)
        self.kv = KvConfig(Path(config.kv_config_path))
        self.notes: list[str] = []
        self.changes = 0
        self.later: list[Callable[[], None]] = []
        self.turns = Turns(self.later.append, lambda: 0.0)
        self.registry = Registry(
            RegisterProcessor(self.table, self.kv, self.configuration, self._changed, self.turns),
            RouteProcessor(self.table, self.kv, self.configuration, NOW_MS, self.turns),
            TopicProcessor(
                self.table, self.configuration, self.notes.append, self._changed, self.turns
            ),
            ConfigProcessor(self.kv, self.configuration, self.notes.append),
        )

    def _changed(self) -> None:
        self.changes += 1

    def ask(
        self,
        call: Call[Any, Any],
        header: Header,
        body: bytes = b"",
        *,
        peer: FakePeer | None = None,
        version: int = MQVersion.V5_4_0,
        now_ms: int = NOW_MS,
        ext_fields: Mapping[str, str] | None = None,
    ) -> Answer:
        """Returns the handler's answer. Raises ResponseError if the handler refuses."""
        fields = {**header.encode(), **(ext_fields or {})}
        command = RemotingCommand(call.code, fields, body, version=version)
        typed = call.request.decode(fields)
        handler = self.registry.bindings[call.code].handler
        assert handler is not None
        reply = handler(Request(typed, command, peer or FakePeer(), now_ms, now_ms))
        assert isinstance(reply, Reply)
        return Answer(reply.code, reply.header, reply.body_bytes)


MakeNames = Callable[..., Names]


@pytest.fixture
def make_names(tmp_path: Path) -> MakeNames:
    """Makes a name server with settings, named as in its file."""

    def make(**settings: str) -> Names:
        return Names(tmp_path, settings)

    return make


@pytest.fixture
def names(make_names: MakeNames) -> Names:
    """A name server with default settings."""
    return make_names()


def topics(
    *names: str, perm: int = 6, sys_flag: int = 0, queues: int = 4
) -> dict[str, TopicConfig]:
    """Returns topics of a broker by name."""
    return {
        name: TopicConfig(
            topic_name=name,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=perm,
            topic_sys_flag=sys_flag,
        )
        for name in names
    }


def registration(
    broker_id: int = 0,
    *,
    name: str = "broker-a",
    cluster: str = "c1",
    port: int = 10911,
    counter: int = 1,
    state_version: int = 0,
    having: Mapping[str, TopicConfig] | None = None,
    acting_master: bool | None = None,
    **more: Any,
) -> Registration:
    """Returns a broker's registration with two topics, of 4.9 unless `acting_master` is given."""
    return Registration(
        cluster=cluster,
        broker_name=name,
        broker_id=broker_id,
        address=f"10.0.0.1:{port}",
        ha_address=f"10.0.0.1:{port + 1}",
        topics=topics("T1", "T2") if having is None else having,
        data_version=DataVersion(state_version=state_version, timestamp=1, counter=counter),
        enable_acting_master=acting_master,
        **more,
    )


def table_with(**settings: bool) -> RouteTable:
    config = dataclasses.replace(NamesrvConfig(), **settings)  # type: ignore[arg-type]
    return RouteTable(Configuration((config,), {}))


def addresses(table: RouteTable, topic: str = "T1") -> dict[int, str]:
    route = table.route(topic)
    assert route is not None
    (broker,) = route.broker_datas
    return dict(broker.broker_addrs)


def perms(table: RouteTable, topic: str = "T1") -> dict[str, int]:
    route = table.route(topic)
    return {} if route is None else {queue.broker_name: queue.perm for queue in route.queue_datas}


def kinds(table: RouteTable) -> Sequence[type]:
    return [type(event) for event in table.take_events()]
