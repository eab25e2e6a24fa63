# SPDX-License-Identifier: Apache-2.0
"""`python -m txrocketmq` is the command `txrocketmq`."""

from __future__ import annotations

import sys

from txrocketmq.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
