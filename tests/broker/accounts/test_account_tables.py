# SPDX-License-Identifier: Apache-2.0
"""users.json and acls.json: what they hold, and what of them is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.access.auth.accounts import Accounts
from txrocketmq.access.auth.policies import acl_of
from txrocketmq.broker.accounts.account_tables import AclTable, UserTable
from txrocketmq.broker.work.json_file import JsonFile, JsonFileError
from txrocketmq.remoting.protocol.body.auth import AclInfo, UserInfo

RULE = {"resource": "Topic:T", "actions": ["Pub"], "decision": "Allow"}
POLICIES = {"policies": [{"policyType": "Custom", "entries": [RULE]}]}
ALICE = {"password": "p", "userStatus": "enable", "userType": "Normal", "username": "alice"}


class Tables:
    def __init__(self, folder: Path) -> None:
        self.accounts = Accounts()
        self.files = [
            JsonFile(folder / name, is_private=True) for name in ("users.json", "acls.json")
        ]
        self.users = UserTable(self.files[0], self.accounts)
        self.acls = AclTable(self.files[1], self.accounts)

    def load(self) -> None:
        self.users.load()
        self.acls.load()

    def write(self) -> None:
        self.users.saving.write_now()
        self.acls.saving.write_now()


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))
    path.chmod(0o600)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    tables.load()
    tables.accounts.create_user("alice", UserInfo(password="p"))
    tables.accounts.create_user("bob", UserInfo(password="q", user_type="Super"))
    tables.accounts.add_acl(acl_of("alice", AclInfo.from_json(POLICIES)))
    tables.write()
    assert json.loads((tmp_path / "users.json").read_bytes())["userTable"]["alice"] == ALICE
    again = Tables(tmp_path)
    again.load()
    assert again.accounts.users.all() == tables.accounts.users.all()
    assert again.accounts.acls() == tables.accounts.acls()
    assert not any(file.is_stale for file in again.files)


def test_policies_of_a_user_that_was_deleted_are_left_out(tmp_path: Path) -> None:
    """A crash may come after one of the two files is written."""
    write(tmp_path / "users.json", {"userTable": {}})
    write(tmp_path / "acls.json", {"aclTable": {"alice": POLICIES}})
    tables = Tables(tmp_path)
    tables.load()
    assert tables.accounts.acls() == {}
    assert tables.files[1].is_stale


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("users.json", {"userTable": {"alice": {**ALICE, "password": ""}}}, "has no password"),
        ("users.json", {"userTable": {"alice": {**ALICE, "userType": "x"}}}, "'x' is none of"),
        ("users.json", {"userTable": [ALICE]}, "what it should: userTable must be an object"),
        ("users.json", {"userTable": []}, "userTable must be an object"),
        ("acls.json", {"aclTable": ""}, "aclTable must be an object"),
        ("acls.json", {"aclTable": {"alice": {}}}, "the policies of alice: The policies is empty"),
        ("acls.json", [], "does not hold an object"),
    ],
)
def test_files_that_hold_something_else(tmp_path: Path, name: str, content: Any, why: str) -> None:
    write(tmp_path / name, content)
    with pytest.raises(JsonFileError, match=why):
        Tables(tmp_path).load()


def test_a_file_that_others_may_read(tmp_path: Path) -> None:
    write(tmp_path / "users.json", {})
    (tmp_path / "users.json").chmod(0o644)
    with pytest.raises(JsonFileError, match=r"users.json holds passwords, .* run chmod 600"):
        Tables(tmp_path).load()
