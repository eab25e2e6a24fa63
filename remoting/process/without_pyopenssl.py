# SPDX-License-Identifier: Apache-2.0
"""Keeps pyOpenSSL out of the processes of servers, which encrypt with Python's own `ssl`.

Twisted imports it, and with it cryptography, wherever they are installed. This takes time at each
start and some 6 MiB in each process, and Twisted works without them.
"""

from __future__ import annotations

import sys
from typing import cast


def leave_out_pyopenssl() -> None:
    """Makes imports of pyOpenSSL fail as if it were not installed.

    Commands call it before they import Twisted; if that is imported already, nothing changes.
    """
    if "twisted" not in sys.modules:
        cast("dict[str, object]", sys.modules).setdefault("OpenSSL", None)
