# SPDX-License-Identifier: Apache-2.0
"""gRPC clients through a proxy, which is in front of the servers under test.

The proxy is ours, and in long runs the official one as well, each in front of our servers and of
the original's. It speaks remoting to name server and broker: it sends, pops, acknowledges, renews
and asks for routes, topics and groups in the way of 5.x.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest

from compat_tests.engine import Engine
from compat_tests.grpc_client import GrpcClient, GrpcJvm
from compat_tests.grpc_programs import ProgramUnavailable, events, go, node, rust
from compat_tests.java_client import ClientJvm, JavaError, Json, message, text
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours, Proxy, running
from compat_tests.python_client import GRPC, PythonClientUnavailable, install, run
from compat_tests.scene import Scene, poll

RELEASE: Final = "5.4.0"
LATE_S: Final = 60.0
"""Longer than the proxy keeps what it knows of topics and groups."""
BROKER_SETTINGS: Final = {
    "recallMessageEnable": "true",
    "enablePropertyFilter": "true",
    "transactionTimeOut": "3000",
    "transactionCheckInterval": "2000",
    "transactionOpBatchInterval": "200",
    "popFromRetryProbability": "100",
}


@pytest.fixture(autouse=True)
def only_5x(origin: Origin) -> None:
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9.7 has no POP, which the proxy needs")


@pytest.fixture(scope="module")
def grpc_broker(
    origin: Origin, engine: Engine, work_folder: Path, request: pytest.FixtureRequest
) -> Iterator[Broker]:
    is_tested = request.param == request.config.getoption("--server")
    its = origin if is_tested else Original(RELEASE, engine)
    folder = work_folder / f"grpc-{request.param}"
    names = NameServer(its, folder / "namesrv")
    server = Broker(its, folder / "broker", names, "broker-g", BROKER_SETTINGS)
    with running(names, server):
        yield server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs each scene with our proxy, and in long runs with the official one as well.

    Both are in front of the servers under test, and in long runs of ours also of the original's.
    """
    if "proxy" in metafunc.fixturenames:
        is_long, server = map(metafunc.config.getoption, ("--all-releases", "--server"))
        whose = ["ours", "official"] if is_long else ["ours"]
        metafunc.parametrize("proxy", whose, indirect=True, scope="module")
        servers = ["ours", f"original-{RELEASE}"] if is_long and server == "ours" else [server]
        metafunc.parametrize("grpc_broker", servers, indirect=True, scope="module")


@pytest.fixture(scope="module")
def proxy(
    grpc_broker: Broker, engine: Engine, work_folder: Path, request: pytest.FixtureRequest
) -> Iterator[Proxy]:
    runs = engine if request.param == "official" else None
    folder = grpc_broker.folder.parent / f"proxy-{request.param}"
    server = Proxy(runs, folder, grpc_broker.name_server)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def grpc_jvm(engine: Engine, work_folder: Path) -> Iterator[ClientJvm]:
    jvm = GrpcJvm(engine, work_folder / "grpc-java")
    yield jvm
    jvm.kill()


class GrpcScene(Scene):
    """Topics and groups of one test at the broker, and gRPC clients at the proxy."""

    def __init__(self, jvm: ClientJvm, broker: Broker, proxy: Proxy, grpc_jvm: ClientJvm) -> None:
        super().__init__(jvm, broker)
        self.proxy = proxy
        self._grpc_jvm = grpc_jvm

    def typed_topic(self, message_type: str) -> str:
        """A new topic for messages of this type."""
        topic = self.unique(f"grpc-{message_type}")
        attributes = ["-a", f"+message.type={message_type.upper()}"]
        self._mqadmin("updateTopic", "-t", topic, "-r", "4", "-w", "4", *attributes)
        self.wait_for_route(topic)
        return topic

    def group(self, *, orderly: bool = False) -> str:
        """A new group."""
        group = self.unique("grpc-group")
        self._mqadmin("updateSubGroup", "-g", group, "-o", str(orderly).lower())
        return group

    def _mqadmin(self, command: str, *words: str) -> None:
        line = [command, "-n", self.namesrv, "-b", self.broker.address, *words]
        said = self.jvm.call("mqadmin", line=line, seconds=30)
        assert "success" in said["out"], said

    def client(self, kind: str, topic: str, **settings: Any) -> GrpcClient:
        """A `producer`, a `push_consumer` or a `simple_consumer`."""
        settings = {"endpoints": self.proxy.address, "topic": topic, **settings}
        if kind != "producer":
            settings = {"expression": "*", "group": self.group(), **settings}
        name = self.unique(kind)
        return self._keep(GrpcClient(self._grpc_jvm, f"start_{kind}", name, **settings))


@pytest.fixture
def scene(
    jvms: dict[str, ClientJvm], grpc_broker: Broker, proxy: Proxy, grpc_jvm: ClientJvm
) -> Iterator[GrpcScene]:
    scene = GrpcScene(jvms[RELEASE], grpc_broker, proxy, grpc_jvm)
    yield scene
    scene.close()


def bodies(messages: list[Json]) -> list[str]:
    return sorted(text(item) for item in messages)


def received(consumer: GrpcClient, count: int, invisible_ms: int = 30_000) -> list[Json]:
    """What a simple consumer receives until it has that many."""
    found: list[Json] = []

    def complete() -> bool:
        found.extend(consumer.receive(invisible_ms=invisible_ms))
        return len(found) >= count

    poll(complete, f"{count} messages received", LATE_S)
    return found


@pytest.mark.timeout(400)
def test_a_push_consumer_gets_what_is_sent(scene: GrpcScene) -> None:
    topic = scene.typed_topic("normal")
    consumer = scene.client("push_consumer", topic)
    more = {"tags": "a", "keys": "k1 k2", "properties": {"größe": "漢字"}}
    sent = [message(topic, f"body {number} 漢字", **more) for number in range(20)]
    sent.append(message(topic, "x" * 100_000, **more))
    receipts = scene.client("producer", topic).send(*sent)
    got = consumer.wait_for(len(sent), LATE_S)
    assert bodies(got) == sorted(text(each) for each in sent)
    assert {each["msg_id"] for each in got} == {each["msg_id"] for each in receipts}
    for each in got:
        assert (each["tags"], each["keys"], each["attempt"]) == ("a", "k1 k2", 1)
        assert each["properties"]["größe"] == "漢字"
    # The remoting client finds the same messages.
    read = scene.read(topic, len(sent))
    assert {each["msg_id"] for each in read} == {each["msg_id"] for each in receipts}


@pytest.mark.timeout(400)
def test_what_a_listener_refuses_comes_again(scene: GrpcScene) -> None:
    topic = scene.typed_topic("normal")
    consumer = scene.client("push_consumer", topic, failures=1)
    scene.client("producer", topic).send(message(topic, "twice"))
    assert [each["attempt"] for each in consumer.wait_for(2, LATE_S)] == [1, 2]


@pytest.mark.timeout(400)
def test_messages_of_a_group_come_in_their_order(scene: GrpcScene) -> None:
    topic = scene.typed_topic("fifo")
    producer = scene.client("producer", topic)
    for number in range(10):
        for name in "abc":
            producer.send(message(topic, str(number), message_group=name))
    consumer = scene.client("push_consumer", topic, group=scene.group(orderly=True), failures=2)
    got = consumer.wait_for(32, LATE_S)
    assert len(got) == 32
    for name in "abc":
        own = [text(each) for each in got if each["message_group"] == name]
        assert [body for body, _ in groupby(own)] == [str(number) for number in range(10)]


@pytest.mark.timeout(400)
def test_delayed_messages_come_at_their_time_or_are_taken_back(scene: GrpcScene) -> None:
    topic = scene.typed_topic("delay")
    consumer = scene.client("push_consumer", topic)
    producer = scene.client("producer", topic)
    deliver_ms = int(time.time() * 1000) + 6_000
    receipts = producer.send(
        *(message(topic, body, deliver_ms=deliver_ms) for body in ("wanted", "taken back"))
    )
    assert producer.recall(topic, receipts[1]["recall_handle"]) == receipts[1]["msg_id"]
    consumer.wait_for(1, LATE_S)
    later = producer.send(message(topic, "last", deliver_ms=int(time.time() * 1000) + 3_000))
    assert later
    consumer.wait_for(2, LATE_S)
    assert [text(each["message"]) for each in consumer.told()] == ["wanted", "last"]
    assert consumer.told()[0]["at_ms"] >= deliver_ms - 1_000
    with pytest.raises(JavaError):
        producer.recall(topic, receipts[0]["recall_handle"] + "x")


@pytest.mark.timeout(400)
def test_transactions_are_committed_rolled_back_and_asked_for(scene: GrpcScene) -> None:
    topic = scene.typed_topic("transaction")
    consumer = scene.client("push_consumer", topic)
    producer = scene.client("producer", topic, check="COMMIT")
    producer.send_in_transaction(message(topic, "rolled back"), "rollback")
    producer.send_in_transaction(message(topic, "committed"), "commit")
    assert bodies(consumer.wait_for(1, LATE_S)) == ["committed"]
    left = producer.send_in_transaction(message(topic, "asked for"), "leave")

    def is_asked_for() -> bool:  # on a slow machine, perhaps after one that was just ended
        return left in {each["message"]["msg_id"] for each in producer.told()}

    poll(is_asked_for, "the open transaction is asked for", 2 * LATE_S)
    assert bodies(consumer.wait_for(2, LATE_S)) == ["asked for", "committed"]


@pytest.mark.timeout(400)
def test_a_simple_consumer_acknowledges_and_changes_times(scene: GrpcScene) -> None:
    topic = scene.typed_topic("normal")
    consumer = scene.client("simple_consumer", topic)
    producer = scene.client("producer", topic)
    producer.send(*(message(topic, str(number)) for number in range(3)))
    got = {text(each): each for each in received(consumer, 3, 20_000)}
    assert sorted(got) == ["0", "1", "2"]
    consumer.ack(got["0"])
    consumer.change_invisible_duration(got["1"], 10_000)
    started = time.monotonic()
    again = received(consumer, 1)
    assert [(text(each), each["attempt"]) for each in again] == [("1", 2)]
    assert time.monotonic() - started > 5
    consumer.ack(again[0])
    last = received(consumer, 1)
    assert [(text(each), each["attempt"]) for each in last] == [("2", 2)]
    consumer.ack(last[0])
    assert consumer.receive() == []


@pytest.mark.timeout(400)
def test_messages_of_high_priority_come_first(scene: GrpcScene) -> None:
    topic = scene.typed_topic("priority")
    producer = scene.client("producer", topic)
    for number in (0, 2, 1, 3, 9):
        producer.send(message(topic, str(number), priority=number))
    consumer = scene.client("simple_consumer", topic)
    got: list[Json] = []

    def is_all() -> bool:
        got.extend(consumer.receive())
        return len(got) >= 5

    poll(is_all, "all of them", LATE_S)
    assert [text(each) for each in got] == ["3", "9", "2", "1", "0"]
    assert [each["priority"] for each in got] == [3, 9, 2, 1, 0]
    for each in got:
        consumer.ack(each)


@pytest.mark.timeout(400)
def test_filters_by_tag_and_by_sql(scene: GrpcScene) -> None:
    topic = scene.typed_topic("normal")
    by_sql = scene.client("push_consumer", topic, sql="price > 5 AND region IN ('north', 'south')")
    by_tag = scene.client("push_consumer", topic, expression="a || c")
    producer = scene.client("producer", topic)
    for price, region, tag in ((3, "north", "a"), (7, "north", "b"), (9, "east", "c")):
        properties = {"price": str(price), "region": region}
        producer.send(message(topic, f"{price} {region}", tags=tag, properties=properties))
    assert bodies(by_tag.wait_for(2, LATE_S)) == ["3 north", "9 east"]
    assert bodies(by_sql.wait_for(1, LATE_S)) == ["7 north"]
    producer.send(message(topic, "8 south", properties={"price": "8", "region": "south"}))
    assert bodies(by_sql.wait_for(2, LATE_S)) == ["7 north", "8 south"]
    assert bodies(by_tag.wait_for(2)) == ["3 north", "9 east"]


@pytest.mark.timeout(400)
def test_clients_come_back_when_the_proxy_was_restarted(scene: GrpcScene) -> None:
    if not isinstance(scene.proxy.origin, Ours):
        pytest.skip("clients of the original's proxy may take five minutes")
    topic = scene.typed_topic("normal")
    consumer = scene.client("push_consumer", topic)
    simple = scene.client("simple_consumer", topic)
    producer = scene.client("producer", topic)
    producer.send(message(topic, "before"))
    assert bodies(consumer.wait_for(1, LATE_S)) == ["before"]
    simple.ack(received(simple, 1)[0])
    scene.proxy.stop()
    scene.proxy.start()

    def is_sent() -> bool:  # the client tries a connection again after a second or two
        try:
            producer.send(message(topic, "after"))
        except JavaError:
            return False
        return True

    poll(is_sent, "a message is sent to the new proxy", 30)
    assert bodies(consumer.wait_for(2, LATE_S)) == ["after", "before"]
    found: list[Json] = []

    def is_received() -> bool:  # it has a connection of its own
        with contextlib.suppress(JavaError):
            found.extend(simple.receive(invisible_ms=10_000))
        return bool(found)

    poll(is_received, "a message is received from the new proxy", 30)
    assert [text(each) for each in found] == ["after"]


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return install(GRPC)
    except PythonClientUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.timeout(600)  # the first time the client is installed
@pytest.mark.parametrize("how", ["normal", "fifo", "delay", "commit"])
def test_the_python_client_sends_and_receives(
    scene: GrpcScene, python: Path, tmp_path: Path, how: str
) -> None:
    topic = scene.typed_topic("transaction" if how == "commit" else how)
    common: Json = {"endpoints": scene.proxy.address, "topic": topic, "count": 5}
    group = scene.group(orderly=how == "fifo")
    started = time.monotonic()
    sent = run(python, tmp_path, GRPC, **common, op="produce", how=how, delay_s=5)
    assert len({each["sent"] for each in sent}) == 5
    op = "push" if how in ("normal", "fifo") else "simple"
    got = run(python, tmp_path, GRPC, **common, op=op, group=group)
    expected = [f"python-{number} 漢字" for number in range(5)]
    assert [each["body"] for each in sorted(got, key=lambda each: str(each["number"]))] == expected
    assert [(each["tag"], each["keys"]) for each in got] == [
        ("python", [f"key-{each['number']}"]) for each in got
    ]
    if how == "fifo":
        assert [each["body"] for each in got] == expected
        assert {each["group"] for each in got} == {"one"}
    if how == "delay":
        assert time.monotonic() - started > 5


@pytest.mark.timeout(600)
def test_the_python_client_filters_recalls_and_rolls_back(
    scene: GrpcScene, python: Path, tmp_path: Path
) -> None:
    topic = scene.typed_topic("normal")
    common: Json = {"endpoints": scene.proxy.address}
    run(python, tmp_path, GRPC, **common, op="produce", how="normal", topic=topic, count=5)
    simple: Json = {
        "op": "simple",
        "topic": topic,
        "group": scene.group(),
        "sql": "number BETWEEN 2 AND 3",
    }
    got = run(python, tmp_path, GRPC, **common, **simple, count=2)
    assert sorted(each["number"] for each in got) == ["2", "3"]

    delayed, halves = scene.typed_topic("delay"), scene.typed_topic("transaction")
    recall: Json = {"op": "produce", "how": "recall", "topic": delayed, "delay_s": 5}
    run(python, tmp_path, GRPC, **common, **recall, count=2)
    for how in ("rollback", "leave"):
        # Whoever is there when a transaction is asked for commits it.
        told = run(python, tmp_path, GRPC, **common, op="produce", how=how, topic=halves, count=1)
    assert [each["checked"] for each in told[1:2]] == [told[0]["sent"]]
    assert len(scene.read(halves, 1)) == 1
    assert scene.read(delayed, 0) == []


@pytest.mark.timeout(600)  # the first time it is built
@pytest.mark.parametrize("how", ["go", "go over tls", "go in order", "node", "node in order"])
def test_clients_of_other_languages_send_and_receive(
    scene: GrpcScene, tmp_path: Path, how: str
) -> None:
    try:
        program = go() if how.startswith("go") else node()
    except ProgramUnavailable as error:
        pytest.skip(str(error))
    is_fifo = how.endswith("order")
    topic = scene.typed_topic("fifo" if is_fifo else "normal")
    told = events(
        program,
        tmp_path,
        endpoints=scene.proxy.address,
        topic=topic,
        group=scene.group(orderly=is_fifo),
        count=5,
        tls=how.endswith("tls"),
        fifo=is_fifo,
    )
    got = [each["body"] for each in told if "body" in each]
    assert len({each["sent"] for each in told if "sent" in each}) == 5
    expected = [f"{how.split(maxsplit=1)[0]}-{number}" for number in range(5)]
    assert (got if is_fifo else sorted(got)) == expected


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("language", ["python", "go", "node", "rust"])
def test_clients_of_other_languages_come_back_to_a_new_proxy(
    scene: GrpcScene, tmp_path: Path, request: pytest.FixtureRequest, language: str, end: str
) -> None:
    if not isinstance(scene.proxy.origin, Ours):
        pytest.skip("clients of the original's proxy may take five minutes")
    topic, group, pause = scene.typed_topic("normal"), scene.group(), tmp_path / "pause"
    where: Json = {"endpoints": scene.proxy.address, "topic": topic, "group": group, "count": 6}
    where["pause"] = str(pause)
    told: Callable[[], list[Json]]
    if language == "python":
        told = partial(
            run, request.getfixturevalue("python"), tmp_path, GRPC, **where, op="produce",
            how="normal",
        )  # fmt: skip
    else:
        try:
            program = {"go": go, "node": node, "rust": rust}[language]()
        except ProgramUnavailable as error:
            pytest.skip(str(error))
        told = partial(events, program, tmp_path, **where)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(told)
        poll(lambda: running.done() or pause.exists(), "half of the messages are sent", 60)
        getattr(scene.proxy, end)()
        scene.proxy.start()
        pause.unlink(missing_ok=True)
        found = running.result()
    assert len({each["sent"] for each in found if "sent" in each}) == 6
    if language == "python":
        read = [text(each).partition(" ")[0] for each in scene.read(topic, 6)]
    else:
        read = [each["body"] for each in found if "body" in each]
    assert sorted(read) == [f"{language}-{number}" for number in range(6)]


@pytest.mark.timeout(1_200)  # the first time it is built, with 250 packages
@pytest.mark.parametrize("how", ["normal", "fifo", "delay", "commit"])
def test_the_rust_client_sends_and_receives(scene: GrpcScene, tmp_path: Path, how: str) -> None:
    try:
        program = rust()
    except ProgramUnavailable as error:
        pytest.skip(str(error))
    topic = scene.typed_topic("transaction" if how == "commit" else how)
    where: Json = {"endpoints": scene.proxy.address, "topic": topic}
    group = scene.group(orderly=how == "fifo")
    told = events(program, tmp_path, **where, how=how, group=group, count=5)
    assert len({each["sent"] for each in told if "sent" in each}) == 5
    got = [each for each in told if "body" in each]
    expected = [f"rust-{number}" for number in range(5)]
    bodies_of = [each["body"] for each in got]
    assert (bodies_of if how == "fifo" else sorted(bodies_of)) == expected
    assert [(each["tag"], each["keys"]) for each in got] == [("tag", ["key"])] * 5
