# SPDX-License-Identifier: Apache-2.0
"""The clients of a reactor: producers and consumers with the same client id share one.

An instance begins with the first of them that starts, and ends with the last that shuts down.
Counterpart of MQClientManager.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from twisted.internet.defer import Deferred

from txrocketmq.client.base.config import DEFAULT_INSTANCE, ClientConfig
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.host.clock import Clock


class ClientInstances:
    """The clients of one reactor."""

    def __init__(self, reactor: object = None) -> None:
        self._reactor = reactor
        self._users: dict[ClientInstance, int] = {}
        self._begun: dict[ClientInstance, Deferred[None]] = {}

    @property
    def count(self) -> int:
        """How many instances there are."""
        return len(self._users)

    def take(self, config: ClientConfig) -> ClientInstance:
        """Returns the instance for these settings; `leave` must be called for it in the end.

        Raises ValueError when the instance of that name has other settings.
        """
        name = _shared_name(config)
        for instance in self._users if name else ():
            if _shared_name(instance.config) != name:
                continue
            if instance.config != config:
                raise ValueError(
                    f"there is already a client with the instance name {config.instance_name},"
                    " which has other settings: give this one another instance_name"
                )
            self._users[instance] += 1
            return instance
        instance = ClientInstance(config, Clock(self._reactor))
        self._users[instance] = 1
        return instance

    async def begin(self, instance: ClientInstance) -> None:
        """Starts the instance unless it was started. Raises NoNameServer if it finds none."""
        if instance not in self._begun:
            instance.start()
            self._begun[instance] = Deferred.fromCoroutine(instance.fetch_name_servers())
            await self._begun[instance]

    async def leave(self, instance: ClientInstance) -> None:
        """Counts one user less; when none is left, the instance is stopped."""
        self._users[instance] -= 1
        if not self._users[instance]:
            del self._users[instance]
            self._begun.pop(instance, None)
            await instance.stop()


def _shared_name(config: ClientConfig) -> tuple[str, str, str] | None:
    """What those that share an instance have in common; None for one that is nobody else's."""
    name = config.instance_name
    if name == DEFAULT_INSTANCE and not config.keep_default_instance_name:
        return None
    return config.client_ip, name, config.unit_name


_OF_REACTORS: WeakKeyDictionary[object, ClientInstances] = WeakKeyDictionary()


def instances_of(reactor: object) -> ClientInstances:
    """The instances of a reactor."""
    found = _OF_REACTORS.get(reactor)
    if found is None:
        found = _OF_REACTORS[reactor] = ClientInstances(reactor)
    return found
