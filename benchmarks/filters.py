# SPDX-License-Identifier: Apache-2.0
"""SQL92 filters in process: microseconds of CPU for a message, from its record to the verdict.

python -m benchmarks.filters [--rounds N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Final

from txrocketmq.broker.filter.expression import Expressions
from txrocketmq.remoting.message.message import MessageExt, encode_message, record_properties

EXPRESSIONS: Final = (
    "a > 5 AND b = 'x'",
    "a > 5.5",
    "b IN ('w', 'x', 'y')",
    "(a BETWEEN 1 AND 9 OR c IS NULL) AND b NOT CONTAINS 'z' AND TAGS = 'order'",
)
PROPERTIES: Final = {
    "UNIQ_KEY": "7F0000010000000000000000DEADBEEF",
    "CLUSTER": "DefaultCluster",
    "MSG_REGION": "DefaultRegion",
    "TRACE_ON": "true",
    "WAIT": "true",
    "TAGS": "order",
    "KEYS": "order-4711",
    "a": "7",
    "b": "x",
}
_MESSAGES: Final = 50_000


def main() -> None:
    """Prints the median of some rounds for each expression."""
    parser = argparse.ArgumentParser(prog="benchmarks.filters")
    parser.add_argument("--rounds", type=int, default=7)
    rounds: int = parser.parse_args().rounds
    record = memoryview(encode_message(MessageExt("Orders", bytes(1024), 0, dict(PROPERTIES))))
    for text in EXPRESSIONS:
        started = time.process_time()
        expression = Expressions().compile(text)
        compiled_us = (time.process_time() - started) * 1e6
        if not expression.wants(record_properties(record)):
            raise SystemExit(f"{text} does not match: this measures something else")
        took = sorted(_us(expression.wants, record) for _ in range(rounds))
        print(f"{took[len(took) // 2]:6.2f} us   {text}   (compiled in {compiled_us:.0f} us)")


def _us(wants: Callable[[str], bool], record: memoryview) -> float:
    started = time.process_time()
    for _ in range(_MESSAGES):
        wants(record_properties(record))
    return (time.process_time() - started) / _MESSAGES * 1e6


if __name__ == "__main__":
    main()
