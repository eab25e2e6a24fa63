# SPDX-License-Identifier: Apache-2.0
"""Tests that are known to fail, each with the reason.

A name may stand for several tests, with `*`; a blank stands before what is in brackets. When all of
them pass, the run fails until the name is removed from this list.
"""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {}
