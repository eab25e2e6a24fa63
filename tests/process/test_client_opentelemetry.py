# SPDX-License-Identifier: Apache-2.0
"""Programs with OpenTelemetry, in each form: one trace leads from a send to its listener."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from typing import Any

import pytest

from txrocketmq.testing.server import Server

PROGRAM = """
import asyncio, json, sys, threading
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from txrocketmq.client import ConsumeFrom, Producer, PushConsumer, aio, new_message
from txrocketmq.client.opentelemetry import instrument

kind, where = sys.argv[1:]
topic = "Traced-" + kind
settings = {"namesrv_addr": where, "consume_from": ConsumeFrom.FIRST_OFFSET}
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("test")
enough = threading.Event()

def listener(messages, context):
    with tracer.start_as_current_span("inside"):
        enough.set()

async def aio_listener(messages, context):
    await asyncio.sleep(0)
    listener(messages, context)

async def aio_main():
    async with instrument(aio.Producer("g", namesrv_addr=where)) as producer:
        with tracer.start_as_current_span("outside"):
            await producer.send(new_message(topic, "x"))
    async with instrument(aio.PushConsumer("g", {topic: "*"}, aio_listener, **settings)):
        await asyncio.to_thread(enough.wait, 60)

if kind == "aio":
    asyncio.run(aio_main())
elif kind == "tx":
    from twisted.internet import defer, task, threads
    from txrocketmq.client import tx

    async def tx_listener(messages, context):
        await task.deferLater(reactor, 0.01)
        listener(messages, context)

    async def tx_main(reactor):
        async with instrument(tx.Producer("g", namesrv_addr=where)) as producer:
            with tracer.start_as_current_span("outside"):
                sending = producer.send(new_message(topic, "x"))
            await sending
        async with instrument(tx.PushConsumer("g", {topic: "*"}, tx_listener, **settings)):
            await threads.deferToThread(enough.wait, 60)

    from twisted.internet import reactor
    try:
        task.react(lambda reactor: defer.Deferred.fromCoroutine(tx_main(reactor)))
    except SystemExit as end:
        assert end.code == 0
else:
    with instrument(Producer("g", namesrv_addr=where)) as producer:
        with tracer.start_as_current_span("outside"):
            producer.send(new_message(topic, "x"))
    with instrument(PushConsumer("g", {topic: "*"}, listener, **settings)):
        enough.wait(60)
print(json.dumps([json.loads(span.to_json()) for span in exporter.get_finished_spans()]))
"""


@pytest.mark.parametrize("kind", ["blocking", "aio", "tx"])
def test_one_trace_leads_from_a_send_to_what_its_listener_does(
    rocketmq_server: Server, kind: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, kind, rocketmq_server.namesrv_addr],
        capture_output=True, text=True, check=False, timeout=150,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    spans: dict[str, Any] = {span["name"]: span for span in json.loads(done.stdout)}
    names = ["outside", f"send Traced-{kind}", f"process Traced-{kind}", "inside"]
    assert sorted(spans) == sorted(names)
    for parent, child in itertools.pairwise(names):
        assert spans[child]["parent_id"] == spans[parent]["context"]["span_id"], child
    assert len({span["context"]["trace_id"] for span in spans.values()}) == 1
    sent, processed = (spans[name]["attributes"] for name in names[1:3])
    assert sent["messaging.message.id"] == processed["messaging.message.id"]
    assert sent["server.port"] == int(rocketmq_server.broker_addr.rpartition(":")[2])
