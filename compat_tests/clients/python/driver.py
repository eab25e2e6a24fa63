# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: INP001 - a program, not a module of the tests
"""Runs one operation of the Python client `rocketmq` (librocketmq), given and answered in JSON.

Runs in an environment of its own, which has neither this project nor its dependencies.
"""

import json
import sys
import time
from typing import Any

from rocketmq.client import (  # type: ignore[import-not-found]
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
)

CONSUME_TIMEOUT_S = 60


def main() -> None:
    command = json.loads(sys.argv[1])
    {"produce": produce, "consume": consume, "pull": pull}[command["op"]](command)


def produce(command: dict[str, Any]) -> None:
    producer = Producer(command["group"])
    producer.set_namesrv_addr(command["namesrv"])
    _sign(producer, command)
    producer.start()
    messages = [_message(command["topic"], number) for number in range(command["count"])]
    *others, ordered = messages
    results = [producer.send_sync(message) for message in others]
    results.append(producer.send_orderly(ordered, 1))
    for result in results:
        _print(status=int(result.status), offset=result.offset)
    producer.shutdown()


def _sign(client: Any, command: dict[str, Any]) -> None:
    if "access_key" in command:
        client.set_session_credentials(command["access_key"], command["secret_key"], "")


def _message(topic: str, number: int) -> Message:
    message = Message(topic)
    message.set_keys(f"key-{number}")
    message.set_tags("python")
    message.set_property("number", str(number))
    message.set_body(f"python-{number} 漢字")
    return message


def consume(command: dict[str, Any]) -> None:
    consumer = PushConsumer(command["group"])
    consumer.set_namesrv_addr(command["namesrv"])
    _sign(consumer, command)
    received = []
    consumer.subscribe(command["topic"], lambda each: received.append(_told(each)))
    consumer.start()
    deadline_s = time.monotonic() + CONSUME_TIMEOUT_S
    while len(received) < command["count"] and time.monotonic() < deadline_s:
        time.sleep(0.1)
    consumer.shutdown()
    for each in received:
        _print(**each)


def pull(command: dict[str, Any]) -> None:
    consumer = PullConsumer(command["group"])
    consumer.set_namesrv_addr(command["namesrv"])
    consumer.start()
    for message in consumer.pull(command["topic"]):
        _print(**_told(message))
    consumer.shutdown()


def _told(message: Any) -> dict[str, Any]:
    return {
        "body": message.body.decode(),
        "tags": message.tags.decode(),
        "keys": message.keys.decode(),
        "number": (message.get_property("number") or b"").decode(),
    }


def _print(**event: Any) -> None:
    print(json.dumps(event), flush=True)


main()
