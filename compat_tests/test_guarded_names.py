# SPDX-License-Identifier: Apache-2.0
"""Our name server with accounts: official brokers register, and strangers change nothing.

The original's name server checks nobody, so there is nothing to compare with. Brokers of 5.x sign
what they send to name servers, and those of 4.9 are let in by their addresses.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from compat_tests import probe
from compat_tests.account_scenes import ACL_2, ALICE, ROOT, create, send
from compat_tests.engine import Engine
from compat_tests.java_client import Admin, ClientJvm, JavaError, Producer, message
from compat_tests.peers import Broker, NameServer, Original, Ours, running
from compat_tests.scene import poll
from compat_tests.signed import Ask, answer_to, error_of_send, signature

ELSEWHERE = "127.0.0.2"
"""An address that is in no list."""
GUARD = {
    key: ACL_2[key]
    for key in ("authenticationEnabled", "initAuthenticationUser", "authorizationEnabled")
} | {"innerClientAuthenticationCredentials": ACL_2["innerClientAuthenticationCredentials"]}
"""With what the name server, and a broker of 5.x, are started."""
USERS = {
    "userTable": {
        "alice": {
            "username": ALICE[0],
            "password": ALICE[1],
            "userType": "Normal",
            "userStatus": "enable",
        }
    }
}
ACLS = {
    "aclTable": {
        "alice": {
            "subject": "User:alice",
            "policies": [
                {
                    "policyType": "Custom",
                    "entries": [
                        {"resource": "Topic:Orders", "actions": ["Pub", "Get"], "decision": "Allow"}
                    ],
                }
            ],
        }
    }
}
"""The files of accounts, as a broker writes them; they are copied to the name server."""
FORGED = {
    "brokerName": "broker-g", "brokerAddr": "127.0.0.9:10911", "clusterName": "DefaultCluster",
    "haServerAddr": "127.0.0.9:10912", "brokerId": "0", "compressed": "false", "bodyCrc32": "0",
}  # fmt: skip
"""The registration of a broker that would take the place of the real one."""


class GuardedNames(NameServer):
    """A name server with accounts, which is asked as a Super user."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        super().__init__(Ours(), folder)
        self.settings.update(settings)
        for name, content in (("users.json", USERS), ("acls.json", ACLS)):
            (folder / name).write_text(json.dumps(content))
            (folder / name).chmod(0o600)

    def cluster_info(self) -> bytes:
        fields = {"AccessKey": ROOT[0]}
        fields["Signature"] = signature(fields, b"", ROOT[1])
        header, body = probe.request(self.port, probe.GET_BROKER_CLUSTER_INFO, fields)
        assert header["code"] == 0, header
        return body

    def masters(self) -> list[str]:
        """Returns the addresses of all masters. Numbers as names have no quotes there."""
        return re.findall(r'"?0"?:"([0-9.:]+)"', self.cluster_info().decode())


class Registering(Broker):
    """A broker that is there when the name server has it, or has refused it."""

    def _registered(self) -> bool:
        if "refused REGISTER_BROKER" in self.name_server.log_tail(200):
            return True
        return self.address.encode() in self.name_server.cluster_info()


@contextlib.contextmanager
def broker_at(
    engine: Engine, release: str, folder: Path, names: Mapping[str, str], own: Mapping[str, str]
) -> Iterator[tuple[Broker, GuardedNames]]:
    """An official broker at our name server; `names` and `own` are settings of both."""
    name_server = GuardedNames(folder / "namesrv", {**GUARD, **names})
    broker = Registering(Original(release, engine), folder / "broker", name_server, "broker-g", own)
    with running(name_server, broker):
        yield broker, name_server


def dangerous(broker: Broker) -> list[Ask]:
    """What would take over a route, remove it, or change what the name server keeps."""
    own = {"brokerName": broker.name, "clusterName": "DefaultCluster", "brokerId": "0"}
    value = {"namespace": "ORDER_TOPIC_CONFIG", "key": "Orders"}
    return [
        Ask("a route is hijacked", 103, fields=FORGED),
        Ask("a broker is removed", 104, fields={**own, "brokerAddr": broker.address}),
        Ask("a broker is made read-only", 205, fields={"brokerName": broker.name}),
        Ask("a topic is removed", 216, fields={"topic": "TBW102"}),
        Ask("a value is written", 100, fields={**value, "value": "broker-g:4"}),
        Ask("a value is deleted", 102, fields=value),
        Ask("a setting is changed", 318, body=b"orderMessageEnable=true\n"),
        Ask("settings are read", 319),
    ]


REFUSALS = {
    ("", ""): "username cannot be null.",
    ("carol", "x"): "User:carol is not found.",
    (ROOT[0], "wrong"): "check signature failed.",
    ALICE: "User:alice has no permission to access Cluster:NameServer from {host}, no matched"
    " policies.",
}
"""What those hear who may not."""


def refused(names: GuardedNames, broker: Broker, host: str) -> None:
    """Has everybody who may not try everything, and looks whether it has changed something."""
    for (key, secret), remark in REFUSALS.items():
        for ask in dangerous(broker):
            said = answer_to(names, ask._replace(key=key, secret=secret), host)
            assert (said.code, said.remark) == (16, remark.format(host=host)), (ask.what, key)
    assert names.masters() == [broker.address]
    value = Ask("", 101, *ROOT, {"namespace": "ORDER_TOPIC_CONFIG", "key": "Orders"})
    assert answer_to(names, value).code == 22, "nothing was written"


def test_a_broker_that_signs(jvms: dict[str, ClientJvm], engine: Engine, test_folder: Path) -> None:
    """Of 5.4.0: it registers with its own account, and clients find it with theirs."""
    with broker_at(engine, "5.4.0", test_folder, {}, GUARD | ACL_2) as (broker, names):
        assert names.masters() == [broker.address]
        refused(names, broker, "127.0.0.1")
        for topic in ("Orders", "Other"):
            assert answer_to(broker, Ask("a topic", 17, *ROOT, create(topic))).code == 0
        for ask in (
            Ask("alice", 3001, *ROOT, {"username": "alice"}, USERS["userTable"]["alice"]),
            Ask("policies", 3006, *ROOT, {"subject": "User:alice"}, ACLS["aclTable"]["alice"]),
        ):
            assert answer_to(broker, ask).code == 0
        jvm, name = jvms["5.4.0"], test_folder.name
        root = Admin(jvm, f"root-{name}", names.address, access_key=ROOT[0], secret_key=ROOT[1])
        for topic in ("Orders", "Other"):
            poll(lambda topic=topic: _has_route(root, topic), "the broker has told of it", 60)  # type: ignore[misc]
        keys = {"access_key": ALICE[0], "secret_key": ALICE[1]}
        alice = Producer(jvm, f"alice-{name}", names.address, group="writers", **keys)
        assert alice.send([message("Orders", "m")])
        assert "No route info of this topic: Other" in error_of_send(alice, "Other")
        stranger = Producer(jvm, f"stranger-{name}", names.address, group="writers")
        assert "No route info of this topic: Orders" in error_of_send(stranger, "Orders")
        for each in (root, alice, stranger):
            each.stop()


def _has_route(admin: Admin, topic: str) -> bool:
    try:
        return bool(admin.topic_route(topic))
    except JavaError:
        return False


def test_a_broker_of_another_account(engine: Engine, test_folder: Path) -> None:
    """Of 5.4.0: without an account of the name server it does not get into any route."""
    own = ACL_2 | {
        "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"other-secret"}'
    }
    with broker_at(engine, "5.4.0", test_folder, {}, own) as (broker, names):
        assert "refused REGISTER_BROKER of the account inner" in names.log_tail(200)
        assert names.masters() == []
        assert answer_to(broker, Ask("a send", 310, *ROOT, send("Orders"), b"m")).code == 0


def test_a_broker_that_cannot_sign(engine: Engine, test_folder: Path) -> None:
    """Of 4.9.7: it is let in by its address, by which nobody can do more than brokers do."""
    listed = {"brokersWithoutAccount": "127.0.0.1"}
    with broker_at(engine, "4.9.7", test_folder / "listed", listed, {}) as (broker, names):
        assert names.masters() == [broker.address]
        refused(names, broker, ELSEWHERE)
        for ask in dangerous(broker)[2:]:
            assert answer_to(names, ask).code == 16, ask.what
    with broker_at(engine, "4.9.7", test_folder / "other", {}, {}) as (broker, names):
        assert "refused REGISTER_BROKER" in names.log_tail(200)
        assert names.masters() == []
