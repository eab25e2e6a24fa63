# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakePeer
from txrocketmq.namesrv.accounts import OF_BROKERS, PERIOD_MS, NamesrvAccounts
from txrocketmq.namesrv.config import NamesrvConfig
from txrocketmq.remoting.codes import RequestCode as C
from txrocketmq.remoting.command import RemotingCommand
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame.credentials import signature
from txrocketmq.remoting.host.life import Done, Opening

USERS = {
    "userTable": {
        name: {"username": name, "password": f"{name}-pass", "userType": kind}
        | {"userStatus": "enable"}
        for name, kind in (("operator", "Super"), ("reader", "Normal"))
    }
}
ACLS = {
    "aclTable": {
        "reader": {
            "subject": "User:reader",
            "policies": [
                {
                    "policyType": "Custom",
                    "entries": [
                        {"resource": "Topic:orders", "actions": ["Sub"], "decision": "Allow"}
                    ],
                }
            ],
        }
    }
}


class Scene:
    """The accounts of a name server, with threads that are done at once."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder, self.told, self.errors = folder, list[str](), list[Exception | None]()
        settings = {"authentication_enabled": True, "authorization_enabled": True, **settings}
        config = NamesrvConfig(kv_config_path=str(folder / "kvConfig.json"), **settings)
        self.accounts = NamesrvAccounts(config, lambda: 0, self._at_once, self.told.append)
        self.accounts.on_read.append(self.errors.append)

    def _at_once(self, work: Any, done: Done) -> None:
        try:
            work()
        except ValueError as error:
            done(error)
        else:
            done(None)

    def write(self, name: str, content: object) -> None:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        path.chmod(0o600)
        os.utime(path, ns=(path.stat().st_size, path.stat().st_size))

    def may(self, code: int, user: str = "", host: str = "10.0.0.1", **fields: str) -> bool:
        if user:
            fields["AccessKey"] = user
            fields["Signature"] = signature(fields, b"", f"{user}-pass")
        peer = FakePeer()
        peer.remote_address = f"{host}:4711"
        try:
            for guard in self.accounts.guards():
                guard(peer, RemotingCommand(code, fields))
        except ResponseError as error:
            assert error.code == 16
            return False
        return True


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    scene.write("users.json", USERS)
    scene.write("acls.json", ACLS)
    scene.accounts.load()
    return scene


@pytest.mark.parametrize("code", [103, 104, 205, 216, 217, 100, 102, 318, 319, 322, 904, 327])
def test_routes_and_settings_need_an_account(scene: Scene, code: int) -> None:
    assert not scene.may(code)
    assert not scene.may(code, "reader")
    assert not scene.may(code, "nobody")
    assert scene.may(code, "operator")


def test_a_route_needs_a_policy(scene: Scene) -> None:
    assert scene.may(C.GET_ROUTEINFO_BY_TOPIC, "reader", topic="orders")
    assert not scene.may(C.GET_ROUTEINFO_BY_TOPIC, "reader", topic="others")
    assert not scene.may(C.GET_ROUTEINFO_BY_TOPIC, topic="orders")


def test_without_authentication_nobody_is_asked(tmp_path: Path) -> None:
    scene = Scene(tmp_path, authentication_enabled=False, authorization_enabled=False)
    assert scene.accounts.guards() == []
    assert scene.accounts.seal() is None
    assert not list(scene.accounts.life().opens(Opening()))
    scene.write("users.json", USERS)
    (warning,) = scene.accounts.life().opens(Opening())
    assert "authenticationEnabled is not true" in warning


def test_listed_brokers_register_without_an_account_and_do_nothing_else(tmp_path: Path) -> None:
    scene = Scene(tmp_path, brokers_without_account=("10.0.0.0/24",))
    scene.accounts.load()
    for code in OF_BROKERS:
        assert scene.may(code)
        assert not scene.may(code, host="10.0.1.1")
    assert not scene.may(C.UPDATE_NAMESRV_CONFIG)
    assert not scene.may(C.WIPE_WRITE_PERM_OF_BROKER)


def test_the_users_of_the_settings_come_on_top(tmp_path: Path) -> None:
    scene = Scene(
        tmp_path,
        init_authentication_user='{"username":"root","password":"root-pass"}',
        inner_client_authentication_credentials='{"accessKey":"inner","secretKey":"inner-pass"}',
    )
    scene.accounts.load()
    assert scene.may(C.REGISTER_BROKER, "root")
    assert scene.may(C.REGISTER_BROKER, "inner")
    assert scene.accounts.seal() is not None
    assert not list(scene.accounts.life().opens(Opening()))


def test_files_are_read_again_when_they_change(scene: Scene) -> None:
    scene.accounts.look()
    assert scene.errors == []
    scene.write("users.json", {"userTable": {"operator": USERS["userTable"]["operator"]}})
    scene.accounts.look()
    assert not scene.may(C.GET_ROUTEINFO_BY_TOPIC, "reader", topic="orders")
    assert scene.may(C.REGISTER_BROKER, "operator")
    assert scene.errors == [None]
    assert [beat.period_ms for beat in scene.accounts.life().beats] == [PERIOD_MS]


def test_what_policies_are_found_by_is_made_where_files_are_read(scene: Scene) -> None:
    """That is a thread: it takes as long as there are policies."""
    _, acls = scene.accounts._read()
    assert acls
    assert all("index" in vars(acl) for acl in acls.values())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("users.json", ""),
        ("users.json", "{"),
        ("users.json", {"userTable": {"x": {"username": "x"}}}),
        ("users.json", {"userTable": ["x"]}),
        ("users.json", {"userTable": []}),
        ("users.json", []),
        ("users.json", {"userTable": {"x": 1}}),
        ("acls.json", {"aclTable": {"reader": {"subject": "User:reader", "policies": 1}}}),
        ("acls.json", {"aclTable": {"reader": 1}}),
    ],
)
def test_a_broken_file_leaves_the_accounts_and_is_told_once(
    scene: Scene, name: str, content: object
) -> None:
    removed = {"removed": {**USERS["userTable"]["operator"], "password": "removed-pass"}}
    scene.write("users.json.bak", {"userTable": removed})
    scene.write(name, content)
    scene.accounts.look()
    scene.accounts.look()
    assert not scene.may(C.REGISTER_BROKER, "removed")
    assert scene.may(C.GET_ROUTEINFO_BY_TOPIC, "reader", topic="orders")
    (error,) = scene.errors
    assert name in str(error)
    with pytest.raises(ValueError, match=name):
        scene.accounts.load()


def test_files_that_others_may_read_are_refused(scene: Scene) -> None:
    (scene.folder / "users.json").chmod(0o644)
    with pytest.raises(ValueError, match="chmod 600"):
        scene.accounts.load()


def test_without_users_all_are_refused_with_a_warning(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.accounts.load()
    (warning,) = scene.accounts.life().opens(Opening())
    assert "no user" in warning
    assert not scene.may(C.GET_ROUTEINFO_BY_TOPIC, topic="orders")
