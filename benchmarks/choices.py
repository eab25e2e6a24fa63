# SPDX-License-Identifier: Apache-2.0
"""An argument of a benchmark that names some of its loads, sides or clients."""

import argparse
from collections.abc import Callable, Iterable


def some_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Returns a type for argparse: a list, with commas, of some of these names."""
    allowed = tuple(known)

    def chosen(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(allowed)}")
        return names

    return chosen
