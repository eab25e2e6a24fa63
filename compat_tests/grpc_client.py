# SPDX-License-Identifier: Apache-2.0
"""The official gRPC client for Java, controlled from Python like the remoting client."""

from pathlib import Path

from compat_tests.engine import Engine
from compat_tests.jars import GRPC_CLIENT, grpc_client
from compat_tests.java_client import Client, ClientJvm, Json, compile_sources

_SOURCES = Path(__file__).parent / "clients" / "java"
_EVENT_TIMEOUT_S = 30.0


def compile_grpc_clients(engine: Engine) -> Path:
    """Returns the folder of the compiled program of gRPC clients."""
    sources = [*sorted((_SOURCES / "grpc").glob("*.java")), _SOURCES / "Wire.java"]
    return compile_sources(f"grpc-{GRPC_CLIENT}", engine, sources, grpc_client(), "Grpc")


class GrpcJvm(ClientJvm):
    """A JVM with the official gRPC clients, which talk to a proxy."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        super().__init__(f"grpc-{GRPC_CLIENT}", engine, folder)

    def _program(self, engine: Engine) -> tuple[str, str]:
        return f"{compile_grpc_clients(engine)}:{grpc_client()}/*", "Grpc"


class GrpcClient(Client):
    """A producer, push consumer or simple consumer of the gRPC client, at a proxy."""

    def send(self, *messages: Json) -> list[Json]:
        """Sends messages; returns the receipts in order. Raises JavaError."""
        return list(self._call("send", messages=list(messages)))

    def send_in_transaction(self, message: Json, end: str) -> str:
        """Sends; returns the id. `end` is `commit` or `rollback`; any other word leaves it open."""
        return str(self._call("send_in_transaction", message=message, end=end))

    def recall(self, topic: str, handle: str) -> str:
        """Recalls a delayed message; returns its id."""
        return str(self._call("recall", topic=topic, handle=handle))

    def receive(self, most: int = 32, invisible_ms: int = 30_000) -> list[Json]:
        """Returns what a simple consumer gets within two seconds, each with a handle."""
        return list(self._call("receive", max=most, invisible_ms=invisible_ms))

    def ack(self, received: Json) -> None:
        self._call("ack", handle=received["handle"])

    def change_invisible_duration(self, received: Json, invisible_ms: int) -> None:
        """Makes the message visible again after this time from now."""
        self._call(
            "change_invisible_duration", handle=received["handle"], invisible_ms=invisible_ms
        )

    def told(self) -> list[Json]:
        """Returns what a listener or a checker was called with, each with at_ms and the message."""
        return self.jvm.messages(self.name)

    def wait_for(self, count: int, timeout_s: float = _EVENT_TIMEOUT_S) -> list[Json]:
        """Returns what a listener or a checker was called with, once it is that many messages."""
        what = f"{count} messages at {self.name}"
        self.jvm.wait_for(lambda: len(self.jvm._events[self.name]) >= count, what, timeout_s)
        return [event["message"] for event in self.told()]
