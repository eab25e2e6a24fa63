# SPDX-License-Identifier: Apache-2.0
"""A master of ours that comes back as a slave, with messages that the new master never got.

The new master may be an original one, which serves the request by which both logs are compared. And
a store of ours that was cut is one that original brokers open and continue.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours
from compat_tests.test_our_slave import WITHOUT_WAITING, all_pulled, end_of
from compat_tests.test_replication import STORED, content, send, units, wait_until

COMMON, ONLY_OLD, ONLY_NEW = 40, 25, 30
SLAVE = {"brokerRole": "SLAVE", "brokerId": "1", "slaveReadEnable": "true"}
MASTER = {"brokerRole": "ASYNC_MASTER", "brokerId": "0"}


class Swap:
    """A master of ours and its slave of some origin, which takes its place."""

    def __init__(self, origin: Origin, folder: Path) -> None:
        self.names = NameServer(Ours(), folder / "names")
        self.old = Broker(Ours(), folder / "old", self.names, "pair", MASTER)
        self.new = Broker(origin, folder / "new", self.names, "pair", SLAVE)

    def separate(self) -> int:
        """Has both roles exchanged so that each has messages which the other lacks.

        Returns where their logs separate.
        """
        self.old.start()
        self.new.start()
        for number in range(COMMON):
            assert send(self.old, number) == STORED
        wait_until(lambda: known_end(self.new) == end_of(self.old), "the slave has the log")
        common = end_of(self.old)
        self.new.stop()
        for number in range(ONLY_OLD):
            assert send(self.old, 100 + number, wait=WITHOUT_WAITING) == STORED
        self.old.kill()
        self.new.settings.update(MASTER)
        self.new.start()
        for number in range(ONLY_NEW):
            assert send(self.new, 200 + number, 900) == STORED
        self.old.settings.update(SLAVE)
        return common


@pytest.fixture(params=["ours", *RELEASES])
def swap(engine: Engine, test_folder: Path, request: pytest.FixtureRequest) -> Iterator[Swap]:
    origin = Ours() if request.param == "ours" else Original(request.param, engine)
    made = Swap(origin, test_folder)
    try:
        made.names.start()
        yield made
    finally:
        made.old.close()
        made.new.close()
        made.names.close()


def tool(*arguments: str) -> str:
    """Runs txrocketmq store; returns what it has printed."""
    command = [str(Path(sys.executable).with_name("txrocketmq")), "store", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def known_end(broker: Broker) -> int:
    """Where the log of a broker ends; -1 if it does not say it, as it is just starting."""
    with suppress(OSError, ValueError):
        return end_of(broker)
    return -1


def lost(store: Path) -> bytes:
    paths = sorted(each for each in (store / "lost").rglob("*") if each.is_file())
    return b"".join(each.read_bytes() for each in paths)


@pytest.mark.timeout(400)
def test_an_old_master_follows_when_its_tail_is_cut_off(swap: Swap) -> None:
    common = swap.separate()
    old, new = swap.old, swap.new
    wait_until(lambda: known_end(new) > common, "the new master says where its log ends")
    end = end_of(new)
    old.start()
    sentence = f"differ from {common} on: only this slave has the last {ONLY_OLD} messages"
    wait_until(lambda: sentence in old.log_tail(400), "the slave says that it does not follow")
    assert end_of(old) != end
    assert content(old.store, common) == content(new.store, common)
    old.stop()

    old.settings["haTruncate"] = "true"
    old.start()
    wait_until(
        lambda: known_end(old) == known_end(new) > 0, "the slave has the log of the new master"
    )
    assert content(old.store, end) == content(new.store, end)
    wait_until(lambda: units(old.store) == units(new.store), "the queues are the same")
    wait_until(lambda: all_pulled(old) == all_pulled(new), "both answer the same")
    kept = lost(old.store)
    for number in range(ONLY_OLD):
        assert b"KEYS\x01key%d\x02" % (100 + number) in kept
    assert send(new, 300) == STORED
    wait_until(lambda: end_of(old) == end_of(new), "and goes on")
    old.stop()
    assert "Nothing is wrong." in tool("check", str(old.store))


@pytest.mark.timeout(400)
@pytest.mark.parametrize("release", RELEASES)
def test_an_original_broker_continues_a_store_that_was_cut(
    engine: Engine, test_folder: Path, release: str
) -> None:
    names = NameServer(Ours(), test_folder / "names")
    ours = Broker(Ours(), test_folder / "cut", names, "cut", {})
    original = ours.under(Original(release, engine))
    names.start()
    try:
        ours.start()
        for number in range(COMMON):
            assert send(ours, number) == STORED
        ours.stop()
        shutil.copytree(ours.store, test_folder / "copy")
        ours.start()
        before, end = all_pulled(ours), end_of(ours)
        for number in range(ONLY_OLD):
            assert send(ours, 100 + number) == STORED
        ours.stop()
        said = tool("cut", str(ours.store), "--common-with", str(test_folder / "copy"), "--yes")
        assert f"ends at {end} now" in said
        original.start()
        wait_until(lambda: known_end(original) == end, "it begins where the store was cut")
        assert all_pulled(original) == before
        for number in range(ONLY_NEW):
            assert send(original, 200 + number) == STORED
        original.stop()
        ours.start()
        assert len(b"".join(all_pulled(ours))) > len(b"".join(before))
        assert send(ours, 400) == STORED
        ours.stop()
        assert "Nothing is wrong." in tool("check", str(ours.store))
    finally:
        ours.close()
        original.close()
        names.close()
