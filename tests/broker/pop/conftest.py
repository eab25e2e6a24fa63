# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.pop.scene import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A consumer and its broker."""
    made = Scene(tmp_path)
    yield made
    made.close()
