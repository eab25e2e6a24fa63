# SPDX-License-Identifier: Apache-2.0
"""3001 to 3010: codes and remarks are those of 5.4.0."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.counted import lines_of
from tests.fakes import refused, request
from txrocketmq.access.auth.users import User, UserType
from txrocketmq.broker.processors.admin.admin_auth import AdminAuthProcessor
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.remoting.call import Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.protocol.body.base import BodyError
from txrocketmq.remoting.protocol.operations.auth import (
    CreateAclRequestHeader,
    CreateUserRequestHeader,
    DeleteAclRequestHeader,
    DeleteUserRequestHeader,
    GetAclRequestHeader,
    GetUserRequestHeader,
    ListAclsRequestHeader,
    ListUsersRequestHeader,
    UpdateAclRequestHeader,
    UpdateUserRequestHeader,
)

WRONG, NO_PERMISSION = ResponseCode.SYSTEM_ERROR, ResponseCode.NO_PERMISSION
RULE = {"resource": "Topic:T", "actions": ["Pub"], "decision": "Allow"}


class Admin:
    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.processor = AdminAuthProcessor(parts.access, parts.walks)

    def asked(self, header: Header, body: Any = None, asker: str = "") -> Request[Any]:
        made = request(header, b"" if body is None else json.dumps(body).encode())
        if asker:
            made.command.ext_fields = {**(made.command.ext_fields or {}), "AccessKey": asker}
        return made

    def create(self, name: str | None, body: Any = None, asker: str = "") -> Any:
        header = CreateUserRequestHeader(username=name)
        return self.processor.create_user(self.asked(header, body, asker))

    def update(self, name: str | None, body: Any = None, asker: str = "") -> Any:
        header = UpdateUserRequestHeader(username=name)
        return self.processor.update_user(self.asked(header, body, asker))

    def delete(self, name: str | None, asker: str = "") -> Any:
        return self.processor.delete_user(
            self.asked(DeleteUserRequestHeader(username=name), None, asker)
        )

    def user(self, name: str | None, asker: str = "root") -> Any:
        answer = self.processor.get_user(
            self.asked(GetUserRequestHeader(username=name), None, asker)
        )
        return json.loads(answer.body_bytes or b"null")

    def users(self, wanted: str | None = None, asker: str = "root") -> Any:
        answer = self.processor.list_users(
            self.asked(ListUsersRequestHeader(filter=wanted), None, asker)
        )
        return json.loads(done(answer).body_bytes or b"null")

    def add(self, subject: str | None, body: Any) -> Any:
        created = self.processor.create_acl(
            self.asked(CreateAclRequestHeader(subject=subject), body)
        )
        again = self.processor.update_acl(self.asked(UpdateAclRequestHeader(subject=subject), body))
        assert done(created).code == done(again).code == 0
        return created

    def acl(self, subject: str | None) -> Any:
        answer = self.processor.get_acl(self.asked(GetAclRequestHeader(subject=subject)))
        return json.loads(done(answer).body_bytes or b"null")

    def acls(self, subject: str | None = None, resource: str | None = None) -> Any:
        header = ListAclsRequestHeader(subject_filter=subject, resource_filter=resource)
        answer = self.processor.list_acls(self.asked(header))
        return json.loads(done(answer).body_bytes or b"null")

    def drop(self, subject: str | None, **more: str) -> Any:
        header = DeleteAclRequestHeader(subject=subject, **more)
        return self.processor.delete_acl(self.asked(header))


def done(answer: Any) -> Reply[Any]:
    outcome = answer if isinstance(answer, Reply) else answer.outcome
    assert isinstance(outcome, Reply)
    return outcome


@pytest.fixture
def admin(tmp_path: Any) -> Admin:
    config = BrokerConfig(authentication_enabled=True, authorization_enabled=True)
    made = Admin(Parts(tmp_path, config))
    made.parts.access.accounts.ensure(User("root", "root-key", UserType.SUPER))
    assert done(made.create("alice", {"password": "alice-key"}, "root")).code == 0
    return made


def test_users(admin: Admin) -> None:
    assert admin.user("alice") == {
        "password": "alice-key", "userStatus": "enable", "userType": "Normal", "username": "alice",
    }  # fmt: skip
    admin.update("alice", {"userStatus": "disable", "username": "ignored"}, "root")
    assert admin.user("alice")["userStatus"] == "disable"
    assert admin.user("alice")["password"] == "alice-key"
    assert [each["username"] for each in admin.users()] == ["alice", "root"]
    assert [each["username"] for each in admin.users("lic")] == ["alice"]
    assert admin.users("nobody") is None
    assert admin.user("nobody") is None
    assert done(admin.delete("nobody", "root")).code == 0
    assert done(admin.delete("alice", "root")).code == 0
    assert admin.user("alice") is None


def test_passwords_are_for_super_users(admin: Admin) -> None:
    assert "password" not in admin.user("root", asker="alice")
    assert ["password" in each for each in admin.users(asker="alice")] == [False, False]
    assert ["password" in each for each in admin.users(asker="root")] == [True, True]


def test_what_is_wrong_about_users(admin: Admin) -> None:
    for name in (None, "", " "):
        for ask in (admin.create, admin.update, admin.user):
            with refused(ResponseCode.INVALID_PARAMETER, "The username is blank"):
                ask(name)
        with refused(NO_PERMISSION, "username can not be blank"):
            admin.delete(name)
    with refused(NO_PERMISSION, "The user is existed"):
        admin.create("alice", {"password": "p"})
    with refused(NO_PERMISSION, "The user is not exist"):
        admin.update("bob", {"password": "p"})
    with refused(NO_PERMISSION, "password can not be blank"):
        admin.create("bob", {})
    with refused(NO_PERMISSION, "user can not be null"):
        admin.create("bob")


def test_super_users_are_among_themselves(admin: Admin) -> None:
    with refused(WRONG, "The super user can only be create by super user"):
        admin.create("bob", {"password": "p", "userType": "Super"}, "alice")
    with refused(WRONG, "The super user can only be update by super user"):
        admin.update("alice", {"userType": "Super"}, "alice")
    with refused(NO_PERMISSION, "The super user can only be update by super user"):
        admin.update("root", {"password": "mine"}, "alice")
    with refused(NO_PERMISSION, "The super user can only be update by super user"):
        admin.delete("root", "alice")
    assert done(admin.create("bob", {"password": "p", "userType": "Super"}, "root")).code == 0


def test_policies(admin: Admin) -> None:
    other = {**RULE, "resource": "Group:g*", "actions": ["All"], "sourceIps": ["10.0.0.0/8"]}
    admin.add("User:alice", {"policies": [{"entries": [RULE]}]})
    admin.add(None, {"subject": "User:alice", "policies": [
        {"policyType": "Default", "entries": [other]},
    ]})  # fmt: skip
    expected = {
        "subject": "User:alice",
        "policies": [
            {"policyType": "Custom", "entries": [RULE]},
            {"policyType": "Default", "entries": [other]},
        ],
    }
    assert admin.acl("User:alice") == expected
    assert admin.acls() == [expected]
    assert admin.acls("nobody") is None
    assert admin.acls("User:al", "Group") == [{**expected, "policies": expected["policies"][1:]}]
    assert done(admin.drop("User:alice", resource="Topic:T")).code == 0
    assert admin.acl("User:alice") == {**expected, "policies": expected["policies"][1:]}
    assert done(admin.drop("User:alice")).code == 0
    assert admin.acl("User:alice") is None
    assert admin.acls() is None


def test_what_is_wrong_about_policies(admin: Admin) -> None:
    policies = {"policies": [{"entries": [RULE]}]}
    bodies: list[Any] = [None, {}, {"policies": []}]
    for body in bodies:
        with refused(WRONG, "AuthorizationException: The body of acl is null"):
            admin.add("User:alice", body)
    with refused(WRONG, "An system error occurred, please try again later."):
        admin.add("alice", policies)
    with refused(NO_PERMISSION, "The subject of User:bob is not exist."):
        admin.add("User:bob", policies)
    with refused(NO_PERMISSION, "The policies is empty."):
        admin.add("User:alice", {"policies": [{"entries": []}]})
    with refused(NO_PERMISSION, "The resource is null."):
        admin.add("User:alice", {"policies": [{"entries": [{**RULE, "resource": "x"}]}]})
    with refused(NO_PERMISSION, "The subject is null."):
        admin.drop("alice")
    with refused(NO_PERMISSION, "The subject is not exist."):
        admin.drop("User:bob")
    with refused(NO_PERMISSION, "The acl is not exist."):
        admin.drop("User:alice")
    with refused(NO_PERMISSION, "The subject is not exist."):
        admin.acl("User:bob")
    with refused(WRONG, "An system error occurred"):
        admin.acl("alice")
    admin.add("User:alice", policies)
    with refused(NO_PERMISSION, "The resource is null."):
        admin.drop("User:alice", resource="Tpoic:T")
    assert admin.acl("User:alice") is not None, "a typing error does not delete everything"


def test_changes_are_on_disk_when_they_are_answered(admin: Admin) -> None:
    admin.add("User:alice", {"policies": [{"entries": [RULE]}]})
    folder = admin.parts.config_folder
    users = json.loads((folder / "users.json").read_bytes())["userTable"]
    assert users["alice"]["password"] == "alice-key"
    assert set(users) == {"root", "alice"}
    acls = json.loads((folder / "acls.json").read_bytes())["aclTable"]
    assert acls["alice"]["policies"] == [{"policyType": "Custom", "entries": [RULE]}]
    assert done(admin.delete("alice", "root")).code == 0
    assert set(json.loads((folder / "users.json").read_bytes())["userTable"]) == {"root"}
    assert json.loads((folder / "acls.json").read_bytes())["aclTable"] == {}


def test_without_accounts_all_of_it_is_refused(parts: Parts) -> None:
    admin = Admin(parts)
    asks: tuple[Callable[[], object], ...] = (
        lambda: admin.create("a", {"password": "p"}),
        lambda: admin.update("a", {"password": "p"}),
        lambda: admin.delete("a"),
        lambda: admin.user("a"),
        admin.users,
        lambda: admin.add("User:a", {"policies": [{"entries": [RULE]}]}),
        lambda: admin.drop("User:a"),
        lambda: admin.acl("User:a"),
        admin.acls,
    )
    for ask in asks:
        with refused(WRONG, "this broker has no accounts"):
            ask()


def test_users_that_are_made_for_later(tmp_path: Any) -> None:
    """Requests need no account yet, so nobody is a Super user, and no password is shown."""
    name = "authentication.provider.LocalAuthenticationMetadataProvider"
    config = BrokerConfig(authentication_metadata_provider="org.apache.rocketmq.auth." + name)
    admin = Admin(Parts(tmp_path, config))
    assert admin.parts.access.guards() == []
    assert done(admin.create("root", {"password": "p", "userType": "Super"})).code == 0
    assert "password" not in admin.user("root", asker="root")
    assert admin.users() == [{"userStatus": "enable", "userType": "Super", "username": "root"}]


def steps_of(walk: Any) -> tuple[list[int], Any]:
    """The lines of each step of a walk, and its answer."""
    lines: list[int] = []
    while True:
        try:
            lines.append(lines_of(partial(next, walk)))
        except StopIteration as end:
            return lines, end.value


def test_an_account_with_many_policies_is_set_and_shown_in_steps(admin: Admin) -> None:
    entries = [{**RULE, "resource": f"Topic:T{n}"} for n in range(2_000)]
    asked = admin.asked(NoHeader(), {"policies": [{"entries": entries}]})
    lines, answer = steps_of(admin.processor._adding_acl(asked, "User:alice"))
    assert done(answer).code == 0
    assert len(lines) > 1_000
    assert max(lines) < 3_000
    acl = admin.parts.access.accounts.acl("alice")
    assert acl is not None
    info = acl.info()
    assert info is not None
    for wanted, expected in (("", info), ("T1999", acl.info("T1999")), ("U", None)):
        lines, answer = steps_of(admin.processor._all("", wanted))
        assert len(lines) > 100
        assert max(lines) < 3_000
        assert done(answer).body_bytes == (
            b"" if expected is None else b"[" + expected.encode() + b"]"
        )
    lines, answer = steps_of(admin.processor._one(acl))
    assert max(lines) < 3_000
    assert done(answer).body_bytes == info.encode()


def test_policies_of_both_kinds_are_shown_as_bodies_are_encoded(admin: Admin) -> None:
    kinds = [{"policyType": each, "entries": [RULE, {**RULE, "resource": "Group:*"}]}
             for each in ("Custom", "Default")]  # fmt: skip
    admin.add("User:alice", {"policies": kinds})
    acl = admin.parts.access.accounts.acl("alice")
    assert acl is not None
    for wanted in ("", "Group", "T", "nothing"):
        info = acl.info(wanted)
        _, answer = steps_of(admin.processor._all("", wanted))
        assert done(answer).body_bytes == (b"" if info is None else b"[" + info.encode() + b"]")


def test_a_long_body_that_is_none_is_refused(admin: Admin) -> None:
    broken = admin.asked(NoHeader())
    broken.command.body = b'{"policies":[{"entries":[' + b"7," * 20_000 + b"7]}]}"
    with pytest.raises(BodyError, match=r"AclInfo.policies\[0\].entries\[0\]"):
        steps_of(admin.processor._adding_acl(broken, "User:alice"))
