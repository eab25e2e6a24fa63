# SPDX-License-Identifier: Apache-2.0
"""Signed requests that a kernel takes are served and refused as if there was none."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.kernel.random_frames import Frames
from tests.broker.kernel.two_brokers import OneBroker, TwoBrokers, with_each_kernel
from tests.examples import examples
from txrocketmq.access.acl.plain_needs import PLAIN_NEEDS
from txrocketmq.access.auth.policies import PolicyType, acl_of, at_once
from txrocketmq.access.known import MOST_WAYS
from txrocketmq.access.request_needs import NEEDS
from txrocketmq.broker.kernel.chosen import REFERENCE, Kernel
from txrocketmq.broker.kernel.header_holes import _OF_PULLS, _OF_SENDS
from txrocketmq.broker.processors.raw_pulls import RawPulls
from txrocketmq.broker.processors.raw_sends import RawSends
from txrocketmq.remoting.protocol.body.auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from txrocketmq.remoting.protocol.body.route import TopicConfig
from txrocketmq.remoting.transport.server import go_away

ANY_SIZE = (1, 9, 100, 1_000, 5_000, 60_000)
ALICE, ROOT = ("alice-1", "alice-secret"), ("root-user", "root-secret")
BOB = ("bob-user", "bob-secret")
ACCOUNTS: dict[str, Any] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": json.dumps({"username": ROOT[0], "password": ROOT[1]}),
}
YML = """
accounts:
- {accessKey: alice-1, secretKey: alice-secret, topicPerms: [orders=PUB|SUB, bills=PUB],
   groupPerms: [readers=SUB]}
- {accessKey: bob-user, secretKey: bob-secret}
- {accessKey: root-user, secretKey: root-secret, admin: true}
"""
FEW: dict[str, Any] = {"read_queue_nums": 1, "write_queue_nums": 1}
RULES = {"Topic:orders": "Pub|Sub", "Topic:bills": "Pub", "Group:readers": "Sub"}


def policies(
    user: str, rules: dict[str, str], ips: tuple[str, ...] = (), *, decided: str = "Allow"
) -> Any:
    entries = [
        PolicyEntryInfo(
            resource=key, actions=text.split("|"), decision=decided, source_ips=ips or None
        )
        for key, text in rules.items()
    ]
    return acl_of(user, AclInfo(policies=[PolicyInfo(entries=entries)]))


class Guarded(TwoBrokers):
    """Two brokers with the same accounts of one version, which note what they refuse."""

    def __init__(self, folder: Path, kernel: Kernel, version: int = 2, **more: Any) -> None:
        given: dict[str, Any] = {**ACCOUNTS, **more}
        if version == 1:
            self.home = folder / "home" / "conf"
            self.home.mkdir(parents=True)
            (self.home / "plain_acl.yml").write_text(YML)
            given = {"acl_enable": True, "rocketmq_home": str(self.home.parent), **more}
        super().__init__(folder, kernel, given)
        self.told: dict[OneBroker, list[str]] = {}
        for one in (self.plain, self.other):
            access = one.broker.parts.access
            access.audit._tell_refusal = self.told.setdefault(one, []).append
            if version == 1:
                continue
            for name, secret in (ALICE, BOB):
                access.accounts.create_user(name, UserInfo(password=secret))
            access.accounts.add_acl(policies(ALICE[0], RULES))

    def change(self, do: Callable[[Any], object]) -> None:
        """Does something to the accounts of both."""
        for one in (self.plain, self.other):
            do(one.broker.parts.access)

    def connect(self, host: str) -> None:
        """Has both connected from an address."""
        self.plain.connect(host)
        self.other.connect(host)

    def compare(self) -> None:
        super().compare()
        self.both(lambda one: self.told[one])
        self.both(lambda one: dict(one.broker.parts.access.audit.refused))


@with_each_kernel
@pytest.mark.parametrize("version", [1, 2])
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(5), deadline=None)
def test_random_signed_requests_have_equal_results(kernel: Kernel, version: int, seed: int) -> None:
    chance = random.Random(seed)
    frames = Frames(chance)
    wrong = [(ALICE[0], BOB[1]), BOB, ("nobody-1", "x" * 8), ROOT, ("", "")]
    with tempfile.TemporaryDirectory() as folder:
        two = Guarded(Path(folder), kernel, version)
        for _ in range(12):
            frames.accounts = [ALICE] if chance.randrange(3) else [*[ALICE] * 6, *wrong]
            make = (frames.one, frames.pull, frames.send)
            data = b"".join([chance.choice(make)() for _ in range(chance.randrange(1, 12))])
            two.read_cut(
                frames.mutated(data) if chance.randrange(3) == 0 else data, chance, ANY_SIZE
            )
            two.both(lambda one: one.pass_ms(20))
        two.compare()
        frames.accounts = [ALICE]
        two.connect("192.168.1.1")  # which has missed nothing yet
        for _ in range(3):
            two.read(b"".join([frames.send(b="orders", e="1") for _ in range(12)]))
        assert two.other.taken > 0
        two.compare()
        two.stop()


@with_each_kernel
@given(seed=st.integers(0, 1 << 32), is_json=st.booleans())
@settings(max_examples=examples(10), deadline=None)
def test_a_changed_byte_is_never_taken(kernel: Kernel, seed: int, is_json: bool) -> None:
    """But for the opaque, which nobody signs."""
    chance = random.Random(seed)
    frames = Frames(chance)
    frames.accounts = [ALICE]
    with tempfile.TemporaryDirectory() as folder:
        two = Guarded(Path(folder), kernel)
        make = frames.half if is_json else frames.usual
        for _ in range(3):
            two.read(make(b="orders", e="1") + frames.usual(b="orders", e="1"))
        for _ in range(20):
            good = make(b="orders", e="1")
            two.read(good + frames.mutated(make(b="orders", e="1")) + good)
        two.compare()
        two.stop()


class Scene:
    """Two brokers whose kernel knows what alice sends, and pulls."""

    def __init__(self, folder: Path, kernel: Kernel, version: int = 2, **more: Any) -> None:
        self.frames = Frames(random.Random(3))
        self.frames.accounts = [ALICE]
        self.two = Guarded(folder, kernel, version, **more)
        self.send()
        assert self.send() == 4
        self.pull()
        assert self.pull() == 1

    def taken(self, kind: type[RawSends | RawPulls]) -> int:
        """How many sends or pulls the kernel has taken."""
        handlers = self.two.other.broker.parts.raw_requests
        return sum(each.taken for each in handlers if isinstance(each, kind))

    def send(self, count: int = 4, **changes: str) -> int:
        """Sends to both; returns how many of these the kernel has taken."""
        before = self.taken(RawSends)
        some = [self.frames.usual(**({"e": "1"} | changes)) for _ in range(count)]
        self.two.read(b"".join(some))
        self.two.compare()
        return self.taken(RawSends) - before

    def pull(self, **changes: str) -> int:
        before = self.taken(RawPulls)
        fields = {
            "consumerGroup": "readers", "topic": "orders", "queueId": "1", "queueOffset": "0",
            "maxMsgNums": "32", "sysFlag": "4", "subscription": "*", "commitOffset": "0",
            "maxMsgBytes": "100000",
        }  # fmt: skip
        for _ in range(3):  # it is JSON or binary by chance
            taken = self.taken(RawPulls)
            self.two.read(self.frames.pull(**(fields | changes)))
        self.two.compare()
        return min(1, self.taken(RawPulls) - taken) if self.taken(RawPulls) > before else 0

    def refused(self) -> int:
        """How many requests were refused."""
        return sum(self.two.other.broker.parts.access.audit.refused.values())


@pytest.fixture(params=[1, 2], ids=["ACL 1", "ACL 2"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@with_each_kernel
def test_usual_signed_requests_are_taken(kernel: Kernel, version: int, tmp_path: Path) -> None:
    scene = Scene(tmp_path, kernel, version)
    assert scene.send(32) == 32
    assert scene.refused() == 0


@with_each_kernel
def test_others_may_not_what_one_account_may(kernel: Kernel, version: int, tmp_path: Path) -> None:
    scene = Scene(tmp_path, kernel, version)
    for wrong in (BOB, (ALICE[0], BOB[1]), (BOB[0], ALICE[1]), ("nobody-1", ALICE[1]), ("", "")):
        scene.frames.accounts = [wrong]
        before = scene.refused()
        assert (scene.send(), scene.pull()) == (0, 0)
        assert scene.refused() == before + 4 + 3
    scene.frames.accounts = [ALICE]
    assert any(scene.send() for _ in range(64)), (
        "on the same connection, when it is asked for again"
    )


def delete(access: Any) -> None:
    access.accounts.delete_user(ALICE[0])


def disable(access: Any) -> None:
    access.accounts.update_user(ALICE[0], UserInfo(user_status="disable"))


def renew(access: Any) -> None:
    access.accounts.update_user(ALICE[0], UserInfo(password="another-secret"))


def forbid(access: Any) -> None:
    at_once(access.accounts.deleting_acl(ALICE[0], PolicyType.CUSTOM, None))


def deny(access: Any) -> None:
    rules = dict.fromkeys(RULES, "All")
    access.accounts.add_acl(policies(ALICE[0], rules, decided="Deny"))


@with_each_kernel
@pytest.mark.parametrize("change", [delete, disable, renew, forbid, deny])
def test_what_was_learned_ends_with_the_account(
    kernel: Kernel, change: Callable[[Any], object], tmp_path: Path
) -> None:
    scene = Scene(tmp_path, kernel)
    scene.two.change(change)
    assert (scene.send(), scene.pull()) == (0, 0)
    assert scene.refused() == 4 + 3
    assert scene.two.other.broker.parts.store.max_offset("orders", 1) == 8


@with_each_kernel
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("alice-secret", "other-secret"),
        ("accessKey: alice-1", "accessKey: alice-2"),
        ("orders=PUB|SUB", "orders=DENY"),
    ],
)
def test_what_was_learned_ends_with_the_account_of_4(
    kernel: Kernel, before: str, after: str, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, kernel, 1)
    assert before in YML
    (scene.two.home / "plain_acl.yml").write_text(YML.replace(before, after))
    scene.two.change(lambda access: access.plain.load())
    assert (scene.send(), scene.pull()) == (0, 0)
    assert scene.refused() == 4 + 3


@with_each_kernel
def test_an_address_is_a_part_of_what_is_learned(kernel: Kernel, tmp_path: Path) -> None:
    scene = Scene(tmp_path, kernel)
    scene.two.change(forbid)
    rules = policies(ALICE[0], RULES, ("192.168.0.0/16",))
    scene.two.change(lambda access: access.accounts.add_acl(rules))
    scene.send()
    assert scene.send() == 4
    scene.pull()
    assert scene.pull() == 1
    scene.two.connect("10.9.8.7")
    assert (scene.send(), scene.pull()) == (0, 0)
    assert scene.refused() == 4 + 3
    scene.two.connect("192.168.77.77")
    scene.send()
    assert scene.send() == 4, "it may, and is learned by itself"
    scene.two.connect("192.168.1.1")
    assert scene.send() == 4, "what was learned by another connection from there"


@with_each_kernel
def test_what_was_learned_ends_with_topics_and_settings(kernel: Kernel, tmp_path: Path) -> None:
    scene = Scene(tmp_path, kernel)
    parts = [one.broker.parts for one in (scene.two.plain, scene.two.other)]
    for each in parts:
        each.topics.update(TopicConfig(topic_name="orders", **FEW))
    assert scene.send() == 0, "there is no such queue"
    for each in parts:
        each.topics.update(TopicConfig(topic_name="orders"))
    assert scene.send() == 4
    for each in parts:
        each.configuration.update({"maxMessageSize": "3"})
    assert scene.send() == 0
    for each in parts:
        each.topics.delete("orders")
    assert scene.send() == 0


@with_each_kernel
def test_lists_of_requests_without_signatures_count_as_ever(kernel: Kernel, tmp_path: Path) -> None:
    two = Guarded(
        tmp_path, kernel, authentication_whitelist="310,11", authorization_whitelist="310,11"
    )
    frames = Frames(random.Random(3))
    for accounts in ([], [ALICE], [(ALICE[0], BOB[1])]):
        frames.accounts = accounts
        for _ in range(3):
            two.read(b"".join([frames.usual(e="1") for _ in range(4)]))
    two.compare()
    assert two.other.taken == 0
    assert two.other.broker.parts.store.max_offset("orders", 1) == 36
    assert not two.other.broker.parts.access.audit.refused


@with_each_kernel
def test_whoever_is_sent_away_is(kernel: Kernel, tmp_path: Path) -> None:
    scene = Scene(tmp_path, kernel)
    for one in (scene.two.plain, scene.two.other):
        one.broker.guards.append(go_away)
    assert (scene.send(), scene.pull()) == (0, 0)
    for one in (scene.two.plain, scene.two.other):
        one.broker.guards.remove(go_away)
    assert scene.send() == 4


@with_each_kernel
def test_secrets_are_wiped_and_shown_nowhere(kernel: Kernel, tmp_path: Path) -> None:
    scene = Scene(tmp_path, kernel)
    handlers: list[Any] = list(scene.two.other.broker.parts.raw_requests)
    tables = [each._table for each in handlers]
    shown = " ".join(map(repr, [*tables, *handlers, *[each._accounts for each in handlers]]))
    assert ALICE[1] not in shown
    guard = handlers[0].guard
    signed = scene.frames.usual(e="1")
    origin = guard.origin(scene.two.other.peer)
    (sends,) = (each._table for each in handlers if isinstance(each, RawSends))
    assert sends.take(signed, origin) is not None
    assert sends.take(signed, origin + 1) is None
    scene.two.change(renew)
    assert sends.take(signed, origin) is None, "the table that was learned"
    assert not {id(each._table) for each in handlers} & {id(table) for table in tables}


@pytest.mark.parametrize("code", [10, 310, 320, 11, 361])
def test_no_decision_depends_on_what_differs(code: int) -> None:
    holes = _OF_PULLS if code in {11, 361} else _OF_SENDS
    deciding = {*NEEDS[code].fields, *PLAIN_NEEDS[code].fields}
    assert deciding
    assert not {name.encode() for name in deciding} & {*holes}
    assert not NEEDS[code].reads_body


def test_places_are_of_as_many_addresses_as_there_are_numbers(tmp_path: Path) -> None:
    scene = Scene(tmp_path, REFERENCE)
    known = scene.two.other.broker.parts.access.guard.known  # type: ignore[union-attr]
    peer: Any = scene.two.other.peer
    seen = set()
    for number in range(2 * MOST_WAYS):
        peer.remote_address = f"10.0.{number >> 8}.{number & 255}:1"
        seen.add(known.origin(peer))
    assert len(seen) == 2 * MOST_WAYS
    assert 0 not in seen
    assert len(known._origins) <= MOST_WAYS
