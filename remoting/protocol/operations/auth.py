# SPDX-License-Identifier: Apache-2.0
"""Access control: the requests of ACL 1 (4.9 to 5.3.1) and ACL 2 (5.3 and later).

Java: AdminBrokerProcessor.
"""

from __future__ import annotations

from txrocketmq.remoting.call import define
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.header import Header, NoHeader, header


@header("org.apache.rocketmq.common.protocol.header.CreateAccessConfigRequestHeader")
class CreateAccessConfigRequestHeader(Header):
    """ACL 1: creates or changes an account; permissions are separated by commas."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool = False
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None

    def __repr__(self) -> str:
        """Leaves out the secret key, since this text may get into a log."""
        return f"CreateAccessConfigRequestHeader({self.access_key!r}, admin={self.admin})"


@header("org.apache.rocketmq.common.protocol.header.DeleteAccessConfigRequestHeader")
class DeleteAccessConfigRequestHeader(Header):
    """ACL 1: deletes an account."""

    access_key: str


@header("org.apache.rocketmq.common.protocol.header.GetBrokerAclConfigResponseHeader")
class GetBrokerAclConfigResponseHeader(Header):
    """ACL 1: the versions of a broker's ACL files, as JSON texts."""

    version: str
    all_acl_file_version: str | None = None
    broker_name: str
    broker_addr: str
    cluster_name: str


@header("org.apache.rocketmq.common.protocol.header.UpdateGlobalWhiteAddrsConfigRequestHeader")
class UpdateGlobalWhiteAddrsConfigRequestHeader(Header):
    """ACL 1: sets the addresses from which clients need no account."""

    global_white_addrs: str
    acl_file_full_path: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.CreateUserRequestHeader")
class CreateUserRequestHeader(Header):
    """ACL 2: creates a user; the body is UserInfo."""

    username: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.UpdateUserRequestHeader")
class UpdateUserRequestHeader(Header):
    """ACL 2: changes a user; the body is UserInfo."""

    username: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.DeleteUserRequestHeader")
class DeleteUserRequestHeader(Header):
    """ACL 2: deletes a user."""

    username: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.GetUserRequestHeader")
class GetUserRequestHeader(Header):
    """ACL 2: asks for one user."""

    username: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ListUsersRequestHeader")
class ListUsersRequestHeader(Header):
    """ACL 2: asks for the users whose names contain `filter`."""

    filter: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.CreateAclRequestHeader")
class CreateAclRequestHeader(Header):
    """ACL 2: creates access rules of a subject; the body is AclInfo."""

    subject: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.UpdateAclRequestHeader")
class UpdateAclRequestHeader(Header):
    """ACL 2: changes access rules of a subject; the body is AclInfo."""

    subject: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.DeleteAclRequestHeader")
class DeleteAclRequestHeader(Header):
    """ACL 2: deletes all access rules of a subject, or the one for a resource."""

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.GetAclRequestHeader")
class GetAclRequestHeader(Header):
    """ACL 2: asks for the access rules of a subject."""

    subject: str | None = None


@header("org.apache.rocketmq.remoting.protocol.header.ListAclsRequestHeader")
class ListAclsRequestHeader(Header):
    """ACL 2: asks for the access rules whose subject and resource contain the filters."""

    subject_filter: str | None = None
    resource_filter: str | None = None


UPDATE_AND_CREATE_ACL_CONFIG = define(
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, CreateAccessConfigRequestHeader, NoHeader
)
DELETE_ACL_CONFIG = define(RequestCode.DELETE_ACL_CONFIG, DeleteAccessConfigRequestHeader, NoHeader)
GET_BROKER_CLUSTER_ACL_INFO = define(
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO, NoHeader, GetBrokerAclConfigResponseHeader
)
UPDATE_GLOBAL_WHITE_ADDRS_CONFIG = define(
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
    UpdateGlobalWhiteAddrsConfigRequestHeader,
    NoHeader,
)
GET_BROKER_CLUSTER_ACL_CONFIG = define(
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG, NoHeader, NoHeader
)
AUTH_CREATE_USER = define(RequestCode.AUTH_CREATE_USER, CreateUserRequestHeader, NoHeader)
AUTH_UPDATE_USER = define(RequestCode.AUTH_UPDATE_USER, UpdateUserRequestHeader, NoHeader)
AUTH_DELETE_USER = define(RequestCode.AUTH_DELETE_USER, DeleteUserRequestHeader, NoHeader)
AUTH_GET_USER = define(RequestCode.AUTH_GET_USER, GetUserRequestHeader, NoHeader)
AUTH_LIST_USER = define(RequestCode.AUTH_LIST_USER, ListUsersRequestHeader, NoHeader)
AUTH_CREATE_ACL = define(RequestCode.AUTH_CREATE_ACL, CreateAclRequestHeader, NoHeader)
AUTH_UPDATE_ACL = define(RequestCode.AUTH_UPDATE_ACL, UpdateAclRequestHeader, NoHeader)
AUTH_DELETE_ACL = define(RequestCode.AUTH_DELETE_ACL, DeleteAclRequestHeader, NoHeader)
AUTH_GET_ACL = define(RequestCode.AUTH_GET_ACL, GetAclRequestHeader, NoHeader)
AUTH_LIST_ACL = define(RequestCode.AUTH_LIST_ACL, ListAclsRequestHeader, NoHeader)
