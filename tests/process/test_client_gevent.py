# SPDX-License-Identifier: Apache-2.0
"""The blocking client in programs that gevent has patched, as under gunicorn, Celery and Locust."""

from __future__ import annotations

import subprocess
import sys

import pytest

from txrocketmq.testing.server import Server

PATCHED = "from gevent import monkey; monkey.patch_all()\n"
IMPORTED = "import txrocketmq.client\n"
PROGRAM = """
import gevent, sys
from txrocketmq.client import ConsumeFrom, Producer, PushConsumer, new_message

where, topic = sys.argv[1:]
seen, ticks = [], []

def tick():
    while True:
        ticks.append(None)
        gevent.sleep(0.01)

def listener(messages, context):
    gevent.sleep(0.01)  # listeners wait side by side
    seen.extend(messages)

with gevent.Timeout(60):
    ticking = gevent.spawn(tick)
    with Producer("gevent-producers", namesrv_addr=where) as producer:
        sends = [gevent.spawn(producer.send, new_message(topic, str(n))) for n in range(20)]
        gevent.joinall(sends, raise_error=True)
        futures = [producer.send_async(new_message(topic, "x")) for n in range(20)]
        assert len({future.result(30).msg_id for future in futures}) == 20
        with PushConsumer(
            "gevent-" + topic, {topic: "*"}, listener,
            namesrv_addr=where, consume_from=ConsumeFrom.FIRST_OFFSET,
        ):
            while len(seen) < 40:
                gevent.sleep(0.01)
    print(len(seen), len(ticks) > 5)
"""
HALF = """
from gevent import monkey
monkey.patch_all(select=False)
from txrocketmq.client import Producer
Producer("g", namesrv_addr="127.0.0.1:1")
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("first", [PATCHED, IMPORTED + PATCHED])
def test_greenlets_send_and_consume(rocketmq_server: Server, first: str) -> None:
    topic = f"Gevent{len(first)}"
    rocketmq_server.create_topic(topic)
    done = run(first + PROGRAM, rocketmq_server.namesrv_addr, topic)
    assert (done.stdout, done.stderr, done.returncode) == ("40 True\n", "", 0)


def test_what_would_stop_all_greenlets_is_said_in_a_sentence() -> None:
    done = run(HALF)
    assert done.stderr.splitlines()[-1] == (
        "RuntimeError: gevent has patched threading but not select, so the client would stop all"
        " greenlets: call gevent.monkey.patch_all() instead, before anything else is imported"
    )
