# SPDX-License-Identifier: Apache-2.0
"""Namespaces of version 1: a prefix of the names of topics and groups, as in "word%name".

The prefixes of retry and dead-letter topics stay in front; system topics and groups have none.
Counterpart of NamespaceUtil.
"""

from __future__ import annotations

from typing import Final

from txrocketmq.remoting.message.topics import DLQ_PREFIX, RETRY_PREFIX, is_system_topic

SEPARATOR: Final = "%"
SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"


def with_namespace(namespace: str, name: str) -> str:
    """The name at the brokers."""
    if not namespace or not name or _is_system(name):
        return name
    prefix, bare = _parts(name)
    if bare.startswith(namespace + SEPARATOR):
        return name
    return f"{prefix}{namespace}{SEPARATOR}{bare}"


def without_namespace(namespace: str, name: str) -> str:
    """The name in the program."""
    if not namespace or not name or _is_system(name):
        return name
    prefix, bare = _parts(name)
    start = namespace + SEPARATOR
    return prefix + bare.removeprefix(start) if bare.startswith(start) else name


def _parts(name: str) -> tuple[str, str]:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name.removeprefix(prefix)
    return "", name


def _is_system(name: str) -> bool:
    return is_system_topic(name) or name.startswith(SYSTEM_GROUP_PREFIX)
