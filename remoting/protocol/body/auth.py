# SPDX-License-Identifier: Apache-2.0
"""Users and access rules: ACL 2 (5.3 and later), ACL 1 (4.9 to 5.3.1).

Java: UserInfo and AclInfo in remoting.protocol.body; AclConfig, PlainAccessConfig and
ClusterAclVersionInfo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from txrocketmq.remoting.protocol.body.base import Body, SecretBody, body
from txrocketmq.remoting.protocol.body.route import DataVersion


@body("org.apache.rocketmq.remoting.protocol.body.UserInfo")
class UserInfo(SecretBody):
    """A user; `user_type` is "Super" or "Normal", `user_status` is "enable" or "disable"."""

    username: str | None = None
    password: str | None = None
    user_type: str | None = None
    user_status: str | None = None

    def __repr__(self) -> str:
        """Leaves out the password, since this text may get into a log."""
        return f"UserInfo({self.username!r}, {self.user_type!r}, {self.user_status!r})"


@body("org.apache.rocketmq.remoting.protocol.body.AclInfo.PolicyEntryInfo")
class PolicyEntryInfo(Body):
    """One access rule: which actions on a resource are allowed or denied, and from which addresses.

    `decision` is "Allow" or "Deny".
    """

    resource: str | None = None
    actions: Sequence[str] | None = None
    source_ips: Sequence[str] | None = None
    decision: str | None = None


@body("org.apache.rocketmq.remoting.protocol.body.AclInfo.PolicyInfo")
class PolicyInfo(Body):
    """The access rules of one type, "Custom" or "Default"."""

    policy_type: str | None = None
    entries: Sequence[PolicyEntryInfo] | None = None


@body("org.apache.rocketmq.remoting.protocol.body.AclInfo")
class AclInfo(Body):
    """All access rules of a subject, which is written as "User:name"."""

    subject: str | None = None
    policies: Sequence[PolicyInfo] | None = None


@body("org.apache.rocketmq.common.PlainAccessConfig")
class PlainAccessConfig(SecretBody):
    """An account of ACL 1; permissions are written as "topic=PUB|SUB"."""

    access_key: str | None = None
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: Sequence[str] | None = None
    group_perms: Sequence[str] | None = None

    def __repr__(self) -> str:
        """Leaves out the secret key, since this text may get into a log."""
        return f"PlainAccessConfig({self.access_key!r}, admin={self.admin})"


@body("org.apache.rocketmq.common.AclConfig")
class AclConfig(Body):
    """The answer to GET_BROKER_CLUSTER_ACL_CONFIG."""

    global_white_addrs: Sequence[str] | None = None
    plain_access_configs: Sequence[PlainAccessConfig] | None = None


@body("org.apache.rocketmq.common.protocol.body.ClusterAclVersionInfo")
class ClusterAclVersionInfo(Body):
    """The versions of a broker's ACL files, as mqadmin of 4.9 shows them."""

    broker_name: str | None = None
    broker_addr: str | None = None
    acl_config_data_version: DataVersion | None = None
    all_acl_config_data_version: Mapping[str, DataVersion] | None = None
    cluster_name: str | None = None
