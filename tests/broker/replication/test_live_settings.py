# SPDX-License-Identifier: Apache-2.0
"""Runs the checks of live settings of replication."""

from __future__ import annotations

import pytest

from tests.broker.conftest import Parts
from tests.broker.replication.live_settings import check


@pytest.mark.parametrize("name", check)
def test_a_live_setting_counts_at_once(sync_master: Parts, name: str) -> None:
    check[name](sync_master)
