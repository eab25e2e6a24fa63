# SPDX-License-Identifier: Apache-2.0
"""What is served on which port, in a whole broker: test_service.py and test_service_guards.py."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.error import CannotListenError
from twisted.internet.testing import MemoryReactorClock

from tests.broker.conftest import Parts
from tests.fakes import FakePeer
from txrocketmq.broker.all_processors import all_processors
from txrocketmq.broker.ports import Ports
from txrocketmq.remoting.codes import RequestCode, ResponseCode, SerializeType
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.dispatch import Registry
from txrocketmq.remoting.frame.frame import FrameDecoder
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.host.life import Gauge
from txrocketmq.remoting.settings.tls import TlsConfig
from txrocketmq.remoting.transport.failures import Failures

GAUGE = Gauge("txrocketmq_tides", lambda: 7)


class Scene:
    def __init__(self, parts: Parts) -> None:
        self.reactor: Any = MemoryReactorClock()
        clock = Clock(self.reactor)
        self.ports = Ports(parts, clock, TlsConfig(), Failures(clock), lambda *_: None)

    def listen(self) -> None:
        self.ports.listen(SerializeType.JSON, [GAUGE], str)


@pytest.fixture
def scene(parts: Parts) -> Scene:
    return Scene(parts)


def test_the_vip_port_is_two_below(scene: Scene, parts: Parts) -> None:
    scene.listen()
    opened = [(number, interface) for number, _, _, interface in scene.reactor.tcpServers]
    address = parts.config.bind_address
    assert opened[:2] == [(scene.ports.port, address), (scene.ports.vip_port, address)]
    assert scene.ports.vip_port == scene.ports.port - 2


@pytest.mark.parametrize(
    ("settings", "opened"),
    [
        ({}, (10_912, "0.0.0.0")),
        ({"ha_listen_port": 5, "bind_address": "127.0.0.1"}, (5, "127.0.0.1")),
        ({"ha_bind_address": "::1"}, (10_912, "::1")),
        ({"ha_allowed_addresses": ()}, None),
    ],
)
def test_slaves_have_a_port_of_their_own(
    parts: Parts, settings: dict[str, Any], opened: tuple[int, str] | None
) -> None:
    parts.set(**settings)
    scene = Scene(parts)
    scene.listen()
    found = [(number, interface) for number, _, _, interface in scene.reactor.tcpServers][2:]
    assert found == ([] if opened is None else [opened])
    assert scene.ports.ha_port == (0 if opened is None else opened[0])


@pytest.mark.parametrize(("allowed", "count"), [({}, 0), ({"ha_allowed_addresses": ("::1",)}, 1)])
def test_strangers_do_not_go_around_certificates(
    parts: Parts, allowed: dict[str, Any], count: int
) -> None:
    parts.set(**allowed)
    scene = Scene(parts)
    scene.ports._keeps_strangers_out = True
    scene.listen()
    assert len(scene.reactor.tcpServers) == 2 + count


def test_slaves_do_not_go_around_accounts(parts: Parts) -> None:
    parts.set(authentication_enabled=True)
    assert parts.access.is_guarded
    scene = Scene(parts)
    scene.listen()
    assert len(scene.reactor.tcpServers) == 2


@pytest.mark.parametrize("named", [0, 10_912])
def test_a_port_for_slaves_that_is_taken(parts: Parts, named: int) -> None:
    """It stops the start only if somebody has named it."""
    parts.set(ha_listen_port=named)
    scene = Scene(parts)
    listen = scene.reactor.listenTCP

    def listen_if_free(port: int, *arguments: Any) -> Any:
        if port == 10_912:
            raise CannotListenError("", port, OSError("in use"))
        return listen(port, *arguments)

    scene.reactor.listenTCP = listen_if_free
    if named:
        with pytest.raises(CannotListenError):
            scene.listen()
    else:
        scene.listen()
        assert scene.ports.ha_port == 0


def test_one_list_of_guards_is_that_of_both_ports(scene: Scene) -> None:
    scene.listen()
    scene.ports.guards.append(lambda *_: None)
    assert all(each.guards is scene.ports.guards for each in scene.ports.dispatchers)


def test_pulls_are_served_on_one_port_only(scene: Scene, parts: Parts) -> None:
    scene.listen()
    scene.ports.use(Registry(*all_processors(parts)))
    codes = []
    for dispatcher in scene.ports.dispatchers:
        peer = FakePeer()
        dispatcher.serve(peer, [RemotingCommand(RequestCode.PULL_MESSAGE, {}, opaque=1)])
        (answer,) = FrameDecoder().receive(b"".join(map(bytes, peer.written)))
        codes.append(answer.code)
    assert codes == [ResponseCode.SYSTEM_ERROR, ResponseCode.REQUEST_CODE_NOT_SUPPORTED]


def test_a_port_that_is_taken_is_an_error(scene: Scene) -> None:
    def refuse(*_: object) -> None:
        raise CannotListenError("", 10_911, OSError("in use"))

    scene.reactor.listenTCP = refuse
    with pytest.raises(CannotListenError):
        scene.listen()


def test_metrics_have_the_gauges_of_all_parts(scene: Scene, parts: Parts) -> None:
    parts.set(metrics_exporter_type="PROM", metrics_prom_exporter_port=5_557)
    scene.listen()
    assert [server[0] for server in scene.reactor.tcpServers][2:-1] == [5_557]
    collected = scene.ports._collecting({"zone": "a"}, [GAUGE])()
    (found,) = [each for each in collected if getattr(each, "name", "") == GAUGE.name]
    assert [sample.value for sample in found.samples] == [7]
    assert found.samples[0].labels["zone"] == "a"
    assert len({id(each.times) for each in scene.ports.dispatchers}) == 1
