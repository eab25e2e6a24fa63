# SPDX-License-Identifier: Apache-2.0
"""The addresses of brokers, and the choice among those of one name: the master or a slave.

Java: MQClientInstance.findBrokerAddressInPublish, findBrokerAddressInSubscribe.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Final

from txrocketmq.remoting.protocol.body.route import BrokerData

MASTER_ID: Final = 0


class BrokerAddresses:
    """Addresses of all brokers that the known routes name, by broker name and id."""

    def __init__(self) -> None:
        self._by_name: dict[str, BrokerData] = {}

    def update(self, brokers: Iterable[BrokerData]) -> None:
        """Replaces the addresses of the brokers that a route names."""
        for broker in brokers:
            self._by_name[broker.broker_name] = broker

    def keep(self, brokers: Iterable[BrokerData]) -> None:
        """Forgets all brokers and addresses but `brokers`, which are those of all known routes."""
        named: dict[str, set[str]] = {}
        for broker in brokers:
            named.setdefault(broker.broker_name, set()).update(broker.broker_addrs.values())
        kept: dict[str, BrokerData] = {}
        for name, its in self._by_name.items():
            addresses = {
                n: address
                for n, address in its.broker_addrs.items()
                if address in named.get(name, ())
            }
            if addresses:
                kept[name] = dataclasses.replace(its, broker_addrs=addresses)
        self._by_name = kept

    def masters(self) -> list[str]:
        """Returns the addresses of all masters."""
        each = (its.broker_addrs.get(MASTER_ID) for its in self._by_name.values())
        return [address for address in each if address is not None]

    def all(self) -> list[str]:
        """Returns the addresses of all brokers, including slaves."""
        return [each for its in self._by_name.values() for each in its.broker_addrs.values()]

    def cluster_of(self, broker_name: str) -> str | None:
        """Returns the name of a broker's cluster, or None if it is not known."""
        its = self._by_name.get(broker_name)
        return None if its is None else its.cluster

    def name_of(self, address: str) -> str | None:
        """Returns the name of the broker at an address, or None if it is not known."""
        for name, its in self._by_name.items():
            if address in its.broker_addrs.values():
                return name
        return None

    def to_publish(self, broker_name: str) -> str | None:
        """Returns the address of a broker's master, the only one that takes messages, or None."""
        its = self._by_name.get(broker_name)
        return None if its is None else its.broker_addrs.get(MASTER_ID)

    def to_subscribe(self, broker_name: str, broker_id: int = MASTER_ID) -> str | None:
        """Returns the address of a broker by name and id, or None if its name is not known.

        Without such a broker it is the slave with the next id, or else any broker of the name.
        """
        its = self._by_name.get(broker_name)
        if its is None:
            return None
        address = its.broker_addrs.get(broker_id)
        if address is None and broker_id != MASTER_ID:
            address = its.broker_addrs.get(broker_id + 1)
        return address or next(iter(its.broker_addrs.values()), None)

    def in_turn(self, broker_name: str, attempt: int) -> str | None:
        """Returns the address to ask in an attempt: the master's, then that of each slave in turn.

        After the last slave, it is asked again. None: the name is not known.
        """
        its = self._by_name.get(broker_name)
        addresses = [] if its is None else [at for _, at in sorted(its.broker_addrs.items())]
        return addresses[min(attempt, len(addresses) - 1)] if addresses else None
