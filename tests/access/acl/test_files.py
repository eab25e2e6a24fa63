# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from txrocketmq.access.acl import files as module
from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.files import AclHome
from txrocketmq.remoting.protocol.body.route import DataVersion


def account_text(key: str, secret: str = "secret-1", more: str = "") -> str:
    return f"- accessKey: {key}\n  secretKey: {secret}\n{more}"


def home_of(tmp_path: Path, **texts: str) -> AclHome:
    for name, text in texts.items():
        path = tmp_path / "conf" / name.replace("__", "/")
        path = path.with_suffix(".yml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return AclHome(str(tmp_path))


def test_all_files_are_read_and_the_first_account_of_a_key_counts(tmp_path: Path) -> None:
    home = home_of(
        tmp_path,
        plain_acl="globalWhiteRemoteAddresses:\n- 10.1.2.3\naccounts:\n"
        + account_text("default", "secret-d")
        + account_text("twofold", "secret-d"),
        acl__b="accounts:\n" + account_text("twofold", "secret-b"),
        acl__sub__c="globalWhiteRemoteAddresses:\n- 10.1.2.4\n",
        acl__empty="",
    )
    files = home.read()
    assert {key: each.secret_key for key, each in files.accounts.items()} == {
        "twofold": "secret-b",
        "default": "secret-d",
    }
    assert files.white.matches("10.1.2.3")
    assert files.white.matches("10.1.2.4")
    assert files.stamps == home.stamps()
    (warning,) = files.warnings
    assert "twofold is in" in warning
    config = files.config()
    assert config.global_white_addrs == ["10.1.2.4", "10.1.2.3"]
    assert len(files.versions()) == 3


def test_without_files_there_are_no_accounts(tmp_path: Path) -> None:
    files = AclHome(str(tmp_path)).read()
    assert not files.accounts
    assert files.white.is_empty


def test_links_that_lead_back_end(tmp_path: Path) -> None:
    home = home_of(tmp_path, acl__a="accounts:\n" + account_text("someone"))
    (tmp_path / "conf/acl/again").symlink_to(tmp_path / "conf/acl")
    assert [Path(path).name for path in home.paths()] == ["a.yml"]


def test_versions_are_read(tmp_path: Path) -> None:
    home = home_of(tmp_path, plain_acl="dataVersion:\n- counter: 7\n  timestamp: 99\n")
    assert home.read().versions() == {home.default_file: DataVersion(counter=7, timestamp=99)}
    for text in ("dataVersion: 3", "dataVersion: [3]", "dataVersion:\n- counter: x\n", "a: 1"):
        home = home_of(tmp_path, plain_acl=text)
        assert home.read().versions() == {home.default_file: DataVersion()}


@pytest.mark.parametrize(
    "text",
    [
        "accounts: 1",
        "accounts: [text]",
        "accounts:\n- accessKey: short\n  secretKey: secret-1\n",
        "accounts:\n- secretKey: secret-1\n",
        "globalWhiteRemoteAddresses: 10.1.2.3",
        "globalWhiteRemoteAddresses:\n- 10.1.2.300\n",
        "accounts:\n" + account_text("someone", more="  topicPerms:\n  - t\n"),
    ],
)
def test_one_line_says_what_is_wrong_and_where(tmp_path: Path, text: str) -> None:
    home = home_of(tmp_path, plain_acl=text)
    with pytest.raises(AclError) as raised:
        home.read()
    assert str(raised.value).startswith(home.default_file)
    assert "\n" not in str(raised.value)
    assert "secret-1" not in str(raised.value)


def test_what_has_no_effect_is_warned_about(tmp_path: Path) -> None:
    home = home_of(
        tmp_path,
        plain_acl="account: 1\naccounts:\n" + account_text("someone", more="  topicPerm: []\n"),
    )
    warnings = home.read().warnings
    assert any("account has no effect" in each for each in warnings)
    assert any("did you mean topicPerms?" in each for each in warnings)


def test_files_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = home_of(tmp_path, plain_acl="a: 1", acl__a="a: 1", acl__b="a: 1")
    monkeypatch.setattr(module, "MAX_BYTES", 3)
    with pytest.raises(AclError, match="more than 3 bytes"):
        home.read()
    monkeypatch.setattr(module, "_MOST_FILES", 1)
    with pytest.raises(AclError, match="more than 1 files"):
        home.read()


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    home = home_of(tmp_path, plain_acl="a: 1")
    (tmp_path / "conf/acl").mkdir()
    (tmp_path / "conf/acl/x.yml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(AclError, match="cannot read .*x.yml"):
        home.read()
