# SPDX-License-Identifier: Apache-2.0
"""Settings of the admin client; times are in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

from txrocketmq.client.base.config import MAX_MS
from txrocketmq.remoting.arguments.arguments import checked_settings, within


@within(admin_timeout_ms=(1, MAX_MS), search_timeout_ms=(1, MAX_MS))
@checked_settings
@dataclass(frozen=True, slots=True, kw_only=True)
class AdminConfig:
    """How long servers may take to answer an administrator."""

    admin_timeout_ms: int = 5_000
    """How long a server may take to answer a request that is not a search (DefaultMQAdminExt)."""
    search_timeout_ms: int = 15_000
    """How long it may take to search messages, or to pass a request on to a client, for which a
    broker allows 10 s."""
