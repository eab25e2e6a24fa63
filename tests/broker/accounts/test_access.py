# SPDX-License-Identifier: Apache-2.0
"""The start of a broker with accounts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from txrocketmq.access.auth.users import User, UserType
from txrocketmq.broker.accounts.access import Access
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.work import notices
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.host.life import Opening
from txrocketmq.remoting.settings.config_file import ConfigError

ROOT = json.dumps({"username": "root", "password": "r"})
LOCAL = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider"
INNER = json.dumps({"accessKey": "inner", "secretKey": "i"})


PLAIN = """
globalWhiteRemoteAddresses: [10.0.0.1]
accounts:
- {accessKey: RocketMQ, secretKey: "12345678", topicPerms: [topicB=PUB]}
- {accessKey: rocketmq2, secretKey: "12345678", admin: true, whiteRemoteAddress: 10.1.*.*}
"""


def opened(folder: Path, **settings: Any) -> tuple[Access, list[str]]:
    config = BrokerConfig(**{"authentication_enabled": True, **settings})
    access = Access(config, folder, lambda: 0)
    warnings: list[str] = []
    for life in access.lives():
        if life.table is not None:
            life.table.load()
        life.loads()
        warnings += life.opens(Opening())
    return access, warnings


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the audit is told of changes."""
    lines: list[str] = []
    monkeypatch.setattr(notices, "account_changed", lines.append)
    return lines


def test_the_first_users(tmp_path: Path, told: list[str]) -> None:
    named = {"init_authentication_user": ROOT, "inner_client_authentication_credentials": INNER}
    access, warnings = opened(tmp_path, **named)
    assert warnings == []
    users = access.accounts.users
    assert users.get("root") == User("root", "r", UserType.SUPER)
    assert users.get("inner") == User("inner", "i", UserType.SUPER)
    assert told == [
        "the broker created the Super user root, which initAuthenticationUser names",
        "the broker created the Super user inner, which innerClientAuthenticationCredentials names",
    ]
    access.users.saving.write_now()
    named["init_authentication_user"] = ROOT.replace('"r"', '"other"')
    access, (warning,) = opened(tmp_path, **named)
    assert access.accounts.users.get("root") == User("root", "r", UserType.SUPER)
    assert "initAuthenticationUser has another password than the user root" in warning
    assert "other" not in warning.replace("another", "")


def test_nobody_could_do_anything(tmp_path: Path) -> None:
    _, (warning,) = opened(tmp_path)
    assert warning == (
        "there is no user, so all requests will be refused: set initAuthenticationUser"
    )


def test_accounts_of_the_original_are_told(tmp_path: Path) -> None:
    for name in ("users", "acls"):
        (tmp_path / name).mkdir(parents=True)
    _, warnings = opened(tmp_path, init_authentication_user=ROOT)
    assert len(warnings) == 2
    assert "in RocksDB, which is not read: copy them" in warnings[0]


def test_accounts_that_are_switched_off_are_told(tmp_path: Path) -> None:
    _, warnings = opened(tmp_path, authentication_enabled=False)
    assert warnings == []
    (tmp_path / "users.json").write_text("{}")
    access, warnings = opened(tmp_path, authentication_enabled=False, init_authentication_user=ROOT)
    assert len(warnings) == 2
    assert all("authenticationEnabled is not true" in text for text in warnings)
    assert access.guards() == []
    assert access.files() == []
    assert access.seal() is None


class Later:
    """Stands for threads: work is done when the test says so."""

    def __init__(self) -> None:
        self.work: list[Any] = []

    def __call__(self, work: Any, done: Any) -> None:
        self.work.append((work, done))

    def do(self, error: Exception | None = None) -> None:
        work, done = self.work.pop(0)
        if error is None:
            work()
        done(error)


@pytest.fixture
def access(tmp_path: Path) -> Access:
    return opened(tmp_path, init_authentication_user=ROOT)[0]


def answered(access: Access) -> PendingReply:
    answer = access.answer(Reply())
    assert isinstance(answer, PendingReply)
    return answer


def test_an_answer_waits_for_both_files(access: Access) -> None:
    users, acls = Later(), Later()
    access.users.saving.in_thread, access.acls.saving.in_thread = users, acls
    access.users._file.is_stale = access.acls._file.is_stale = True
    answer = answered(access)
    acls.do()
    assert answer.outcome is None
    users.do()
    assert isinstance(answer.outcome, Reply)
    assert isinstance(access.answer(Reply()), Reply), "there is nothing to wait for"


@pytest.mark.parametrize("failing", [0, 1])
def test_a_file_that_cannot_be_written_is_said(access: Access, failing: int) -> None:
    users, acls = Later(), Later()
    access.users.saving.in_thread, access.acls.saving.in_thread = users, acls
    access.users._file.is_stale = access.acls._file.is_stale = True
    answer = answered(access)
    acls.do(OSError("disk full") if failing == 0 else None)
    if failing == 1:
        users.do(OSError("disk full"))
    assert "could not be saved" in str(answer.outcome)


def test_users_are_kept_beside_accounts_of_rocketmq_4(tmp_path: Path) -> None:
    """They may be made before authenticationEnabled takes the place of aclEnable."""
    settings = {
        "authentication_enabled": False,
        "authentication_metadata_provider": LOCAL,
        "acl_enable": True,
        "rocketmq_home": str(tmp_path),
    }
    before, _ = opened(tmp_path, init_authentication_user=ROOT, **settings)
    before.users.saving.write_now()
    after, _ = opened(tmp_path, **settings)
    assert after.accounts.users.get("root") == User("root", "r", UserType.SUPER)
    assert after.plain is not None
    after.accounts.ensure(User("alice", "a"))
    after.users.saving.write_now()
    assert list(json.loads((tmp_path / "users.json").read_text())["userTable"]) == ["alice", "root"]


def test_accounts_of_rocketmq_4_become_users(tmp_path: Path, told: list[str]) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "plain_acl.yml").write_text(PLAIN)
    migrates = {"rocketmq_home": str(tmp_path), "migrate_auth_from_v1_enabled": True}
    access, (warning,) = opened(tmp_path, **migrates)
    assert "not taken over, those for everybody, rocketmq2" in warning
    users = access.accounts.users
    assert users.get("RocketMQ") == User("RocketMQ", "12345678")
    assert told[0] == "the broker created the user RocketMQ from an account of RocketMQ 4"
    assert users.get("rocketmq2") == User("rocketmq2", "12345678", UserType.SUPER)
    acl = access.accounts.acl("RocketMQ")
    assert acl is not None
    access.users.saving.write_now()
    access.acls.saving.write_now()
    (tmp_path / "conf" / "plain_acl.yml").write_text(PLAIN.replace("12345678", "87654321"))
    access, _ = opened(tmp_path, **migrates)
    assert access.accounts.users.get("RocketMQ") == User("RocketMQ", "12345678"), (
        "it is one already"
    )
    (tmp_path / "conf" / "plain_acl.yml").write_text("accounts: [")
    with pytest.raises(ValueError, match=r"plain_acl\.yml"):
        opened(tmp_path, **migrates)
    with pytest.raises(ConfigError, match="migrateAuthFromV1Enabled=true needs rocketmqHome"):
        opened(tmp_path, migrate_auth_from_v1_enabled=True, rocketmq_home="")
