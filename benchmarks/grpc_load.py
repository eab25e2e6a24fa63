# SPDX-License-Identifier: Apache-2.0
"""One load on a proxy: `python -m benchmarks.grpc_load ENDPOINT TOPIC MODE name=number ...`.

grpcio is the client, so that each proxy has the same one. Modes are send (so many calls in flight),
receive (receives of 32 messages, each of which is acknowledged by a call of its own) and pace (a
hundred sends a second, and how long it takes until each message has been received). Standard
output carries one JSON object a line, as with java/Load.java: "start" and "end" stand at the edges
of the measured window. Bodies have 1 KiB.
"""

import asyncio
import json
import struct
import sys
import time
from collections.abc import AsyncIterator
from itertools import count
from typing import Any, Final

import grpc

from txrocketmq.proxy.schema.codes import Code
from txrocketmq.proxy.schema.enums import ClientType, Encoding, FilterType, MessageType
from txrocketmq.proxy.schema.messages import SERVICE, message_type

BODY: Final = b"x" * 1024
BATCH: Final = 32
TIMEOUT_S: Final = 10.0
RECEIVE_TIMEOUT_S: Final = 30.0
SETTLED_S: Final = 1.5
WARM_UP_SHARE: Final = 5
"""One part in so many of the messages that are received does not count."""
GROUP: Final = "bench-grpc"
PACE_MS: Final = 10
"""The time between two sends, where they come one by one."""
_TIME: Final = struct.Struct("d")


class Proxy:
    """A connection of one client with a proxy, and what it calls."""

    def __init__(self, channel: grpc.aio.Channel, topic: str) -> None:
        self._channel = channel
        self.topic = {"name": topic}
        self.metadata = (
            ("x-mq-client-id", f"bench@{time.time_ns()}"),
            ("x-mq-language", "PYTHON"),
            ("x-mq-client-version", "5.1.2"),
            ("x-mq-protocol", "v2"),
        )
        self._numbers = count(time.time_ns())
        self._send = channel.unary_unary(*self._named("SendMessage"))
        self._ack = channel.unary_unary(*self._named("AckMessage"))
        self._receive = channel.unary_stream(*self._named("ReceiveMessage"))

    def _named(self, name: str) -> tuple[str, Any, Any]:
        request = message_type(f"{name}Request")
        answer = message_type(f"{name}Response")
        return f"/{SERVICE}/{name}", request.SerializeToString, answer.FromString

    async def settle(self, settings: dict[str, Any]) -> Any:
        """Tells the proxy who calls; the stream that is returned stays open."""
        command = message_type("TelemetryCommand")
        stream = self._channel.stream_stream(
            f"/{SERVICE}/Telemetry", command.SerializeToString, command.FromString
        )(metadata=self.metadata)
        endpoint = {"scheme": 1, "addresses": [{"host": "127.0.0.1", "port": 1}]}
        agent = {"language": 6, "version": "5.1.2"}
        its = {"access_point": endpoint, "user_agent": agent, **settings}
        await stream.write(command(settings=its))
        await stream.read()
        return stream

    async def send(self, messages: int = 1, body: bytes = BODY) -> None:
        """Sends messages in one call. Raises RuntimeError if they are refused."""
        request = message_type("SendMessageRequest")()
        for _ in range(messages):
            message = request.messages.add(topic=self.topic, body=body)
            system = message.system_properties
            system.message_id = f"01{next(self._numbers):032X}"
            system.message_type = MessageType.NORMAL
            system.body_encoding = Encoding.IDENTITY
        answer = await self._send(request, metadata=self.metadata, timeout=TIMEOUT_S)
        if answer.status.code != Code.OK:
            raise RuntimeError(f"{answer.status}")

    async def receive(self) -> AsyncIterator[Any]:
        """Yields the messages of one receive."""
        request = message_type("ReceiveMessageRequest")(
            group={"name": GROUP},
            message_queue={"topic": self.topic},
            filter_expression={"type": FilterType.TAG, "expression": "*"},
            batch_size=BATCH,
            invisible_duration={"seconds": 60},
        )
        stream = self._receive(request, metadata=self.metadata, timeout=RECEIVE_TIMEOUT_S)
        async for each in stream:
            if each.WhichOneof("content") == "message":
                yield each.message

    async def ack(self, message: Any) -> None:
        """Acknowledges a message. Raises RuntimeError if that is refused."""
        system = message.system_properties
        entry = {"message_id": system.message_id, "receipt_handle": system.receipt_handle}
        request = message_type("AckMessageRequest")(
            group={"name": GROUP}, topic=self.topic, entries=[entry]
        )
        answer = await self._ack(request, metadata=self.metadata, timeout=TIMEOUT_S)
        if answer.status.code != Code.OK:
            raise RuntimeError(f"{answer.status}")


async def send(proxy: Proxy, options: dict[str, int]) -> None:
    """Keeps so many sends in flight until the window is over."""
    stream = await proxy.settle(
        {"client_type": ClientType.PRODUCER, "publishing": {"topics": [proxy.topic]}}
    )
    times_ms: list[float] = []
    is_over = False

    async def sender() -> None:
        while not is_over:
            begun_s = time.perf_counter()
            await proxy.send()
            times_ms.append((time.perf_counter() - begun_s) * 1_000)

    senders = [asyncio.create_task(sender()) for _ in range(options["in-flight"])]
    await asyncio.sleep(options["warmup-ms"] / 1_000)
    times_ms.clear()
    say(event="start")
    begun_s = time.perf_counter()
    await asyncio.sleep(options["window-ms"] / 1_000)
    messages, seconds = len(times_ms), time.perf_counter() - begun_s
    say(event="end")
    is_over = True
    await asyncio.gather(*senders)
    stream.cancel()
    if not messages:
        raise RuntimeError("no send has got through")
    say(event="result", messages=messages, seconds=seconds, **percentiles(times_ms[:messages]))


def percentiles(times_ms: list[float]) -> dict[str, float]:
    """Returns the median of times and what one in a hundred exceeds."""
    taken = sorted(times_ms)
    return {"p50_ms": taken[len(taken) // 2], "p99_ms": taken[len(taken) * 99 // 100]}


async def settled_consumer(proxy: Proxy) -> Any:
    """Makes a group, and returns the stream of its settings, which is to stay open."""
    subscription = {"group": {"name": GROUP}, "subscriptions": [{"topic": proxy.topic}]}
    stream = await proxy.settle(
        {"client_type": ClientType.SIMPLE_CONSUMER, "subscription": subscription}
    )
    # A new group begins at the end of the topic, so it is made before there is anything.
    first = asyncio.create_task(_all_of(proxy))
    await asyncio.sleep(SETTLED_S)
    first.cancel()
    return stream


async def pace(proxy: Proxy, options: dict[str, int]) -> None:
    """Sends a message each hundredth of a second, while receives wait for them."""
    stream = await settled_consumer(proxy)
    times_ms: list[float] = []
    arrived = asyncio.Semaphore(0)

    async def receiver() -> None:
        while True:
            async for each in proxy.receive():
                (sent_s,) = _TIME.unpack_from(each.body)
                times_ms.append((time.perf_counter() - sent_s) * 1_000)
                arrived.release()
                await proxy.ack(each)

    async def sends(window_ms: int) -> float:
        begun_s = time.perf_counter()
        sending = []
        for at in range(window_ms // PACE_MS):
            await asyncio.sleep(max(begun_s + at * PACE_MS / 1_000 - time.perf_counter(), 0))
            now = _TIME.pack(time.perf_counter())
            sending.append(asyncio.create_task(proxy.send(body=now + BODY[_TIME.size :])))
        await asyncio.gather(*sending)
        for _ in sending:
            await arrived.acquire()
        return time.perf_counter() - begun_s

    receivers = [asyncio.create_task(receiver()) for _ in range(options["in-flight"])]
    await sends(options["warmup-ms"])
    times_ms.clear()
    say(event="start")
    seconds = await sends(options["window-ms"])
    say(event="end")
    for each in receivers:
        each.cancel()
    stream.cancel()
    say(event="result", messages=len(times_ms), seconds=seconds, **percentiles(times_ms))


async def receive(proxy: Proxy, options: dict[str, int]) -> None:
    """Sends messages, and then receives and acknowledges all of them."""
    stream = await settled_consumer(proxy)
    messages = options["messages"]
    for _ in range(messages // BATCH):
        await proxy.send(BATCH)
    messages = messages // BATCH * BATCH
    warm, done, begun_s = messages // WARM_UP_SHARE, 0, 0.0

    async def receiver() -> None:
        nonlocal done, begun_s
        while done < messages:
            for each in await _all_of(proxy):
                await proxy.ack(each)
                done += 1
                if done == warm:
                    say(event="start")
                    begun_s = time.perf_counter()
                elif done == messages:
                    say(event="end")
                    counted, seconds = messages - warm, time.perf_counter() - begun_s
                    say(event="result", messages=counted, seconds=seconds)

    receivers = [asyncio.create_task(receiver()) for _ in range(options["in-flight"])]
    await asyncio.wait(receivers, return_when=asyncio.FIRST_COMPLETED)
    for each in receivers:
        each.cancel()
    stream.cancel()


async def _all_of(proxy: Proxy) -> list[Any]:
    return [each async for each in proxy.receive()]


def say(**fields: Any) -> None:
    """Writes one line of JSON."""
    print(json.dumps(fields), flush=True)


async def run(endpoint: str, topic: str, mode: str, options: dict[str, int]) -> None:
    """Runs a mode."""
    async with grpc.aio.insecure_channel(endpoint) as channel:
        await {"send": send, "receive": receive, "pace": pace}[mode](Proxy(channel, topic), options)


def main(argv: list[str]) -> None:
    """Runs the load that the arguments name."""
    endpoint, topic, mode, *words = argv
    options = {name: int(number) for name, number in (word.split("=") for word in words)}
    asyncio.run(run(endpoint, topic, mode, options))


if __name__ == "__main__":
    main(sys.argv[1:])
