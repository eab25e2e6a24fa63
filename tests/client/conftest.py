# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the client's tests."""

from __future__ import annotations

import pytest

from tests.client.fakes import Scene


@pytest.fixture
def scene() -> Scene:
    """A client among fakes."""
    return Scene()
