# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of a client, and how they are kept short.

Subscriptions may be long, and they seldom change. A broker that understands heartbeats of version 2
says so in its answer; it is then told only that all is as before, by a fingerprint, until that
changes or the broker asks for more. Counterpart of HeartbeatData and of sendHeartbeatToBrokerV2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import orjson

from txrocketmq.client.base.java_hash import java_hash_code
from txrocketmq.remoting.protocol.body.heartbeat import ConsumerData, HeartbeatData

IS_SUB_CHANGE: Final = "IS_SUB_CHANGE"
IS_SUPPORTED: Final = "IS_SUPPORT_HEART_BEAT_V2"


def fingerprint(data: HeartbeatData) -> int:
    """Returns a number that changes with the data, but not with the client id or the versions."""
    consumers = [_timeless(each) for each in data.consumer_data_set]
    bare = dataclasses.replace(
        data, client_id="", consumer_data_set=consumers, heartbeat_fingerprint=0, without_sub=False
    )
    return java_hash_code(orjson.dumps(bare.to_json(), option=orjson.OPT_SORT_KEYS).decode())


def _timeless(consumer: ConsumerData) -> ConsumerData:
    ordered = sorted(consumer.subscription_data_set, key=lambda each: each.topic or "")
    return dataclasses.replace(
        consumer,
        subscription_data_set=[dataclasses.replace(each, sub_version=0) for each in ordered],
    )


class Heartbeats:
    """Keeps the contents of the last heartbeat to each broker; `use_v2` is the setting."""

    def __init__(self, *, use_v2: bool) -> None:
        self._use_v2 = use_v2
        self._known: dict[str, int] = {}
        """The fingerprint that each broker has, by its address."""

    def for_brokers(
        self, data: HeartbeatData, addresses: Sequence[str]
    ) -> list[tuple[str, HeartbeatData]]:
        """Returns the data to send to each broker."""
        if not self._use_v2:
            return [(address, data) for address in addresses]
        number = fingerprint(data)
        full = dataclasses.replace(data, heartbeat_fingerprint=number)
        short = dataclasses.replace(
            full,
            without_sub=True,
            consumer_data_set=[
                dataclasses.replace(each, subscription_data_set=())
                for each in data.consumer_data_set
            ],
        )
        return [
            (address, short if self._known.get(address) == number else full)
            for address in addresses
        ]

    def answered(
        self, address: str, told: HeartbeatData, ext_fields: Mapping[str, str] | None
    ) -> None:
        """Notes a broker's answer, which decides whether the next heartbeat may be short."""
        says = ext_fields or {}
        changed = says.get(IS_SUB_CHANGE) == "true"
        if changed:
            self._known.pop(address, None)
        elif not told.without_sub and says.get(IS_SUPPORTED) == "true":
            self._known[address] = told.heartbeat_fingerprint

    def forget(self, address: str | None = None) -> None:
        """Makes the next heartbeat to a broker, or to all of them, a whole one."""
        if address is None:
            self._known.clear()
        else:
            self._known.pop(address, None)
