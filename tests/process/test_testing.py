# SPDX-License-Identifier: Apache-2.0
"""The fixtures of the pytest plugin with a real server, and the server within a reactor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.conftest import Run
from txrocketmq.testing.server import Server

SEND_DELAYED = """
import sys
from txrocketmq.cli import session
from txrocketmq.client.producer.producer import Producer
from txrocketmq.remoting.message.message import Message

async def main(client):
    await Producer(client, "g").send(Message("Delayed", b"later", properties={"DELAY": "5"}))
    return 0

sys.exit(session.run("test", sys.argv[1], main))
"""

IN_PROCESS = """
from twisted.internet.defer import Deferred
from twisted.internet.task import react
from txrocketmq.client.config import ClientConfig
from txrocketmq.client.consumer.pull import PullLoop
from txrocketmq.client.instance import ClientInstance
from txrocketmq.client.producer.producer import Producer
from txrocketmq.remoting.message.message import Message
from txrocketmq.testing.in_process import InProcessServer

async def test(reactor):
    server = InProcessServer()
    await server.start()
    client = ClientInstance(ClientConfig(namesrv_addr=server.namesrv_addr))
    client.start()
    await Producer(client, "g").send(Message("Delayed", b"later", properties={"DELAY": "18"}))
    got = Deferred()
    await client.refresh("Delayed")
    loop = PullLoop(client, "Delayed", lambda _, messages: got.callback(messages), start="first")
    await loop.start()
    server.advance(2 * 3600 * 1000)
    (message,) = await got
    print(message.body.decode())
    loop.stop()
    await client.stop()
    await server.stop()

react(lambda reactor: Deferred.fromCoroutine(test(reactor)))
"""


def python(
    program: str, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=env,
    )


def test_a_delay_is_over_when_the_clock_says_so(rocketmq: Server, txrocketmq: Run) -> None:
    sent = python(SEND_DELAYED, rocketmq.namesrv_addr)
    assert sent.returncode == 0, sent.stderr
    flags = ("--from", "first", "--json", "--count", "1")
    tail = txrocketmq("tail", "Delayed", *flags, "--timeout", "1", namesrv=rocketmq.namesrv_addr)
    assert tail.end()[:2] == (1, "")
    rocketmq.advance(60_000)
    tail = txrocketmq("tail", "Delayed", *flags, "--timeout", "20", namesrv=rocketmq.namesrv_addr)
    code, out, _ = tail.end()
    assert (code, json.loads(out)["body"]) == (0, "later")


@pytest.mark.rocketmq(autoCreateTopicEnable=False)
def test_the_broker_has_the_settings_of_the_marker(rocketmq: Server, txrocketmq: Run) -> None:
    code, _, err = txrocketmq("send", "T", "x", namesrv=rocketmq.namesrv_addr).end()
    assert code == 1
    assert "topic T has no route" in err
    assert len(err.splitlines()) == 1
    assert rocketmq.log_path.read_text().count("listens on") == 2


def test_the_same_within_a_reactor(tmp_path: Path) -> None:
    done = python(IN_PROCESS, env={"TMPDIR": str(tmp_path), "PATH": ""})
    assert (done.returncode, done.stdout, done.stderr) == (0, "later\n", "")
    assert list(tmp_path.iterdir()) == []
