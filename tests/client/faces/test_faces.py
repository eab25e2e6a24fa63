# SPDX-License-Identifier: Apache-2.0
"""What all faces are made of, and that they are equal."""

from __future__ import annotations

import inspect
import re
from argparse import Namespace
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from twisted.internet.task import Clock as ReactorClock

from tests.client.fake_core import Core, CoreConfig
from tests.client.fakes import result_of
from txrocketmq.client import admin, aio, blocking, consumer, producer, tx
from txrocketmq.client.admin.admin import Admin
from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.base.errors import ClientClosed, MQClientError
from txrocketmq.client.consumer.listening.listener import is_orderly, orderly
from txrocketmq.client.consumer.lite_pull import LitePullConsumer
from txrocketmq.client.consumer.pop import PopConsumer
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.client.faces import names
from txrocketmq.client.faces.descriptions import config_class
from txrocketmq.client.faces.faces import (
    Life,
    functions_of_program,
    is_started,
    members,
)
from txrocketmq.client.producer.producer import Producer
from txrocketmq.client.producer.transaction import TransactionProducer
from txrocketmq.client.thread.instances import ClientInstances

FACES = [blocking, aio, tx]
CORE = [Admin, Producer, TransactionProducer, PushConsumer, LitePullConsumer, PopConsumer]


def test_what_is_public_is_found() -> None:
    found = {member.name: (member.waits, member.is_property) for member in members(Core)}
    assert found == {
        "begin": (True, False),
        "begin_quickly": (True, False),
        "call": (True, False),
        "double": (False, False),
        "here": (True, False),
        "later": (True, False),
        "listen": (True, False),
        "never": (True, False),
        "quickly": (True, False),
        "size": (False, True),
    }


def test_what_is_begun_is_known() -> None:
    core = Namespace(size=0, _begin_quickly="the method of the core")
    ways = {each.name: each.begun(core) for each in members(Core) if each.begun is not None}
    assert ways == dict.fromkeys(("quickly", "begin_quickly"), "the method of the core")
    assert [each.name for each in members(Core) if is_started(each.function)] == [
        "begin", "begin_quickly",
    ]  # fmt: skip


def test_functions_of_the_program_are_known_by_their_type() -> None:
    assert functions_of_program(Core.__init__) == {"listener"}
    assert functions_of_program(Core.call) == {"function"}
    assert functions_of_program(Core.here) == frozenset()
    assert functions_of_program(PushConsumer.__init__) == {"listener", "queues_changed"}
    assert functions_of_program(LitePullConsumer.__init__) == frozenset()
    assert functions_of_program(LitePullConsumer.subscribe) == {"queues_changed"}
    assert functions_of_program(LitePullConsumer.watch_queues) == {"listener"}
    assert functions_of_program(TransactionProducer.__init__) == {"check"}
    assert functions_of_program(TransactionProducer.send_in_transaction) == {"execute"}
    assert functions_of_program(Producer.send) == frozenset()


def test_what_is_asked_of_consumers_by_others_is_not_public() -> None:
    """The instance and brokers ask; programs see what is theirs."""
    assert [member.name for member in members(PushConsumer)] == [
        "add_consume_hook", "queues", "resume", "subscribe", "suspend", "unsubscribe",
    ]  # fmt: skip
    assert [member.name for member in members(LitePullConsumer)] == [
        "add_consume_hook", "assign", "assignment", "commit", "committed", "fetch_queues",
        "filter_assigned", "offset_for_timestamp", "pause", "poll", "resume", "seek",
        "seek_to_begin", "seek_to_end", "seek_to_time", "subscribe", "unsubscribe", "watch_queues",
    ]  # fmt: skip
    assert [member.name for member in members(PopConsumer)] == [
        "ack", "add_consume_hook", "change_invisible_time", "receive", "renew", "subscribe",
        "unsubscribe",
    ]  # fmt: skip


def test_what_is_asked_of_members_of_groups_is_public_elsewhere() -> None:
    """An administrator resets offsets, too, and has consumers consume."""
    assert {"reset_offsets", "consume_directly"} <= {each.name for each in members(Admin)}


def test_a_listener_in_order_stays_one() -> None:
    """Each face calls another function, which has the mark as well."""

    @orderly
    def listener(number: int) -> int:
        return number

    def made(function: Any) -> Any:
        its = Life(
            Core, ClientInstances(ReactorClock()), ("g", function),
            {"namesrv_addr": "127.0.0.1:1"}, partial,
        )  # fmt: skip
        return its.core._listener

    assert is_orderly(made(listener))
    assert made(listener) is not listener
    assert not is_orderly(made(lambda number: number))


@pytest.mark.parametrize("core", CORE)
def test_settings_have_one_meaning(core: type) -> None:
    own = set(inspect.signature(config_class(core)).parameters)
    assert not own & set(inspect.signature(ClientConfig).parameters)
    assert not own & set(inspect.signature(core).parameters)


@pytest.mark.parametrize("face", FACES)
def test_each_face_has_every_class_and_every_name(face: ModuleType) -> None:
    assert set(face.__all__) == {*names.__all__, *(core.__name__ for core in CORE)}
    for core in CORE:
        made = getattr(face, core.__name__)
        for member in members(core):
            its = getattr(made, member.name)
            assert its.__doc__ == member.function.__doc__
            if not member.is_property:
                declared = inspect.signature(member.function)
                assert inspect.signature(its).parameters == declared.parameters


def test_no_class_of_the_core_is_forgotten() -> None:
    """What takes an instance and a config, and starts, belongs in the faces."""
    found = set()
    for package in (producer, consumer, admin):
        for path in sorted(__import__("pathlib").Path(str(package.__path__[0])).glob("*.py")):
            module = __import__(f"{package.__name__}.{path.stem}", fromlist=["x"])
            for cls in vars(module).values():
                if not inspect.isclass(cls) or cls.__module__ != module.__name__:
                    continue
                takes = set(inspect.signature(cls).parameters)
                if {"instance", "config"} <= takes and inspect.iscoroutinefunction(
                    getattr(cls, "start", None)
                ):
                    found.add(cls.__name__)
    assert found == {core.__name__ for core in CORE}


@pytest.mark.parametrize("core", CORE)
def test_every_public_method_is_documented(core: type) -> None:
    for member in members(core):
        assert member.function.__doc__, f"{core.__name__}.{member.name}"


def life(group: str = "g", **settings: object) -> Life:
    return Life(
        Core,
        ClientInstances(ReactorClock()),
        (group,),
        {"namesrv_addr": "127.0.0.1:1", **settings},
        lambda function: function,
    )


def test_settings_find_their_place() -> None:
    its = life(size=7, instance_name="n")
    assert its.core.config == CoreConfig(size=7)
    assert its.instance.config.instance_name == "n"
    with pytest.raises(TypeError, match="Core has no setting 'sice'; did you mean size?"):
        life(sice=7)


@pytest.mark.parametrize(
    ("arguments", "settings", "why"),
    [
        ((), {}, "Core() needs the argument group"),
        ((5,), {}, "group must be str, not 5 (int)"),
        (("g", None, "127.0.0.1:9876"), {}, "Core() takes 2 arguments (group, listener) by posi"),
        (("g", 5), {}, "listener must be a function that is called with (int) or None, not 5"),
        (("g", lambda: 1), {}, "listener must be a function that is called with (int), but"),
        (("g",), {"namesrv_addr": 9876}, "namesrv_addr must be str, not 9876 (int)"),
    ],
)
def test_what_a_life_is_not_made_of(arguments: Any, settings: Any, why: str) -> None:
    instances = ClientInstances(ReactorClock())
    with pytest.raises(TypeError, match=re.escape(why)):
        Life(Core, instances, arguments, settings, lambda function: function)


def test_what_is_not_given_may_be_none() -> None:
    assert life(namesrv_addr=None, unit_name=None).instance.config == ClientConfig()


def test_broadcasting_keeps_the_clients_id() -> None:
    assert life(message_model="BROADCASTING").instance.client_id.endswith("@DEFAULT")
    assert not life().instance.client_id.endswith("@DEFAULT")


def test_a_life() -> None:
    its = life()
    with pytest.raises(MQClientError, match="Core of group g is not started: call start"):
        its.check()
    result_of(its.start())
    its.check()
    with pytest.raises(MQClientError, match="was started already"):
        result_of(its.start())
    result_of(its.shutdown())
    result_of(its.shutdown())
    assert its.core.said == ["start", "shutdown"]
    with pytest.raises(ClientClosed, match="was shut down"):
        its.check()
    with pytest.raises(ClientClosed, match="create a new one"):
        result_of(its.start())


def test_what_cannot_start_leaves_nothing() -> None:
    its = life("bad")
    with pytest.raises(MQClientError, match="it cannot start"):
        result_of(its.start())
    assert its._instances.count == 0
