# SPDX-License-Identifier: Apache-2.0
"""Registration: name servers are told of all topics after a period, and of changes soon.

A topic that is created, changed or deleted is registered at once. Those that follow soon are
registered together, after a pause that grows: the original registers each by itself, before it
answers the request that made the topic.

Java: registerBrokerAll and registerSingleTopicAll in BrokerController.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from txrocketmq.broker.cluster.outer_api import Identity, NameServers, TopicTable
from txrocketmq.broker.engines.role import Role
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.store.formats.config import StoreConfig
from txrocketmq.broker.tables.topic import Topics
from txrocketmq.broker.work.in_thread import InThread
from txrocketmq.broker.work.life import SECOND_MS, Beat, Gauge, Hears, Life
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.primitives.listeners import tell_all
from txrocketmq.remoting.settings.config_file import Configuration
from txrocketmq.remoting.transport.client import Connections

FIRST_PAUSE_MS, PAUSE_MS = 10, 100
"""The first and the longest pause between registrations of changed topics, in ms."""
MAX_SINGLE_TOPICS = 100
"""Up to this many changed topics are registered singly; if there are more, all topics are."""
_MIN_REGISTER_MS = 10_000
_MAX_REGISTER_MS = 60_000


class Registration:
    """Registers the topics at the name servers, from `begin` on."""

    def __init__(
        self,
        topics: Topics,
        configuration: Configuration,
        clock: Callable[[], int],
        later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self._topics = topics
        self._configuration = configuration
        self._config = configuration.get(BrokerConfig)
        self._now_ms = clock
        self._later = later
        self._role = Role(configuration.get(StoreConfig))
        self.on_master: list[Callable[[str | None, str | None], None]] = []
        """On a slave, called with its master's address for replication and that for requests, at
        each answer of a name server; None is not known."""
        self.is_held = False
        """Whether the broker is not to be known yet, so that nothing is registered."""
        self.epoch = 0
        """The epoch of the master that a controller has chosen, for which name servers look: they
        do not register one of an earlier epoch. 0 without a controller."""
        self._has_master = False
        self.name_servers: NameServers | None = None
        self._is_pausing = False
        self._pause_ms = FIRST_PAUSE_MS
        self._changed: dict[str, None] = {}
        """Topics that were created, changed or deleted since the last registration."""

    def life(self) -> Life:
        """All topics are registered after a period, and those that change soon."""
        config = self._config
        period_ms = min(max(config.register_name_server_period, _MIN_REGISTER_MS), _MAX_REGISTER_MS)
        hears: list[Hears[Any]] = [Hears(self._configuration.on_change, self._reconfigured)]
        beats = [
            Beat(
                period_ms,
                lambda: self.register(force=config.force_register or not self._role.writes),
            ),
            Beat(SECOND_MS, self._tick),
        ]
        if self._role.writes:
            hears.append(Hears(self._topics.on_change, self._topic_changed))
        else:  # its topics are those of the master, which registers them
            beats.append(Beat(_MIN_REGISTER_MS, self._look_for_master))
        return Life(
            "registration",
            hears=hears,
            beats=beats,
            gauges=(Gauge("rocketmq_broker_permission", lambda: config.broker_permission),),
        )

    def begin(
        self,
        connections: Connections,
        identity: Identity,
        in_thread: InThread,
        steady_clock: Callable[[], int],
    ) -> None:
        """Registers the broker with all its topics, for the first time."""
        self.name_servers = NameServers(
            connections,
            identity,
            lambda: self._config.register_broker_timeout_mills,
            self.table,
            self._topics.set_order_topics,
            in_thread,
            steady_clock,
            self._found_master,
        )
        self.register(force=True)

    @property
    def is_done(self) -> bool:
        """Whether a name server has registered this broker."""
        return self.name_servers is not None and self.name_servers.is_registered

    def register(self, *, force: bool) -> None:
        """Registers all topics at the name servers, with the broker's permission applied."""
        if self.name_servers is not None:
            self.name_servers.set_addresses(self._config.namesrv_addr)
            if not self.is_held:
                self.name_servers.register(force=force)

    def release(self) -> None:
        """Lets the broker be known from now on, and registers it."""
        self.is_held = False
        self.register(force=True)

    def table(self) -> TopicTable:
        """What is registered, as it is now."""
        config, version = self._config, self._topics.data_version
        if self.epoch:
            version = replace(version, state_version=self.epoch)
        return TopicTable(
            self._topics.all(),
            version,
            config.broker_permission,
            config.split_registration_size,
            config.enable_split_registration,
        )

    def ask_route(self, topic: str) -> PendingReply:
        """Asks the name servers for the route of a topic; an error until they are set."""
        if self.name_servers is not None:
            return self.name_servers.ask_route(topic)
        pending = PendingReply()
        pending.resolve(ConnectError("this broker has not started"))
        return pending

    def forget_changes(self) -> None:
        """Registers none of the topics that have changed: the broker stops."""
        self._changed.clear()

    def _found_master(self, ha_address: str | None, address: str | None) -> None:
        self._has_master = address is not None
        tell_all(self.on_master, ha_address, address)

    def _look_for_master(self) -> None:
        """Registers again: the answer says where the master is, once that has registered."""
        if not self._has_master:
            self.register(force=True)

    def _tick(self) -> None:
        if self.name_servers is not None and not self.is_held:
            self.name_servers.tick()

    def _reconfigured(self, keys: Collection[str]) -> None:
        """Registers again when changed settings are told to name servers or name other ones."""
        if "brokerPermission" in keys:
            self._topics.next_version()
        if not {"brokerPermission", "namesrvAddr"}.isdisjoint(keys):
            self.register(force=True)

    def _topic_changed(self, topic: str) -> None:
        """Registers a changed topic at once; if others follow soon, those of a pause together."""
        self._changed[topic] = None
        if not self._is_pausing:
            self._pause_ms = FIRST_PAUSE_MS
            self._register_changed()

    def _register_changed(self) -> None:
        """Registers the topics that changed; all topics if one was deleted, or too many changed."""
        names, self._changed = list(self._changed), {}
        self._is_pausing = bool(names)
        if not names:
            return
        self._later(self._pause_ms, self._register_changed)
        self._pause_ms = min(2 * self._pause_ms, PAUSE_MS)
        found = [self._topics.get(name) for name in names]
        changed = [topic for topic in found if topic is not None]
        if len(changed) < len(names) or len(changed) > MAX_SINGLE_TOPICS:
            self.register(force=True)
        elif self.name_servers is not None and not self.is_held:
            self.name_servers.set_addresses(self._config.namesrv_addr)
            self.name_servers.register_topics(changed)
