# SPDX-License-Identifier: Apache-2.0
"""Who shares a client instance."""

from __future__ import annotations

import pytest
from twisted.internet.task import Clock as ReactorClock

from tests.client.fakes import result_of
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.thread.instances import ClientInstances, instances_of

HERE = "127.0.0.1:1"


def config(name: str = "DEFAULT", *, namesrv: str = HERE, keep: bool = False) -> ClientConfig:
    return ClientConfig(namesrv_addr=namesrv, instance_name=name, keep_default_instance_name=keep)


def test_each_has_its_own_unless_it_is_named() -> None:
    instances = ClientInstances(ReactorClock())
    one, two = instances.take(config()), instances.take(config())
    assert one is not two
    assert one.client_id != two.client_id
    assert instances.take(config("n")) is instances.take(config("n"))
    assert instances.count == 3


def test_a_default_name_that_stays_is_shared() -> None:
    instances = ClientInstances(ReactorClock())
    kept = instances.take(config(keep=True))
    assert kept.client_id.endswith("@DEFAULT")
    assert instances.take(config(keep=True)) is kept


def test_one_of_its_own_does_not_stand_in_the_way_of_a_default_name() -> None:
    """A producer beside a consumer with broadcasting, each with settings of its own."""
    instances = ClientInstances(ReactorClock())
    own = instances.take(config())
    kept = instances.take(config(namesrv="127.0.0.1:2", keep=True))
    assert kept is not own
    assert instances.take(config(namesrv="127.0.0.1:2", keep=True)) is kept
    assert instances.take(config()) is not own


def test_other_settings_under_the_same_name_are_refused() -> None:
    instances = ClientInstances(ReactorClock())
    instances.take(config("n"))
    with pytest.raises(ValueError, match="give this one another instance_name"):
        instances.take(config("n", namesrv="127.0.0.1:2"))


def test_the_last_one_ends_it() -> None:
    reactor = ReactorClock()
    instances = ClientInstances(reactor)
    shared = instances.take(config("n"))
    instances.take(config("n"))
    result_of(instances.begin(shared))
    result_of(instances.begin(shared))
    result_of(instances.leave(shared))
    assert instances.count == 1
    assert reactor.getDelayedCalls()
    result_of(instances.leave(shared))
    assert instances.count == 0
    assert reactor.getDelayedCalls() == []


def test_a_reactor_has_one_table() -> None:
    reactor = ReactorClock()
    assert instances_of(reactor) is instances_of(reactor)
    assert instances_of(reactor) is not instances_of(ReactorClock())
