# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import traceback

import pytest

from txrocketmq.access.auth.users import User, Users, UserStatus, UserType
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.protocol.body.auth import UserInfo


def test_a_user_is_normal_and_enabled() -> None:
    users = Users()
    user = users.create("alice", UserInfo(password="p"))
    assert user == User("alice", "p", UserType.NORMAL, UserStatus.ENABLE)
    assert users.get("alice") is user
    assert users.get("Alice") is None
    assert not user.is_super


def test_names_of_types_may_have_any_case_and_others_are_passed_over() -> None:
    users = Users()
    info = UserInfo(password="p", user_type="sUPER", user_status="Disable")
    user = users.create("alice", info)
    assert (user.type, user.status) == (UserType.SUPER, UserStatus.DISABLE)
    again = users.update("alice", UserInfo(user_type="king", user_status="", password=" "))
    assert again == user


def test_only_what_is_given_changes() -> None:
    users = Users()
    before = users.create("alice", UserInfo(password="p"))
    after = users.update("alice", UserInfo(password="q"))
    assert (before.password, after.password) == ("p", "q")
    assert after.signer is after.signer
    assert after.signer is not before.signer


@pytest.mark.parametrize(
    ("name", "password", "remark"),
    [
        ("alice", "p", "The user is existed"),
        ("bob", "", "password can not be blank"),
        ("bob", None, "password can not be blank"),
        (" ", "p", "username can not be blank"),
    ],
)
def test_what_cannot_be_created(name: str, password: str | None, remark: str) -> None:
    users = Users()
    users.create("alice", UserInfo(password="p"))
    with pytest.raises(ResponseError) as refused:
        users.create(name, UserInfo(password=password))
    assert (refused.value.code, refused.value.remark) == (16, remark)


def test_who_is_not_there_does_not_change() -> None:
    users = Users()
    with pytest.raises(ResponseError, match="The user is not exist"):
        users.update("alice", UserInfo(password="p"))
    assert not users.delete("alice")
    users.create("alice", UserInfo(password="p"))
    assert users.delete("alice")
    assert users.all() == {}


def test_a_user_in_a_file() -> None:
    user = User("alice", "p", UserType.SUPER, UserStatus.DISABLE)
    content = user.info(with_password=True).to_json()
    assert content == {
        "password": "p", "userStatus": "disable", "userType": "Super", "username": "alice",
    }  # fmt: skip
    assert User.stored("alice", content) == user
    for broken in ({**content, "password": ""}, {**content, "userType": "King"}):
        with pytest.raises(ValueError, match=r"the user alice has no password|'King' is none of"):
            User.stored("alice", broken)


@pytest.mark.parametrize(
    "broken", ["hunter2", {"password": ["hunter2"]}, {"password": {"a": "hunter2"}}]
)
def test_a_broken_user_of_a_file_is_not_repeated(broken: object) -> None:
    with pytest.raises(ValueError, match="the user alice is no object of texts") as raised:
        User.stored("alice", broken)
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))


def test_passwords_are_not_shown() -> None:
    user = User("alice", "hunter2")
    assert "hunter2" not in f"{user!r}{user}{user.signer!r}{user.info(with_password=True)!r}"
    assert user.info(with_password=False).password is None
