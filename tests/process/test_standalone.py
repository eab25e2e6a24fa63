# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq standalone` from its start to its end, and after it was killed."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

from tests.process.conftest import Run, Standalone

MAX_IDLE_BYTES = 60 * 1024 * 1024


def test_it_starts_serves_and_stops_in_order(
    txrocketmq: Run, standalone: Callable[..., Standalone]
) -> None:
    it = standalone()
    assert txrocketmq("send", "T", "one", namesrv=it.namesrv).end()[0] == 0
    assert anonymous_bytes(it.command.process.pid) < MAX_IDLE_BYTES
    it.command.signal(signal.SIGTERM)
    code, out, err = it.command.end()
    assert (code, err) == (0, "")
    for said in (f"name server  {it.namesrv}", f"broker       {it.broker}", str(it.store)):
        assert said in out
    assert "it unregistered" in out
    assert not (it.store / "abort").exists()
    assert "T" in json.loads((it.store / "config/topics.json").read_text())["topicConfigTable"]


def anonymous_bytes(pid: int) -> int:
    """Memory of a process that no file stands for."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:  # noqa: PTH123
        (line,) = [line for line in status if line.startswith("RssAnon:")]
    return int(line.split()[1]) * 1024


def test_what_was_sent_is_there_after_a_kill(
    txrocketmq: Run, standalone: Callable[..., Standalone]
) -> None:
    it = standalone()
    assert txrocketmq("send", "T", "one", "two", namesrv=it.namesrv).end()[0] == 0
    it.command.signal(signal.SIGKILL)
    it.command.end()
    again = standalone()
    flags = ("--from", "first", "--count", "2", "--json")
    _, out, _ = txrocketmq("tail", "T", *flags, namesrv=again.namesrv).end()
    assert {json.loads(line)["body"] for line in out.splitlines()} == {"one", "two"}


def test_a_store_in_use_is_left_alone(
    txrocketmq: Run, standalone: Callable[..., Standalone]
) -> None:
    it = standalone()
    assert txrocketmq("send", "T", "one", namesrv=it.namesrv).end()[0] == 0
    topics = it.store / "config/topics.json"
    before = topics.stat().st_mtime_ns
    flags = ("--namesrv-port", "0", "--broker-port", "0", "--store", str(it.store))
    code, _, err = txrocketmq("standalone", *flags).end()
    assert code == 1
    assert err.startswith(f"txrocketmq standalone: {it.store}/lock is locked: ")
    assert len(err.splitlines()) == 1
    assert (it.store / "abort").exists()
    assert topics.stat().st_mtime_ns == before
    assert txrocketmq("send", "T", "two", namesrv=it.namesrv).end()[0] == 0


def test_a_port_in_use_is_told(txrocketmq: Run, standalone: Callable[..., Standalone]) -> None:
    it = standalone()
    port = it.namesrv.rpartition(":")[2]
    flags = ("--namesrv-port", port, "--store", str(it.store.with_name("other")))
    code, _, err = txrocketmq("standalone", *flags).end()
    assert code == 1
    assert f"cannot listen on port {port}" in err
    assert "--namesrv-port" in err
