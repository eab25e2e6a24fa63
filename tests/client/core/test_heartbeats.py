# SPDX-License-Identifier: Apache-2.0
"""Heartbeats of version 2: what each broker is told."""

from __future__ import annotations

from txrocketmq.client.core.heartbeats import IS_SUB_CHANGE, IS_SUPPORTED, Heartbeats, fingerprint
from txrocketmq.remoting.message.tags import build_subscription_data
from txrocketmq.remoting.protocol.body.heartbeat import ConsumerData, HeartbeatData, ProducerData

V2 = {IS_SUPPORTED: "true", IS_SUB_CHANGE: "false"}


def data(*topics: str, version: int = 1, client: str = "c") -> HeartbeatData:
    subscriptions = [build_subscription_data(each, "*", sub_version=version) for each in topics]
    return HeartbeatData(
        client_id=client,
        producer_data_set=[ProducerData(group_name="p")],
        consumer_data_set=[ConsumerData(group_name="g", subscription_data_set=subscriptions)],
    )


def test_the_fingerprint_does_not_change_with_client_time_or_order() -> None:
    assert fingerprint(data("A", "B")) == fingerprint(data("B", "A", version=9, client="d"))
    assert fingerprint(data("A")) != fingerprint(data("B"))


def test_without_the_setting_all_are_told_all() -> None:
    its = Heartbeats(use_v2=False)
    whole = data("A")
    its.answered("a", whole, V2)
    assert its.for_brokers(whole, ["a", "b"]) == [("a", whole), ("b", whole)]


def test_a_broker_that_can_is_told_the_rest_once() -> None:
    its = Heartbeats(use_v2=True)
    ((_, first),) = its.for_brokers(data("A"), ["a"])
    assert first.heartbeat_fingerprint == fingerprint(data("A"))
    assert not first.without_sub
    its.answered("a", first, V2)
    ((_, second), (_, other)) = its.for_brokers(data("A", version=2), ["a", "b"])
    assert second.without_sub
    assert second.consumer_data_set[0].subscription_data_set == ()
    assert not other.without_sub
    ((_, changed),) = its.for_brokers(data("A", "B"), ["a"])
    assert not changed.without_sub


def test_who_asks_for_more_is_told_all_again() -> None:
    its = Heartbeats(use_v2=True)
    ((_, first),) = its.for_brokers(data("A"), ["a"])
    its.answered("a", first, V2)
    ((_, short),) = its.for_brokers(data("A"), ["a"])
    its.answered("a", short, {**V2, IS_SUB_CHANGE: "true"})
    assert not its.for_brokers(data("A"), ["a"])[0][1].without_sub


def test_a_broker_that_cannot_is_always_told_all() -> None:
    its = Heartbeats(use_v2=True)
    ((_, first),) = its.for_brokers(data("A"), ["a"])
    its.answered("a", first, None)
    assert not its.for_brokers(data("A"), ["a"])[0][1].without_sub


def test_what_is_forgotten_is_told_again() -> None:
    its = Heartbeats(use_v2=True)
    for address in ("a", "b"):
        its.answered(address, its.for_brokers(data("A"), [address])[0][1], V2)
    its.forget("a")
    assert [each.without_sub for _, each in its.for_brokers(data("A"), ["a", "b"])] == [False, True]
    its.forget()
    assert not any(each.without_sub for _, each in its.for_brokers(data("A"), ["a", "b"]))
