# SPDX-License-Identifier: Apache-2.0
"""What does not hold yet, with the reason: the one list of tests that are known to fail.

A name may stand for several tests, with `*`; the blank stands before what is in brackets. When all
of them pass, the run fails until the name is taken from here.
"""

from __future__ import annotations

from typing import Final

KNOWN: Final[dict[str, str]] = {}
