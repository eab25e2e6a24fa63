# SPDX-License-Identifier: Apache-2.0
"""A whole broker with accounts: who gets in, who does not, and what strangers see of it."""

from __future__ import annotations

import io
import json
import shutil
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.logger import ILogObserver, LogEvent, formatEvent, globalLogPublisher
from zope.interface import implementer

from tests.broker.test_service import Client, Scene
from tests.broker.test_service_guards import BEAT, REQUESTS, send_fields
from tests.examples import examples
from txrocketmq.broker import membership
from txrocketmq.remoting.codes import RequestCode, ResponseCode
from txrocketmq.remoting.command import ONEWAY_FLAG, RemotingCommand
from txrocketmq.remoting.frame.credentials import seal_of
from txrocketmq.remoting.frame.frame import encode_frame
from txrocketmq.remoting.protocol.body.auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo
from txrocketmq.remoting.protocol.body.route import TopicConfig

NO_PERMISSION = int(ResponseCode.NO_PERMISSION)
PASSWORD = "hunter2-root"
ROOT = json.dumps({"username": "root", "password": PASSWORD})
INNER = json.dumps({"accessKey": "inner", "secretKey": "hunter2-inner"})
ACCOUNTS: dict[str, Any] = {
    "authentication_enabled": True,
    "authorization_enabled": True,
    "init_authentication_user": ROOT,
    "inner_client_authentication_credentials": INNER,
}


class Account:
    """Signs requests with an account, and sends them in one read."""

    def __init__(self, client: Client, user: str = "root", password: str = PASSWORD) -> None:
        self.client = client
        self._seal = seal_of(user, password)

    def signed(
        self,
        code: int,
        fields: dict[str, str] | None = None,
        body: bytes = b"",
        *,
        form: int = 0,
        flag: int = 0,
        opaque: int = 7,
    ) -> RemotingCommand:
        fields = dict(fields or {})
        assert self._seal is not None
        self._seal(fields, body)
        return RemotingCommand(code, fields, body, flag, opaque, serialize_type=form)

    def tell(self, *commands: RemotingCommand) -> list[RemotingCommand]:
        data = b"".join(b"".join(map(bytes, encode_frame(each))) for each in commands)
        self.client.protocol.dataReceived(data)
        return self.client.heard()

    def ask(
        self, code: int, fields: dict[str, str] | None = None, body: bytes = b""
    ) -> RemotingCommand:
        (answer,) = self.tell(self.signed(code, fields, body))
        return answer


def user(name: str, **more: str) -> tuple[dict[str, str], bytes]:
    return {"username": name}, UserInfo(password=f"hunter2-{name}", **more).encode()


def rules(name: str, *entries: tuple[str, str]) -> tuple[dict[str, str], bytes]:
    made = [
        PolicyEntryInfo(resource=key, actions=actions.split("|"), decision="Allow")
        for key, actions in entries
    ]
    body = AclInfo(policies=[PolicyInfo(entries=made)]).encode()
    return {"subject": f"User:{name}"}, body


def guarded(folder: Path) -> Scene:
    made = Scene(folder, **ACCOUNTS).start()
    made.broker.parts.topics.update(TopicConfig(topic_name="T"))
    return made


def alice_of(scene: Scene) -> Account:
    """A user that may send to T, and consume it as g."""
    root = Account(Client(scene))
    assert root.ask(3001, *user("alice")).code == 0
    assert root.ask(3006, *rules("alice", ("Topic:T", "Pub|Sub"), ("Group:g", "Sub"))).code == 0
    return Account(Client(scene), "alice", "hunter2-alice")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return guarded(tmp_path)


@pytest.fixture
def alice(scene: Scene) -> Account:
    return alice_of(scene)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that is logged, with tracebacks."""
    text = io.StringIO()

    @implementer(ILogObserver)
    def observe(event: LogEvent) -> None:
        text.write((formatEvent(event) or "") + "\n")
        if "log_failure" in event:
            text.write(event["log_failure"].getTraceback())

    globalLogPublisher.addObserver(observe)
    yield text
    globalLogPublisher.removeObserver(observe)


@pytest.mark.parametrize("port", [0, 1])
@pytest.mark.parametrize("kind", list(REQUESTS))
def test_nobody_gets_in_without_an_account(scene: Scene, kind: str, port: int) -> None:
    code, fields, body = REQUESTS[kind]
    stranger = Account(Client(scene, port))
    for flag, count in ((0, 1), (ONEWAY_FLAG, 0)):
        answers = stranger.tell(RemotingCommand(code, fields, body, flag=flag))
        assert [(each.code, each.remark) for each in answers] == [
            (NO_PERMISSION, "username cannot be null.")
        ] * count
    assert scene.broker.parts.store.max_physical_offset == 0


@pytest.mark.parametrize("form", [0, 1])
def test_a_user_does_what_policies_allow(scene: Scene, alice: Account, form: int) -> None:
    codes = {"send": 0, "send V2": 0, "batch": 0, "heartbeat": 0, "unknown": 3}
    for kind, (code, fields, body) in REQUESTS.items():
        if kind == "pull":
            continue
        (answer,) = alice.tell(alice.signed(code, fields, body, form=form))
        assert answer.code == codes.get(kind, NO_PERMISSION), kind
    code, fields, body = REQUESTS["pull"]
    (answer,) = alice.tell(alice.signed(code, fields, body, form=form))
    assert answer.code == 0
    assert scene.broker.parts.store.max_offset("T", 0) == 4


def test_a_refusal_ends_a_run_and_the_others_go_on(scene: Scene, alice: Account) -> None:
    topics = ["T"] * 15 + ["Other"] + ["T"] * 16
    answers = alice.tell(
        *(alice.signed(310, send_fields(topic), b"x", opaque=at) for at, topic in enumerate(topics))
    )
    expected = [NO_PERMISSION if topic == "Other" else 0 for topic in topics]
    assert [(each.opaque, each.code) for each in answers] == list(enumerate(expected))
    assert scene.broker.parts.store.max_offset("T", 0) == 31
    assert scene.broker.parts.topics.get("Other") is None


def test_a_super_user_at_the_same_address_widens_no_rights(scene: Scene, alice: Account) -> None:
    """Its requests may look the same but for the account and the topic."""
    root = Account(Client(scene))
    scene.broker.parts.topics.update(TopicConfig(topic_name="Other"))
    assert root.ask(310, send_fields("Other"), b"x").code == 0
    for topic, code in (("T", 0), ("Other", NO_PERMISSION), ("T", 0), ("Other", NO_PERMISSION)):
        assert alice.ask(310, send_fields(topic), b"x").code == code
    assert scene.broker.parts.store.max_offset("Other", 0) == 1


def test_what_the_signature_does_not_cover_is_asked_anew(scene: Scene, alice: Account) -> None:
    """A signed request may be sent again under another code: its needs are those of that code."""
    pulled = alice.signed(351, {"topic": "T"})
    pulled.code = RequestCode.DELETE_TOPIC_IN_BROKER
    (answer,) = alice.tell(pulled)
    assert answer.code == NO_PERMISSION
    assert scene.broker.parts.topics.get("T") is not None


def test_users_change_while_messages_flow(scene: Scene, alice: Account) -> None:
    root = Account(Client(scene))
    send = alice.signed(310, send_fields(), b"x")

    def code() -> int:
        return alice.tell(send)[0].code

    assert code() == 0
    assert root.ask(3002, {"username": "alice"}, UserInfo(user_status="disable").encode()).code == 0
    assert code() == NO_PERMISSION
    assert root.ask(3002, {"username": "alice"}, UserInfo(user_status="enable").encode()).code == 0
    assert code() == 0
    assert root.ask(3008, {"subject": "User:alice", "resource": "Topic:T"}).code == 0
    assert code() == NO_PERMISSION
    assert root.ask(3003, {"username": "alice"}).code == 0
    assert alice.tell(send)[0].remark == "User:alice is not found."


def test_a_change_counts_for_the_next_request_of_a_read(scene: Scene, alice: Account) -> None:
    root = Account(alice.client)

    def change(status: str) -> RemotingCommand:
        body = UserInfo(user_status=status).encode()
        return root.signed(3002, {"username": "alice"}, body, opaque=1)

    send = alice.signed(310, send_fields(), b"x")
    read = [send, send, change("disable"), send, send, change("enable"), send, send]
    for _ in range(2):
        codes = [each.code for each in alice.tell(*read) if each.opaque == send.opaque]
        assert codes == [0, 0, NO_PERMISSION, NO_PERMISSION, 0, 0]


def test_a_user_is_there_after_a_kill(scene: Scene, tmp_path: Path, alice: Account) -> None:
    """What was answered is on disk, with its policies; nothing is written at the end."""
    folder = tmp_path / "killed"
    shutil.copytree(tmp_path / "config", folder / "config")
    again = Scene(folder, **ACCOUNTS).start()
    again.broker.parts.topics.update(TopicConfig(topic_name="T"))
    once_more = Account(Client(again), "alice", "hunter2-alice")
    assert once_more.ask(310, send_fields(), b"x").code == 0
    assert once_more.ask(25, None, b"a=b").code == NO_PERMISSION
    for name in ("users.json", "acls.json"):
        assert (tmp_path / "config" / name).stat().st_mode & 0o777 == 0o600


def test_the_broker_signs_what_it_sends_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seals: list[Any] = []
    scene = Scene(tmp_path, **ACCOUNTS)

    def connections(*_: object, seal: Any, **__: object) -> object:
        seals.append(seal)
        return scene.connections

    monkeypatch.setattr(membership, "Connections", connections)
    scene.broker.start()
    fields: dict[str, str] = {"topic": "T"}
    seals[0](fields, b"")
    assert fields["AccessKey"] == "inner"
    assert Account(Client(scene), "inner", "hunter2-inner").ask(26).code == 0, "it is a Super user"


def test_without_accounts_there_is_no_guard(tmp_path: Path) -> None:
    scene = Scene(tmp_path).start()
    assert scene.broker.guards == []
    assert Client(scene).send().code == 0
    answer = Account(Client(scene)).ask(3005)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "has no accounts" in (answer.remark or "")
    assert not (tmp_path / "config" / "users.json").exists()


def test_what_is_open_is_told(tmp_path: Path, logged: io.StringIO) -> None:
    Scene(tmp_path, **ACCOUNTS).start()
    assert logged.getvalue().count("need an account, but whoever sees one on its way") == 2
    assert "everybody who reaches port" not in logged.getvalue()


SIGNED = {
    "send": (310, send_fields(), b"body"),
    "heartbeat": (34, {}, BEAT),
    "new user": (3001, *user("mallory", user_type="Super")),
    "settings": (25, {}, b"longPollingEnable=false"),
}


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    made = Scene(tmp_path_factory.mktemp("fuzzed"), **ACCOUNTS).start()
    made.broker.parts.topics.update(TopicConfig(topic_name="T"))
    return made


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("kind", list(SIGNED))
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_frame_with_other_bytes_is_never_accepted(
    fuzzed: Scene, kind: str, form: int, data: st.DataObject
) -> None:
    """Only what the signature covers is changed: the fields and the body of a signed request."""
    account, neighbour = Account(Client(fuzzed)), Account(Client(fuzzed))
    code, fields, body = SIGNED[kind]
    signed = account.signed(code, fields, body, form=form)
    assert signed.ext_fields is not None
    names = sorted(signed.ext_fields)
    name = data.draw(st.sampled_from([*names, "body"]))
    text = body.decode("latin-1") if name == "body" else signed.ext_fields[name]
    at = data.draw(st.integers(0, max(len(text) - 1, 0)))
    how = data.draw(st.sampled_from(["change", "drop", "double", "remove"]))
    other = data.draw(st.characters(max_codepoint=255, exclude_characters=text[at : at + 1]))
    changed = {
        "change": text[:at] + other + text[at + 1 :],
        "drop": text[:at] + text[at + 1 :],
        "double": text[: at + 1] + text[at : at + 1] + text[at + 1 :],
        "remove": "",
    }[how]
    if changed == text:
        return
    new_fields = dict(signed.ext_fields)
    if name == "body":
        body = changed.encode("latin-1")
    elif how == "remove":
        del new_fields[name]
        if not signed.ext_fields[name]:
            return  # an empty value adds nothing to what is signed
    else:
        new_fields[name] = changed
    if data.draw(st.booleans()) and kind in ("send", "heartbeat"):
        # The same is known of this connection then, so that only the signature is looked at.
        for _ in range(2):
            (answer,) = account.tell(signed)
            assert answer.code == 0
    before = fuzzed.broker.parts.store.max_physical_offset
    (answer,) = account.tell(RemotingCommand(code, new_fields, body, opaque=7, serialize_type=form))
    assert answer.code == NO_PERMISSION
    assert answer.remark in (
        "check signature failed.",
        "username cannot be null.",
        f"User:{new_fields.get('AccessKey')} is not found.",
    )
    assert fuzzed.broker.parts.store.max_physical_offset == before
    assert fuzzed.broker.parts.access.accounts.users.get("mallory") is None
    assert fuzzed.broker.parts.config.long_polling_enable
    assert not account.client.wire.disconnecting
    assert neighbour.ask(30, {"topic": "T", "queueId": "0"}).code == 0


def test_each_bit_of_a_frame_may_be_another(fuzzed: Scene, logged: io.StringIO) -> None:
    """Whole frames, with their lengths: answers are refusals, and nothing of ours fails."""
    signer = Account(Client(fuzzed))
    for form in (0, 1):
        signed = signer.signed(310, send_fields(), b"body", form=form)
        frame = b"".join(map(bytes, encode_frame(signed)))
        before = fuzzed.broker.parts.store.max_physical_offset
        uncovered = 0
        for at in range(len(frame)):
            client = Client(fuzzed)
            client.protocol.dataReceived(frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :])
            for answer in client.heard():
                assert "Traceback" not in (answer.remark or "")
                assert "Error" not in (answer.remark or ""), answer.remark
                uncovered += answer.code != NO_PERMISSION
        # What is not covered: code, flag, opaque, language, version and the names of fields.
        stored = fuzzed.broker.parts.store.max_physical_offset - before
        assert stored <= uncovered * len(frame) * 2
    assert "Traceback" not in logged.getvalue()
    assert PASSWORD not in logged.getvalue()


def test_a_signature_of_another_user_is_none(scene: Scene, alice: Account) -> None:
    signed = alice.signed(310, send_fields(), b"x")
    fields = {**(signed.ext_fields or {}), "AccessKey": "root"}
    (answer,) = alice.tell(RemotingCommand(310, fields, b"x"))
    assert (answer.code, answer.remark) == (NO_PERMISSION, "check signature failed.")


def failing(command: RemotingCommand) -> None:
    raise ValueError(command)


def test_secrets_are_nowhere(scene: Scene, alice: Account, logged: io.StringIO) -> None:
    root = Account(Client(scene))
    said = [root.ask(26).body, root.ask(3010).body, root.ask(3004, {"username": "zoe"}).body]
    said += [repr(root.signed(3001, *user("zoe"))).encode(), root.ask(3001, *user("zoe")).body]
    assert root.ask(3006, *rules("alice", ("Cluster:DefaultCluster", "Get"))).code == 0
    seen = [alice.ask(3004, {"username": "root"}), alice.ask(3005)]
    assert [answer.code for answer in seen] == [0, 0]
    said += [answer.body for answer in seen]
    said.append((alice.ask(3001, *user("eve")).remark or "").encode())
    said.append(repr(scene.broker.parts.access.accounts.users.all()).encode())
    try:
        failing(root.signed(3001, *user("zoe")))
    except ValueError:
        said.append(traceback.format_exc().encode())
    signature = (root.signed(26).ext_fields or {})["Signature"]
    for text in (b"\n".join(said).decode(), logged.getvalue()):
        assert "hunter2" not in text
        assert signature not in text
    assert "the account root at 192.168.1.1 created the Normal user zoe" in logged.getvalue()
    assert "refused AUTH_CREATE_USER of the account alice at 192.168.1.1" in logged.getvalue()
    assert logged.getvalue().count("AUTH_CREATE_USER") == 1, "it is told once"
    assert b"hunter2-alice" in root.ask(3004, {"username": "alice"}).body, "a proxy needs it"
