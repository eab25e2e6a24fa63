# SPDX-License-Identifier: Apache-2.0
"""What a dashboard asks a broker with accounts for, by the official library of administrators.

rocketmq-dashboard is in no registry from which these tests install. Its pages are calls of
DefaultMQAdminExt, made with a hook that signs, and these are the same calls: those of version 2.1
at a broker with ACL 2, and of the page about accounts of 1.0 at one with ACL 1. Each is made by an
administrator, an account of little rights, and one with a wrong secret, at the original and ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from compat_tests.account_scenes import ADMIN, ALICE, ROOT, WRITER, guarded
from compat_tests.engine import Engine
from compat_tests.java_client import Admin, ClientJvm, JavaError
from compat_tests.peers import Broker, Original, Ours
from compat_tests.scene import poll

FAR_MS = 9_000_000_000_000


class Call(NamedTuple):
    """A call of a method. BROKER in an argument is the broker's address."""

    method: str
    arguments: tuple[Any, ...] = ()
    is_read: bool = False
    """Whether the result is compared as well."""


def acl(resource: str, actions: Sequence[str], address: str, decision: str = "Allow") -> Any:
    entry = {
        "resource": resource,
        "actions": list(actions),
        "sourceIps": [address],
        "decision": decision,
    }
    return {"subject": "User:alice", "policies": [{"policyType": "Custom", "entries": [entry]}]}


ALICE_USER = {
    "username": ALICE[0],
    "password": ALICE[1],
    "userType": "Normal",
    "userStatus": "enable",
}
ACCOUNTS_2 = (
    Call("createUser", ("BROKER", ALICE_USER)),
    Call("createUser", ("BROKER", ALICE_USER)),
    Call("createUser", ("BROKER", {"username": "bob", "password": "x", "userType": "Normal"})),
    Call("updateUser", ("BROKER", {"username": "bob", "userStatus": "disable"})),
    Call("createAcl", ("BROKER", acl("Topic:Orders", ["Pub", "Sub", "Get"], "127.0.0.1"))),
    Call("createAcl", ("BROKER", acl("Group:readers", ["Sub", "Get"], "127.0.0.0/8"))),
    Call("createAcl", ("BROKER", acl("Topic:Other", ["Pub"], "300.1.1.1"))),
    Call("updateAcl", ("BROKER", acl("Topic:Other", ["Pub"], "127.0.0.1", "Deny"))),
    Call("listUser", ("BROKER", ""), is_read=True),
    Call("listAcl", ("BROKER", "", "Orders"), is_read=True),
    Call("listAcl", ("BROKER", "alice", ""), is_read=True),
    Call("deleteAcl", ("BROKER", "User:alice", "Topic:Other")),
    Call("deleteUser", ("BROKER", "bob")),
)
TOPIC, OTHER = (
    {"topicName": name, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
    for name in ("Orders", "Other")
)
MADE_2 = (
    Call("createAndUpdateTopicConfig", ("BROKER", TOPIC)),
    Call("createAndUpdateTopicConfig", ("BROKER", OTHER)),
    Call("createAndUpdateSubscriptionGroupConfig", ("BROKER", {"groupName": "readers"})),
)
PAGES_2 = (
    Call("examineBrokerClusterInfo"),
    Call("fetchBrokerRuntimeStats", ("BROKER",)),
    Call("getBrokerConfig", ("BROKER",)),
    Call("viewBrokerStatsData", ("BROKER", "TOPIC_PUT_NUMS", "Orders")),
    Call("getAllTopicConfig", ("BROKER", 5_000)),
    Call("getAllSubscriptionGroup", ("BROKER", 5_000)),
    Call("examineTopicStats", ("Orders",)),
    Call("examineTopicStats", ("Other",)),
    Call("examineTopicConfig", ("BROKER", "Orders")),
    Call("examineTopicConfig", ("BROKER", "Other")),
    Call("queryTopicConsumeByWho", ("Orders",)),
    Call("queryMessage", ("Orders", "k", 32, 0, FAR_MS)),
    Call("examineSubscriptionGroupConfig", ("BROKER", "readers")),
    Call("examineConsumerConnectionInfo", ("readers",)),
    Call("examineConsumeStats", ("readers",)),
    Call("examineProducerConnectionInfo", ("writers", "Orders")),
    Call("resetOffsetByTimestamp", ("Orders", "readers", 0, True)),
    Call("createAndUpdateTopicConfig", ("BROKER", OTHER)),
    Call("createAndUpdateSubscriptionGroupConfig", ("BROKER", {"groupName": "others"})),
    Call("listUser", ("BROKER", "")),
    Call("listAcl", ("BROKER", "", "")),
    Call("createUser", ("BROKER", {**ALICE_USER, "username": "eve", "userType": "Super"})),
    Call("updateUser", ("BROKER", {**ALICE_USER, "userType": "Super"})),
    Call("createAcl", ("BROKER", acl("Topic:*", ["All"], "127.0.0.1"))),
    Call("deleteAcl", ("BROKER", "User:alice", "Topic:Nothing")),
    Call("deleteSubscriptionGroup", ("BROKER", "others")),
    Call("deleteTopicInBroker", (["BROKER"], "Other")),
)
OPEN_2 = {
    "fetchBrokerRuntimeStats", "getBrokerConfig", "getAllTopicConfig", "getAllSubscriptionGroup",
    "examineSubscriptionGroupConfig", "createAndUpdateSubscriptionGroupConfig",
}  # fmt: skip
"""What the original 5.4.0 leaves to every account; here it needs a policy, as in 5.5.1."""
ACCOUNT_1 = {"accessKey": "acl-reader", "secretKey": "reader-secret", "admin": False}
PAGES_1 = (
    Call("examineBrokerClusterAclConfig", ("BROKER",), is_read=True),
    Call("createAndUpdatePlainAccessConfig", ("BROKER", {**ACCOUNT_1, "topicPerms": ["T=SUB"]})),
    Call("examineBrokerClusterAclConfig", ("BROKER",), is_read=True),
    Call("updateGlobalWhiteAddrConfig", ("BROKER", "10.99.1.*")),
    Call("deletePlainAccessConfig", ("BROKER", "acl-reader")),
    Call("createAndUpdateTopicConfig", ("BROKER", TOPIC)),
)
OPEN_1 = {
    "examineBrokerClusterAclConfig", "createAndUpdatePlainAccessConfig", "deletePlainAccessConfig",
    "updateGlobalWhiteAddrConfig",
}  # fmt: skip
"""What the original 4.9.7 leaves to every account, which may make itself an administrator by it."""
Said = dict[str, str]


class Desk:
    """Administrators of one broker: those who call, each with an account."""

    def __init__(self, jvm: ClientJvm, broker: Broker, name: str) -> None:
        self._jvm, self._broker, self._name = jvm, broker, name

    def account(self, who: str, key: str, secret: str) -> Admin:
        """Returns a client of the library that signs with these keys."""
        namesrv = self._broker.name_server.address
        name = f"{who}-{self._name}"
        return Admin(self._jvm, name, namesrv, access_key=key, secret_key=secret)

    def says(self, admin: Admin, call: Call) -> str:
        """Returns what comes of a call: "done", its result, or code and text of an error."""
        address = self._broker.address
        try:
            result = admin.call(call.method, *(_placed(each, address) for each in call.arguments))
        except JavaError as error:
            # Behind the remark there may be the place in the original's code, and the broker.
            text = error.text.partition("\n")[0].partition(", org.apache.rocketmq.")[0]
            return f"{error.code} {text.removesuffix(f' BROKER: {address}')}"
        return f"{result}" if call.is_read else "done"

    def all(self, admin: Admin, who: str, calls: Sequence[Call]) -> Iterator[tuple[str, str]]:
        """Yields what comes of each call, by who makes it and which it is in the scene."""
        for number, call in enumerate(calls):
            yield f"{who} {number} {call.method}", self.says(admin, call)


def _placed(value: Any, address: str) -> Any:
    if isinstance(value, list):
        return [_placed(each, address) for each in value]
    return address if value == "BROKER" else value


def compared(original: Mapping[str, str], ours: Mapping[str, str], left_open: set[str]) -> None:
    """What the original leaves to every account is refused here, and all else is the same."""
    differ = {what: (said, ours[what]) for what, said in original.items() if said != ours[what]}
    shown = "\n".join(f"{what}: {one} / {other}" for what, (one, other) in differ.items())
    assert {what.rpartition(" ")[2] for what in differ} == left_open, shown
    for what, (_, said) in differ.items():
        assert what.startswith(("alice", "writer")), shown
        assert "has no permission to access" in said or "Need admin permission for" in said, shown


def known(desk: Desk, admin: Admin, route: Call) -> bool:
    return desk.says(admin, route) == "done"


def test_pages_of_a_dashboard_with_acl_2(
    jvms: dict[str, ClientJvm], engine: Engine, test_folder: Path
) -> None:
    def said(broker: Broker, name: str) -> Said:
        desk = Desk(jvms["5.4.0"], broker, f"{test_folder.name}-{name}")
        root = desk.account("root", *ROOT)
        found = dict(desk.all(root, "accounts", ACCOUNTS_2))
        found.update(desk.all(root, "made", MADE_2))
        for topic in ("Orders", "Other"):
            route = Call("examineTopicRouteInfo", (topic,))
            poll(partial(known, desk, root, route), "the topic is known", 60)
        found.update(desk.all(desk.account("alice", *ALICE), "alice", PAGES_2))
        found.update(desk.all(desk.account("wrong", ALICE[0], "wrong"), "wrong", PAGES_2))
        return {**found, **dict(desk.all(root, "root", PAGES_2))}

    both = []
    for origin in (Original("5.4.0", engine), Ours()):
        with guarded(origin, test_folder / origin.name, version=2) as broker:
            both.append(said(broker, origin.name))
    compared(both[0], both[1], OPEN_2)


def test_the_page_about_accounts_with_acl_1(
    jvms: dict[str, ClientJvm], engine: Engine, test_folder: Path
) -> None:
    def said(broker: Broker, name: str) -> Said:
        desk = Desk(jvms["4.9.7"], broker, f"{test_folder.name}-{name}")
        found = dict(desk.all(desk.account("admin", *ADMIN), "root", PAGES_1))
        found.update(desk.all(desk.account("wrong", WRITER[0], "wrong-secret"), "wrong", PAGES_1))
        return {**found, **dict(desk.all(desk.account("writer", *WRITER), "writer", PAGES_1))}

    both = []
    for origin in (Original("4.9.7", engine), Ours()):
        with guarded(origin, test_folder / origin.name, version=1) as broker:
            both.append(said(broker, origin.name))
    compared(both[0], both[1], OPEN_1)
