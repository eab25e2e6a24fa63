# SPDX-License-Identifier: Apache-2.0
"""Accounts of plain_acl.yml as accounts with policies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.administered import Administered
from tests.client.admin.guarded_cluster import ALL, Guarded
from txrocketmq.access.acl.errors import AclError
from txrocketmq.cli.access import accounts
from txrocketmq.cli.access.plain_file import imported

KEY = "abcdefgh"
FILE = """\
globalWhiteRemoteAddresses:
- 10.10.103.*
accounts:
- accessKey: rocketmq2
  secretKey: 12345678
  whiteRemoteAddress: 192.168.1.*
  admin: true
- accessKey: reader4
  secretKey: abcdefgh
  defaultTopicPerm: DENY
  defaultGroupPerm: SUB
  topicPerms:
  - topicA=DENY
  - topicB=PUB|SUB
  - topicC=Sub
  - '%RETRY%groupB=SUB'
  groupPerms:
  - groupA=SUB
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "plain_acl.yml"
    path.write_text(FILE)
    return str(path)


def test_permissions_become_policies(path: str) -> None:
    (admin, reader), (white,) = imported(path)
    assert (admin.account.name, admin.account.is_super, admin.account.password) == (
        "rocketmq2", True, "12345678",
    )  # fmt: skip
    assert admin.policies == []
    assert "whiteRemoteAddress of rocketmq2" in admin.warnings[0]
    assert "10.10.103.*" in white
    assert not reader.account.is_super
    assert [
        (each.resource, each.actions, each.allows, each.is_default) for each in reader.policies
    ] == [
        ("Topic:topicA", ("All",), False, False),
        ("Topic:topicB", ("Pub", "Sub"), True, False),
        ("Topic:topicC", ("All",), False, False),  # misspelt, so it is denied
        ("Group:groupB", ("Sub",), True, False),
        ("Group:groupA", ("Sub",), True, False),
        ("Topic:*", ("All",), False, True),
        ("Group:*", ("Sub",), True, True),
    ]


def test_files_that_are_wrong(tmp_path: Path) -> None:
    for text in ("accounts: [", "accounts:\n- accessKey: short\n  secretKey: '1'\n"):
        path = tmp_path / "wrong.yml"
        path.write_text(text)
        with pytest.raises(AclError):
            imported(str(path))


def test_the_command(administered: Administered, path: str) -> None:
    administered.cluster = cluster = Guarded()
    assert administered.run(accounts.main, "import", path) == 0
    assert "imported account reader4 with 7 policies\n" in administered.out
    assert all(cluster.users[each]["reader4"].password == KEY for each in ALL)
    assert KEY not in administered.out
    assert administered.run(accounts.main, "import", path) == 0
    assert "account reader4 exists already\n" in administered.out
    assert administered.run(accounts.main, "import", "/none.yml") == 1
    assert "/none.yml" in administered.err
