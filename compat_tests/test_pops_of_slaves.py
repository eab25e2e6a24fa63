# SPDX-License-Identifier: Apache-2.0
"""Pops at a slave, which cannot write down what it hands out: ours refuses them.

A slave of the original hands out messages all the same, and forgets it: while they are hidden, they
are handed out again, and nobody brings them back. So nobody can rely on what it hands out.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.engine import Engine
from compat_tests.jars import RELEASES
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours
from compat_tests.pops import SETTINGS, Popped, text_of
from compat_tests.scene import poll
from compat_tests.test_acting_master import OURS, TOPIC, WAIT_S, make_topic
from compat_tests.test_our_slave import end_of
from compat_tests.test_remote_escape import knows, send

RELEASE = RELEASES[-1]
SYSTEM_ERROR = 1
FORGOTTEN_S = 5
"""By then an original slave has forgotten what it has handed out."""


@pytest.fixture(params=[OURS, RELEASE])
def slave(engine: Engine, test_folder: Path, request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A slave that has a message, and knows the group that has popped it at the master."""
    origin: Origin = Ours() if request.param == OURS else Original(request.param, engine)
    names = NameServer(Ours(), test_folder / "names")
    settings = {**SETTINGS, "brokerIP2": "127.0.0.1", "slaveReadEnable": "true"}
    master = Broker(Ours(), test_folder / "master", names, "pair", settings)
    made = Broker(
        origin, test_folder / "slave", names, "pair",
        {"brokerRole": "SLAVE", "brokerId": "1", **settings},
    )  # fmt: skip
    for broker in (master, made):
        make_topic(broker)
    try:
        for server in (names, master, made):
            server.start()
        send(master, "one")
        assert [each.text for each in Popped(master, TOPIC, "poppers").take()] == ["one"]
        send(master, "two")
        poll(lambda: knows(made, "poppers"), "the slave knows the group", WAIT_S)
        poll(lambda: end_of(made) == end_of(master), "the slave has the log", WAIT_S)
        yield made
    finally:
        for server in (made, master, names):
            server.close()


@pytest.mark.timeout(300)
def test_a_slave_hands_out_nothing_that_it_would_forget(slave: Broker) -> None:
    popped = Popped(slave, TOPIC, "poppers")
    found = [text_of(each) for each in popped.ask()]
    if slave.origin.name == OURS:
        assert (popped.code, found) == (SYSTEM_ERROR, [])
        return
    assert popped.code == 0
    assert "two" in found
    time.sleep(FORGOTTEN_S)
    assert [text_of(each) for each in popped.ask()] == found, "though they are hidden"
