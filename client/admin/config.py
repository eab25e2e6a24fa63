# SPDX-License-Identifier: Apache-2.0
"""Settings of the admin client; times are in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminConfig:
    """How long servers may take to answer an administrator."""

    admin_timeout_ms: int = 5_000
    """For all but searches and what a broker asks its clients (DefaultMQAdminExt)."""
    search_timeout_ms: int = 15_000
    """For searches of messages, and for what brokers hand on to clients, which may take 10 s."""
