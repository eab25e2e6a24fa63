# SPDX-License-Identifier: Apache-2.0
"""Words that other programs have for commands of ours."""

from __future__ import annotations

from typing import Final

FOREIGN_COMMANDS: Final = {
    "add": ("create", "new", "make"),
    "create": ("add", "new", "make"),
    "remove": ("delete", "rm", "del", "drop"),
    "delete": ("remove", "rm", "del", "drop"),
    "list": ("ls", "all"),
    "show": ("describe", "get", "info", "inspect", "view", "cat"),
    "view": ("show", "get", "describe", "cat"),
    "update": ("alter", "change", "edit", "set", "modify"),
    "change": ("alter", "update", "edit", "set", "modify"),
    "config": ("settings", "configs", "set", "get"),
    "query": ("find", "search", "list"),
    "use": ("select", "switch"),
}
"""By the names of ours."""
