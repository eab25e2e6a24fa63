# SPDX-License-Identifier: Apache-2.0
"""What requests need under ACL 1, as permissions of topics and groups.

Versions 4.9.7 and 5.2 ask for permissions with some ten requests, and leave all others to everybody
who has an account: by others one could read a topic that may not be read, or make oneself an
administrator. Here the table of ACL 2 (request_needs.py) says what a request does, and that is
asked for in the words of ACL 1:

    of a cluster, whatever is done with it           an administrator
    to create or to delete topics and groups         an administrator
    Pub                                              PUB
    Sub, or Update                                   SUB
    Get, or List                                     nothing but an account

So the requests that 4.9.7 knows need what they need there, but for three: a batch needs PUB; what
is sent to a retry topic needs SUB of the group of that topic, not of a group that the sender names;
and the administrators' requests are more than five. Java: PlainAccessValidator, Permission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from txrocketmq.access.acl.permissions import PUB, SUB
from txrocketmq.access.needs import Action, Needs, ResourceType
from txrocketmq.access.request_needs import NEEDS
from txrocketmq.remoting.codes import RequestCode
from txrocketmq.remoting.message.topics import RETRY_PREFIX

_ADMIN_ACTIONS: Final = frozenset((Action.CREATE, Action.DELETE))
_ALWAYS_SUB: Final = frozenset((RequestCode.QUERY_MESSAGE, RequestCode.GET_CONSUMER_LIST_BY_GROUP))
"""Requests of which ACL 2 is content with Get."""
ANYBODY: Final = frozenset((RequestCode.GET_BROKER_CLUSTER_ACL_INFO,))
"""Requests that need nothing but an account, though they are about the broker: this one shows the
versions of files, by which tools compare brokers."""


class PlainNeed(NamedTuple):
    """A permission of a topic, or of a group under the name of its retry topic."""

    resource: str
    permission: int

    @property
    def text(self) -> str:
        """The resource in the words of remarks."""
        if self.resource.startswith(RETRY_PREFIX):
            return f"group:{self.resource[len(RETRY_PREFIX) :]}"
        return f"topic:{self.resource}"


class PlainNeeds:
    """What the requests with one code need."""

    def __init__(self, code: int, needs: Needs) -> None:
        self._always_sub = code in _ALWAYS_SUB
        # A retry topic is the group here, also where that is asked for by itself: a tool may pull
        # the retry topic of a group in the name of another.
        parts = tuple(replace(part, retry=True) for part in needs.parts)
        self._needs = replace(needs, parts=parts, own_retry=False)
        self.is_admin = code not in ANYBODY and (
            needs.is_for_operators or any({*part.actions} <= _ADMIN_ACTIONS for part in parts)
        )
        """Whether only administrators may do this."""
        self.is_free = code in ANYBODY or not (
            self.is_admin or any(self._permission(part.actions) for part in parts)
        )
        """Whether every account may do this."""
        self.reads_body = needs.reads_body
        """Whether the body has to be looked at."""
        self.fields = needs.fields
        """The names of all fields that are looked at."""

    def of(self, fields: Mapping[str, str], body: bytes) -> list[PlainNeed]:
        """Returns what one request needs. Raises UnclearNeed."""
        found: dict[str, int] = {}
        for need in self._needs.of(fields, body, ""):
            permission = self._permission(need.actions)
            if permission and need.name is not None:
                is_group = need.type == ResourceType.GROUP
                found[RETRY_PREFIX + need.name if is_group else need.name] = permission
        return [PlainNeed(*each) for each in found.items()]

    def _permission(self, actions: tuple[Action, ...]) -> int:
        """The permission that one of these actions needs; 0 for none."""
        is_reading = Action.GET in actions or Action.LIST in actions
        if Action.SUB in actions and self._always_sub:
            return SUB
        if is_reading:
            return 0
        if Action.PUB in actions:
            return PUB
        return SUB if Action.SUB in actions or Action.UPDATE in actions else 0


PLAIN_NEEDS: Final[Mapping[int, PlainNeeds]] = {
    code: PlainNeeds(code, needs) for code, needs in NEEDS.items()
}
"""By code. A request of a code that is not here is left to administrators, if it is served."""
