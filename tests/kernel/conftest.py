# SPDX-License-Identifier: Apache-2.0
"""Lets tests import the benchmarks, which are not installed, from the repository's root."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
