# SPDX-License-Identifier: Apache-2.0
"""The text of a setting's value: what must not be in it, and what is shown of it.

Values become properties of messages, lines of logs and answers to tools, in all of which control
characters have a meaning: U+0001 and U+0002 separate the properties of a message. So no setting may
contain any. Passwords are settings as well; in their place everybody sees HIDDEN, whoever asks. The
original shows them to everybody who may read its settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from txrocketmq.remoting.primitives.plain_text import plain

HIDDEN: Final = "***"
"""What is shown in place of a secret."""
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""The categories Cc and Cs of Unicode."""
_SECRET_KEY: Final = re.compile("password|secret|credential|initAuthenticationUser", re.IGNORECASE)
_SECRET_VALUE: Final = re.compile(
    r"(password|secret_?key|authorization)[\"']?\s*[:=]|bearer ", re.IGNORECASE
)
"""As in the JSON of `initAuthenticationUser` and `socksProxyConfig`, whatever key it is given for,
and in the headers of `metricsGrpcExporterHeader`."""


def shown(key: str, text: str) -> str:
    """Returns the value of a setting as it may be shown: HIDDEN if it is or contains a secret."""
    is_secret = bool(text.strip()) and (_SECRET_KEY.search(key) or _SECRET_VALUE.search(text))
    return HIDDEN if is_secret else text


def all_shown(values: Mapping[str, str]) -> dict[str, str]:
    """Returns values by key as they may be shown."""
    return {key: shown(key, text) for key, text in values.items()}


def what_is_wrong(values: Mapping[str, str]) -> str:
    """Returns a sentence about the first control character in keys and values, if there is one."""
    for key, text in values.items():
        if found := _CONTROL.search(key) or _CONTROL.search(text.strip()):
            return (
                f"{plain(key)} contains the control character U+{ord(found[0]):04X}: write it"
                " without such characters"
            )
    return ""
