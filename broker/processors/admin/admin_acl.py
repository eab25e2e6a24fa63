# SPDX-License-Identifier: Apache-2.0
"""Accounts of ACL 1: 50 to 54.

Changes (50, 51, 53) are in the file on disk, and count, when they are answered; what is wrong with
them is 209, 210 or 211, and then nothing has changed. Changes and secrets (54) are for
administrators alone, which the guard has asked for. Only files that were read are written.

Without aclEnable all of these are answered like requests that are not served
(REQUEST_CODE_NOT_SUPPORTED); the original throws, or does not answer. Java: AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from txrocketmq.access.acl import edits
from txrocketmq.access.acl.edits import Edit
from txrocketmq.access.acl.errors import AclError
from txrocketmq.access.acl.table import PlainAccounts
from txrocketmq.access.known import host_of
from txrocketmq.broker.accounts.access import Access
from txrocketmq.broker.settings.config import BrokerConfig
from txrocketmq.broker.work.in_thread import InThread
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame.signer import ACCESS_KEY
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.auth import PlainAccessConfig
from txrocketmq.remoting.protocol.body.route import DataVersion
from txrocketmq.remoting.protocol.operations import auth
from txrocketmq.remoting.protocol.operations.auth import (
    CreateAccessConfigRequestHeader,
    DeleteAccessConfigRequestHeader,
    GetBrokerAclConfigResponseHeader,
    UpdateGlobalWhiteAddrsConfigRequestHeader,
)
from txrocketmq.remoting.serialize.json import encode_body


class AdminAclProcessor:
    """Changes and shows the accounts of files of YAML."""

    def __init__(
        self, config: BrokerConfig, access: Access, address: str, in_thread: InThread
    ) -> None:
        self._config = config
        self._access = access
        self._address = address
        self._in_thread = in_thread

    @serves(auth.UPDATE_AND_CREATE_ACL_CONFIG)
    def update(self, request: Request[CreateAccessConfigRequestHeader]) -> PendingReply:
        """Creates an account, or changes what is given of one."""
        header = request.header
        config = PlainAccessConfig(
            access_key=header.access_key,
            secret_key=header.secret_key,
            white_remote_address=header.white_remote_address,
            admin=header.admin,
            default_topic_perm=header.default_topic_perm,
            default_group_perm=header.default_group_perm,
            topic_perms=_split(header.topic_perms),
            group_perms=_split(header.group_perms),
        )
        return self._edit(
            request,
            lambda: edits.update(config),
            f"created or changed the account {header.access_key}",
            ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED,
        )

    @serves(auth.DELETE_ACL_CONFIG)
    def delete(self, request: Request[DeleteAccessConfigRequestHeader]) -> PendingReply:
        """Deletes an account."""
        key = request.header.access_key
        return self._edit(
            request,
            lambda: edits.delete(key),
            f"deleted the account {key}",
            ResponseCode.DELETE_ACL_CONFIG_FAILED,
            f"The accesskey[{key}] corresponding to accessConfig has been deleted failed.",
        )

    @serves(auth.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG)
    def set_white(
        self, request: Request[UpdateGlobalWhiteAddrsConfigRequestHeader]
    ) -> PendingReply:
        """Sets the addresses from which nobody needs an account."""
        text = request.header.global_white_addrs
        path = request.header.acl_file_full_path or ""
        return self._edit(
            request,
            lambda: edits.set_white(edits.addresses_of(text), path),
            f"set the global white addresses {text}",
            ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED,
            f"The globalWhiteAddresses[{text}] has been updated failed.",
        )

    @serves(auth.GET_BROKER_CLUSTER_ACL_INFO)
    def versions(self, _: Request[NoHeader]) -> Reply[GetBrokerAclConfigResponseHeader]:
        """Returns the versions of the files that are not empty."""
        plain = self._plain()
        versions = plain.files.versions()
        default = versions.get(plain.home.default_file, DataVersion())
        return Reply(
            GetBrokerAclConfigResponseHeader(
                version=encode_body(default).decode(),
                all_acl_file_version=encode_body(versions).decode(),
                broker_name=self._config.broker_name,
                broker_addr=self._address,
                cluster_name=self._config.broker_cluster_name,
            )
        )

    @serves(auth.GET_BROKER_CLUSTER_ACL_CONFIG)
    def config(self, _: Request[NoHeader]) -> PendingReply:
        """Returns all accounts, with their secrets; there may be many."""
        files = self._plain().files
        pending, body = PendingReply(is_work=True), list[bytes]()

        def encoded(error: Exception | None) -> None:
            pending.resolve(Reply(body=body) if error is None else error)

        self._in_thread(lambda: body.append(encode_body(files.config())), encoded)
        return pending

    def _plain(self) -> PlainAccounts:
        plain = self._access.plain
        if plain is None:
            raise ResponseError(
                ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                "this broker has no accounts of RocketMQ 4: aclEnable is not true in its settings",
            )
        return plain

    def _edit(
        self,
        request: Request[Any],
        edit: Callable[[], Edit],
        what: str,
        code: int,
        failed: str = "",
    ) -> PendingReply:
        """Changes files; `failed` is the original's remark if that is not possible."""
        plain = self._plain()
        pending = PendingReply(is_work=True)
        user = (request.command.ext_fields or {}).get(ACCESS_KEY, "")
        host = host_of(request.peer.remote_address)

        def edited(error: Exception | None) -> None:
            if error is None:
                self._access.audit.change(user, host, what)
                pending.resolve(Reply())
            elif isinstance(error, AclError):
                remark = f"{failed} {error}" if failed else str(error)
                pending.resolve(ResponseError(code, remark))
            else:
                pending.resolve(error)

        try:
            plain.edit(edit(), edited)
        except AclError as error:
            edited(error)
        return pending


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [each for each in text.split(",") if each]
