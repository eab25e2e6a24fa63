# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections: of official clients, and between our servers and the original's.

Servers take connections that are encrypted and such that are not (permissive), only those that are
(enforcing), or only those that are not (disabled).
"""

import contextlib
import hashlib
import random
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests import probe
from compat_tests.certificates import Authority, Issued, client_context
from compat_tests.engine import Engine
from compat_tests.go_client import GoClient, GoUnavailable, build
from compat_tests.jars import RELEASES
from compat_tests.java_client import Admin, ClientJvm, JavaError, PushConsumer, message, text
from compat_tests.peers import Broker, NameServer, Origin, Original, Ours, Server, running
from compat_tests.scene import Scene, poll

SUITE = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
ENFORCING = {"tls.server.mode": "enforcing"}
CHANGED_S = 12.0
"""A member of a group looks every 20 s who else is there, unless the broker tells it."""
REFUSED_S = 30.0
ERRORS = {"RemotingSendRequestException", "RemotingTimeoutException", "RemotingConnectException"}
"""What clients say when a connection is closed. 4.9.7 does not notice it, so its time runs out."""


def broker_at(names: Origin, brokers: Origin, folder: Path, tls: ssl.SSLContext) -> Broker:
    """A broker and its name server, not started; the tests' own connections are encrypted."""
    name_server = NameServer(names, folder / "namesrv", tls)
    return Broker(brokers, folder / "broker", name_server, "broker-tls", {}, tls)


@contextlib.contextmanager
def started(broker: Broker) -> Iterator[Broker]:
    with running(broker.name_server, broker):
        yield broker


@pytest.fixture
def encrypted(jvm: ClientJvm, broker: Broker) -> Iterator[Scene]:
    """Clients that encrypt, at the broker where others do not; this is what servers do as is."""
    scene = Scene(jvm, broker, tls=True)
    yield scene
    scene.close()


# ------------------------------------------------------------------------------ permissive servers


@pytest.mark.both_releases
def test_whatever_is_sent_arrives(encrypted: Scene, scene: Scene) -> None:
    """With a consumer that encrypts, and one that does not."""
    topic = encrypted.topic(queues=2)
    consumers = [each.push_consumer(topic, each.unique("group")) for each in (encrypted, scene)]
    chance = random.Random(7)
    large = [chance.randbytes(size) for size in (300_000, 300_000, 3_000_000)]
    bodies = [b"%s-%d" % (kind, n) for kind in (b"sync", b"async", b"oneway") for n in range(10)]
    batch = [b"batch-%d" % n for n in range(10)]

    producer = encrypted.producer(compress_over_bytes=10_000_000)
    results = []
    for mode, part in (("sync", bodies[:10] + large), ("async", bodies[10:20] + large)):
        results += producer.send([message(topic, body) for body in part], mode=mode)
    producer.send([message(topic, body) for body in bodies[20:]], mode="oneway")
    results.append(producer.send_batch([message(topic, body) for body in batch]))

    assert {result["status"] for result in results} == {"SEND_OK"}
    sent = sorted(hashlib.sha256(body).hexdigest() for body in bodies + large + large + batch)
    for consumer in consumers:
        received = consumer.wait_for(len(sent))
        assert sorted(item["body_sha256"] for item in received) == sent


def test_many_messages_are_pulled(encrypted: Scene) -> None:
    topic = encrypted.topic(queues=2)
    bodies = [f"{n}-{'x' * (n % 3000)}" for n in range(3000)]
    producer = encrypted.producer()
    producer.send_batches(
        [[message(topic, body) for body in bodies[n : n + 200]] for n in range(0, 3000, 200)]
    )
    pulled = encrypted.read(topic, 3000)
    assert sorted(text(item) for item in pulled) == sorted(bodies)
    places = sorted((item["queue_id"], item["queue_offset"]) for item in pulled)
    assert len(set(places)) == 3000
    consumer = encrypted.push_consumer(topic, encrypted.unique("group"))
    assert sorted(map(text, consumer.wait_for(3000))) == sorted(bodies)


def queue_ids(consumer: PushConsumer) -> set[int]:
    return {queue["queue_id"] for queue in consumer.assignment()}


def share(consumers: list[PushConsumer]) -> Callable[[], bool]:
    """Returns whether two consumers have two queues each of the four that there are."""

    def shared_out() -> bool:
        first, second = map(queue_ids, consumers)
        return len(first) == len(second) == 2 and first | second == {0, 1, 2, 3}

    return shared_out


def test_a_group_of_clients_that_encrypt_and_others(encrypted: Scene, scene: Scene) -> None:
    topic, group = encrypted.topic(queues=4), encrypted.unique("group")
    both = (encrypted, scene)
    consumers = [each.push_consumer(topic, group) for each in both]
    poll(share(consumers), "each has two queues", CHANGED_S)
    producers = [each.producer() for each in both]
    for n in range(20):
        for name, producer in zip("ep", producers, strict=True):
            producer.send([message(topic, f"{name}{n}")])
    for consumer in consumers:
        consumer.wait_for(10)
    sent = sorted(f"{name}{n}" for name in "ep" for n in range(20))

    def received() -> list[str]:
        return sorted(body for consumer in consumers for body in consumer.bodies())

    scene.jvm.wait_for(lambda: len(received()) >= 40, "all messages at one of the two")
    assert received() == sent


# ------------------------------------------------------------------------------- enforcing servers


@pytest.fixture(scope="module")
def enforcing(origin: Origin, work_folder: Path) -> Iterator[Broker]:
    """Servers that everybody has to encrypt for, so the broker does, too, when it registers."""
    strict = origin.with_properties(ENFORCING)
    with started(broker_at(strict, strict, work_folder / "enforcing", client_context())) as broker:
        yield broker


@pytest.fixture
def enforced(jvm: ClientJvm, enforcing: Broker) -> Iterator[Scene]:
    scene = Scene(jvm, enforcing, tls=True)
    yield scene
    scene.close()


def assert_serves(scene: Scene) -> None:
    """The name server says where a new topic is, and the broker keeps and gives its messages."""
    topic = scene.topic(queues=2)
    bodies = [f"m{n}" for n in range(20)]
    pushed = scene.push_consumer(topic, scene.unique("group"))
    scene.producer().send([message(topic, body) for body in bodies])
    pushed.wait_for(20)
    assert sorted(pushed.bodies()) == sorted(bodies)
    assert sorted(map(text, scene.read(topic, 20))) == sorted(bodies)


def chain(error: JavaError | None) -> Iterator[str]:
    """The names of the classes of an error and of its causes."""
    while error is not None:
        yield error.java_class
        error = error.cause


def assert_is_refused(scene: Scene) -> None:
    """A client gets an error from the name server, and from the broker if it knows its address."""
    producer, admin = scene.producer(), scene.admin()
    send = {"name": producer.name, "messages": [message(scene.unique("refused"), "m")]}
    create = {"name": admin.name, "broker": scene.broker.address, "topic": scene.unique("refused")}
    answers = [
        scene.jvm.submit("send", **send),
        scene.jvm.submit("create_topic", queues=1, perm=6, **create),
    ]
    for answer in answers:
        with pytest.raises(JavaError) as refused:
            answer.result(REFUSED_S)
        assert ERRORS & set(chain(refused.value)), refused.value


def lines(server: Server, words: str) -> list[str]:
    """The lines of a server's log that have these words."""
    assert server.process is not None
    return [line for line in server.process.log().splitlines() if words in line]


def assert_says(broker: Broker, why: str) -> None:
    """Our servers log whom they refused, and why: the name server as well as the broker."""
    if isinstance(broker.origin, Ours):
        for server in (broker.name_server, broker):
            # The client may have given up before the server has come so far.
            poll(
                lambda: any("closing 127.0.0.1" in line for line in lines(server, why)),  # noqa: B023
                f"{server.address} says: {why}",
            )


def test_clients_that_encrypt_are_served(enforced: Scene) -> None:
    assert_serves(enforced)
    created = enforced.unique("created")
    enforced.producer().send([message(created, "first")])
    enforced.wait_for_route(created)
    assert [text(item) for item in enforced.read(created, 1)] == ["first"]


def test_a_waiting_consumer_hears_at_once(enforced: Scene) -> None:
    """Of a message, by long polling, and of another member of its group, by a broker's request."""
    topic, group = enforced.topic(queues=4), enforced.unique("group")
    first = enforced.push_consumer(topic, group)
    poll(lambda: queue_ids(first) == {0, 1, 2, 3}, "the first has all queues")
    second = enforced.push_consumer(topic, group)
    poll(share([first, second]), "each has two queues", CHANGED_S)
    producer = enforced.producer()
    for n in range(8):
        producer.send([message(topic, f"m{n}")])

        def received(count: int = n + 1) -> bool:
            return len(first.events()) + len(second.events()) >= count

        enforced.jvm.wait_for(received, f"message {n}", 8)
    events = first.events() + second.events()
    late_ms = [event["at_ms"] - event["message"]["born_timestamp"] for event in events]
    assert sorted(late_ms)[4] < 1000, late_ms


def test_clients_that_do_not_encrypt_are_refused(jvm: ClientJvm, enforcing: Broker) -> None:
    scene = Scene(jvm, enforcing, tls=False)
    assert_is_refused(scene)
    scene.close()
    assert_says(enforcing, "it does not encrypt, which tls.server.mode=enforcing demands")


def test_one_line_of_the_log_tells_who_was_refused(origin: Origin, test_folder: Path) -> None:
    server = NameServer(origin.with_properties(ENFORCING), test_folder, client_context())
    try:
        server.start()
        with probe.connected(server.port) as connection:
            who = "{}:{}".format(*connection.getsockname())
            probe.send_frame(connection, {"code": probe.GET_BROKER_CLUSTER_INFO})
            with pytest.raises(OSError, match=r"closed|reset"):
                probe.read_frame(connection)
        if isinstance(origin, Ours):
            poll(lambda: bool(lines(server, who)), "a line of the log")
            (line,) = lines(server, who)
            assert line.endswith(
                f" closing {who}: it does not encrypt, which tls.server.mode=enforcing demands;"
                " clients do with useTLS or -Dtls.enable=true"
            )
    finally:
        server.close()


def test_servers_that_do_not_encrypt(
    origin: Origin, first_jvm: ClientJvm, test_folder: Path
) -> None:
    server = NameServer(origin.with_properties({"tls.server.mode": "disabled"}), test_folder)
    try:
        server.start()
        assert probe.request(server.port, probe.GET_BROKER_CLUSTER_INFO)
        with pytest.raises(OSError, match=r"(?i)eof|reset|closed"):
            probe.request(server.port, probe.GET_BROKER_CLUSTER_INFO, tls=client_context())
        admin = Admin(first_jvm, f"admin@{server.address}", server.address, tls=True)
        with pytest.raises(JavaError) as refused:
            admin.topic_route("any")
        assert ERRORS & set(chain(refused.value)), refused.value
        admin.stop()
    finally:
        server.close()


@pytest.mark.parametrize(
    ("properties", "spoken"),
    [
        ({"tls.protocols": "TLSv1.2"}, {"TLSv1.2"}),
        ({"tls.protocols": "TLSv1.3"}, {"TLSv1.3"}),
        ({"tls.ciphers": SUITE}, {"TLSv1.2"}),
        ({"tls.ciphers": SUITE, "tls.protocols": "TLSv1.2,TLSv1.3"}, {"TLSv1.2"}),
        ({}, {"TLSv1.2", "TLSv1.3"}),
    ],
    ids=lambda each: "-".join(sorted(each)) or "as-is",  # equal in all processes of a run
)
def test_versions_and_suites_may_be_limited(
    origin: Origin, test_folder: Path, properties: dict[str, str], spoken: set[str]
) -> None:
    """Of 5.4; the servers have made their certificates themselves."""
    if origin.behaves_as == "4.9.7":
        pytest.skip("4.9.7 does not have these settings")
    server = NameServer(
        origin.with_properties({**ENFORCING, **properties}), test_folder, client_context()
    )
    found: dict[str, str] = {}
    try:
        server.start()
        for version in ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3:
            tls = client_context()
            tls.minimum_version = tls.maximum_version = version
            with contextlib.suppress(OSError), probe.connected(server.port, tls=tls) as connection:
                assert isinstance(connection, ssl.SSLSocket)
                suite = connection.cipher()
                assert suite is not None
                found[str(connection.version())] = suite[0]
    finally:
        server.close()
    assert found.keys() == spoken
    if "tls.ciphers" in properties:
        assert found["TLSv1.2"] == "ECDHE-RSA-AES256-GCM-SHA384"


# ---------------------------------------------------------------------- certificates on both sides


@pytest.fixture(scope="module")
def authority(work_folder: Path) -> Authority:
    """Has issued the certificates of all who know each other."""
    return Authority(work_folder / "certificates", "authority")


@pytest.fixture(scope="module")
def known(authority: Authority) -> Issued:
    return authority.issue("known")


def mutual(authority: Authority, own: Issued) -> dict[str, str]:
    """Settings of servers that check who connects to them and whom they connect to."""
    sides = {"server": "authClient", "client": "authServer"}
    settings = {"tls.test.mode.enable": "false", "tls.server.need.client.auth": "require"}
    for side, checks in sides.items():
        settings[f"tls.{side}.certPath"] = str(own.certificate)
        settings[f"tls.{side}.keyPath"] = str(own.key)
        settings[f"tls.{side}.trustCertPath"] = str(authority.file)
        settings[f"tls.{side}.{checks}"] = "true"
    return settings


@pytest.fixture(scope="module")
def certified(authority: Authority) -> dict[str, str]:
    return mutual(authority, authority.issue("server"))


@pytest.fixture(scope="module")
def probing(authority: Authority, known: Issued) -> ssl.SSLContext:
    """For the tests' own connections to such servers."""
    return client_context(authority, known)


@pytest.fixture(scope="module")
def checking(
    origin: Origin, certified: dict[str, str], probing: ssl.SSLContext, work_folder: Path
) -> Iterator[Broker]:
    """Servers with certificates, which serve only who has one; a file says so."""
    folder = work_folder / "checking"
    folder.mkdir(exist_ok=True)
    file = folder / "tls.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in certified.items()))
    strict = origin.with_properties({**ENFORCING, "tls.config.file": str(file)})
    with started(broker_at(strict, strict, folder, probing)) as broker:
        yield broker


@pytest.fixture(scope="module")
def known_jvms(
    engine: Engine, authority: Authority, known: Issued, work_folder: Path
) -> Iterator[dict[str, ClientJvm]]:
    """Official clients that encrypt, have a certificate and check those of servers."""
    options = [f"-D{key}={value}" for key, value in mutual(authority, known).items()]
    options.append("-Dtls.enable=true")
    jvms = {
        release: ClientJvm(release, engine, work_folder / f"java-known-{release}", options)
        for release in RELEASES
    }
    yield jvms
    for jvm in jvms.values():
        jvm.kill()


@pytest.fixture(params=RELEASES)
def known_jvm(request: pytest.FixtureRequest, known_jvms: dict[str, ClientJvm]) -> ClientJvm:
    return known_jvms[request.param]


def test_clients_with_a_certificate_are_served(known_jvm: ClientJvm, checking: Broker) -> None:
    scene = Scene(known_jvm, checking)
    assert_serves(scene)
    scene.close()


def test_mqadmin_with_a_certificate(known_jvm: ClientJvm, checking: Broker) -> None:
    scene = Scene(known_jvm, checking)
    topic = scene.unique("commanded")
    assert "success" in scene.mqadmin_here(f"updateTopic -t {topic} -r 2 -w 2")
    scene.wait_for_route(topic)
    assert checking.address in scene.mqadmin(f"topicRoute -t {topic}")
    assert checking.address in scene.mqadmin("clusterList")
    assert "bootTimestamp" in scene.mqadmin_here("brokerStatus")
    scene.close()


def test_clients_without_a_certificate_are_refused(jvm: ClientJvm, checking: Broker) -> None:
    scene = Scene(jvm, checking, tls=True)
    assert_is_refused(scene)
    scene.close()
    assert_says(checking, "no TLS handshake: peer did not return a certificate")


def test_a_certificate_of_somebody_else_is_refused(
    checking: Broker, authority: Authority, known: Issued, test_folder: Path
) -> None:
    stranger = Authority(test_folder, "somebody-else").issue("stranger")
    for port, code in (
        (checking.name_server.port, probe.GET_BROKER_CLUSTER_INFO),
        (checking.port, probe.GET_BROKER_CONFIG),
    ):
        assert probe.request(port, code, tls=client_context(authority, known))
        for shows in (stranger, None):
            with pytest.raises(OSError, match=r"(?i)certificate|unknown.ca|reset|closed"):
                probe.request(port, code, tls=client_context(authority, shows))


def test_clients_refuse_whom_they_do_not_trust(known_jvm: ClientJvm, enforcing: Broker) -> None:
    """Those servers have made their certificates themselves."""
    scene = Scene(known_jvm, enforcing)
    assert_is_refused(scene)
    scene.close()


def test_new_certificates_are_shown(origin: Origin, test_folder: Path) -> None:
    """To who connects from then on; nobody restarts the server for that."""
    shown = Authority(test_folder, "first").issue("own")
    settings = {
        "tls.test.mode.enable": "false",
        "tls.server.certPath": str(shown.certificate),
        "tls.server.keyPath": str(shown.key),
    }
    server = NameServer(origin.with_properties(settings), test_folder, client_context())

    def certificate() -> str:
        return ssl.get_server_certificate(("127.0.0.1", server.port))

    try:
        server.start()
        assert certificate() == shown.certificate.read_text()
        with probe.connected(server.port, tls=client_context()) as before:
            Authority(test_folder, "second").issue("own")
            poll(lambda: certificate() == shown.certificate.read_text(), "the new certificate")
            probe.send_frame(before, {"code": probe.GET_BROKER_CLUSTER_INFO, "opaque": 1})
            assert probe.read_frame(before)[0]["opaque"] == 1
    finally:
        server.close()


# ------------------------------------------------------------------------- ours with the original's


@pytest.mark.parametrize("official", ["name server", "broker"])
@pytest.mark.parametrize("release", RELEASES)
def test_ours_with_an_official_server(
    release: str,
    official: str,
    origin: Origin,
    engine: Engine,
    certified: dict[str, str],
    known_jvms: dict[str, ClientJvm],
    probing: ssl.SSLContext,
    test_folder: Path,
) -> None:
    """A broker registers with a name server; both check the other's certificate."""
    other = Original(release, engine)
    origins = (other, origin) if official == "name server" else (origin, other)
    names, brokers = (each.with_properties({**ENFORCING, **certified}) for each in origins)
    with started(broker_at(names, brokers, test_folder, probing)) as broker:
        scene = Scene(known_jvms[release], broker)
        assert_serves(scene)
        scene.close()


# -------------------------------------------------------------------------------------- Go clients


@pytest.mark.timeout(400)  # the first time it is built
def test_go_clients(enforcing: Broker, first_jvm: ClientJvm) -> None:
    try:
        program = build(tls=True)
    except GoUnavailable as error:
        pytest.skip(str(error))
    scene = Scene(first_jvm, enforcing, tls=True)
    topic = scene.topic(queues=2)
    common = {"namesrv": scene.namesrv, "topic": topic, "count": 20, "tls": True}
    sent = GoClient(program, op="produce", **common).events()
    assert [event["status"] for event in sent] == [0] * 11
    expected = sorted(f"go-{n}" for n in range(20))
    group = {"group": scene.unique("go"), "expression": "*"}
    received = GoClient(program, op="consume", **common, **group).events()
    assert sorted(event["body"] for event in received) == expected
    consumer = scene.push_consumer(topic, scene.unique("group"))
    consumer.wait_for(20)
    assert sorted(consumer.bodies()) == expected
    scene.close()
