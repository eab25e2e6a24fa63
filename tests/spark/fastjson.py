# SPDX-License-Identifier: Apache-2.0
"""JSON in the form in which brokers write their configuration."""

from __future__ import annotations

import json
from typing import Any


def fastjson(value: Any, newline: str, *, inline: bool) -> str:
    """Writes JSON with tabs and bare numbers as keys, these in a line if `inline` (fastjson 1)."""
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    inner = newline + "\t"
    before = "" if inline and all(isinstance(name, int) for name in value) else inner
    members = (
        f"{before}{name if isinstance(name, int) else json.dumps(name, ensure_ascii=False)}:"
        + fastjson(member, inner, inline=inline)
        for name, member in value.items()
    )
    return "{" + ",".join(members) + newline + "}"
