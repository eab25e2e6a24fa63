# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: INP001 - a program, not a module of the tests
"""Runs one operation of the gRPC client `rocketmq-python-client`, given and answered in JSON.

Runs in an environment of its own, which has neither this project nor its dependencies.
"""

import json
import math
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from rocketmq import (  # type: ignore[import-not-found]
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)
from rocketmq.grpc_protocol import FilterType  # type: ignore[import-not-found]
from rocketmq.v5.exception import InternalErrorException  # type: ignore[import-not-found]

CONSUME_TIMEOUT_S = 60
MOST_ATTEMPTS = 30
CHECK_TIMEOUT_S = 60
"""Long enough for the proxy, which tells brokers of its producers every 20 s only."""


def main() -> None:
    command = json.loads(sys.argv[1])
    {"produce": produce, "push": push, "simple": simple}[command["op"]](command)
    sys.stdout.flush()
    os._exit(0)  # its threads may hold the interpreter up


class Commits(TransactionChecker):  # type: ignore[misc]
    """A checker that answers every question about a transaction with commit."""

    def __init__(self) -> None:
        self.was_asked = threading.Event()

    def check(self, message: Any) -> Any:
        _print(checked=message.message_id)
        self.was_asked.set()
        return TransactionResolution.COMMIT


def produce(command: dict[str, Any]) -> None:
    """Sends messages; `how` is normal, fifo, delay, recall, commit, rollback or leave.

    After `leave` it stays until it is asked for a transaction, at most CHECK_TIMEOUT_S. `pause` is
    a file that is made before the second half is sent, and waited for until it is gone; from then
    on errors may be those of a proxy that comes back.
    """
    topic, how = command["topic"], command["how"]
    checker = Commits() if how in ("commit", "rollback", "leave") else None
    producer = Producer(_configuration(command), (topic,), checker=checker)
    producer.startup()
    for number in range(command["count"]):
        message = Message()
        message.topic, message.body = topic, f"python-{number} 漢字".encode()
        message.tag, message.keys = "python", f"key-{number}"
        message.add_property("number", str(number))
        if how == "fifo":
            message.message_group = "one"
        if how in ("delay", "recall"):
            message.delivery_timestamp = (
                math.ceil(time.time()) + command["delay_s"]
            )  # whole seconds
        if "pause" in command and number == command["count"] // 2:
            _pause(Path(command["pause"]))
        if checker is None:
            receipt = _sent(producer, message, MOST_ATTEMPTS if "pause" in command else 1)
        else:
            transaction = producer.begin_transaction()
            receipt = producer.send(message, transaction)
            if how != "leave":
                getattr(transaction, how)()
        if how == "recall":
            producer.recall_message(topic, receipt.recall_handle)
        _print(sent=receipt.message_id)
    if checker is not None and how == "leave":
        checker.was_asked.wait(CHECK_TIMEOUT_S)
        time.sleep(2)  # the answer is sent in the background
    producer.shutdown()


def _pause(path: Path) -> None:
    path.touch()
    while path.exists():
        time.sleep(0.05)


def _sent(producer: Any, message: Any, attempts: int) -> Any:
    while True:
        try:
            return producer.send(message)
        except Exception:  # of any kind, as gRPC and the client have several
            attempts -= 1
            if not attempts:
                raise
            time.sleep(1)


def push(command: dict[str, Any]) -> None:
    received = []

    class Listener(MessageListener):  # type: ignore[misc]
        """A listener that accepts all messages."""

        def consume(self, message: Any) -> Any:
            received.append(_told(message))
            return ConsumeResult.SUCCESS

    consumer = PushConsumer(
        _configuration(command), command["group"], Listener(), _subscription(command)
    )
    consumer.startup()
    deadline_s = time.monotonic() + CONSUME_TIMEOUT_S
    while len(received) < command["count"] and time.monotonic() < deadline_s:
        time.sleep(0.1)
    for each in received:
        _print(**each)
    consumer.shutdown()


def simple(command: dict[str, Any]) -> None:
    consumer = SimpleConsumer(
        _configuration(command), command["group"], _subscription(command), await_duration=2
    )
    consumer.startup()
    left = command["count"]
    deadline_s = time.monotonic() + CONSUME_TIMEOUT_S
    while left > 0 and time.monotonic() < deadline_s:
        for message in _received(consumer):
            consumer.ack(message)
            _print(**_told(message))
            left -= 1
    consumer.shutdown()


def _received(consumer: Any) -> Any:
    """Receives messages; returns none until the proxy has the settings of this consumer."""
    try:
        return consumer.receive(16, 30) or ()
    except InternalErrorException as error:
        print(error, file=sys.stderr)
        time.sleep(0.5)
        return ()


def _configuration(command: dict[str, Any]) -> Any:
    keys = command.get("access_key", ""), command.get("secret_key", "")
    return ClientConfiguration(command["endpoints"], Credentials(*keys), request_timeout=10)


def _subscription(command: dict[str, Any]) -> dict[str, Any]:
    sql = command.get("sql")
    wanted = FilterExpression(sql, FilterType.SQL) if sql else FilterExpression("python")
    return {command["topic"]: wanted}


def _told(message: Any) -> dict[str, Any]:
    return {
        "body": message.body.decode(),
        "tag": message.tag,
        "keys": list(message.keys),
        "number": message.properties["number"],
        "group": message.message_group,
    }


def _print(**event: Any) -> None:
    print(json.dumps(event), flush=True)


main()
