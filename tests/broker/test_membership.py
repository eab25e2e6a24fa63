# SPDX-License-Identifier: Apache-2.0
"""What a broker begins as one of several, and what of it ends: over a whole broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.broker.test_service import Scene
from tests.broker.test_service_slave import Following
from txrocketmq.broker import membership
from txrocketmq.broker.membership import Membership
from txrocketmq.remoting.call import PendingReply
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.host.threads import Threads


class Compared:
    """Takes the place of what compares the log of a slave with its master's."""

    made: Compared | None = None

    def __init__(self, *given: Any) -> None:
        self.truncate: Callable[[int], None] | None = given[4]
        Compared.made = self

    def check(self) -> PendingReply:
        return PendingReply()


@pytest.fixture
def truncate_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Callable[[int], None] | None]:
    """Starts a slave with these settings, and returns what cuts its log."""
    monkeypatch.setattr(membership, "Rejoin", Compared)

    def truncate_of(restart: Callable[[], object] | None, **settings: Any) -> Any:
        slave = Following(tmp_path / "slave", **settings)
        slave.broker.restart = restart
        slave.start()
        assert Compared.made is not None
        truncate = Compared.made.truncate
        if truncate is not None:
            truncate(0)
            slave.pass_ms(50)
        slave.close()
        return truncate

    return truncate_of


def test_a_slave_that_may_cuts_its_log_by_a_restart(truncate_of: Any) -> None:
    restarts: list[str] = []
    assert truncate_of(lambda: restarts.append("anew"), ha_truncate=True) is not None
    assert restarts == ["anew"]


def test_a_log_is_not_cut_where_that_is_not_wanted(truncate_of: Any) -> None:
    assert truncate_of(lambda: None) is None


def test_a_log_is_not_cut_where_nobody_starts_the_broker_again(truncate_of: Any) -> None:
    assert truncate_of(None, ha_truncate=True) is None


def test_the_port_for_slaves_is_told_with_the_registration(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"ha_listen_port": 0}).start()
    (asked,) = scene.connections.take()
    assert asked.call.code == RequestCode.REGISTER_BROKER
    assert asked.header.ha_server_addr == "127.0.0.1:10912"  # type: ignore[attr-defined]
    assert scene.broker.parts.configuration.shown["haListenPort"] == "10912"


def test_a_slave_that_has_stopped_connects_to_nobody(tmp_path: Path) -> None:
    slave = Following(tmp_path / "slave")
    slave.start()
    slave.find_master()
    slave.connect()
    slave.broker.membership.stop()
    assert slave.transport.is_aborted
    slave.pass_ms(10_000, 500)
    assert len(slave.reactor.tcpClients) == 1
    slave.close()


def test_it_ends_before_it_has_begun(tmp_path: Path) -> None:
    """As when the store cannot be opened."""
    scene = Scene(tmp_path)
    one = Membership(scene.broker.parts, scene.clock, Threads(scene.clock))
    one.stop()
    assert one.why_not_ready() == "no name server has registered this broker yet"
