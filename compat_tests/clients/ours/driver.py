# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: INP001 - a program, not a module of the tests
"""Runs one of our consumers in a process of its own, controlled by lines of JSON.

The first line on standard input says which consumer. Every other line is an operation with a
number, and its result has the same number. Messages are written as lines of their own as soon as
the listener has them.
"""

import base64
import dataclasses
import json
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from txrocketmq.client.base.config import ClientConfig
from txrocketmq.client.consumer.config import (
    ConsumeFrom,
    LitePullConsumerConfig,
    MessageModel,
    PushConsumerConfig,
)
from txrocketmq.client.consumer.group.subscription import MessageSelector
from txrocketmq.client.consumer.listening.listener import ConsumeOrderlyStatus, ConsumeStatus
from txrocketmq.client.consumer.lite_pull import LitePullConsumer
from txrocketmq.client.consumer.push import PushConsumer
from txrocketmq.client.core.instance import ClientInstance
from txrocketmq.remoting.message.message import MessageExt, MessageQueue

reactor: Any = global_reactor


def write(**event: Any) -> None:
    """Writes one line of output."""
    print(json.dumps(event), flush=True)


def shown(message: MessageExt) -> dict[str, Any]:
    """Returns what is written about a message."""
    return {
        "topic": message.topic,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "reconsume_times": message.reconsume_times,
        "msg_id": message.msg_id,
        "tags": message.tags,
        "keys": message.properties.get("KEYS"),
        "own": message.properties.get("own"),
        "body": base64.b64encode(message.body).decode(),
    }


class Driver:
    """One client with one consumer."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._client = ClientInstance(
            ClientConfig(
                namesrv_addr=settings["namesrv"],
                client_ip=settings.get("client_ip", ""),
                instance_name=settings.get("instance", "DEFAULT"),
            )
        )
        topic, group = settings["topic"], settings["group"]
        sql = settings.get("sql")
        self._expression: Any = MessageSelector.by_sql(sql) if sql else settings["expression"]
        config = {"consume_from": "FIRST_OFFSET", **settings["config"]}
        config["consume_from"] = ConsumeFrom[config["consume_from"]]
        config["message_model"] = MessageModel[settings["model"]]
        if "local_offset_store_dir" in config:
            config["local_offset_store_dir"] = Path(config["local_offset_store_dir"])
        self._consumer: Any
        if settings["kind"] == "lite":
            self._consumer = LitePullConsumer(
                self._client, group, config=LitePullConsumerConfig(**config)
            )
        else:
            self._consumer = PushConsumer(
                self._client,
                group,
                {topic: self._expression},
                self._listen,
                config=PushConsumerConfig(**config),
                orderly=settings["kind"] == "orderly",
            )

    async def start(self) -> None:
        """Starts the client, and joins the group."""
        self._client.start()
        if self._settings["kind"] == "lite" and not self._settings.get("assigns"):
            await self._consumer.subscribe(self._settings["topic"], self._expression)
        await self._consumer.start()
        write(started=self._client.client_id)

    def _listen(self, messages: list[MessageExt], context: Any) -> Any:
        for message in messages:
            write(at_ms=time.time_ns() // 1_000_000, message=shown(message))
        if self._settings.get("seconds"):
            time.sleep(self._settings["seconds"])
        fails = messages[0].reconsume_times < self._settings.get("times_later", 0)
        if self._settings["kind"] == "orderly":
            suspended = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            return suspended if fails else ConsumeOrderlyStatus.SUCCESS
        context.delay_level = 1
        return ConsumeStatus.RECONSUME_LATER if fails else ConsumeStatus.CONSUME_SUCCESS

    def take(self, line: str) -> None:
        """Carries out the operation in a line of input."""
        command = json.loads(line)
        operation: Callable[[dict[str, Any]], Any] = getattr(self, "do_" + command["op"])
        done = maybeDeferred(lambda: _deferred(operation(command)))

        def failed(failure: Failure) -> None:
            write(
                number=command["number"],
                error=type(failure.value).__name__,
                text=str(failure.value),
            )

        done.addCallbacks(lambda result: write(number=command["number"], result=result), failed)

    def do_assignment(self, command: dict[str, Any]) -> Any:
        if self._settings["kind"] == "lite":
            return [dataclasses.asdict(each) for each in self._consumer.assignment]
        return [
            {"queue_id": queue.queue_id, "locked": its.locked}
            for queue, its in self._consumer.running_info(with_stacks=False).mq_table.items()
            if not queue.topic.startswith("%RETRY%")
        ]

    def do_rebalance(self, command: dict[str, Any]) -> None:
        self._consumer.group_changed()

    async def do_poll(self, command: dict[str, Any]) -> Any:
        return [shown(each) for each in await self._consumer.poll(command["timeout_ms"])]

    async def do_seek(self, command: dict[str, Any]) -> None:
        queue, to = _queue(command), command["to"]
        if to == "begin":
            await self._consumer.seek_to_begin(queue)
        elif to == "end":
            await self._consumer.seek_to_end(queue)
        else:
            await self._consumer.seek(queue, to)

    async def do_seek_to_time(self, command: dict[str, Any]) -> None:
        await self._consumer.seek_to_time(_queue(command), command["to"])

    def do_pause(self, command: dict[str, Any]) -> None:
        self._consumer.pause([_queue(command)])

    def do_resume(self, command: dict[str, Any]) -> None:
        self._consumer.resume([_queue(command)])

    def do_assign(self, command: dict[str, Any]) -> None:
        self._consumer.assign([_queue({"queue": each}) for each in command["queues"]])

    async def do_commit(self, command: dict[str, Any]) -> None:
        await self._consumer.commit()

    async def do_committed(self, command: dict[str, Any]) -> Any:
        return await self._consumer.committed(_queue(command))

    async def do_stop(self, command: dict[str, Any]) -> None:
        await self._consumer.stop()
        await self._client.stop()
        reactor.callLater(0, reactor.stop)


def _queue(command: dict[str, Any]) -> MessageQueue:
    queue = command["queue"]
    return MessageQueue(queue["topic"], queue["broker"], queue["queue_id"])


def _deferred(result: Any) -> Any:
    return Deferred.fromCoroutine(result) if isinstance(result, Coroutine) else result


def main() -> None:
    driver = Driver(json.loads(sys.stdin.readline()))

    def read() -> None:
        for line in sys.stdin:
            reactor.callFromThread(driver.take, line)
        reactor.callFromThread(reactor.stop)

    def begin() -> None:
        starting = Deferred.fromCoroutine(driver.start())
        starting.addErrback(lambda failure: write(failed=str(failure.value)))
        threading.Thread(target=read, daemon=True).start()

    reactor.callWhenRunning(begin)
    reactor.run()


if __name__ == "__main__":
    main()
