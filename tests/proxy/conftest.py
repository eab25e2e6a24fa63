# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the proxy's tests."""

from __future__ import annotations

import pytest

from tests.proxy.scene import ProxyScene


@pytest.fixture
def scene() -> ProxyScene:
    """A proxy whose brokers are fakes."""
    return ProxyScene()
