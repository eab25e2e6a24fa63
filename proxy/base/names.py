# SPDX-License-Identifier: Apache-2.0
"""Names that clients give: topics, groups, and texts without control characters.

Only the name of a resource counts. Its namespace is ignored in requests, as the original does; in
answers it is empty, and names are whole, so that what a client has been given it can give back.

Java: GrpcValidator, TopicValidator, Validators.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from txrocketmq.client.base.errors import MessageIllegal
from txrocketmq.client.base.validators import check_group, check_topic
from txrocketmq.proxy.base.statuses import Refused
from txrocketmq.proxy.schema.codes import Code
from txrocketmq.remoting.message.topics import is_system_topic

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SYSTEM_GROUP: Final = "CID_RMQ_SYS_"


def topic_of(resource: Any) -> str:
    """Returns the name of a topic. Raises Refused."""
    return _topic(resource.name)


def group_of(resource: Any) -> str:
    """Returns the name of a consumer group. Raises Refused."""
    return _group(resource.name)


@lru_cache(maxsize=4_096)  # those that can be: the same few come with every message
def _topic(name: str) -> str:
    try:
        check_topic(name)
    except MessageIllegal as error:
        raise Refused(Code.ILLEGAL_TOPIC, str(error)) from None
    if is_system_topic(name):
        raise Refused(Code.ILLEGAL_TOPIC, f"cannot access system topic {name}")
    return name


@lru_cache(maxsize=4_096)
def _group(name: str) -> str:
    try:
        check_group(name)
    except MessageIllegal as error:
        raise Refused(Code.ILLEGAL_CONSUMER_GROUP, str(error)) from None
    if name.startswith(_SYSTEM_GROUP):
        raise Refused(Code.ILLEGAL_CONSUMER_GROUP, f"cannot use system consumer group {name}")
    return name


def has_controls(text: str) -> bool:
    """Returns whether there are control characters in a text, as CharMatcher.javaIsoControl."""
    return not text.isprintable() and _CONTROLS.search(text) is not None
