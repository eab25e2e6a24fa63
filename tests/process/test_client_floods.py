# SPDX-License-Identifier: Apache-2.0
"""Very many sends at once, in all forms of the client, against a server: each of them succeeds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from typing import Any

from txrocketmq.client import Producer, SendResult, SendStatus, aio, new_message
from txrocketmq.testing.server import Server

COUNT = 30_000
"""So many take longer than the three seconds that each send has."""
BODY = b"x" * 100
TWISTED = """
import sys
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater, react
from txrocketmq.client.tx import Producer, new_message

async def main(reactor):
    async with Producer("floods", namesrv_addr=sys.argv[1]) as producer:
        sends = []
        for number in range(int(sys.argv[2])):
            sends.append(producer.send(new_message("TxFlood", b"x" * 100)))
            if number % 500 == 0:  # a turn of the program's own reactor is not to take seconds
                await deferLater(reactor, 0)
        results = await gatherResults(sends)
    print(len({result.msg_id for result in results}))

react(lambda reactor: Deferred.fromCoroutine(main(reactor)))
"""


def check(results: list[SendResult]) -> None:
    assert Counter(result.status for result in results) == {SendStatus.SEND_OK: COUNT}
    assert len({(result.queue.queue_id, result.queue_offset) for result in results}) == COUNT


def test_asyncio(rocketmq_server: Server) -> None:
    async def main() -> list[SendResult]:
        async with aio.Producer("floods", namesrv_addr=rocketmq_server.namesrv_addr) as producer:
            sends = [producer.send(new_message("AioFlood", BODY)) for _ in range(COUNT)]
            results: list[SendResult] = await asyncio.gather(*sends)
            return results

    check(asyncio.run(main()))


def test_futures_of_the_blocking_form(rocketmq_server: Server) -> None:
    with Producer("floods", namesrv_addr=rocketmq_server.namesrv_addr) as producer:
        life: Any = vars(producer)["_life"]
        room = life.core._attempts.room
        most = 0
        futures = []
        for _ in range(COUNT):
            futures.append(producer.send_async(new_message("Flood", BODY)))
            most = max(most, room.waiting)
        check([future.result(120) for future in futures])
    assert 0 < most < 4_000, "callers are held up, so that memory is limited"


def test_twisted(rocketmq_server: Server) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", TWISTED, rocketmq_server.namesrv_addr, str(COUNT)],
        capture_output=True, text=True, check=False, timeout=250,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"{COUNT}\n", "")
