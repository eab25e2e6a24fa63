# SPDX-License-Identifier: Apache-2.0
"""Brokers as the route table keeps them: by name, and by process.

What is known of a name never changes in place, so whoever looks at many brokers in several turns
sees all of them as they were at one moment. Java: BrokerData, BrokerLiveInfo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from txrocketmq.remoting.protocol.body.route import BrokerData, DataVersion

MASTER_ID = 0
BROKER_EXPIRED_MS = 120_000
"""A broker that was silent for longer, in ms, is gone, unless it registered with another limit."""
MAX_ADDRESSES = 1_000
"""How many brokers may have one name, with different ids."""


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker name, with the addresses of its master (0) and slaves by id."""

    cluster: str
    name: str
    addresses: Mapping[int, str] = field(default_factory=dict)
    zone: str | None = None
    acting_master: bool = False

    def data(self, addresses: Mapping[int, str] | None = None) -> BrokerData:
        """Makes the form that is sent, with other addresses if these are given."""
        return BrokerData(
            cluster=self.cluster,
            broker_name=self.name,
            broker_addrs=dict(self.addresses if addresses is None else addresses),
            zone_name=self.zone,
            enable_acting_master=self.acting_master,
        )

    @property
    def lacks_master(self) -> bool:
        """Whether a slave is to stand in for the master, which is not there."""
        return self.acting_master and MASTER_ID not in self.addresses


@dataclass(slots=True)
class LiveBroker:
    """A registered broker process, and when it was last heard of."""

    cluster: str
    broker_name: str
    address: str
    last_seen_ms: int
    timeout_ms: int
    data_version: DataVersion
    channel: object
    ha_address: str
