# SPDX-License-Identifier: Apache-2.0
"""What clients leave behind: no thread, no connection, no task, no member of a group."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import Final

import pytest

from txrocketmq.client import Admin, GroupOffline, new_message
from txrocketmq.testing.server import Server

DEADLINE_S: Final = 90

COUNTED: Final = """
import logging, os, sys, threading, time
from txrocketmq import client as its
from txrocketmq.client import aio

where = {"namesrv_addr": sys.argv[1]}
reads = {**where, "consume_from": its.ConsumeFrom.FIRST_OFFSET, "enable_trace": True}
nobody = {"namesrv_addr": "127.0.0.1:1"}

def left():
    threads = sorted(each.name for each in threading.enumerate())
    return threads, len(os.listdir("/proc/self/fd"))

def check(what, before):
    until = time.monotonic() + 20  # threads that have nothing to do any more end by themselves
    while left() != before and time.monotonic() < until:
        time.sleep(0.02)
    assert left() == before, (what, left(), before)
    print(what)
"""

BLOCKING: Final = (
    COUNTED
    + """
def consume(group="push", **settings):
    called = threading.Event()
    with its.PushConsumer(
        group, {"Leftovers": "*"}, lambda *_: called.set(), **reads, **settings
    ):
        assert called.wait(60)

def lite():
    with its.LitePullConsumer("lite", {"Leftovers": "*"}, **reads) as consumer:
        assert next(iter(consumer)).body == b"x"

def pop():
    with its.PopConsumer("pop", {"Leftovers": "*"}, **reads) as consumer:
        consumer.ack(consumer.receive(wait_ms=60_000))

def send():
    with its.Producer("sends", **where, enable_trace=True, send_latency_fault_enable=True,
                      start_detector_enable=True) as producer:
        producer.send(its.new_message("Leftovers", "x"))
        producer.send_async(its.new_message("Leftovers", "x")).result(60)

def decide():
    with its.TransactionProducer("decides", lambda _: None, **where) as producer:
        producer.send_in_transaction(
            its.new_message("Leftovers", "x"), lambda *_: its.TransactionStatus.COMMIT
        )

def administer():
    with its.Admin(**where) as admin:
        assert "Leftovers" in admin.topics()

def fail():
    for make in (
        lambda: its.LitePullConsumer("g", {"Leftovers": "*"}, **nobody),
        lambda: its.PopConsumer("g", {"Leftovers": its.MessageSelector.by_sql("n > > 1")}, **where),
        lambda: its.Producer("g", topics=("Leftovers",), **nobody),
    ):
        try:
            make().start()
        except its.MQClientError:
            continue
        raise AssertionError(make)

def wait_for_a_topic():
    logging.getLogger("txrocketmq").setLevel(logging.ERROR)
    with its.PushConsumer("waits", {"NoSuchTopic": "*"}, print, **where):
        time.sleep(0.1)

def leave_unused():
    its.Producer("g", **where)

before = left()
for each in (
    send, decide, consume, lambda: consume("orderly", orderly=True), lite, pop, administer, fail,
    wait_for_a_topic, leave_unused,
):
    each()
    check(each.__name__, before)
"""
)

ASYNCIO: Final = (
    COUNTED
    + """
import asyncio

async def main():
    called = asyncio.Event()

    async def listen(messages, context):
        called.set()

    async with aio.Producer("sends", **where) as producer:
        await producer.send(its.new_message("Leftovers", "x"))
        async with aio.PushConsumer("push", {"Leftovers": "*"}, listen, **reads):
            await called.wait()
        async with aio.LitePullConsumer("lite", {"Leftovers": "*"}, **reads) as consumer:
            waiting = asyncio.ensure_future(consumer.poll(60_000))
            async for message in consumer:
                break
            waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert asyncio.all_tasks() == {asyncio.current_task()}, asyncio.all_tasks()

before = left()
asyncio.run(main())
check("asyncio", before)
"""
)

INTERRUPTED: Final = """
import sys, threading
from txrocketmq.client import ConsumeFrom, PushConsumer

def listen(messages, context):
    print("consumed", messages[0].body.decode(), flush=True)

with PushConsumer(
    "interrupted", {"Interrupted": "*"}, listen, namesrv_addr=sys.argv[1],
    consume_from=ConsumeFrom.FIRST_OFFSET, await_termination_ms=30_000,
):
    threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("program", "printed"), [(BLOCKING, 10), (ASYNCIO, 1)], ids=["blocking", "asyncio"]
)
def test_nothing_that_clients_start_outlives_them(
    rocketmq_server: Server, program: str, printed: int
) -> None:
    rocketmq_server.create_topic("Leftovers", queues=2)
    rocketmq_server.send("Leftovers", "x")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, rocketmq_server.namesrv_addr],
        capture_output=True, text=True, check=False, timeout=DEADLINE_S,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert len(done.stdout.splitlines()) == printed
    with Admin(namesrv_addr=rocketmq_server.namesrv_addr) as admin:
        for group in {"push", "orderly", "lite", "pop"} & set(rocketmq_server.groups()):
            with pytest.raises(GroupOffline):
                admin.consumer_connections(group)


def test_ctrl_c_ends_a_program_whose_consumer_has_committed(rocketmq_server: Server) -> None:
    rocketmq_server.create_topic("Interrupted", queues=1)
    with rocketmq_server.producer("interrupts") as producer:
        producer.send(new_message("Interrupted", "one"))
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, rocketmq_server.namesrv_addr],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "consumed one\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == -signal.SIGINT, said
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert "was not shut down" not in said
    assert rocketmq_server.lag("interrupted", "Interrupted") == 0
