# SPDX-License-Identifier: Apache-2.0
"""Brokers with accounts, and the requests by which two of them are compared.

`DIFFERS` has the requests whose remarks may differ, with the reason.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compat_tests import probe
from compat_tests.peers import Broker, NameServer, Origin, Ours, running
from compat_tests.scene import poll
from compat_tests.signed import Ask, answer_to

ROOT, ALICE, BOB = ("root", "root-secret"), ("alice", "alice-secret"), ("bob", "bob-secret")
PROVIDER = "org.apache.rocketmq.auth"
ACL_2 = {
    "authenticationEnabled": "true",
    "authenticationProvider": f"{PROVIDER}.authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": (
        f"{PROVIDER}.authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "initAuthenticationUser": '{"username":"root","password":"root-secret"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"inner-secret"}',
    "authorizationEnabled": "true",
    "authorizationProvider": f"{PROVIDER}.authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": (
        f"{PROVIDER}.authorization.provider.LocalAuthorizationMetadataProvider"
    ),
}
PROXY_2 = {
    "authenticationEnabled": True,
    "authenticationProvider": ACL_2["authenticationProvider"],
    "authenticationMetadataProvider": (
        "org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider"
    ),
    # Without it, the original's proxy signs nothing of what it asks brokers for.
    "enableAclRpcHookForClusterMode": True,
    "innerClientAuthenticationCredentials": '{"accessKey":"root","secretKey":"root-secret"}',
    "authorizationEnabled": True,
    "authorizationProvider": ACL_2["authorizationProvider"],
    "authorizationMetadataProvider": (
        "org.apache.rocketmq.proxy.auth.ProxyAuthorizationMetadataProvider"
    ),
}
"""The settings of a proxy that asks brokers with ACL 2 for accounts."""
ADMIN, WRITER = ("acl-admin", "admin-secret"), ("acl-writer", "writer-secret")
PLAIN_ACL = """
globalWhiteRemoteAddresses:
- 10.99.0.*
accounts:
- accessKey: acl-admin
  secretKey: admin-secret
  admin: true
- accessKey: acl-writer
  secretKey: writer-secret
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - Orders=PUB
  - Both=PUB|SUB
  groupPerms:
  - closed=DENY
"""
NOW = "1700000000000"


class Guarded(Broker):
    """A broker that refuses the question whether it is there."""

    def _registered(self) -> bool:
        return self.address.encode() in self.name_server.cluster_info()


@contextlib.contextmanager
def guarded(origin: Origin, folder: Path, *, version: int) -> Iterator[Broker]:
    """A running broker with accounts of ACL 1 or ACL 2."""
    names = NameServer(origin, folder / "namesrv")
    home = folder / "broker"
    if version == 1:
        settings = {"aclEnable": "true", "rocketmqHome": str(home)}
        (home / "conf").mkdir(parents=True)
        (home / "conf" / "plain_acl.yml").write_text(PLAIN_ACL)
    else:
        settings = {**ACL_2, "authConfigPath": str(home / "auth")}
        if isinstance(origin, Ours):
            del settings["authConfigPath"]
    broker = Guarded(origin, home, names, "broker-g", settings)
    with running(names, broker):
        yield broker


def send(topic: str, group: str = "writers") -> dict[str, str]:
    """The fields of a send of version 2."""
    return {
        "a": group, "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": NOW, "h": "0",
        "i": "", "j": "0", "k": "false", "m": "false",
    }  # fmt: skip


def pull(topic: str, group: str) -> dict[str, str]:
    return {
        "consumerGroup": group, "topic": topic, "queueId": "0", "queueOffset": "0",
        "maxMsgNums": "1", "sysFlag": "0", "commitOffset": "0", "suspendTimeoutMillis": "0",
        "subVersion": "0", "subscription": "*", "expressionType": "TAG",
    }  # fmt: skip


def heartbeat(*consumers: tuple[str, str]) -> dict[str, Any]:
    sets = [
        {
            "groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
            "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": False,
            "subscriptionDataSet": [
                {
                    "topic": topic, "subString": "*", "subVersion": 1, "tagsSet": [],
                    "codeSet": [], "classFilterMode": False, "expressionType": "TAG",
                }
            ],
        }
        for group, topic in consumers
    ]  # fmt: skip
    producers = [{"groupName": "writers"}]
    return {"clientID": "c@1", "producerDataSet": producers, "consumerDataSet": sets}


def user(name: str, password: str | None = None, kind: str | None = "Normal", **more: str) -> Any:
    given = {"username": name, "password": password, "userType": kind, **more}
    return {key: value for key, value in given.items() if value is not None}


def acl(name: str, *entries: tuple[str, Sequence[str], str], **more: Any) -> Any:
    made = [
        {"resource": resource, "actions": list(actions), "decision": decision, **more}
        for resource, actions, decision in entries
    ]
    return {"subject": f"User:{name}", "policies": [{"policyType": "Custom", "entries": made}]}


def create(topic: str) -> dict[str, str]:
    return {
        "topic": topic, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1",
        "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
    }  # fmt: skip


ACCOUNTS_2 = (
    Ask("alice is created", 3001, *ROOT, {"username": "alice"}, user(*ALICE)),
    Ask("bob is created", 3001, *ROOT, {"username": "bob"}, user(*BOB)),
    Ask("once more", 3001, *ROOT, {"username": "bob"}, user(*BOB)),
    Ask("without a name", 3001, *ROOT, {}, user("x", "y")),
    Ask("without a password", 3001, *ROOT, {"username": "x"}, user("x")),
    Ask("bob is disabled", 3002, *ROOT, {"username": "bob"}, {"userStatus": "disable"}),
    Ask("nobody is changed", 3002, *ROOT, {"username": "none"}, user("none", "x")),
    Ask("nobody is deleted", 3003, *ROOT, {"username": "none"}),
    Ask("one is read", 3004, *ROOT, {"username": "alice"}, is_read=True),
    Ask("nobody is read", 3004, *ROOT, {"username": "none"}, is_read=True),
    Ask("read without a name", 3004, *ROOT),
    Ask("some are listed", 3005, *ROOT, {"filter": "li"}, is_read=True),
    Ask("none is listed", 3005, *ROOT, {"filter": "zzz"}, is_read=True),
    Ask(
        "policies of alice", 3006, *ROOT, {"subject": "User:alice"},
        acl(
            "alice", ("Topic:Orders", ["Pub"], "Allow"), ("Topic:Or*", ["Sub"], "Allow"),
            ("Topic:Orders-closed", ["All"], "Deny"), ("Group:readers", ["Sub"], "Allow"),
        ),
    ),
    Ask(
        "one for another address", 3007, *ROOT, {"subject": "User:alice"},
        acl("alice", ("Topic:Far", ["Pub"], "Allow"), sourceIps=["10.0.0.0/8"]),
    ),
    Ask(
        "policies of nobody", 3006, *ROOT, {"subject": "User:none"},
        acl("none", ("Topic:T", ["Pub"], "Allow")),
    ),
    *(
        Ask(f"a wrong policy: {what}", 3006, *ROOT, {"subject": "User:alice"}, body)
        for what, body in (
            ("resource", acl("alice", ("Nothing:T", ["Pub"], "Allow"))),
            ("action", acl("alice", ("Topic:T", ["Read"], "Allow"))),
            ("any action", acl("alice", ("Topic:T", ["Any"], "Allow"))),
            ("decision", acl("alice", ("Topic:T", ["Pub"], "Perhaps"))),
            ("address", acl("alice", ("Topic:T", ["Pub"], "Allow"), sourceIps=["here"])),
        )
    ),
    Ask("policies are read", 3009, *ROOT, {"subject": "User:alice"}, is_read=True),
    Ask("none are read", 3009, *ROOT, {"subject": "User:bob"}, is_read=True),
    Ask("policies are listed", 3010, *ROOT, {"subjectFilter": "ali"}, is_read=True),
    Ask("a policy of nobody is deleted", 3008, *ROOT, {"subject": "User:bob"}),
)  # fmt: skip
REQUESTS_2 = (
    Ask("nobody sends", 310, fields=send("Orders"), body=b"m"),
    Ask("unknown", 310, "carol", "x", send("Orders"), b"m"),
    Ask("disabled", 310, *BOB, send("Orders"), b"m"),
    Ask("a wrong secret", 310, "alice", "wrong", send("Orders"), b"m"),
    Ask("a changed signature", 310, *ALICE, send("Orders"), b"m", spoils=True),
    Ask("no signature", 310, "alice", "", send("Orders"), b"m"),
    Ask("a code that is none", 9999, *ROOT),
    Ask("alice creates", 17, *ALICE, create("Orders")),
    Ask("root creates", 17, *ROOT, create("Orders")),
    Ask("root creates another", 17, *ROOT, create("Orders-closed")),
    Ask("alice sends", 310, *ALICE, send("Orders"), b"m"),
    Ask("alice sends elsewhere", 310, *ALICE, send("Other"), b"m"),
    Ask("alice sends to what is denied", 310, *ALICE, send("Orders-closed"), b"m"),
    Ask("alice sends from another address", 310, *ALICE, send("Far"), b"m"),
    Ask("alice pulls", 11, *ALICE, pull("Orders", "readers")),
    Ask("alice pulls for another group", 11, *ALICE, pull("Orders", "others")),
    Ask("alice pulls another topic", 11, *ALICE, pull("Other", "readers")),
    Ask("a heartbeat", 34, *ALICE, {}, heartbeat(("readers", "Orders"))),
    Ask("a heartbeat of another group", 34, *ALICE, {}, heartbeat(("others", "Orders"))),
    Ask("a heartbeat of producers", 34, *ALICE, {}, heartbeat()),
    Ask("members", 38, *ALICE, {"consumerGroup": "others"}),
    Ask(
        "an offset", 15, *ALICE,
        {"consumerGroup": "readers", "topic": "Other", "queueId": "0", "commitOffset": "0"},
    ),
    Ask("alice deletes", 215, *ALICE, {"topic": "Orders"}),
    Ask("alice creates accounts", 3001, *ALICE, {"username": "x"}, user("x", "y")),
    Ask("alice reads accounts", 3005, *ALICE),
    Ask("statistics", 315, *ALICE, {"statsName": "x", "statsKey": "y"}),
    Ask("the account is removed", 3003, *ROOT, {"username": "alice"}),
    Ask("and sends", 310, *ALICE, send("Orders"), b"m"),
)  # fmt: skip
REQUESTS_1 = (
    Ask("nobody sends", 310, fields=send("Orders"), body=b"m"),
    Ask("unknown", 310, "acl-nobody", "x", send("Orders"), b"m"),
    Ask("a wrong secret", 310, "acl-writer", "wrong", send("Orders"), b"m"),
    Ask("a changed signature", 310, *WRITER, send("Orders"), b"m", spoils=True),
    Ask("the writer creates", 17, *WRITER, create("Orders")),
    Ask("the admin creates", 17, *ADMIN, create("Orders")),
    Ask("the writer sends", 310, *WRITER, send("Orders"), b"m"),
    Ask("the writer sends elsewhere", 310, *WRITER, send("Other"), b"m"),
    Ask("a trace", 310, *WRITER, send("RMQ_SYS_TRACE_TOPIC"), b"m"),
    Ask("the writer pulls", 11, *WRITER, pull("Orders", "readers")),
    Ask("a heartbeat", 34, *WRITER, {}, heartbeat(("readers", "Both"))),
    Ask("a heartbeat of a closed group", 34, *WRITER, {}, heartbeat(("closed", "Both"))),
    Ask("members of a closed group", 38, *WRITER, {"consumerGroup": "closed"}),
    Ask("the writer deletes", 215, *WRITER, {"topic": "Orders"}),
    Ask("accounts are read", 54, *ADMIN, is_read=True),
    Ask(
        "a short secret", 50, *ADMIN,
        {"accessKey": "acl-short", "secretKey": "12", "admin": "false"},
    ),
    Ask(
        "an account is created", 50, *ADMIN,
        {
            "accessKey": "acl-reader", "secretKey": "reader-secret", "admin": "false",
            "defaultTopicPerm": "SUB", "topicPerms": "Orders=DENY",
        },
    ),
    Ask("it sends", 310, "acl-reader", "reader-secret", send("Other"), b"m"),
    Ask("an account is deleted", 51, *ADMIN, {"accessKey": "acl-reader"}),
    Ask("nobody is deleted", 51, *ADMIN, {"accessKey": "acl-nobody"}),
)  # fmt: skip
DIFFERS = {
    "a short secret": "the original's remark repeats the secret",
    "nobody is deleted": "ours says why",
}
"""Whose remarks differ, and why; their codes are compared."""


@contextlib.contextmanager
def alice_at(origin: Origin, folder: Path) -> Iterator[Broker]:
    """A broker with the accounts of the scenes, and two topics."""
    with guarded(origin, folder, version=2) as broker:
        for ask in ACCOUNTS_2:
            answer_to(broker, ask)
        for topic in ("Orders", "Other"):
            answer_to(broker, Ask("a topic", 17, *ROOT, create(topic)))

        def are_known() -> bool:
            known = probe.request(broker.name_server.port, 206)[1]
            return b"Orders" in known and b"Other" in known

        # The original tells of each by itself, in any order, and of all of them each half minute.
        poll(are_known, "both topics are known", 60)
        yield broker
