# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections between processes: the parts, the servers' commands, and ours for them."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import PASSWORD, apart, certified, with_password
from tests.process.conftest import DEADLINE_S, Run, Standalone
from txrocketmq.client import ConsumeFrom, LitePullConsumer, Producer, new_message
from txrocketmq.remoting.settings.config_file import write_properties

PROGRAM = """
import sys
from twisted.internet.defer import Deferred
from twisted.internet.task import react
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.dispatch import Dispatcher, Registry, serves
from txrocketmq.remoting.errors import RemotingError
from txrocketmq.remoting.protocol import offset
from txrocketmq.remoting.protocol.offset import *
from txrocketmq.remoting.settings.tls import TlsConfig, client_context
from txrocketmq.remoting.transport.client import Connections, as_deferred
from txrocketmq.remoting.host.clock import Clock
from txrocketmq.remoting.transport.server import RemotingServer

def of(name):
    return f"{sys.argv[1]}/{name}.pem"

class Serving:
    @serves(offset.GET_MAX_OFFSET)
    def max_offset(self, request):
        return Reply(GetMaxOffsetResponseHeader(offset=len(request.body)))

def client(trust="", own=""):
    return client_context(trust=("trust", of(trust) if trust else ""), checks=bool(trust),
                          certificate=("own", of(own) if own else ""), key=("own", of(own)))

async def ask(reactor, port, tls):
    connections = Connections(Clock(reactor), tls=tls and (lambda: tls))
    header = GetMaxOffsetRequestHeader(topic="T", queue_id=0)
    try:
        asked = connections.invoke(f"127.0.0.1:{port}", offset.GET_MAX_OFFSET, header,
                                   bytes(3_000_000), timeout_ms=60_000)
        return (await as_deferred(asked)).header.offset
    except RemotingError as error:
        return error
    finally:
        connections.close()

async def main(reactor):
    own = dict(test_mode=False, server_cert_path=of("broker"), server_key_path=of("broker"))
    asks = dict(own, server_client_auth="require", server_auth_client=True,
                server_trust_cert_path=of("client"))
    for what, settings, tls in [
        ("made", {}, client()),
        ("plain", {}, None),
        ("unchecked", own, client()),
        ("checked", own, client(trust="broker")),
        ("misled", own, client(trust="other")),
        ("known", asks, client(trust="broker", own="client")),
        ("nameless", asks, client(trust="broker")),
        ("stranger", asks, client(trust="broker", own="other")),
        ("in-the-clear", dict(server_mode="enforcing"), None),
        ("forbidden", dict(server_mode="disabled"), client()),
    ]:
        clock = Clock(reactor)
        server = RemotingServer(clock, tls=TlsConfig(**settings))
        server.encryption.prepare()
        serving = Dispatcher(Registry(Serving()), clock.now_ms, clock.steady_ms)
        port = server.listen(0, serving, "127.0.0.1")
        print(what, await ask(reactor, port, tls))
        await server.stop()

react(lambda reactor: Deferred.fromCoroutine(main(reactor)))
"""


def test_requests_are_answered_where_each_end_trusts_the_other(tmp_path: Path) -> None:
    for name in ("broker", "client", "other"):
        certified(tmp_path, name)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    answered = ("made", "plain", "unchecked", "checked", "known")
    assert [said.pop(kind) for kind in answered] == ["3000000"] * 5
    assert "no TLS handshake: certificate verify failed" in said.pop("misled")
    assert "was lost: TLS: tlsv13 alert certificate required" in said.pop("nameless")
    assert "was lost: TLS: tlsv1 alert unknown ca" in said.pop("stranger")
    assert "was lost" in said.pop("in-the-clear")
    assert "no TLS handshake: " in said.pop("forbidden")
    assert said == {}


# -------------------------------------------------------------------------------- the servers


class Cluster:
    """`mqnamesrv` and `mqbroker` as processes; `namesrv` is the address of the first."""

    def __init__(self, folder: Path, settings: dict[str, str], environment: dict[str, str]) -> None:
        self.folder = folder
        self._settings = settings
        self._environment = {**os.environ, **environment, "NAMESRV_ADDR": ""}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.namesrv = self.broker = ""

    def start(self) -> Cluster:
        self.namesrv = self._start("namesrv", kvConfigPath=str(self.folder / "kv.json"))
        self.broker = self._start(
            "broker",
            namesrvAddr=self.namesrv,
            brokerIP1="127.0.0.1",
            storePathRootDir=str(self.folder / "store"),
            mappedFileSizeCommitLog="1048576",
        )
        until(lambda: f"registered with name server {self.namesrv}" in self.log("broker"))
        return self

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text("utf-8")

    def stop(self) -> None:
        for process in reversed(list(self.processes.values())):
            process.send_signal(signal.SIGTERM)
            process.wait(DEADLINE_S)

    def _start(self, name: str, **settings: str) -> str:
        file, ready = self.folder / f"{name}.conf", self.folder / f"{name}.ready"
        own = {"listenPort": "0", "bindAddress": "127.0.0.1", **settings}
        file.write_text(write_properties({**own, **self._settings}))
        command = [sys.executable, "-m", f"txrocketmq.{name}", "-c", str(file)]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = process = subprocess.Popen(
                [*command, "--ready-file", str(ready)],
                env=self._environment, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        until(lambda: process.poll() is not None or (ready.exists() and "\n" in ready.read_text()))
        assert process.poll() is None, self.log(name)
        return ready.read_text().strip()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s"
        time.sleep(0.02)  # another process: nothing could tell us


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Starts servers with settings for both their files, and with an environment."""
    made: list[Cluster] = []

    def start(settings: dict[str, str], environment: dict[str, str] | None = None) -> Cluster:
        made.append(Cluster(tmp_path, settings, environment or {}))
        return made[-1].start()

    yield start
    for each in made:
        each.stop()


def send_and_receive(**where: Any) -> None:
    """Lets a client send messages, among them a long one, and another receive them."""
    bodies = [b"one", b"two" * 300_000, b"three"]
    with Producer("p", **where) as producer:
        for body in bodies:
            producer.send(new_message("Secret", body))
    settings: dict[str, Any] = {**where, "consume_from": ConsumeFrom.FIRST_OFFSET}
    got: list[bytes] = []
    with LitePullConsumer("g", **settings) as consumer:
        consumer.subscribe("Secret")
        for message in consumer:  # only the test's time limit ends the wait
            got.append(message.body)
            if len(got) == len(bodies):
                break
    assert sorted(got) == sorted(bodies)


def test_java_options_make_both_servers_encrypt(
    cluster: Callable[..., Cluster], txrocketmq: Run
) -> None:
    it = cluster({}, {"JAVA_OPT": "-server -Xmx1g -Dtls.server.mode=enforcing"})
    send_and_receive(namesrv_addr=it.namesrv, use_tls=True)
    code, out, err = txrocketmq("topics", "list", namesrv=it.namesrv).end()
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert err.startswith("txrocketmq topics list: no name server is reachable")
    assert "it does not encrypt, which tls.server.mode=enforcing demands" in it.log("namesrv")
    assert "it does not encrypt" not in it.log("broker"), "it registers on an encrypted connection"
    for name in ("namesrv", "broker"):
        assert "Traceback" not in it.log(name)


def test_certificates_of_the_files_are_shown_and_demanded(
    cluster: Callable[..., Cluster], txrocketmq: Run, tmp_path: Path
) -> None:
    certificate, key = apart(tmp_path, "servers")
    clients = certified(tmp_path, "client"), with_password(tmp_path, "client")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(Path(certificate).read_bytes() + Path(clients[0]).read_bytes())
    settings = {
        "tls.server.mode": "enforcing", "tls.test.mode.enable": "false",
        "tls.server.certPath": certificate, "tls.server.keyPath": key,
        "tls.server.need.client.auth": "require", "tls.server.authClient": "true",
        "tls.server.trustCertPath": str(trusted),
        "tls.client.authServer": "true", "tls.client.trustCertPath": certificate,
        "tls.client.certPath": clients[0], "tls.client.keyPath": clients[1],
        "tls.client.keyPassword": PASSWORD,
    }  # fmt: skip
    it = cluster(settings)
    assert "everybody who reaches" not in it.log("namesrv") + it.log("broker")
    mutual = {
        "use_tls": True, "tls_trust_cert_path": certificate,
        "tls_cert_path": clients[0], "tls_key_path": clients[0],
    }  # fmt: skip
    send_and_receive(namesrv_addr=it.namesrv, **mutual)
    options = ("--tls-trust-cert", certificate, "--tls-cert", clients[0], "--tls-key", clients[0])
    code, out, err = txrocketmq("topics", "list", *options, namesrv=it.namesrv).end()
    assert (code, err) == (0, "")
    assert "Secret" in out.split()
    for words in (("--tls",), ("--tls-trust-cert", certificate)):
        code, out, err = txrocketmq("topics", "list", *words, namesrv=it.namesrv).end()
        assert (code, out) == (1, "")
        assert "certificate required" in err
    code, _, err = txrocketmq(
        "topics", "list", "--tls-trust-cert", clients[0], namesrv=it.namesrv
    ).end()
    assert code == 1
    assert "certificate verify failed" in err
    assert "peer did not return a certificate" in it.log("namesrv")
    assert PASSWORD not in it.log("namesrv") + it.log("broker")


def test_certificates_are_renewed_under_load_and_nobody_notices(
    cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    """Files are replaced one after the other, as most tools do; between these, they do not fit."""
    own, key = tmp_path / "own.cert", tmp_path / "own.key"
    trusted = tmp_path / "trusted.pem"
    names = ("first", "second", "third")
    pairs = {name: [Path(each).read_bytes() for each in apart(tmp_path, name)] for name in names}
    trusted.write_bytes(b"".join(certificate for certificate, _ in pairs.values()))

    def renew(path: Path, data: bytes) -> None:
        (tmp_path / "new").write_bytes(data)
        (tmp_path / "new").replace(path)

    for path, data in zip((own, key), pairs["first"], strict=True):
        renew(path, data)
    it = cluster(
        {
            "tls.server.mode": "enforcing", "tls.test.mode.enable": "false",
            "tls.server.certPath": str(own), "tls.server.keyPath": str(key),
            "tls.client.authServer": "true", "tls.client.trustCertPath": str(trusted),
        }
    )  # fmt: skip

    def shown() -> set[str]:
        """What servers show new connections, which are checked by none of ours."""
        found = set()
        for address in (it.namesrv, it.broker):
            host, _, port = address.rpartition(":")
            found.add(ssl.get_server_certificate((host, int(port)), timeout=DEADLINE_S))
        return found

    def is_shown(name: str) -> bool:
        return {each.strip() for each in shown()} == {pairs[name][0].decode().strip()}

    where: dict[str, Any] = {
        "namesrv_addr": it.namesrv, "use_tls": True, "tls_trust_cert_path": str(trusted),
    }  # fmt: skip
    with Producer("load", **where) as producer:
        sent = 0
        for before, name in pairwise(names):
            for path, data in zip((own, key), pairs[name], strict=True):
                assert is_shown(before)
                renew(path, data)
                for number in range(50):
                    producer.send(new_message("Load", b"%d" % number))
                    sent += 1
                with Producer("newcomer", **where) as newcomer:
                    newcomer.send(new_message("Load", b"from a new connection"))
            assert is_shown(name)
        assert sent == 200
    for server in ("namesrv", "broker"):
        log = it.log(server)
        assert "the certificates have changed and cannot be used, those before stay" in log
        assert "Traceback" not in log
        assert "no TLS handshake" not in log


@pytest.mark.parametrize("server", ["namesrv", "broker", "cli standalone"])
def test_certificates_that_are_not_there_end_the_start_with_one_sentence(
    server: str, tmp_path: Path
) -> None:
    file = tmp_path / "server.conf"
    settings = {
        "listenPort": "0", "tls.test.mode.enable": "false",
        "tls.server.certPath": "/nowhere.pem", "tls.server.keyPath": "/nowhere.key",
    }  # fmt: skip
    if server != "namesrv":
        settings |= {"storePathRootDir": str(tmp_path / "store"), "brokerIP1": "127.0.0.1"}
    file.write_text(write_properties(settings))
    module, *words = server.split()
    options = ["--namesrv-port", "0"] if words else []
    done = subprocess.run(
        [sys.executable, "-m", f"txrocketmq.{module}", *words, "-c", str(file), *options],
        env={**os.environ, "NAMESRV_ADDR": "127.0.0.1:1"},
        capture_output=True, text=True, check=False, timeout=DEADLINE_S,
    )  # fmt: skip
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "tls.server.certPath is /nowhere.pem, which cannot be read: No such file" in line
    assert "Traceback" not in done.stdout
    assert not (tmp_path / "store").exists()


def test_what_makes_certificates_is_loaded_for_the_first_client_that_encrypts(
    cluster: Callable[..., Cluster], txrocketmq: Run
) -> None:
    """It takes some 6 MiB. Python's own ssl comes with Twisted."""
    it = cluster({})
    assert txrocketmq("topics", "list", namesrv=it.namesrv).end()[0] == 0
    assert [loads_cryptography(it, name) for name in ("namesrv", "broker")] == [False, False]
    assert txrocketmq("topics", "list", "--tls", namesrv=it.namesrv).end()[0] == 0
    assert [loads_cryptography(it, name) for name in ("namesrv", "broker")] == [True, False]


def loads_cryptography(it: Cluster, name: str) -> bool:
    maps = Path(f"/proc/{it.processes[name].pid}/maps").read_text("utf-8")
    assert "_ssl." in maps
    return "cryptography" in maps


# ------------------------------------------------------------------------------- standalone


def test_commands_encrypt_on_request(
    txrocketmq: Run, standalone: Callable[..., Standalone], tmp_path: Path
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("tls.server.mode=enforcing\n")
    it = standalone("-c", str(file))
    assert txrocketmq("send", "T", "one", "--tls", namesrv=it.namesrv).end()[0] == 0
    code, out, err = txrocketmq("topics", "list", "--tls", namesrv=it.namesrv).end()
    assert (code, err) == (0, "")
    assert "T" in out.split()
    flags = ("--from", "first", "--count", "1")
    code, out, _ = txrocketmq("tail", "T", *flags, "--tls", namesrv=it.namesrv).end()
    assert (code, out.split()[-1]) == (0, "one")
    for words in ((), ("--tls-trust-cert", certified(tmp_path, "other"))):
        code, out, err = txrocketmq("topics", "list", *words, namesrv=it.namesrv).end()
        assert (code, out) == (1, "")
        assert len(err.splitlines()) == 1
    it.command.signal(signal.SIGTERM)
    assert it.command.end()[0] == 0
