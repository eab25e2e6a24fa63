# SPDX-License-Identifier: Apache-2.0
"""`txrocketmq proxy`: serves clients of RocketMQ 5.x that speak gRPC, in front of any cluster.

The command is the entry point of the proxy itself, which has the original's options.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until a signal stops it; returns the exit code."""
    from txrocketmq.proxy.__main__ import main as run

    return run(arguments)


def make_parser() -> argparse.ArgumentParser:
    """The parser of its options."""
    from txrocketmq.proxy.__main__ import make_parser as make

    return make()
