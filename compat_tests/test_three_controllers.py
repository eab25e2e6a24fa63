# SPDX-License-Identifier: Apache-2.0
"""Three controllers of the original, of which the leader is lost, and then the master broker.

Our broker is master, and one of ours or of the original is its slave. While no controller leads,
the master goes on. The next leader knows what the lost one had decided, and chooses the slave when
the master is killed; nothing that was confirmed is lost.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event, Thread

import pytest

from compat_tests import probe
from compat_tests.controllers import DLEDGER, JRAFT, controller_settings
from compat_tests.engine import Engine, JavaProcess
from compat_tests.jars import RELEASES
from compat_tests.peers import Broker, NameServer, Original, Ours, Server
from compat_tests.test_controller import (
    CONTROLLED,
    FIRST,
    GET_METADATA_INFO,
    LATER,
    kill_under_load,
    lost,
    same,
    stores,
    wait_slaves_in_sync,
)
from compat_tests.test_our_slave import all_pulled
from compat_tests.test_replication import STORED, send, wait_until

RELEASE = RELEASES[-1]
GET_REPLICA_INFO = 1004
NOT_LEADER = 2007
COUNT = 3


class Controller(Server):
    """A controller that is a process of its own."""

    def __init__(
        self, engine: Engine, folder: Path, port: int, settings: Mapping[str, str]
    ) -> None:
        super().__init__(Original(RELEASE, engine), folder, port, settings)

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        path = self.configuration()

        def run() -> JavaProcess:
            assert isinstance(self.origin, Original)
            main = "org.apache.rocketmq.controller.ControllerStartup"
            return self.origin.java("controller", self.folder, [main, "-c", str(path)])

        self.run_until(run, lambda: bool(self.metadata()))

    def metadata(self) -> dict[str, str]:
        """Returns what it says about the controllers."""
        answer, _ = probe.request(self.port, GET_METADATA_INFO)
        return dict(answer.get("extFields") or {})

    def names_a_leader(self) -> str:
        """Returns the address of the leader, as far as it is known here."""
        return str(self.metadata().get("controllerLeaderAddress") or "")


class Group:
    """Three controllers and two brokers of a name."""

    def __init__(self, engine: Engine, folder: Path, second: str, kind: str) -> None:
        ports = [probe.free_ports([0]) for _ in range(COUNT)]
        folders = [folder / f"n{number}" for number in range(COUNT)]
        settings = controller_settings(kind, ports, [each / "store" for each in folders])
        self.controllers = [
            Controller(engine, *each) for each in zip(folders, ports, settings, strict=True)
        ]
        self.names = NameServer(Ours(), folder / "names")
        own = {**CONTROLLED, "controllerAddr": ";".join(each.address for each in self.controllers)}
        origins = Ours(), Ours() if second == "ours" else Original(second, engine)
        self.brokers = [
            Broker(
                origin, folder / name, self.names, "pair",
                {
                    **own,
                    "storePathEpochFile": str(folder / name / "store" / "epochFileCheckpoint"),
                    "storePathBrokerIdentity": str(folder / name / "store" / "brokerIdentity"),
                },
            )
            for origin, name in zip(origins, "ab", strict=True)
        ]  # fmt: skip

    @property
    def running(self) -> list[Controller]:
        return [each for each in self.controllers if each.is_running()]

    def leader(self) -> Controller | None:
        """Returns the controller that all that run take for the leader, if it runs."""
        named = {each.names_a_leader() for each in self.running}
        return next((each for each in self.running if named == {each.address}), None)

    def close(self) -> None:
        for server in (*self.brokers, self.names, *self.controllers):
            server.close()


@pytest.fixture(params=[("ours", DLEDGER), (RELEASE, DLEDGER), ("ours", JRAFT)], ids="-".join)
def group(engine: Engine, test_folder: Path, request: pytest.FixtureRequest) -> Iterator[Group]:
    made = Group(engine, test_folder, *request.param)
    try:
        for each in made.controllers:
            each.start()
        made.names.start()
        yield made
    finally:
        made.close()


def sent_meanwhile(broker: Broker, first: int, do: Callable[[], object]) -> list[int]:
    """Sends while something is done; returns what was confirmed. Nothing may be refused."""
    found: list[int] = []
    codes: set[int] = set()
    over = Event()

    def sends() -> None:
        number = first
        while not over.is_set():
            code = send(broker, number)
            codes.add(code)
            if code == STORED:
                found.append(number)
            number += 1

    sender = Thread(target=sends)
    sender.start()
    try:
        do()
    finally:
        over.set()
        sender.join(60)
    assert codes == {STORED}
    return found


def test_the_leader_of_the_controllers_and_then_the_master_are_lost(group: Group) -> None:
    old, new = group.brokers
    wait_until(lambda: group.leader() is not None, "a controller leads")
    old.start()
    wait_until(lambda: stores(old), "a master is chosen")
    new.start()
    wait_slaves_in_sync(old, 1)
    assert {send(old, number) for number in range(FIRST)} == {STORED}
    lost_leader = group.leader()
    assert lost_leader is not None
    others = [each for each in group.running if each is not lost_leader]
    fields = {"brokerName": "pair"}
    codes = [probe.request(each.port, GET_REPLICA_INFO, fields)[0]["code"] for each in others]
    assert codes == [NOT_LEADER] * 2

    def lose_the_leader() -> None:
        lost_leader.kill()
        wait_until(lambda: group.leader() is not None, "another controller leads")

    found = sent_meanwhile(old, 10_000, lose_the_leader)
    assert len(found) > LATER
    found += kill_under_load(old, 20_000)
    wait_until(lambda: stores(new), "the slave has taken over")
    assert {send(new, 600 + number) for number in range(LATER)} == {STORED}

    lost_leader.start()
    old.start()
    wait_slaves_in_sync(new, 1)
    assert {send(new, 700 + number) for number in range(LATER)} == {STORED}
    wait_until(lambda: same(old, new), "both logs are the same")
    assert lost(new, found) == []
    assert all_pulled(new) == all_pulled(old)
