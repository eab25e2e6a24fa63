# SPDX-License-Identifier: Apache-2.0
"""A controller of the original chooses among our brokers, and among ours and the original's.

The master is killed, a slave takes over, and the old master comes back and follows: nothing that
was confirmed is lost, and the logs are the same, byte for byte.
"""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest

from compat_tests import probe
from compat_tests.certificates import client_context
from compat_tests.controllers import DLEDGER, controller_settings
from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours
from compat_tests.test_our_slave import all_pulled, end_of
from compat_tests.test_replication import STORED, send, status, units, wait_until

RELEASE = RELEASES[-1]
CONTROLLED = {
    "enableControllerMode": "true",
    "slaveReadEnable": "true",
    "allAckInSyncStateSet": "true",
    "mappedFileSizeCommitLog": str(1024 * 1024),
}
FIRST, LATER = 60, 40
SENDERS, ROUNDS = 3, 5
GET_METADATA_INFO = 1005


class Group:
    """Two brokers of a name, and a controller in an original name server."""

    def __init__(
        self, folder: Path, engine: Engine, origins: tuple[Origin, Origin], kind: str = DLEDGER
    ) -> None:
        self.names = NameServer(Original(RELEASE, engine), folder / "names")
        port = self.controller_port = probe.free_ports([0])
        (own_settings,) = controller_settings(kind, [port], [folder / "controller"])
        self.names.settings |= {"enableControllerInNamesrv": "true", **own_settings}
        own = {**CONTROLLED, "controllerAddr": f"127.0.0.1:{port}"}
        self.brokers = [
            Broker(origin, folder / name, self.names, "pair", self._paths(folder / name) | own)
            for origin, name in zip(origins, "ab", strict=True)
        ]

    def _paths(self, folder: Path) -> dict[str, str]:
        store = folder / "store"
        return {
            "storePathEpochFile": str(store / "epochFileCheckpoint"),
            "storePathBrokerIdentity": str(store / "brokerIdentity"),
        }


def wait_slaves_in_sync(master: Broker, count: int) -> None:
    """Waits until so many slaves have all of the log, and are in sync."""

    def are_in_sync() -> bool:
        shown = status(master)
        slaves, end = shown["haConnectionInfo"], shown["masterCommitLogMaxOffset"]
        assert isinstance(slaves, list)
        return len(slaves) == count and all(
            each["slaveAckOffset"] == end and each["inSync"] for each in slaves
        )

    wait_until(are_in_sync, f"{count} slaves have all of the log")


ORIGINS = ("ours-ours", f"ours-{RELEASE}", f"{RELEASE}-ours")
WITH_JRAFT = "ours-ours-jRaft"


@pytest.fixture(params=[*ORIGINS, WITH_JRAFT])
def group(engine: Engine, test_folder: Path, request: pytest.FixtureRequest) -> Iterator[Group]:
    """The brokers are of these origins; the controller uses DLedger, unless JRaft is named."""
    first, second, *kind = request.param.split("-")
    origins = [Ours() if each == "ours" else Original(each, engine) for each in (first, second)]
    made = Group(test_folder, engine, (origins[0], origins[1]), *kind)
    try:
        made.names.start()
        yield made
    finally:
        for each in made.brokers:
            each.close()
        made.names.close()


def confirmed_until_killed(broker: Broker, first: int, kill: Event) -> list[int]:
    """Sends one message after another until the broker is gone; returns those confirmed."""
    found: list[int] = []
    with suppress(OSError, ValueError, KeyError):
        for number in range(first, 10_000_000, SENDERS):
            if send(broker, number) == STORED:
                found.append(number)
            if len(found) == 30:
                kill.set()
    return found


def kill_under_load(broker: Broker, first: int) -> list[int]:
    """Kills a master while several send; returns what it has confirmed."""
    due: list[Event] = [Event() for _ in range(SENDERS)]
    found: list[int] = []

    def sends(number: int) -> None:
        found.extend(confirmed_until_killed(broker, first + number, due[number]))

    senders = [Thread(target=sends, args=(number,)) for number in range(SENDERS)]
    for each in senders:
        each.start()
    assert all(each.wait(60) for each in due)
    broker.kill()
    for each in senders:
        each.join(60)
    return found


def lost(broker: Broker, confirmed: list[int]) -> list[int]:
    """What was confirmed and is not there."""
    text = b"".join(all_pulled(broker))
    return [each for each in confirmed if b"KEYS\x01key%d\x02" % each not in text]


def stores(broker: Broker) -> bool:
    """Whether a broker, which may be starting, is a master that stores messages."""
    try:
        return send(broker, 1) == STORED
    except (OSError, ValueError, KeyError):
        return False


def whole(store: Path, end: int) -> bytes:
    """The log of a store, without what is only reserved."""
    paths = sorted((store / "commitlog").iterdir())
    return b"".join(each.read_bytes() for each in paths)[:end]


def same(one: Broker, other: Broker) -> bool:
    """Whether both have the same log and the same queues."""
    end = end_of(one)
    has_same_log = end_of(other) == end and whole(one.store, end) == whole(other.store, end)
    return has_same_log and units(one.store) == units(other.store)


def test_a_slave_takes_over_and_the_old_master_comes_back(group: Group) -> None:
    old, new = group.brokers
    old.start()
    wait_until(lambda: send(old, 0) == STORED, "a master is chosen")
    new.start()
    wait_slaves_in_sync(old, 1)
    assert {send(old, number) for number in range(FIRST)} == {STORED}

    found = kill_under_load(old, 10_000)
    wait_until(lambda: stores(new), "the slave has taken over")
    assert {send(new, 600 + number) for number in range(LATER)} == {STORED}

    old.start()
    wait_slaves_in_sync(new, 1)
    assert {send(new, 700 + number) for number in range(LATER)} == {STORED}
    wait_until(lambda: same(old, new), "both logs are the same")
    assert lost(new, found) == []
    assert all_pulled(new) == all_pulled(old)


@pytest.mark.parametrize("group", ["ours-ours", WITH_JRAFT], indirect=True)
def test_masters_are_killed_in_turn(group: Group) -> None:
    old, new = group.brokers
    old.start()
    wait_until(lambda: send(old, 0) == STORED, "a master is chosen")
    new.start()
    wait_slaves_in_sync(old, 1)
    found: list[int] = []
    for number in range(1, ROUNDS + 1):
        found += kill_under_load(old, number * 100_000)
        wait_until(partial(stores, new), "the slave has taken over")
        old.start()
        wait_slaves_in_sync(new, 1)
        old, new = new, old
    wait_until(lambda: same(old, new), "both logs are the same")
    assert lost(old, found) == []
    assert all_pulled(new) == all_pulled(old)


@pytest.mark.parametrize("group", ["ours-ours"], indirect=True)
def test_a_master_that_is_stopped_is_replaced_as_well(group: Group) -> None:
    old, new = group.brokers
    old.start()
    wait_until(lambda: stores(old), "a master is chosen")
    new.start()
    wait_slaves_in_sync(old, 1)
    assert {send(old, number) for number in range(FIRST)} == {STORED}
    old.stop()
    wait_until(lambda: stores(new), "the slave has taken over")
    old.start()
    wait_slaves_in_sync(new, 1)
    wait_until(lambda: same(old, new), "both logs are the same")


@pytest.mark.parametrize("group", ["ours-ours"], indirect=True)
@pytest.mark.parametrize("is_master", [True, False], ids=["master", "slave"])
def test_what_a_power_cut_has_taken_comes_back_from_the_other_broker(
    group: Group, is_master: bool, test_folder: Path
) -> None:
    """One broker loses all that was confirmed since its disk had something last."""
    old, new = group.brokers
    old.start()
    wait_until(lambda: stores(old), "a master is chosen")
    new.start()
    wait_slaves_in_sync(old, 1)
    assert {send(old, number) for number in range(FIRST)} == {STORED}
    wait_slaves_in_sync(old, 1)
    struck = old if is_master else new
    on_disk = test_folder / "on_disk"
    shutil.copytree(struck.store, on_disk)  # nothing is sent meanwhile
    found = list(range(100, 100 + LATER))
    assert {send(old, number) for number in found} == {STORED}

    if is_master:
        found += kill_under_load(old, 10_000)
        wait_until(lambda: stores(new), "the slave has taken over")
        old, new = new, old
    else:
        struck.kill()
    lose_all_but(struck, on_disk)
    struck.start()
    wait_slaves_in_sync(old, 1)
    found += kill_under_load(old, 20_000)
    wait_until(lambda: stores(new), "the one that was struck takes over")
    old.start()
    wait_slaves_in_sync(new, 1)
    wait_until(lambda: same(old, new), "both logs are the same")
    assert lost(new, found) == []


def lose_all_but(broker: Broker, on_disk: Path) -> None:
    """Gives a broker that was killed the store that its disk had."""
    shutil.rmtree(broker.store)
    shutil.copytree(on_disk, broker.store)


def test_a_controller_may_demand_encryption(engine: Engine, test_folder: Path) -> None:
    """The connections of brokers to it are encrypted then, as those to name servers are."""
    group = Group(test_folder, engine, (Ours({"tls.enable": "true"}),) * 2)
    group.names.origin = Original(RELEASE, engine, {"tls.server.mode": "enforcing"})
    group.names.tls = client_context()
    old, new = group.brokers
    try:
        group.names.start()
        with pytest.raises((OSError, ValueError)):
            probe.request(group.controller_port, GET_METADATA_INFO)
        old.start()
        wait_until(lambda: stores(old), "a master is chosen")
        new.start()
        wait_slaves_in_sync(old, 1)
        found = kill_under_load(old, 10_000)
        wait_until(lambda: stores(new), "the slave has taken over")
        assert lost(new, found) == []
    finally:
        for each in (*group.brokers, group.names):
            each.close()
