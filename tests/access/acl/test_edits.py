# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from tests.access.acl.test_files import account_text, home_of
from txrocketmq.access.acl import edits
from txrocketmq.access.acl.errors import AclError
from txrocketmq.remoting.protocol.body.auth import PlainAccessConfig
from txrocketmq.remoting.protocol.body.route import DataVersion

NEW = PlainAccessConfig(access_key="newcomer", secret_key="secret-n", topic_perms=["t=PUB"])


def test_a_new_account_goes_to_the_default_file(tmp_path: Path) -> None:
    home = home_of(tmp_path, acl__a="accounts:\n" + account_text("someone"))
    files = edits.applied(edits.update(NEW), home, 99)
    assert set(files.accounts) == {"someone", "newcomer"}
    assert home.read().config() == files.config()
    assert files.stamps == home.stamps()
    assert files.versions()[home.default_file] == DataVersion(counter=1, timestamp=99)


def test_an_update_changes_what_is_given_where_the_account_is(tmp_path: Path) -> None:
    home = home_of(
        tmp_path,
        plain_acl="accounts:\n" + account_text("another"),
        acl__a="accounts:\n"
        + account_text("someone", more="  defaultTopicPerm: PUB\n  admin: true\n"),
    )
    change = PlainAccessConfig(
        access_key="someone", secret_key="secret-2", default_topic_perm="", group_perms=["g=SUB"]
    )
    someone = edits.applied(edits.update(change), home, 1).accounts["someone"].config
    assert someone.secret_key == "secret-2"
    assert someone.default_topic_perm == "PUB"
    assert someone.group_perms == ("g=SUB",)
    assert not someone.admin
    assert "someone" not in Path(home.default_file).read_text()


def test_a_deleted_account_is_in_no_file(tmp_path: Path) -> None:
    two = "accounts:\n" + account_text("someone") + account_text("another")
    home = home_of(tmp_path, plain_acl=two, acl__a="accounts:\n" + account_text("someone"))
    files = edits.applied(edits.delete("someone"), home, 1)
    assert set(files.accounts) == {"another"}
    assert set(home.read().accounts) == {"another"}
    with pytest.raises(AclError, match="no such account"):
        edits.applied(edits.delete("someone"), home, 1)


def test_white_addresses_are_set_in_files_that_were_read_only(tmp_path: Path) -> None:
    home = home_of(tmp_path, acl__a="a: 1")
    files = edits.applied(edits.set_white(["10.1.2.*", " "]), home, 1)
    assert files.white.matches("10.1.2.9")
    edits.applied(edits.set_white([], f"{home.folder}/../acl/a.yml"), home, 1)
    other = tmp_path / "conf/other.yml"
    other.write_text("a: 1")
    with pytest.raises(AclError, match="none of the files of accounts"):
        edits.applied(edits.set_white(["*"], str(other)), home, 1)
    assert other.read_text() == "a: 1"


@pytest.mark.parametrize(
    "edit",
    [
        lambda: edits.set_white(["10.1.2.300"]),
        lambda: edits.update(
            PlainAccessConfig(
                access_key="newcomer", secret_key="secret-n", white_remote_address="nowhere"
            )
        ),
        lambda: edits.update(PlainAccessConfig(access_key="newcomer", secret_key="short")),
        lambda: edits.update(
            PlainAccessConfig(access_key="newcomer", secret_key="secret-n", topic_perms=["t=X"])
        ),
    ],
)
def test_what_is_wrong_is_not_written(tmp_path: Path, edit: object) -> None:
    home = home_of(tmp_path, plain_acl="accounts:\n" + account_text("someone"))
    before = Path(home.default_file).read_bytes()
    with pytest.raises(AclError):
        edits.applied(edit(), home, 1)  # type: ignore[operator] # a function that makes one
    assert Path(home.default_file).read_bytes() == before


def test_a_disk_that_does_not_take_it_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    home = home_of(tmp_path, plain_acl="accounts:\n" + account_text("someone"))
    monkeypatch.setattr(edits, "write", full)
    with pytest.raises(AclError, match="cannot write .*: No space left"):
        edits.applied(edits.update(NEW), home, 1)


def test_commas_within_braces_do_not_separate() -> None:
    assert edits.addresses_of("10.1.2.{1,2},::1,") == ["10.1.2.{1,2}", "::1", ""]
    assert edits.addresses_of("}a,{b") == ["}a", "{b"]
