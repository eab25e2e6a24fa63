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
    "consumers": ("members", "clients", "connections"),
}
"""By the names of ours, which are parts of a command."""
FOREIGN_PROGRAMS: Final = {
    "send": ("publish", "pub", "producer", "write"),
    "tail": ("cat", "kcat", "consumer", "subscribe", "sub", "read", "watch", "follow", "listen"),
    "status": ("cluster", "metadata", "info", "overview", "health", "describe", "top", "admin"),
    "topics": ("topic", "ls", "list", "create"),
    "groups": ("group", "consumer-groups", "members"),
    "offsets": ("offset", "reset", "seek"),
    "messages": ("message", "query", "search", "find", "view", "trace"),
    "accounts": ("account", "user", "users", "acl", "acls", "security", "login"),
    "policies": ("policy", "permissions"),
    "contexts": ("context", "profile", "profiles", "config"),
    "standalone": ("run", "start", "serve", "server", "up", "dev", "container"),
    "store": ("dump", "fsck", "repair", "check"),
}
"""The same for the first word of a command."""
