# SPDX-License-Identifier: Apache-2.0
"""The benchmarks are no installed package: they are imported from the repository's root."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
