# SPDX-License-Identifier: Apache-2.0
"""Events of brokers at a name server, for its log and for the brokers concerned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokerJoined:
    """A broker registered that was unknown, or had left."""

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    topics: int

    def __str__(self) -> str:
        return (
            f"broker {self.broker_name} ({self.broker_id}) of {self.cluster} at {self.address}"
            f" joined with {self.topics} topics"
        )


@dataclass(frozen=True, slots=True)
class BrokerLeft:
    """A broker is no longer known."""

    cluster: str
    broker_name: str
    address: str
    reason: str

    def __str__(self) -> str:
        return f"broker {self.broker_name} of {self.cluster} at {self.address} left: {self.reason}"


@dataclass(frozen=True, slots=True)
class RegistrationIgnored:
    """A broker registered under an id that another one holds with a later term."""

    broker_name: str
    address: str
    holder: str

    def __str__(self) -> str:
        return (
            f"ignored the registration of {self.address} as {self.broker_name}:"
            f" {self.holder} holds its id with a later term"
        )


@dataclass(frozen=True, slots=True)
class TwoOfOneId:
    """Two live brokers register under one name and id, so clients find them by turns."""

    broker_name: str
    broker_id: int
    address: str
    other: str

    def __str__(self) -> str:
        return (
            f"two brokers register as {self.broker_name} with the id {self.broker_id}:"
            f" {self.address} and {self.other}; clients find only the one that registered last."
            " Give one of them another brokerName, unless the one has just taken the other's place"
        )


@dataclass(frozen=True, slots=True)
class MinIdChanged:
    """The smallest id of a broker name has changed; `told` are the addresses to be notified.

    `offline_address` is the broker that left, or None when one with a smaller id joined, whose
    `ha_address` is then given.
    """

    broker_name: str
    min_id: int
    min_address: str
    offline_address: str | None
    ha_address: str | None
    told: tuple[str, ...]

    def __str__(self) -> str:
        return f"the smallest id of {self.broker_name} is now {self.min_id}, {self.min_address}"


Event = BrokerJoined | BrokerLeft | RegistrationIgnored | TwoOfOneId | MinIdChanged
