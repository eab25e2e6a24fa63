# SPDX-License-Identifier: Apache-2.0
"""What the tests of commands share."""

from __future__ import annotations

import pytest

from tests.cli.administered import Administered


@pytest.fixture
def administered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Administered:
    """A cluster, and the output of commands that administrate it."""
    return Administered(monkeypatch, capsys)
