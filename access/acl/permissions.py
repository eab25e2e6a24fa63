# SPDX-License-Identifier: Apache-2.0
"""Permissions of ACL 1: what an account may do with a topic or a group.

Topics and groups are in one table: a group g is kept as `%RETRY%g`, the topic of its retries. Names
are literal. Java: Permission, PlainAccessResource.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from txrocketmq.access.acl.errors import AclError
from txrocketmq.remoting.message.topics import RETRY_PREFIX

DENY: Final = 1
ANY: Final = 2
"""Needed by a request for which PUB is as good as SUB."""
PUB: Final = 4
SUB: Final = 8
_TEXTS: Final = {"PUB": PUB, "SUB": SUB, "PUB|SUB": PUB | SUB, "SUB|PUB": PUB | SUB}


def permission(text: str | None) -> int:
    """Returns what a text permits; absent or anything else than the known words is DENY."""
    return DENY if text is None else _TEXTS.get(text.strip(), DENY)


def is_enough(owned: int, needed: int) -> bool:
    """Returns whether what an account owns is what a request needs."""
    if owned & DENY:
        return False
    return bool(owned & (PUB | SUB if needed & ANY else needed))


def permissions(topics: Iterable[str], groups: Iterable[str]) -> dict[str, int]:
    """Returns the table of entries like "name=PUB|SUB". Raises AclError for one that is none."""
    table = {}
    for kind, texts in (("group", groups), ("topic", topics)):
        for text in texts:
            items = [item for item in text.split("=") if item]
            if len(items) != 2:
                raise AclError(f"Parse resource permission failed for {kind}:{text}")
            name = items[0].strip()
            table[RETRY_PREFIX + name if kind == "group" else name] = permission(items[1])
    return table


def check_entries(texts: Iterable[str]) -> None:
    """Raises AclError unless all entries, which an administrator has sent, are right."""
    for text in texts:
        items = [item for item in text.split("=") if item]
        if len(items) != 2:
            raise AclError(
                f"Parse Resource format error for {text}.\n"
                "The expected resource format is 'Res=Perm'. For example: topicA=SUB"
            )
        if permission(items[1]) == DENY and items[1].strip() != "DENY":
            raise AclError(
                f"Parse resource permission error for {text}.\n"
                "The expected permissions are 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'."
            )
