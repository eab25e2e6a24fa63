# SPDX-License-Identifier: Apache-2.0
"""The Java system properties that environment variables give to the original's servers.

There is no Java here, so of most of them nothing follows; but those that are about TLS count here
as well, see tls.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Final

VARIABLES: Final = (
    "JAVA_OPT",
    "JAVA_OPT_EXT",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
)
"""The scripts runserver.sh and runbroker.sh read the first two, Java itself the others."""


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
