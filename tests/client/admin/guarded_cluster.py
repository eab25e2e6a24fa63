# SPDX-License-Identifier: Apache-2.0
"""A cluster whose brokers keep accounts and policies, for the client and for its commands."""

from __future__ import annotations

from typing import Any

from tests.client.admin.fake_cluster import SLAVE, Cluster, refused
from tests.client.fakes import BROKER_A, BROKER_B
from txrocketmq.remoting.call import Reply
from txrocketmq.remoting.protocol.body.auth import AclInfo, PolicyInfo, UserInfo
from txrocketmq.remoting.protocol.operations import auth
from txrocketmq.remoting.serialize.json import encode_body

ALL = [BROKER_A, BROKER_B, SLAVE]


class Guarded(Cluster):
    """Brokers that keep accounts and policies as the original's do."""

    def __init__(self, **clusters: list[str]) -> None:
        super().__init__(**clusters)
        self.users: dict[str, dict[str, UserInfo]] = {address: {} for address in ALL}
        self.acls: dict[str, dict[str, AclInfo]] = {address: {} for address in ALL}
        self.tells_passwords = True
        for address in ALL:
            for call, answer in (
                (auth.AUTH_CREATE_USER, self._create),
                (auth.AUTH_UPDATE_USER, self._update),
                (auth.AUTH_DELETE_USER, self._delete),
                (auth.AUTH_GET_USER, self._get),
                (auth.AUTH_LIST_USER, self._list),
                (auth.AUTH_CREATE_ACL, self._merge),
                (auth.AUTH_DELETE_ACL, self._delete_acl),
                (auth.AUTH_GET_ACL, self._get_acl),
                (auth.AUTH_LIST_ACL, self._list_acls),
            ):
                self.connections.on(address, call, answer)

    def _create(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        if header.username in self.users[address]:
            return refused(16, "The user is existed")
        self.users[address][header.username] = UserInfo.decode(body)
        return Reply()

    def _update(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        old, new = self.users[address][header.username].to_json(), UserInfo.decode(body).to_json()
        self.users[address][header.username] = UserInfo.from_json({**old, **new})
        return Reply()

    def _delete(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        self.users[address].pop(header.username, None)
        return Reply()

    def _told(self, its: UserInfo) -> dict[str, Any]:
        hidden = {} if self.tells_passwords else {"password": None}
        return {"userStatus": "enable", **its.to_json(), **hidden}

    def _get(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        found = self.users[address].get(header.username)
        return Reply(body=b"" if found is None else encode_body(self._told(found)))

    def _list(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        users = self.users[address].values()
        found = [self._told(each) for each in users if (header.filter or "") in str(each.username)]
        return Reply(body=encode_body(found) if found else b"")

    def _merge(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        """The same resource and kind is replaced, all else is added."""
        old, new = self.acls[address].get(header.subject), AclInfo.decode(body)
        kinds: dict[Any, dict[Any, Any]] = {}
        for acl in (old, new):
            for policy in (acl and acl.policies) or ():
                its = kinds.setdefault(policy.policy_type, {})
                its.update({entry.resource: entry for entry in policy.entries or ()})
        self._put(address, header.subject, kinds)
        return Reply()

    def _put(self, address: str, subject: str, kinds: dict[Any, dict[Any, Any]]) -> None:
        policies = [
            PolicyInfo(policy_type=kind, entries=list(its.values())) for kind, its in kinds.items()
        ]
        self.acls[address][subject] = AclInfo(subject=subject, policies=policies)

    def _delete_acl(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        acl = self.acls[address].pop(header.subject, None)
        if acl is None:
            return refused(16, "The acl is not exist.")
        if header.resource is not None:
            kinds = {
                policy.policy_type: {
                    entry.resource: entry
                    for entry in policy.entries or ()
                    if (policy.policy_type, entry.resource) != (header.policy_type, header.resource)
                }
                for policy in acl.policies or ()
            }
            self._put(address, header.subject, kinds)
        return Reply()

    def _get_acl(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        if header.subject.removeprefix("User:") not in self.users[address]:
            return refused(16, "The subject is not exist.")
        found = self.acls[address].get(header.subject)
        return Reply(body=b"" if found is None else found.encode())

    def _list_acls(self, address: str, header: Any, body: bytes) -> Reply[Any]:
        found = [each.to_json() for each in self.acls[address].values()]
        return Reply(body=encode_body(found) if found else b"")
