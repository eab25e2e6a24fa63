# SPDX-License-Identifier: Apache-2.0
"""The official Java client, controlled from Python: one JVM holds any number of clients.

``ClientJvm`` starts the program in ``clients/java`` on the jars of one release. Commands and
events are JSON lines over a connection that the JVM opens to us. Each kind of client has a small
class here with the operations that the scenarios use.
"""

import base64
import hashlib
import itertools
import json
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar, cast

from compat_tests.cache import cache_root, exclusive
from compat_tests.engine import Engine, JavaProcess
from compat_tests.jars import compiler, resolve
from compat_tests.logback import logging_configuration

_SOURCES = Path(__file__).parent / "clients" / "java"
_CONNECT_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 60.0
_COMPILE_TIMEOUT_S = 120.0
_EVENT_TIMEOUT_S = 30.0

Json = dict[str, Any]
C = TypeVar("C", bound="Client")


class JavaError(Exception):
    """An error that a Java client threw."""

    def __init__(self, error: Json) -> None:
        self.java_class: str = error["class"].rpartition(".")[2]
        self.code: int | None = error["code"]
        self.text: str = error["message"] or ""
        self.cause = JavaError(error["cause"]) if error.get("cause") else None
        super().__init__(f"{self.java_class} code {self.code}: {self.text} (at {error.get('at')})")


class ClientGone(Exception):
    """The JVM ended, or did not do in time what it was told."""


def compile_clients(release: str, engine: Engine) -> Path:
    """Returns the folder of the compiled clients."""
    return compile_program(release, engine, _SOURCES, "client", "Driver")


def compile_program(release: str, engine: Engine, folder: Path, jars: str, main: str) -> Path:
    """Compiles a program again if its sources have changed; returns the folder of the classes.

    ``jars`` says whether it needs the ``client`` or the ``server`` jars of the release.
    """
    return compile_sources(
        release, engine, sorted(folder.glob("*.java")), resolve(release, jars), main
    )


def compile_sources(
    name: str, engine: Engine, sources: Sequence[Path], jars: Path, main: str
) -> Path:
    """Compiles these files with a folder of jars if they have changed; returns the folder."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = cache_root() / "classes" / f"{name}-{digest}"
    with exclusive("classes"):
        if not classes.is_dir():
            _compile(name, engine, sources, jars, main, classes)
    return classes


def _compile(
    name: str, engine: Engine, sources: Sequence[Path], jars: Path, main: str, classes: Path
) -> None:
    fresh = classes.with_name(f"{classes.name}.partial")
    arguments = [
        *("-jar", str(compiler()), "--release", "17", "-nowarn", "-proc:none", "-d", str(fresh)),
        *("-cp", ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))),
        *(str(source) for source in sources),
    ]
    process = engine.start(f"compile-{name}", arguments, {})
    deadline = time.monotonic() + _COMPILE_TIMEOUT_S
    while process.alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    if not (fresh / f"{main}.class").exists() or "ERROR" in process.log():
        raise ClientGone(f"the Java clients do not compile on {name}:\n{process.log()}")
    fresh.rename(classes)


class ClientJvm:
    """A JVM with the client jars of one release."""

    def __init__(
        self,
        release: str,
        engine: Engine,
        folder: Path,
        options: Sequence[str] = (),
        *,
        is_silent: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.release = release
        self._ids = itertools.count(1)
        self._answers: dict[int, Future[Any]] = {}
        self._events: dict[str, list[Json]] = defaultdict(list)
        self._shared: dict[str, Client] = {}
        self._changed = threading.Condition()
        self._last_lines: list[str] = []
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(0.2)
            address = f"127.0.0.1:{server.getsockname()[1]}"
            self.process = self._start(engine, folder, address, options, is_silent=is_silent)
            self._connection = _accept(server, self.process)
        self._lines = self._connection.makefile("r", encoding="utf-8")
        hello = json.loads(self._lines.readline())
        self.version: str = hello["version"]
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _start(
        self,
        engine: Engine,
        folder: Path,
        control: str,
        options: Sequence[str],
        *,
        is_silent: bool,
    ) -> JavaProcess:
        class_path, main = self._program(engine)
        conf = logging_configuration(folder, is_silent=is_silent)
        arguments = [
            *options,
            *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            f"-Duser.home={folder}",
            f"-Drocketmq.home.dir={folder}",
            "-Djava.security.manager=allow",  # Commands.java keeps mqadmin from ending the JVM
            "-Duser.timezone=UTC",
            f"-Drocketmq.client.localOffsetStoreDir={folder}/offsets",
            "-Drocketmq.client.logUseSlf4j=true",
            "-Drocketmq.client.rebalance.minInterval=100",  # 5.x: else a start waits a second
            *("-cp", f"{conf}:{class_path}", main, control),
        ]
        return engine.start(f"client-{self.release}", arguments, {})

    def _program(self, engine: Engine) -> tuple[str, str]:
        """Returns the class path and the main class."""
        classes = compile_clients(self.release, engine)
        return f"{classes}:{resolve(self.release, 'client')}/*", "Driver"

    def submit(self, op: str, **arguments: Any) -> "Future[Any]":
        """Sends a command; the future gets its result, or a JavaError."""
        answer: Future[Any] = Future()
        number = next(self._ids)
        self._answers[number] = answer
        given = {key: value for key, value in arguments.items() if value is not None}
        line = json.dumps({"id": number, "op": op, **given}) + "\n"
        try:
            self._connection.sendall(line.encode())
        except OSError as error:
            raise ClientGone(f"the JVM of {self.release} is gone\n{self.diagnosis()}") from error
        return answer

    def call(self, op: str, **arguments: Any) -> Any:
        """Sends a command and waits for its result. Raises JavaError, ClientGone."""
        try:
            return self.submit(op, **arguments).result(_ANSWER_TIMEOUT_S)
        except TimeoutError as error:
            raise ClientGone(f"no answer to {op} {arguments}\n{self.diagnosis()}") from error

    def shared(self, name: str, kind: "Callable[..., C]", namesrv: str, **settings: Any) -> C:
        """Returns the client of this name, which is made at its first use."""
        if name not in self._shared:
            self._shared[name] = kind(self, name, namesrv, **settings)
        return cast("C", self._shared[name])

    def messages(self, client: str) -> list[Json]:
        """Returns the messages that a push consumer has had up to now."""
        with self._changed:
            return list(self._events[client])

    def wait_for(
        self, ready: Callable[[], bool], what: str, timeout_s: float = _EVENT_TIMEOUT_S
    ) -> None:
        """Waits for ``ready``, asked again after each event. AssertionError when time is up."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while not ready():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"not within {timeout_s} s: {what}\n{self.diagnosis()}")
                self._changed.wait(min(left, 0.5))

    def kill(self) -> None:
        """Kills the JVM, and so all clients in it."""
        self.process.kill()
        self._connection.close()

    def diagnosis(self) -> str:
        """Returns the last events and the end of the log."""
        log = self.process.log(30)
        events = "".join(self._last_lines[-15:])
        return f"--- last events of the Java {self.release} client\n{events}--- its log\n{log}"

    def _read(self) -> None:
        try:
            for line in self._lines:
                self._take(json.loads(line))
                self._last_lines.append(line if len(line) < 250 else line[:250] + "...\n")
                del self._last_lines[:-50]
        except (OSError, ValueError) as error:
            self._last_lines.append(f"the control connection failed: {error!r}\n")
        for answer in list(self._answers.values()):
            if not answer.done():
                answer.set_exception(ClientGone(f"the JVM of {self.release} has ended"))

    def _take(self, event: Json) -> None:
        if "id" in event:
            answer = self._answers.pop(event["id"])
            if "error" in event:
                answer.set_exception(JavaError(event["error"]))
            else:
                answer.set_result(event.get("result"))
            return
        with self._changed:
            self._events[event["name"]].append(event)
            self._changed.notify_all()


def _accept(server: socket.socket, process: JavaProcess) -> socket.socket:
    deadline = time.monotonic() + _CONNECT_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            connection, _ = server.accept()
        except TimeoutError:
            if not process.alive():
                break
        else:
            connection.setblocking(True)
            return connection
    raise ClientGone(f"the Java client does not start:\n{process.log()}")


class Client:
    """One official client, known by its name within its JVM."""

    def __init__(self, jvm: ClientJvm, start: str, name: str, **settings: Any) -> None:
        self.jvm = jvm
        self.name = name
        self.client_id: str = jvm.call(start, name=name, **settings)

    def stop(self) -> None:
        """Shuts this client down in order."""
        self.jvm.call("stop", name=self.name)

    def _call(self, op: str, **arguments: Any) -> Any:
        return self.jvm.call(op, name=self.name, **arguments)


class Producer(Client):
    """DefaultMQProducer."""

    def __init__(self, jvm: ClientJvm, name: str, namesrv: str, **settings: Any) -> None:
        settings.setdefault("group", f"producers-{name}")
        super().__init__(jvm, "start_producer", name, namesrv=namesrv, **settings)

    def send(
        self, messages: Sequence[Json], *, mode: str = "sync", queue: Json | None = None
    ) -> list[Json]:
        """Returns the SendResults in order (None for oneway sends). Raises JavaError."""
        results = self._call("send", messages=list(messages), mode=mode, queue=queue)
        for result in results:
            if result and "error" in result:
                raise JavaError(result["error"])
        return list(results)

    def send_batch(self, messages: Sequence[Json], *, queue: Json | None = None) -> Json:
        (result,) = self.send_batches([messages], queue=queue)
        return result

    def send_batches(
        self, batches: Sequence[Sequence[Json]], *, queue: Json | None = None
    ) -> list[Json]:
        """Sends one batch after the other in one thread; returns the SendResult of each."""
        return list(self._call("send_batches", batches=list(map(list, batches)), queue=queue))

    def recall(self, topic: str, handle: str) -> str:
        """Recalls a timer message (5.x); returns its unique key."""
        return str(self._call("recall", topic=topic, handle=handle))

    def queues(self, topic: str) -> list[Json]:
        """Returns the queues that may be written to, as the client sees the route."""
        return list(self._call("publish_queues", topic=topic))


class PushConsumer(Client):
    """DefaultMQPushConsumer."""

    def __init__(self, jvm: ClientJvm, name: str, namesrv: str, **settings: Any) -> None:
        settings.setdefault("expression", "*")
        settings.setdefault("from", "CONSUME_FROM_FIRST_OFFSET")
        self._about = [
            name,
            *(str(settings[each]) for each in ("topic", "group") if each in settings),
        ]
        """What is looked for in the log when messages are missing."""
        super().__init__(jvm, "start_push_consumer", name, namesrv=namesrv, **settings)

    def events(self) -> list[Json]:
        """Returns its messages, each with at_ms, the time when the listener had it."""
        return self.jvm.messages(self.name)

    def messages(self) -> list[Json]:
        return [event["message"] for event in self.events()]

    def bodies(self) -> list[str]:
        return [text(message) for message in self.messages()]

    def wait_for(self, count: int, timeout_s: float = _EVENT_TIMEOUT_S) -> list[Json]:
        """Returns its messages, once there are that many."""
        try:
            self.jvm.wait_for(
                lambda: len(self.jvm._events[self.name]) >= count,
                f"{count} messages at {self.name}, which has {len(self.events())}",
                timeout_s,
            )
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._diagnosis()}") from None
        return self.messages()

    def _diagnosis(self) -> str:
        """Says which queues it has, and what the log of its JVM, which many share, says of it."""
        lines = [
            line
            for line in self.jvm.process.log().splitlines()
            if any(each in line for each in self._about)
        ]
        said = "\n".join(lines[-30:])
        return f"--- its queues\n{self.assignment()}\n--- its lines of the log\n{said}"

    def subscribe_again(self, topic: str, sql: str) -> None:
        """Replaces the SQL expression while the consumer runs."""
        self._call("subscribe_again", topic=topic, sql=sql)

    def assignment(self) -> list[Json]:
        """Returns the queues that it has, each with "locked"."""
        return list(self._call("assignment"))

    def rebalance(self) -> None:
        """Rebalances now, which it otherwise does every 20 s."""
        self._call("rebalance")


class PullConsumer(Client):
    """DefaultMQPullConsumer."""

    def __init__(self, jvm: ClientJvm, name: str, namesrv: str, **settings: Any) -> None:
        settings.setdefault("group", "readers")
        super().__init__(jvm, "start_pull_consumer", name, namesrv=namesrv, **settings)

    def queues(self, topic: str) -> list[Json]:
        return list(self._call("subscribe_queues", topic=topic))

    def pull(
        self,
        queue: Json,
        offset: int,
        *,
        expression: str = "*",
        sql: str | None = None,
        most: int = 32,
        block: bool = False,
    ) -> Json:
        arguments: Mapping[str, Any] = {"queue": queue, "offset": offset, "expression": expression}
        if sql is not None:
            arguments = {**arguments, "sql": sql}
        return dict(self._call("pull", max=most, block=block, **arguments))

    def max_offset(self, queue: Json) -> int:
        return int(self._call("max_offset", queue=queue))

    def min_offset(self, queue: Json) -> int:
        return int(self._call("min_offset", queue=queue))

    def search_offset(self, queue: Json, timestamp_ms: int) -> int:
        return int(self._call("search_offset", queue=queue, timestamp_ms=timestamp_ms))

    def earliest_store_time(self, queue: Json) -> int:
        return int(self._call("earliest_store_time", queue=queue))

    def fetch_offset(self, queue: Json) -> int:
        """Returns the group's offset at the broker."""
        return int(self._call("fetch_offset", queue=queue))

    def store_offset(self, queue: Json, offset: int) -> None:
        self._call("store_offset", queue=queue, offset=offset)


class LitePullConsumer(Client):
    """DefaultLitePullConsumer."""

    def __init__(self, jvm: ClientJvm, name: str, namesrv: str, **settings: Any) -> None:
        super().__init__(jvm, "start_lite_consumer", name, namesrv=namesrv, **settings)

    def poll(self, timeout_s: float = 1.0) -> list[Json]:
        return list(self._call("poll", timeout_ms=int(timeout_s * 1000)))

    def poll_until(self, count: int, timeout_s: float = _EVENT_TIMEOUT_S) -> list[Json]:
        """Polls until that many messages have come. AssertionError when time is up."""
        deadline = time.monotonic() + timeout_s
        got: list[Json] = []
        while len(got) < count:
            assert time.monotonic() < deadline, (
                f"{len(got)} of {count} messages polled\n{self.jvm.diagnosis()}"
            )
            got += self.poll(0.5)
        return got

    def assignment(self) -> list[Json]:
        return list(self._call("lite_assignment"))

    def seek(self, queue: Json, to: str | int) -> None:
        """Seeks in a queue; ``to`` is begin, end, or an offset."""
        self._call("seek", queue=queue, to=str(to))

    def commit(self) -> None:
        self._call("commit")

    def committed(self, queue: Json) -> int:
        return int(self._call("committed", queue=queue))

    def offset_for_timestamp(self, queue: Json, timestamp_ms: int) -> int:
        return int(self._call("offset_for_timestamp", queue=queue, timestamp_ms=timestamp_ms))


class Admin(Client):
    """DefaultMQAdminExt."""

    def __init__(self, jvm: ClientJvm, name: str, namesrv: str, **settings: Any) -> None:
        super().__init__(jvm, "start_admin", name, namesrv=namesrv, group="admins", **settings)

    def create_topic(self, broker: str, topic: str, queues: int = 4, perm: int = 6) -> None:
        """Creates a topic at the broker of this address; perm is READ 4 plus WRITE 2."""
        self._call("create_topic", broker=broker, topic=topic, queues=queues, perm=perm)

    def topic_stats(self, topic: str) -> list[Json]:
        return list(self._call("topic_stats", topic=topic))

    def messages_by_key(self, topic: str, key: str) -> list[Json]:
        """Returns at most 32 messages. JavaError with code 208 when there is none."""
        return list(self._call("messages_by_key", topic=topic, key=key))

    def resume_check(self, topic: str, offset_msg_id: str) -> bool:
        """Has a half message checked again that the broker has given up."""
        return bool(self._call("resume_check", topic=topic, msg_id=offset_msg_id))

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls any method by its Java name; objects are dicts of their members."""
        return self._call("admin_call", method=method, arguments=list(arguments))

    def topic_route(self, topic: str) -> dict[str, dict[str, str]]:
        """Returns the addresses of each broker, by broker id."""
        return dict(self._call("topic_route", topic=topic))


def message(topic: str, body: str | bytes, **fields: Any) -> Json:
    """Makes a message to send; `fields` of the Java program: tags, keys, properties, shard."""
    data = body.encode() if isinstance(body, str) else body
    return {"topic": topic, "body": base64.b64encode(data).decode(), **fields}


def body(received: Json) -> bytes:
    """Returns the body of a received message, if it is small enough to be reported whole."""
    return base64.b64decode(received["body"])


def text(received: Json) -> str:
    return body(received).decode()
