# SPDX-License-Identifier: Apache-2.0
"""When a slave acts as master, and what it does then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.broker.replication.wire import ADDRESS, HA_ADDRESS, said
from txrocketmq.broker.replication.slave import Slave
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.errors import ConnectError
from txrocketmq.remoting.primitives.listeners import tell_all
from txrocketmq.remoting.protocol.operations.ha import (
    ExchangeHAInfoRequestHeader,
    ExchangeHAInfoResponseHeader,
)

OWN = "10.0.0.2:10911"
BOTH = {0: ADDRESS, 1: OWN}


class Scene:
    """A slave that may act."""

    def __init__(self, folder: Path, *, is_enabled: bool = True, **store_settings: Any) -> None:
        config = BrokerConfig(
            broker_id=1, enable_slave_acting_master=is_enabled, namesrv_addr="10.0.1.1:9876"
        )
        self.parts = Parts(
            folder, config, store_settings={"broker_role": "SLAVE", **store_settings}
        )
        self.acting = self.parts.acting
        self.asked: list[tuple[str, PendingReply]] = []
        self.masters: list[bool] = []
        self.acting.on_master.append(lambda: self.masters.append(True))
        self.acting.begin(self._ask)

    def _ask(self, address: str, header: ExchangeHAInfoRequestHeader) -> PendingReply:
        assert header == ExchangeHAInfoRequestHeader()
        self.asked.append((address, PendingReply()))
        return self.asked[-1][1]

    @property
    def slave(self) -> Slave:
        assert self.parts.slave is not None
        return self.parts.slave


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.parts.store.stop(made.parts.now_ms)


def test_it_acts_while_its_id_is_the_smallest(scene: Scene) -> None:
    assert not scene.acting.acts
    assert not scene.acting.has_master, "nobody has named one"
    scene.slave.found_master(HA_ADDRESS, ADDRESS)
    assert scene.acting.has_master
    begins = said(lambda: scene.acting.knows({1: OWN, 2: "10.0.0.3:10911"}))
    assert begins == ["there is no master: this slave acts as one, for readers"]
    assert scene.acting.acts
    assert not scene.acting.has_master
    assert said(lambda: scene.acting.knows({1: OWN, 2: "10.0.0.3:10911"})) == []
    ends = said(lambda: scene.acting.knows(BOTH))
    assert ends == [
        "there is a master, or a slave with a smaller id: this slave acts as one no more"
    ]
    assert not scene.acting.acts
    assert scene.acting.has_master
    scene.acting.knows({2: "10.0.0.3:10911"})
    assert not scene.acting.acts, "the name server does not know this one"
    scene.acting.knows({})
    assert not scene.acting.acts


def test_name_servers_may_tell_it_at_once(scene: Scene) -> None:
    scene.acting.told(1, OWN)
    assert scene.acting.acts
    scene.acting.told(0, ADDRESS, HA_ADDRESS)
    assert not scene.acting.acts
    assert (scene.slave.ha_address, scene.slave.master_address) == (HA_ADDRESS, ADDRESS)
    assert scene.asked == [], "it was told"
    scene.acting.told(-5, "nonsense")
    assert scene.acting.has_master


def test_a_master_that_comes_is_asked_where_it_serves_slaves(scene: Scene) -> None:
    scene.slave.found_master(HA_ADDRESS, ADDRESS)
    scene.acting.knows({1: OWN})
    assert scene.slave.master_address is None
    scene.acting.knows(BOTH)
    assert scene.slave.master_address == ADDRESS
    ((address, pending),) = scene.asked
    assert address == ADDRESS
    pending.resolve(Reply(ExchangeHAInfoResponseHeader(master_ha_address="10.0.0.9:5")))
    assert scene.slave.ha_address == "10.0.0.9:5"


@pytest.mark.parametrize(
    "answer",
    [
        ConnectError("no"),
        Reply(ExchangeHAInfoResponseHeader()),
        Reply(ExchangeHAInfoResponseHeader(master_ha_address="10.0.0.9")),
    ],
)
def test_a_master_that_does_not_say_it_is_found_otherwise(
    scene: Scene, answer: Reply[Any] | Exception
) -> None:
    scene.slave.found_master(HA_ADDRESS, ADDRESS)
    scene.acting.knows({1: OWN})
    scene.acting.knows(BOTH)
    scene.asked[0][1].resolve(answer)
    assert scene.slave.ha_address == HA_ADDRESS


def test_an_answer_that_comes_when_the_master_has_gone_again_is_late(scene: Scene) -> None:
    scene.acting.knows({1: OWN})
    scene.acting.knows(BOTH)
    scene.acting.knows({1: OWN})
    scene.asked[0][1].resolve(Reply(ExchangeHAInfoResponseHeader(master_ha_address=HA_ADDRESS)))
    assert scene.slave.master_address is None


def test_the_configured_address_of_the_master_stays(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ha_master_address="10.0.0.7:1")
    scene.acting.knows({1: OWN})
    scene.acting.told(0, ADDRESS, HA_ADDRESS)
    assert scene.slave.ha_address == "10.0.0.7:1"
    scene.parts.store.stop(scene.parts.now_ms)


def test_held_pulls_end_when_a_master_comes(scene: Scene) -> None:
    scene.acting.knows({1: OWN})
    assert scene.masters == []
    scene.acting.knows(BOTH)
    assert scene.masters == [True]
    scene.acting.knows({1: OWN})
    scene.acting.knows({1: OWN, 2: "10.0.0.3:10911"})
    assert scene.masters == [True]


def test_tables_are_not_copied_while_it_acts(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slave, "followed_address", ADDRESS)
    copy = scene.parts.config_copy
    assert copy is not None
    assert copy._master_address() == ADDRESS
    scene.acting.knows({1: OWN})
    assert copy._master_address() is None, "consumers have gone on meanwhile"


def test_nothing_happens_unless_it_is_enabled(tmp_path: Path) -> None:
    scene = Scene(tmp_path, is_enabled=False)
    scene.acting.told(1, OWN)
    assert not scene.acting.acts
    assert not scene.acting.has_master, "no name server has named one"
    scene.slave.found_master(HA_ADDRESS, ADDRESS)
    assert scene.acting.has_master
    beats = {each.name: each.beats for each in scene.parts.lives()}
    assert not beats["brokers of the name"]
    assert not beats["coming online"]
    scene.parts.store.stop(scene.parts.now_ms)


def test_a_master_never_has_to(parts: Parts) -> None:
    parts.acting.told(1, OWN)
    assert not parts.acting.acts
    assert parts.acting.has_master


def test_the_log_hears_how_many_brokers_there_are(tmp_path: Path, parts: Parts) -> None:
    config = BrokerConfig(enable_slave_acting_master=True, namesrv_addr="10.0.1.1:9876")
    master = Parts(tmp_path / "master", config, store_settings={"broker_role": "SYNC_MASTER"})
    for each in (master, parts):
        for life in each.lives():
            for heard in life.hears if life.name == "acting master" else ():
                heard.begin()
    assert (master.store.commit.members, parts.store.commit.members) == (1, None)
    for members, count in (({1: OWN}, 2), (BOTH, 2), ({0: ADDRESS}, 1)):
        tell_all(master.members.on_known, members)
        assert master.store.commit.members == count, "itself it is, too"
    master.store.stop(master.now_ms)
