# SPDX-License-Identifier: Apache-2.0
"""Users and policies of ACL 2: 3001 to 3010.

A blank name is INVALID_PARAMETER (29); what the original's Super users keep to themselves is
SYSTEM_ERROR (1) or NO_PERMISSION (16), as there, and everything else that is wrong is 16. Deleting
a user that there is not is a success. Changes count at once, and are answered when they are on
disk. A user that is not found, and an empty list, are answers without a body.

Unlike the original, passwords are shown to Super users only, a resource that is none deletes
nothing, and without accounts all of this is refused. Java: AdminBrokerProcessor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from txrocketmq.access.auth.policies import (
    Acl,
    PolicyType,
    Resource,
    Steps,
    making_acl,
    resource_of,
    user_of,
)
from txrocketmq.access.auth.users import User, UserType, member, refused
from txrocketmq.access.known import host_of
from txrocketmq.broker.accounts.access import Access
from txrocketmq.broker.work.walks import Pieces, Walk, Walks
from txrocketmq.remoting.call import PendingReply, Reply, Request
from txrocketmq.remoting.codes import ResponseCode
from txrocketmq.remoting.dispatch import serves
from txrocketmq.remoting.errors import ResponseError
from txrocketmq.remoting.frame.signer import ACCESS_KEY
from txrocketmq.remoting.header import NoHeader
from txrocketmq.remoting.protocol.body.auth import AclInfo, UserInfo
from txrocketmq.remoting.protocol.body.base import SHORT_BYTES, BodyError
from txrocketmq.remoting.protocol.operations import auth
from txrocketmq.remoting.protocol.operations.auth import (
    CreateAclRequestHeader,
    CreateUserRequestHeader,
    DeleteAclRequestHeader,
    DeleteUserRequestHeader,
    GetAclRequestHeader,
    GetUserRequestHeader,
    ListAclsRequestHeader,
    ListUsersRequestHeader,
    UpdateAclRequestHeader,
    UpdateUserRequestHeader,
)
from txrocketmq.remoting.serialize.json import HOLE, decode_body, encode_around

_EXCEPTION = "org.apache.rocketmq.auth.authorization.exception.AuthorizationException"
_AT_ONCE = 16
"""How many entries of an Acl are encoded in a step."""
_ONLY_SUPER = "The super user can only be update by super user"
_FAILED = "An system error occurred, please try again later."


class AdminAuthProcessor:
    """Creates, changes, deletes and shows users and their policies."""

    def __init__(self, access: Access, walks: Walks) -> None:
        self._access = access
        self._accounts = access.accounts
        self._walks = walks

    def _check(self) -> None:
        if not self._access.is_served:
            raise ResponseError(
                ResponseCode.SYSTEM_ERROR,
                "this broker has no accounts: authenticationEnabled is not true in its settings",
            )

    def _is_super(self, request: Request[Any]) -> bool:
        """Returns whether a Super user asks, or anybody as long as requests need no account."""
        if not self._access.authenticates:
            return True
        user = self._accounts.users.get(_asker(request))
        return user is not None and user.is_super

    def _changed(self, request: Request[Any], what: str) -> Reply[NoHeader] | PendingReply:
        self._access.audit.change(_asker(request), host_of(request.peer.remote_address), what)
        return self._access.answer(Reply())

    # ------------------------------------------------------------------------------ users

    @serves(auth.AUTH_CREATE_USER)
    def create_user(
        self, request: Request[CreateUserRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Creates a user that there is not."""
        self._check()
        name, info = self._user(request.header.username, request.body)
        if member(UserType, info.user_type) is UserType.SUPER and not self._is_super(request):
            raise refused(
                "The super user can only be create by super user", ResponseCode.SYSTEM_ERROR
            )
        user = self._accounts.create_user(name, info)
        return self._changed(request, f"created the {user.type.text} user {name}")

    @serves(auth.AUTH_UPDATE_USER)
    def update_user(
        self, request: Request[UpdateUserRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Changes what is given of a user."""
        self._check()
        name, info = self._user(request.header.username, request.body)
        is_super = self._is_super(request)
        if member(UserType, info.user_type) is UserType.SUPER and not is_super:
            raise refused(_ONLY_SUPER, ResponseCode.SYSTEM_ERROR)
        self._check_target(name, is_super=is_super)
        user = self._accounts.update_user(name, info)
        password = " and has another password" if (info.password or "").strip() else ""
        return self._changed(
            request,
            f"changed the user {name}, which is {user.type.text}, {user.status.text}d{password}",
        )

    @serves(auth.AUTH_DELETE_USER)
    def delete_user(
        self, request: Request[DeleteUserRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Deletes a user with its policies."""
        self._check()
        name = request.header.username or ""
        if not name.strip():
            raise refused("username can not be blank")
        self._check_target(name, is_super=self._is_super(request))
        if not self._accounts.delete_user(name):
            return self._access.answer(Reply())
        return self._changed(request, f"deleted the user {name}")

    @serves(auth.AUTH_GET_USER)
    def get_user(self, request: Request[GetUserRequestHeader]) -> Reply[NoHeader]:
        """Returns one user."""
        self._check()
        user = self._accounts.users.get(_name(request.header.username))
        if user is None:
            return Reply()
        return Reply(body=self._info(user, request).encode())

    @serves(auth.AUTH_LIST_USER)
    def list_users(
        self, request: Request[ListUsersRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Returns the users whose names contain the filter."""
        self._check()
        wanted = (request.header.filter or "").strip()
        users = self._accounts.users.all()
        return self._walks.answer(
            self._list(
                self._info(users[name], request) if wanted in name else None
                for name in _in_order(users)
            )
        )

    @staticmethod
    def _list(infos: Iterable[UserInfo | None]) -> Walk:
        """Puts a list together, an item a step."""
        pieces, separator = Pieces(), b"["
        for info in infos:
            if info is not None:
                pieces.add(separator + info.encode())
                separator = b","
            yield
        if separator == b"[":
            return Reply()
        pieces.add(b"]")
        return Reply(body=pieces.end())

    def _info(self, user: User, request: Request[Any]) -> UserInfo:
        shows = self._access.authenticates and self._is_super(request)
        return user.info(with_password=shows)

    def _user(self, username: str | None, body: bytes) -> tuple[str, UserInfo]:
        name = _name(username)
        if not body:
            raise refused("user can not be null")
        return name, UserInfo.decode(body)

    def _check_target(self, name: str, *, is_super: bool) -> None:
        user = self._accounts.users.get(name)
        if user is not None and user.is_super and not is_super:
            raise refused(_ONLY_SUPER)

    # --------------------------------------------------------------------------- policies

    @serves(auth.AUTH_CREATE_ACL)
    def create_acl(
        self, request: Request[CreateAclRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Adds policies to a user; an entry with the same resource is replaced."""
        return self._add_acl(request, request.header.subject)

    @serves(auth.AUTH_UPDATE_ACL)
    def update_acl(
        self, request: Request[UpdateAclRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Does the same."""
        return self._add_acl(request, request.header.subject)

    def _add_acl(
        self, request: Request[Any], subject: str | None
    ) -> Reply[NoHeader] | PendingReply:
        self._check()
        return self._walks.soon(self._adding_acl(request, subject))

    def _adding_acl(self, request: Request[Any], subject: str | None) -> Walk:
        info = (yield from _read(request.body)) if request.body else AclInfo()
        if not info.policies:
            raise refused(f"{_EXCEPTION}: The body of acl is null", ResponseCode.SYSTEM_ERROR)
        name = user_of(info.subject)
        if name is None:
            name = user_of(subject)
        if name is None:
            raise refused(_FAILED, ResponseCode.SYSTEM_ERROR)
        acl = yield from making_acl(name, info)
        yield from self._accounts.adding_acl(acl)
        resources = ", ".join(
            f"{entry.decision.text} {'|'.join(each.text for each in entry.actions)} on"
            f" {entry.resource.key}"
            for entries in acl.policies.values()
            for entry in entries[:3]
        )
        count = sum(map(len, acl.policies.values()))
        return self._changed(
            request, f"set {count} policies of the user {name}, such as {resources}"
        )

    @serves(auth.AUTH_DELETE_ACL)
    def delete_acl(
        self, request: Request[DeleteAclRequestHeader]
    ) -> Reply[NoHeader] | PendingReply:
        """Deletes one entry of a user, or without a resource all of them."""
        self._check()
        return self._walks.soon(self._deleting_acl(request))

    def _deleting_acl(self, request: Request[DeleteAclRequestHeader]) -> Walk:
        header = request.header
        name = user_of(header.subject)
        if name is None:
            raise refused("The subject is null.")
        resource: Resource | None = None
        if (header.resource or "").strip():
            resource = resource_of(header.resource)
            if resource is None:
                raise refused("The resource is null.")
        kind = member(PolicyType, header.policy_type) or PolicyType.CUSTOM
        yield from self._accounts.deleting_acl(name, kind, resource)
        which = "all policies" if resource is None else f"the {kind.text} policy on {resource.key}"
        return self._changed(request, f"deleted {which} of the user {name}")

    @serves(auth.AUTH_GET_ACL)
    def get_acl(self, request: Request[GetAclRequestHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns the policies of one user."""
        self._check()
        name = user_of(request.header.subject)
        if name is None:
            raise refused(_FAILED, ResponseCode.SYSTEM_ERROR)
        acl = self._accounts.acl_of_user(name)
        return Reply() if acl is None else self._walks.soon(self._one(acl))

    @staticmethod
    def _one(acl: Acl) -> Walk:
        pieces = Pieces()
        is_there = yield from _add_acl(pieces, b"", acl, "")
        return Reply(body=pieces.end()) if is_there else Reply()

    @serves(auth.AUTH_LIST_ACL)
    def list_acls(self, request: Request[ListAclsRequestHeader]) -> Reply[NoHeader] | PendingReply:
        """Returns the policies of users and on resources whose names contain the filters."""
        self._check()
        subjects = (request.header.subject_filter or "").strip()
        resources = (request.header.resource_filter or "").strip()
        return self._walks.answer(self._all(subjects, resources))

    def _all(self, subjects: str, resources: str) -> Walk:
        """Puts the list together, some entries a step."""
        pieces, before = Pieces(), b"["
        acls = self._accounts.acls()
        for name in _in_order(acls):
            acl = acls[name]
            if subjects in acl.subject and (yield from _add_acl(pieces, before, acl, resources)):
                before = b","
            yield
        if before == b"[":
            return Reply()
        pieces.add(b"]")
        return Reply(body=pieces.end())


def _add_acl(pieces: Pieces, before: bytes, acl: Acl, resources: str) -> Steps[bool]:
    """Adds the body of an Acl behind some bytes, unless it has no such entries; returns that."""
    begin, end = encode_around({"policies": HOLE, "subject": acl.subject})
    between = before + begin + b"["
    is_there = False
    for kind, infos in acl.shown(resources).items():
        entries, last = encode_around({"entries": HOLE, "policyType": kind.text})
        separator = entries + b"["
        for at, info in enumerate(infos):
            if info is not None:
                pieces.add(between + separator + info.encode())
                between, separator = b"", b","
            if at % _AT_ONCE == 0:
                yield
        if separator == b",":
            pieces.add(b"]" + last)
            between, is_there = b",", True
    if is_there:
        pieces.add(b"]" + end)
    return is_there


def _read(data: bytes) -> Steps[AclInfo]:
    """Reads the body of an Acl, a long one in steps: it may have as many entries as it likes."""
    if len(data) <= SHORT_BYTES:
        return AclInfo.decode(data)
    try:
        return (yield from AclInfo.from_json_in_steps(decode_body(data, only_plain=True)))
    except BodyError as error:
        raise error.below(AclInfo.__name__) from None


def _asker(request: Request[Any]) -> str:
    return (request.command.ext_fields or {}).get(ACCESS_KEY, "")


def _name(username: str | None) -> str:
    """Returns a name that is given. Raises ResponseError if it is blank."""
    if not (username or "").strip():
        raise ResponseError(ResponseCode.INVALID_PARAMETER, "The username is blank")
    return username or ""


def _in_order(names: Iterable[str]) -> list[str]:
    """Returns names as RocksDB has its keys."""
    return sorted(names, key=lambda name: name.encode("utf-8", "replace"))
