# SPDX-License-Identifier: Apache-2.0
"""Official clients that end transactions, and that send requests and replies."""

from collections.abc import Sequence
from typing import Any

from compat_tests.java_client import Client, ClientJvm, Json, message

CHECK_TIMEOUT_S = 60.0


def transactional(topic: str, body: str | bytes, local: str, check: str = "", **more: Any) -> Json:
    """Makes a message with the outcome of its local transaction, and the answer to a check."""
    properties = {"local": local, **({"check": check} if check else {})}
    return message(topic, body, properties={**properties, **more.pop("properties", {})}, **more)


class TransactionProducer(Client):
    """TransactionMQProducer."""

    def __init__(self, jvm: ClientJvm, name: str, namesrv: str, **settings: Any) -> None:
        settings.setdefault("group", f"transactions-{name}")
        super().__init__(jvm, "start_transaction_producer", name, namesrv=namesrv, **settings)

    def send(self, messages: Sequence[Json]) -> list[Json]:
        """Returns the results in order, each with the state of its local transaction."""
        return list(self._call("send_in_transaction", messages=list(messages)))

    def begin(self, item: Json) -> None:
        """Sends a message whose local transaction never ends, without waiting."""
        self.jvm.submit("send_in_transaction", name=self.name, messages=[item])

    def checks(self) -> list[Json]:
        """Returns the checks that have come."""
        return self.jvm.messages(self.name)

    def wait_for_checks(self, count: int) -> list[Json]:
        """Returns the checks, once there are that many."""
        self.jvm.wait_for(
            lambda: len(self.jvm._events[self.name]) >= count,
            f"{count} questions to {self.name}, which has had {len(self.checks())}",
            CHECK_TIMEOUT_S,
        )
        return self.checks()


class Asker(Client):
    """A DefaultMQProducer that sends requests."""

    def __init__(self, jvm: ClientJvm, name: str, namesrv: str) -> None:
        super().__init__(jvm, "start_asker", name, namesrv=namesrv, group=f"askers-{name}")

    def request(self, asked: Json, *, mode: str = "sync", timeout_s: float = 20.0) -> Json:
        """Sends a request; returns the reply. Raises JavaError."""
        timeout_ms = int(timeout_s * 1000)
        return dict(self._call("request", message=asked, mode=mode, timeout_ms=timeout_ms))


class Replier(Client):
    """A push consumer that replies to requests."""

    def __init__(self, jvm: ClientJvm, name: str, namesrv: str, **settings: Any) -> None:
        super().__init__(jvm, "start_replier", name, namesrv=namesrv, **settings)

    def wait_for(self, count: int) -> list[Json]:
        """Returns the outcomes of its replies, once there are that many."""
        self.jvm.wait_for(
            lambda: len(self.jvm._events[self.name]) >= count, f"{count} replies of {self.name}"
        )
        return self.jvm.messages(self.name)
