# SPDX-License-Identifier: Apache-2.0
"""The packages of the repository, which stand in setup.py."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Final

_MAP: Final = Path(__file__).parents[1] / "docs" / "file_map.py"
PARTS: Final[tuple[str, ...]] = runpy.run_path(str(_MAP))["PARTS"]
