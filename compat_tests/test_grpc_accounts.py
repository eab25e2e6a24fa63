# SPDX-License-Identifier: Apache-2.0
"""Accounts of gRPC clients: who is allowed and who is refused, in which words, beside the original.

Our proxy and the original's are in front of the same broker with accounts, get the same calls, and
have to answer with the same codes and texts; `DIFFERS` has the exceptions. Official clients are
then clients of ours, with accounts.
"""

import hmac
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import pytest

from compat_tests.account_scenes import ALICE, BOB, PROXY_2, ROOT, alice_at
from compat_tests.engine import Engine
from compat_tests.grpc_client import GrpcClient, GrpcJvm
from compat_tests.grpc_programs import ProgramUnavailable, events, go, node, rust
from compat_tests.java_client import JavaError, message
from compat_tests.peers import Broker, Original, Ours, Proxy
from compat_tests.python_client import GRPC, PythonClientUnavailable, install, run
from compat_tests.scene import poll
from txrocketmq.proxy.schema.messages import SERVICE, message_type

DATE: Final = "20261126T130000Z"
KEYS: Final = {"access_key": ALICE[0], "secret_key": ALICE[1]}
Headers = Mapping[str, str]


def credential(text: str, date: str = DATE) -> Headers:
    """Headers with this text as the authorization."""
    return {"authorization": text, **({"x-mq-date-time": date} if date else {})}


def signed(name: str, secret: str, *, is_lower: bool = False) -> Headers:
    """Headers as clients write them."""
    signature = hmac.new(secret.encode(), DATE.encode(), "sha1").hexdigest()
    signature = signature if is_lower else signature.upper()
    return credential(
        f"MQv2-HMAC-SHA1 Credential={name}, SignedHeaders=x-mq-date-time, Signature={signature}"
    )


class Ask(NamedTuple):
    """A call: its name in the scene, its method, its request, and its headers."""

    what: str
    method: str
    request: Mapping[str, Any]
    headers: Headers


def named(topic: str, group: str = "") -> dict[str, Any]:
    """The fields of a request with a topic and perhaps a group."""
    return {"topic": {"name": topic}, **({"group": {"name": group}} if group else {})}


def sending(topic: str) -> dict[str, Any]:
    properties = {"message_id": "01" * 17, "message_type": 1}
    return {"messages": [{**named(topic), "system_properties": properties, "body": b"m"}]}


def receiving(topic: str, group: str) -> dict[str, Any]:
    return {
        "group": {"name": group},
        "message_queue": {**named(topic), "broker": {"name": "broker-g"}},
        "batch_size": 1,
        "invisible_duration": {"seconds": 30},
        "filter_expression": {"type": 1, "expression": "*"},
    }


def settings(**its: Any) -> dict[str, Any]:
    return {"settings": its}


def subscribing(topic: str, group: str) -> dict[str, Any]:
    entries = [{**named(topic), "expression": {"type": 1, "expression": "*"}}]
    its = {"group": {"name": group}, "subscriptions": entries}
    return settings(client_type=3, subscription=its)


def publishing(*topics: str) -> dict[str, Any]:
    return settings(client_type=1, publishing={"topics": [{"name": each} for each in topics]})


AS_ALICE: Final = signed(*ALICE)
HANDLE: Final = f"0 {2**42} 600000 0 0 broker-g 0 0 0"
WHO: Final[Mapping[str, Headers]] = {
    "nobody": {},
    "without a date": credential("MQv2-HMAC-SHA1 Credential=alice,Signature=00", ""),
    "one word": credential("MQv2-HMAC-SHA1"),
    "nothing behind": credential("MQv2-HMAC-SHA1 x"),
    "no name": credential("MQv2-HMAC-SHA1 Signature=00"),
    "an empty name": credential("MQv2-HMAC-SHA1 Credential=,Signature=00"),
    "a slash for a name": credential("MQv2-HMAC-SHA1 Credential=/,Signature=00"),
    "no signature": credential("MQv2-HMAC-SHA1 Credential=alice"),
    "no hexadecimal": credential("MQv2-HMAC-SHA1 Credential=alice,Signature=xyz"),
    "an odd number of digits": credential("MQv2-HMAC-SHA1 Credential=alice,Signature=abc"),
    "unknown": signed("carol", "x"),
    "disabled": signed(*BOB),
    "a wrong secret": signed("alice", "x"),
    "another date": {**AS_ALICE, "x-mq-date-time": DATE.replace("13", "14")},
    "small letters": signed(*ALICE, is_lower=True),
    "alice": AS_ALICE,
    "root": signed(*ROOT),
}
ASKS: Final = (
    *(Ask(who, "QueryRoute", named("Orders"), headers) for who, headers in WHO.items()),
    Ask("alice sends", "SendMessage", sending("Orders"), AS_ALICE),
    Ask("elsewhere", "SendMessage", sending("Other"), AS_ALICE),
    Ask("to what is denied", "SendMessage", sending("Orders-closed"), AS_ALICE),
    Ask("from another address", "SendMessage", sending("Far"), AS_ALICE),
    Ask("nothing", "SendMessage", {}, AS_ALICE),
    Ask("without a topic", "SendMessage", {"messages": [{}]}, AS_ALICE),
    Ask("another route", "QueryRoute", named("Other"), AS_ALICE),
    Ask("a route of nothing", "QueryRoute", {}, AS_ALICE),
    Ask("queues", "QueryAssignment", named("Orders", "readers"), AS_ALICE),
    Ask("queues of others", "QueryAssignment", named("Orders", "others"), AS_ALICE),
    Ask("other queues", "QueryAssignment", named("Other", "readers"), AS_ALICE),
    Ask("receive for others", "ReceiveMessage", receiving("Orders", "others"), AS_ALICE),
    Ask("receive another", "ReceiveMessage", receiving("Other", "readers"), AS_ALICE),
    Ask("receive of nothing", "ReceiveMessage", {"group": {"name": "readers"}}, AS_ALICE),
    *(
        Ask(f"{what} {topic} of {group}", method, {**named(topic, group), **more}, AS_ALICE)
        for what, method, more in (
            ("acknowledge", "AckMessage", {"entries": [{"receipt_handle": HANDLE}]}),
            ("hide", "ChangeInvisibleDuration", {"receipt_handle": HANDLE}),
            ("bury", "ForwardMessageToDeadLetterQueue", {"receipt_handle": HANDLE}),
        )
        for topic, group in (("Orders", "others"), ("Other", "readers"))
    ),
    Ask("acknowledge for nobody", "AckMessage", named("Orders"), AS_ALICE),
    Ask("end", "EndTransaction", named("Other"), AS_ALICE),
    Ask("recall", "RecallMessage", named("Other"), AS_ALICE),
    Ask("alive", "Heartbeat", {"client_type": 2, "group": {"name": "others"}}, AS_ALICE),
    Ask("alive for nobody", "Heartbeat", {"client_type": 2}, AS_ALICE),
    Ask("gone", "NotifyClientTermination", {"group": {"name": "others"}}, AS_ALICE),
    Ask("publishes", "Telemetry", publishing("Orders"), AS_ALICE),
    Ask("publishes more", "Telemetry", publishing("Orders", "Other"), AS_ALICE),
    Ask("subscribes", "Telemetry", subscribing("Orders", "readers"), AS_ALICE),
    Ask("subscribes for others", "Telemetry", subscribing("Orders", "others"), AS_ALICE),
    Ask("subscribes to another", "Telemetry", subscribing("Other", "readers"), AS_ALICE),
    Ask("states as nobody", "Telemetry", publishing("Orders"), {}),
)
DIFFERS: Final = {
    "hide Other of readers": "the original asks for the group alone",
}
"""What is answered in another way, with the reason."""


def open_(first: Any, is_over: threading.Event) -> Iterator[Any]:
    """A stream of one message, which stays open."""
    yield first
    is_over.wait(30)


def answer_to(channel: grpc.Channel, ask: Ask) -> tuple[int, str]:
    """Returns the code and the text of the answer to a call."""
    is_telemetry = ask.method == "Telemetry"
    request = message_type("TelemetryCommand" if is_telemetry else f"{ask.method}Request")
    answer = message_type("TelemetryCommand" if is_telemetry else f"{ask.method}Response")
    options = {
        "request_serializer": lambda its: its.SerializeToString(),
        "response_deserializer": answer.FromString,
    }
    headers = {
        "x-mq-client-id": f"compat@1@2@{ask.what}",
        "x-mq-language": "JAVA",
        "x-mq-client-version": "5.2.1",
        **ask.headers,
    }
    path, given = f"/{SERVICE}/{ask.method}", request(**ask.request)
    more: dict[str, Any] = {"metadata": tuple(headers.items()), "timeout": 30}
    if is_telemetry:
        is_answered = threading.Event()
        first = next(
            iter(channel.stream_stream(path, **options)(open_(given, is_answered), **more))
        )
        is_answered.set()
    elif ask.method == "ReceiveMessage":
        first = next(iter(channel.unary_stream(path, **options)(given, **more)))
    else:
        first = channel.unary_unary(path, **options)(given, **more)
    return first.status.code, first.status.message


def answers(proxy: Proxy) -> dict[str, tuple[int, str]]:
    """Returns the answers of a proxy; those that follow each other do not depend on each other."""
    with grpc.insecure_channel(proxy.address) as channel:
        return {ask.what: answer_to(channel, ask) for ask in ASKS}


@pytest.fixture
def start(engine: Engine, test_folder: Path) -> Iterator[Callable[..., Proxy]]:
    """Starts proxies with accounts in front of brokers."""
    started: list[Proxy] = []

    def begin(broker: Broker, *, is_ours: bool) -> Proxy:
        runs = None if is_ours else engine
        folder = test_folder / f"proxy-{len(started)}"
        started.append(Proxy(runs, folder, broker.name_server, PROXY_2))
        started[-1].start()
        return started[-1]

    yield begin
    for each in started:
        each.kill()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("whose", ["ours", "5.4.0"])
def test_answers_are_those_of_the_original(
    engine: Engine,
    test_folder: Path,
    start: Callable[..., Proxy],
    whose: str,
    request: pytest.FixtureRequest,
) -> None:
    """In front of our broker, and in long runs of the original's as well."""
    if whose != "ours" and not request.config.getoption("--all-releases"):
        pytest.skip("only in long runs")
    origin = Ours() if whose == "ours" else Original(whose, engine)
    with alice_at(origin, test_folder / "broker") as broker:
        original = answers(start(broker, is_ours=False))
        ours = answers(start(broker, is_ours=True))
    differ = {what: (its, ours[what]) for what, its in original.items() if ours[what] != its}
    assert differ.keys() == DIFFERS.keys(), "\n".join(
        f"{what}: {one} / {two}" for what, (one, two) in differ.items()
    )


@pytest.fixture
def with_alice(test_folder: Path) -> Iterator[Broker]:
    with alice_at(Ours(), test_folder / "broker") as broker:
        yield broker


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs clients with our proxy, and in long runs with the original's as well."""
    if "is_ours" in metafunc.fixturenames:
        is_long = metafunc.config.getoption("--all-releases")
        metafunc.parametrize("is_ours", [True, False] if is_long else [True])


@pytest.mark.timeout(400)
def test_java_with_an_account(
    with_alice: Broker,
    engine: Engine,
    test_folder: Path,
    start: Callable[..., Proxy],
    is_ours: bool,
) -> None:
    proxy = start(with_alice, is_ours=is_ours)
    jvm = GrpcJvm(engine, test_folder / "grpc-java")
    try:
        where = {"endpoints": proxy.address}
        sender = GrpcClient(jvm, "start_producer", "p1", topic="Orders", **where, **KEYS)
        assert sender.send(message("Orders", "m"))
        reader = GrpcClient(
            jvm, "start_simple_consumer", "c1", topic="Orders", expression="*", group="readers",
            **where, **KEYS,
        )  # fmt: skip
        found: list[Any] = []

        def is_received() -> bool:
            found.extend(reader.receive())
            return bool(found)

        poll(is_received, "the message is received", 60)
        reader.ack(found[0])
        for number, (topic, keys) in enumerate(
            (("Other", KEYS), ("Orders", {**KEYS, "secret_key": "wrong"}), ("Orders", {}))
        ):
            with pytest.raises(JavaError):
                GrpcClient(jvm, "start_producer", f"r{number}", topic=topic, **where, **keys).send(
                    message(topic, "m")
                )
    finally:
        jvm.kill()


@pytest.mark.timeout(600)  # the first time it is installed
def test_python_with_an_account(
    with_alice: Broker, test_folder: Path, start: Callable[..., Proxy], is_ours: bool
) -> None:
    try:
        python = install(GRPC)
    except PythonClientUnavailable as error:
        pytest.skip(str(error))
    proxy, home = start(with_alice, is_ours=is_ours), test_folder / "python"
    home.mkdir()
    its = {"endpoints": proxy.address, "topic": "Orders", "count": 3, **KEYS}
    sent = run(python, home, GRPC, op="produce", how="normal", **its)
    assert len({each["sent"] for each in sent}) == 3
    got = run(python, home, GRPC, op="simple", group="readers", **its)
    assert len(got) == 3
    for more in ({"topic": "Other"}, {"secret_key": "wrong"}):
        with pytest.raises(AssertionError, match="the Python client ended with"):
            run(python, home, GRPC, op="produce", how="normal", **{**its, **more})


@pytest.mark.timeout(900)  # the first time it is built
@pytest.mark.parametrize("program", [go, node, rust])
def test_other_languages_with_an_account(
    with_alice: Broker,
    test_folder: Path,
    start: Callable[..., Proxy],
    is_ours: bool,
    program: Callable[[], list[str]],
) -> None:
    try:
        command = program()
    except ProgramUnavailable as error:
        pytest.skip(str(error))
    proxy, home = start(with_alice, is_ours=is_ours), test_folder / program.__name__
    home.mkdir()
    its = {"endpoints": proxy.address, "topic": "Orders", "group": "readers", "count": 3, **KEYS}
    told = events(command, home, **its)
    assert len([each["body"] for each in told if "body" in each]) == 3
    for more in ({"topic": "Other"}, {"secret_key": "wrong"}):
        with pytest.raises(AssertionError):
            events(command, home, **{**its, **more})
