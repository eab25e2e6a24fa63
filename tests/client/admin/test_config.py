# SPDX-License-Identifier: Apache-2.0
"""How long servers may take."""

from __future__ import annotations

from dataclasses import fields

from txrocketmq.client.admin.config import AdminConfig
from txrocketmq.client.base.config import ClientConfig


def test_the_times_are_those_of_the_original_or_longer() -> None:
    assert AdminConfig().admin_timeout_ms == 5_000
    assert AdminConfig().search_timeout_ms > 10_000  # brokers give their clients ten seconds


def test_the_names_are_not_those_of_a_client() -> None:
    assert not {each.name for each in fields(AdminConfig)} & {
        each.name for each in fields(ClientConfig)
    }
