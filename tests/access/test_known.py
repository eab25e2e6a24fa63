# SPDX-License-Identifier: Apache-2.0
"""What is known of requests, judged by authorities that know nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.access.acl.test_plain_acl import acl_of, files_of
from tests.access.auth.test_authority import Scene, remark
from tests.counted import work_of
from tests.fakes import FakePeer
from txrocketmq.access.audit import Audit
from txrocketmq.access.auth.authority import UserAuthority
from txrocketmq.access.auth.settings import AuthConfig
from txrocketmq.access.authority import Authority
from txrocketmq.access.guard import AccessGuard
from txrocketmq.access.known import MOST_KNOWN, MOST_WAYS, KnownRequests, host_of
from txrocketmq.access.request_needs import NEEDS
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame.signer import Signer
from txrocketmq.remoting.protocol.body.auth import UserInfo

HOST = "127.0.0.1"
RNG = Random(1)
SIGNERS = {key: Signer(key) for key in ("alice-key", "other-key", "root-key")}


def signed(
    code: int, body: bytes = b"", *, user: str = "alice", key: str = "alice-key", **fields: Any
) -> RemotingCommand:
    given = {"AccessKey": user, **fields}
    given["Signature"] = SIGNERS[key].signature(given, body)
    return RemotingCommand(code, given, body)


def spoiled(command: RemotingCommand, how: str) -> RemotingCommand:
    """Changes a request on its way."""
    fields = dict(command.ext_fields or {})
    if how == "body":
        command.body += b"x"
    elif how == "signature":
        fields["Signature"] = "x" + fields["Signature"][1:]
    elif how == "half a pair":
        fields["Signature"] = "\ud800"
    elif how == "no signature":
        del fields["Signature"]
    elif how == "more":
        fields["topic" if "b" in fields else "b"] = "U"
    elif how == "order":
        fields = dict(reversed(fields.items()))
    elif how == "no fields":
        command.ext_fields = None
        return command
    command.ext_fields = fields
    return command


REQUESTS = st.builds(
    lambda code, body, user, key, fields, how: spoiled(
        signed(code, body, user=user, key=key, **fields), how
    ),
    st.sampled_from([10, 310, 11, 15, 12, 34, 25, 3001, 17, 9_999]),
    st.sampled_from([b"", b"body"]),
    st.sampled_from(["alice", "alice", "root", "nobody"]),
    st.sampled_from(["alice-key", "alice-key", "root-key", "other-key"]),
    st.dictionaries(
        st.sampled_from(["b", "topic", "consumerGroup", "g", "_UNIQUE_KEY_QUERY"]),
        st.sampled_from(["T", "U", "%RETRY%g"]),
    ),
    st.sampled_from(
        [
            *[""] * 3,
            "body",
            "signature",
            "half a pair",
            "no signature",
            "more",
            "order",
            "no fields",
        ]
    ),
)
ALIKE = st.builds(
    lambda code, asked: [
        signed(code, user=user, key=f"{user}-key", topic=topic, consumerGroup="g")
        for user, topic in asked
    ],
    st.sampled_from([10, 11, 15, 12]),
    st.lists(st.tuples(st.sampled_from(["alice", "root"]), st.sampled_from(["T", "U"]))),
)
"""Requests of clients of one kind, which differ in who asks, and for what."""
PORTS = st.sampled_from([1, 2, 3])
CHANGES = st.sampled_from(["allow", "deny", "password", "back", "disable", "enable"])


def change(scene: Scene, how: str) -> None:
    if how in ("allow", "deny"):
        scene.allow(
            ("Topic:T", "All", how.capitalize()), ("Group:g", "Sub", "Allow"), ips=("127.0.0.0/8",)
        )
    elif how in ("password", "back"):
        name = "other-key" if how == "password" else "alice-key"
        scene.accounts.update_user("alice", UserInfo(password=name))
    else:
        scene.accounts.update_user("alice", UserInfo(user_status=how))


def outcomes(
    authority: Authority, peer: Any, commands: Sequence[RemotingCommand]
) -> list[str | None]:
    """Asks the guard of an authority as a dispatcher does."""
    guard = AccessGuard(authority, Audit(lambda _: None, lambda _: None, lambda: 0))
    found: list[str | None] = []
    while (at := len(found)) < len(commands):
        alone = guard.knows(peer, commands[at])
        passed = guard.passed(peer, commands, at, len(commands))
        assert alone is (passed > at)
        if passed > at:
            found += [None] * (passed - at)
            continue
        try:
            guard(peer, commands[at])
        except ResponseError as error:
            found.append(error.remark)
        else:
            found.append(None)
    return found


@given(
    st.booleans(),
    st.lists(
        st.one_of(st.tuples(PORTS, st.one_of(st.lists(REQUESTS, max_size=6), ALIKE)), CHANGES),
        max_size=12,
    ),
)
def test_whatever_is_known_the_same_is_refused(authorizes: bool, steps: list[Any]) -> None:
    scene = Scene(authorization_enabled=authorizes)
    change(scene, "allow")
    config = AuthConfig(authentication_enabled=True, authorization_enabled=authorizes)
    for step in steps:
        if isinstance(step, str):
            change(scene, step)
            continue
        port, commands = step
        twice = [*commands, *commands]
        expected = [
            remark(UserAuthority(scene.accounts, config, "C").refusal(command, HOST))
            for command in twice
        ]
        assert outcomes(scene.authority, FakePeer(port), twice) == expected


YML = """
accounts:
- {accessKey: alice, secretKey: alice-key, topicPerms: [T=PUB|SUB], groupPerms: [g=SUB]}
"""


def test_of_accounts_of_4_too() -> None:
    yml = YML.replace("alice,", "alice-1,")
    acl = acl_of(yml)

    def ask(*commands: RemotingCommand) -> list[str | None]:
        return [None if each is None else "no" for each in outcomes(acl, FakePeer(), commands)]

    send = [signed(310, b"m", user="alice-1", b=topic) for topic in ("T", "T", "U", "T")]
    assert ask(*send, spoiled(signed(310, user="alice-1", b="T"), "body")) == [
        None, None, "no", None, "no",
    ]  # fmt: skip
    assert acl.known.passed(FakePeer(), send, 0, 2) == 2
    acl.hold(files_of(yml.replace("T=PUB|SUB", "T=SUB")))
    assert ask(*send) == ["no"] * 4
    acl.hold(files_of(yml.replace("alice-key", "other-key")))
    assert ask(*send) == ["no"] * 4
    acl.hold(files_of(yml.replace("accessKey", "admin: true, accessKey")))
    change = signed(51, user="alice-1", accessKey="nobody-1")
    assert ask(change, change) == [None, None]
    assert acl.known.passed(FakePeer(), [change], 0, 1) == 0, "it changes accounts"


@pytest.mark.parametrize("code", [code for code, needs in NEEDS.items() if needs.is_for_operators])
def test_what_may_change_accounts_is_never_known(code: int) -> None:
    scene = Scene(authorization_enabled=True)
    command = signed(code, user="root", key="root-key", username="x", topic="T")
    assert scene.authority.refusal(command, HOST) is None
    assert scene.authority.known.passed(FakePeer(), [command], 0, 1) == 0


@pytest.mark.parametrize("name", ["topic", "Rignature"])
def test_only_with_the_fields_that_are_signed(name: str) -> None:
    scene = Scene(authorization_enabled=True)
    scene.allow(("Topic:T", "Pub", "Allow"))
    asked = signed(310, b="T")
    assert outcomes(scene.authority, FakePeer(), [asked, asked]) == [None, None]
    fields = dict(asked.ext_fields or {})
    more = {**fields, name: "T"}
    if name != "topic":
        del more["Signature"]
    changed = [asked, RemotingCommand(310, more), asked]
    assert outcomes(scene.authority, FakePeer(), changed) == [None, "check signature failed.", None]


@pytest.mark.parametrize("code", [10, 310, 11, 15, 105, 33])
def test_what_an_account_may_is_not_widened_by_one_that_may_all(code: int) -> None:
    """Requests of a Super user come with the same names from the same address."""
    names = {310: "b"}.get(code, "topic")
    scene = Scene(authorization_enabled=True)
    scene.allow(("Topic:T", "All", "Allow"), ("Group:g", "All", "Allow"))

    def request(topic: str, user: str = "alice") -> RemotingCommand:
        fields: dict[str, Any] = {names: topic, "consumerGroup": "g", "offset": "1"}
        return signed(code, user=user, key=f"{user}-key", **fields)

    asked = [request("U", "root"), request("T"), request("U"), request("T"), request("U", "root")]
    *allowed, refused = (outcomes(scene.authority, FakePeer(), asked)[at] for at in (0, 1, 3, 4, 2))
    assert allowed == [None] * 4
    assert "no matched policies" in (refused or "")


def test_only_with_the_same_code() -> None:
    """A signature does not cover the code, so fields may be sent again as another request."""
    scene = Scene(authorization_enabled=True)
    scene.allow(("Topic:T", "Get", "Allow"))
    view = signed(33, topic="T", offset="1")
    delete = RemotingCommand(215, view.ext_fields)
    found = outcomes(scene.authority, FakePeer(), [view, view, delete, view])
    assert found[:2] == [None, None]
    assert "no matched policies" in (found[2] or "")
    assert found[3] is None


def test_only_from_the_same_address() -> None:
    known = KnownRequests(lambda _: ("b",))
    command = signed(310, b="T")
    known.learn(command, "127.0.0.1", SIGNERS["alice-key"])
    assert known.passed(FakePeer(), [command], 0, 1) == 1
    elsewhere = FakePeer()
    elsewhere.remote_address = "127.0.0.2:50000"
    assert known.passed(elsewhere, [command], 0, 1) == 0


@pytest.mark.parametrize(
    ("make", "most"),
    [
        (lambda n: signed(310, b=f"T{n}"), MOST_KNOWN),
        (lambda n: signed(310, b"", **{"b": "T", f"x{n}": ""}), MOST_WAYS),
    ],
)
def test_what_recurs_never_does_not_fill_the_memory(
    make: Callable[[int], RemotingCommand], most: int
) -> None:
    known, peer = KnownRequests(lambda _: ("b", "topic")), FakePeer()
    for number in range(most + 10):
        command = make(number)
        known.learn(command, HOST, SIGNERS["alice-key"])
        assert known.passed(peer, [command], 0, 1) == 1
    assert list(peer.allowed) == [310], "a peer keeps one way for each code"
    assert len(known._ways) <= MOST_WAYS
    assert sum(len(way.parts[3]) for way in known._ways.values()) <= most
    known.clear()
    long = {f"x{number}": "" for number in range(100)}
    for command in (
        signed(310, b="T" * 2_000),
        signed(310, b"", **long),
        signed(310, b"", **{"n" * 2_000: ""}),
    ):
        known.learn(command, HOST, SIGNERS["alice-key"])
    assert not known._ways


def test_a_request_has_a_signer_if_it_is_known_and_signed() -> None:
    known, peer = KnownRequests(lambda _: ("b",)), FakePeer()
    command = signed(310, b"m", b="T")
    assert known.signer_of(peer, command) is None
    known.learn(command, HOST, SIGNERS["alice-key"])
    assert known.signer_of(peer, command) is SIGNERS["alice-key"]
    assert known.signer_of(peer, signed(310, b"n", b="T")) is SIGNERS["alice-key"]
    for wrong in (
        signed(310, b"m", b="U"),
        signed(10, b"m", b="T"),
        signed(310, b"m", key="other-key", b="T"),
        spoiled(signed(310, b"m", b="T"), "body"),
        RemotingCommand(310),
    ):
        assert known.signer_of(peer, wrong) is None
    known.clear()
    assert known.signer_of(peer, command) is None


@pytest.mark.parametrize(
    "change_it", [lambda scene: change(scene, "allow"), lambda scene: change(scene, "disable")]
)
def test_who_remembers_what_is_known_hears_that_it_is_not(
    change_it: Callable[[Scene], None],
) -> None:
    scene, heard = Scene(authorization_enabled=True), list[str]()
    scene.authority.known.on_clear.append(lambda: heard.append("cleared"))
    change_it(scene)
    assert heard


def test_each_address_has_a_number_of_its_own() -> None:
    known = KnownRequests(lambda _: ("b",))
    peers = [FakePeer(1), FakePeer(2), FakePeer(3)]
    peers[2].remote_address = "[2001:db8::1%eth0]:3"
    first, second, third = map(known.origin, peers)
    assert first == second != third
    known.clear()
    assert [known.origin(each) for each in peers] == [first, second, third]


def test_the_order_of_the_fields_does_not_count() -> None:
    """The Go client writes them in another one each time; else each would be a new way."""
    known, peer = KnownRequests(lambda _: ("b",)), FakePeer()
    for number in range(100):
        fields = dict.fromkeys(RNG.sample("acdefghijklm", 12), "x") | {"b": "T"}
        command = signed(310, b"m", **dict(RNG.sample([*fields.items()], 13)))
        assert known.knows(peer, command) is (number > 0)
        known.learn(command, HOST, SIGNERS["alice-key"])
    assert len(known._ways) == 1


ALTERNATING = {
    "codes": (signed(310, b"m", b="T", e="1"), signed(11, topic="T", consumerGroup="g")),
    "names": (signed(310, b"m", b="T", e="1"), signed(310, b"m", b="T")),
    "accounts": (signed(310, b="T"), signed(310, user="root", key="root-key", b="T")),
}


@pytest.mark.parametrize("kind", ALTERNATING)
def test_kinds_may_take_turns_as_often_as_they_like(kind: str) -> None:
    """A read has as many requests as fit; to each of them the one before is another."""
    scene = Scene(authorization_enabled=True)
    scene.allow(("Topic:T", "All", "Allow"), ("Group:g", "Sub", "Allow"))
    pair = ALTERNATING[kind]
    assert outcomes(scene.authority, FakePeer(), pair) == [None, None]
    known, commands, peer = scene.authority.known, pair * 2_500, FakePeer()
    assert known.passed(peer, commands, 0, len(commands)) == len(commands)
    refused = [*commands[:-1], spoiled(RemotingCommand(310, pair[0].ext_fields), "body")]
    assert known.passed(peer, refused, 0, len(refused)) == len(refused) - 1

    def passes(commands: Sequence[RemotingCommand]) -> Callable[[], object]:
        return lambda: known.passed(peer, commands, 0, len(commands))

    once = work_of([passes(pair[:1] * 64)], 64)
    turns = work_of([passes(pair * 32)], 64)
    most = 10 if kind != "names" else 140
    assert turns.operations < once.operations + most, "what recurs is not looked up each time"


@pytest.mark.parametrize("value", [None, 5, "\ud800"])
@pytest.mark.parametrize("name", ["AccessKey", "b", "x", "Signature"])
def test_values_that_are_no_texts_are_not_known(name: str, value: Any) -> None:
    known, peer = KnownRequests(lambda _: ("b", "topic")), FakePeer()
    command = signed(310, b="T", x="")
    known.learn(command, HOST, SIGNERS["alice-key"])
    assert known.knows(peer, command)
    other = RemotingCommand(310, {**(command.ext_fields or {}), name: value})
    assert not known.knows(peer, other)
    assert known.passed(peer, [command, other, command], 0, 3) == 1


def test_what_a_peer_has_kept_ends_with_the_accounts() -> None:
    known, peer, command = KnownRequests(lambda _: ("b", "topic")), FakePeer(), signed(310, b="T")
    for _ in range(2):
        known.learn(command, HOST, SIGNERS["alice-key"])
        assert known.knows(peer, command)
        known.clear()
        assert peer.allowed
        assert not known.knows(peer, command)
        assert known.passed(peer, [command], 0, 1) == 0


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.1.2.3:50000", "10.1.2.3"),
        ("[2001:db8::1]:50000", "2001:db8::1"),
        ("[fe80::1%eth0]:1", "fe80::1"),
        ("", ""),
    ],
)
def test_the_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host
