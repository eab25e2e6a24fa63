# SPDX-License-Identifier: Apache-2.0
"""The Java system properties that environment variables give to the original's servers.

There is no Java here, so none of them has an effect. But somebody who demands TLS with one of them
must not get a server that accepts everything unencrypted; see `refuse_unserved`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Final

from txrocketmq.remoting.config_file import ConfigError, Unserved

VARIABLES: Final = (
    "JAVA_OPT",
    "JAVA_OPT_EXT",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
)
"""The start scripts runserver.sh and runbroker.sh read the first two, Java itself reads the
others."""


def system_properties(environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Returns value and variable by key, for each -Dkey=value; of several, the last counts."""
    found: dict[str, tuple[str, str]] = {}
    for variable in VARIABLES:
        text = environment.get(variable, "")
        try:
            words = shlex.split(text)
        except ValueError:  # a quotation that does not end
            words = text.split()
        for word in words:
            key, _, value = word.removeprefix("-D").partition("=")
            if word.startswith("-D") and key:
                found[key] = value, variable
    return found


def refuse_unserved(environment: Mapping[str, str], unserved: Iterable[Unserved]) -> None:
    """Raises ConfigError when a system property promises what is not served."""
    properties = system_properties(environment)
    for each in unserved:
        if each.key in properties:
            value, variable = properties[each.key]
            try:
                each.check(value)
            except ConfigError as error:
                raise ConfigError(f"${variable}: -D{error}") from None
