# SPDX-License-Identifier: Apache-2.0
"""The files of accounts, damaged in every way: nothing that was taken away comes back.

A broker refuses to start and names the file, or everything is as it was. Of other files of
`config`, which test_config_damage.py damages, the state before may be read instead.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.broker.test_service import Client, Scene
from tests.broker.test_service_accounts import ACCOUNTS, Account, rules, user
from tests.crash.damages import repair
from tests.crash.test_config_damage import CONFIG_DAMAGES
from txrocketmq.access.auth.policies import Acl
from txrocketmq.access.auth.users import User

FILES = ("users.json", "acls.json")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose broker was killed behind the answer that a user is deleted, and a policy."""
    folder = tmp_path_factory.mktemp("accounts")
    scene = Scene(folder, **ACCOUNTS).start()
    root = Account(Client(scene))
    for name in ("alice", "mallory"):
        assert root.ask(3001, *user(name, user_type="Super")).code == 0
        entries = (("Topic:T", "Pub|Sub"), ("Topic:Secret", "Sub"))
        assert root.ask(3006, *rules(name, *entries)).code == 0
    assert root.ask(3003, {"username": "mallory"}).code == 0
    assert root.ask(3008, {"subject": "User:alice", "resource": "Topic:Secret"}).code == 0
    scene.broker.parts.store._marks.unlock()  # what the end of the process does
    return folder


def state_of(scene: Scene) -> tuple[dict[str, User], dict[str, Acl]]:
    accounts = scene.broker.parts.access.accounts
    return accounts.users.all(), accounts.acls()


@pytest.mark.parametrize("damage", [*CONFIG_DAMAGES, "others may read it"])
@pytest.mark.parametrize("name", [f"{each}{end}" for each in FILES for end in ("", ".bak")])
def test_what_was_taken_away_stays_so(killed: Path, tmp_path: Path, name: str, damage: str) -> None:
    before, folder = tmp_path / "before", tmp_path / "store"
    for copy in (before, folder):
        shutil.copytree(killed, copy, symlinks=True)
    undamaged = Scene(before, **ACCOUNTS).start()
    expected = state_of(undamaged)
    assert set(expected[0]) == {"root", "inner", "alice"}
    path = folder / "config" / name
    if damage in CONFIG_DAMAGES:
        CONFIG_DAMAGES[damage](path)
    else:
        path.chmod(0o644)
    try:
        scene = Scene(folder, **ACCOUNTS).start()
    except (OSError, ValueError) as error:
        assert name in str(error)
        repair(path, killed / "config" / name)
        path.chmod(0o600)
        scene = Scene(folder, **ACCOUNTS).start()
    assert state_of(scene) == expected


def test_without_any_of_the_files_there_are_only_the_users_of_the_settings(
    killed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    shutil.copytree(killed, folder, symlinks=True)
    for path in (folder / "config").glob("*s.json*"):
        path.unlink()
    users, acls = state_of(Scene(folder, **ACCOUNTS).start())
    assert (set(users), acls) == ({"root", "inner"}, {})
