# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.yaml_file import loaded, write


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.yml"
    members = {"accounts": [{"accessKey": "123456789", "admin": True, "topicPerms": ["ä=PUB|SUB"]}]}
    write(str(path), members)
    assert loaded(str(path), path.read_bytes()) == members
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_file_behind_a_link_is_replaced(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yml", tmp_path / "link.yml"
    real.write_text("a: 1")
    real.chmod(0o640)
    link.symlink_to(real)
    write(str(link), {"a": 2})
    assert link.is_symlink()
    assert loaded("", real.read_bytes()) == {"a": 2}
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("data", [b"", b"# nothing\n", b"---\n"])
def test_an_empty_file_has_no_members(data: bytes) -> None:
    assert loaded("", data) == {}


@pytest.mark.parametrize(
    "data",
    [
        b"accounts: [my-secret",
        b"- my-secret",
        b"my-secret",
        b"a: !!python/object:os.system my-secret",
        b"a: \x00my-secret",
        b"a: \xff\xfe my-secret",
        b"[" * 100_000 + b"my-secret",
        b"a: &a [*a, my-secret",
        b"a: 1\n---\nb: my-secret",
        b"secretKey: !my-secret",
        b"secretKey: !my-secret!x y",
        b"secretKey: !it's-my-secret x",
        b"secretKey: *my-secret",
        b"a: &my-secret 1\nb: &my-secret [",
    ],
)
def test_what_is_no_mapping_is_an_error_that_shows_nothing_of_it(data: bytes) -> None:
    with pytest.raises(AclError) as raised:
        loaded("conf/a.yml", data)
    assert str(raised.value).startswith("conf/a.yml")
    assert "my-secret" not in str(raised.value)
    assert "\n" not in str(raised.value)
