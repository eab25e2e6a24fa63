# SPDX-License-Identifier: Apache-2.0
"""50 to 54: codes and remarks are those of 4.9.7."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.broker.conftest import Parts
from tests.fakes import refused, request
from txrocketmq.broker.processors.admin.admin_acl import AdminAclProcessor
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.work.in_thread import at_once
from txrocketmq.remoting.call import PendingReply, Reply
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.header import Header, NoHeader
from txrocketmq.remoting.protocol.operations.auth import (
    CreateAccessConfigRequestHeader,
    DeleteAccessConfigRequestHeader,
    GetBrokerAclConfigResponseHeader,
    UpdateGlobalWhiteAddrsConfigRequestHeader,
)

SECRET = "secret-1"
YML = f"""
globalWhiteRemoteAddresses:
- 10.1.2.3
accounts:
- accessKey: someone
  secretKey: {SECRET}
  admin: true
"""


class Admin:
    def __init__(self, folder: Path, **settings: Any) -> None:
        (folder / "home/conf").mkdir(parents=True)
        self.path = folder / "home/conf/plain_acl.yml"
        self.path.write_text(YML)
        config = BrokerConfig(rocketmq_home=str(folder / "home"), **settings)
        self.parts = Parts(folder, config)
        self.parts.load()
        self.processor = AdminAclProcessor(config, self.parts.access, "b:10911", at_once)

    def ask(self, method: str, header: Header | None = None) -> Any:
        made = request(header or NoHeader())
        made.command.ext_fields = {"AccessKey": "someone"}
        return self.outcome(getattr(self.processor, method)(made))

    @staticmethod
    def outcome(answer: Any) -> Any:
        return answer.outcome if isinstance(answer, PendingReply) else answer

    def update(self, key: str = "newcomer", **given: Any) -> Any:
        given = {"secret_key": SECRET, **given}
        return self.ask("update", CreateAccessConfigRequestHeader(access_key=key, **given))

    def accounts(self) -> list[dict[str, Any]]:
        reply = self.ask("config")
        found: list[dict[str, Any]] = json.loads(reply.body_bytes)["plainAccessConfigs"]
        return found


@pytest.fixture
def admin(tmp_path: Path) -> Admin:
    return Admin(tmp_path, acl_enable=True)


def test_an_account_is_created_on_disk_and_counts(admin: Admin) -> None:
    reply = admin.update(
        topic_perms="t=PUB,u=SUB", default_group_perm="SUB", white_remote_address="10.1.2.*"
    )
    assert isinstance(reply, Reply)
    assert "newcomer" in admin.path.read_text()
    assert admin.accounts()[1] == {
        "accessKey": "newcomer",
        "secretKey": SECRET,
        "whiteRemoteAddress": "10.1.2.*",
        "admin": False,
        "defaultGroupPerm": "SUB",
        "topicPerms": ["t=PUB", "u=SUB"],
    }


@pytest.mark.parametrize(
    ("given", "remark"),
    [
        ({"secret_key": "short"}, "The accessKey=newcomer and secretKey=*** cannot be null"),
        ({"secret_key": None}, "The accessKey=newcomer and secretKey=null cannot be null"),
        ({"topic_perms": "t"}, "Parse Resource format error for t."),
        ({"group_perms": "g=X"}, "Parse resource permission error for g=X."),
        ({"white_remote_address": "x"}, "Netaddress examine Exception netaddress is x"),
    ],
)
def test_what_is_wrong_is_209_and_changes_nothing(
    admin: Admin, given: dict[str, Any], remark: str
) -> None:
    error = admin.update(**given)
    assert isinstance(error, ResponseError)
    assert error.code == 209 == ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED
    assert remark in (error.remark or "")
    assert admin.path.read_text() == YML


def test_an_account_is_deleted(admin: Admin) -> None:
    header = DeleteAccessConfigRequestHeader(access_key="someone")
    assert isinstance(admin.ask("delete", header), Reply)
    assert admin.accounts() == []
    error = admin.ask("delete", header)
    assert error.code == 210
    assert error.remark.startswith(
        "The accesskey[someone] corresponding to accessConfig has been deleted failed."
    )


def test_white_addresses_are_set(admin: Admin) -> None:
    header = UpdateGlobalWhiteAddrsConfigRequestHeader(global_white_addrs="10.1.2.{1,2},::1")
    assert isinstance(admin.ask("set_white", header), Reply)
    reply = admin.ask("config")
    assert json.loads(reply.body_bytes)["globalWhiteAddrs"] == ["10.1.2.{1,2}", "::1"]
    for text, path in (("10.1.2.300", ""), ("*", "/etc/passwd")):
        header = UpdateGlobalWhiteAddrsConfigRequestHeader(
            global_white_addrs=text, acl_file_full_path=path
        )
        error = admin.ask("set_white", header)
        assert error.code == 211
        assert error.remark.startswith(f"The globalWhiteAddresses[{text}] has been updated failed.")


def test_versions_count_changes(admin: Admin) -> None:
    admin.update()
    admin.update()
    header = admin.ask("versions").header
    assert isinstance(header, GetBrokerAclConfigResponseHeader)
    assert json.loads(header.version)["counter"] == 2
    assert json.loads(header.all_acl_file_version or "")[str(admin.path)]["counter"] == 2
    assert (header.broker_addr, header.cluster_name) == ("b:10911", "DefaultCluster")


def test_without_acl_1_they_are_no_requests(tmp_path: Path) -> None:
    admin = Admin(tmp_path)
    for method, header in (
        ("update", CreateAccessConfigRequestHeader(access_key="newcomer", secret_key=SECRET)),
        ("delete", DeleteAccessConfigRequestHeader(access_key="someone")),
        ("set_white", UpdateGlobalWhiteAddrsConfigRequestHeader(global_white_addrs="*")),
        ("versions", None),
        ("config", None),
    ):
        with refused(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "aclEnable is not true"):
            admin.ask(method, header)
    assert admin.parts.access.guards() == []
