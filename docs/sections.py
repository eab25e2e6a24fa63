# SPDX-License-Identifier: Apache-2.0
"""Parts of pages that are written by a program, between two markers."""

from __future__ import annotations

from collections.abc import Iterable


def replaced(page: str, name: str, lines: Iterable[str]) -> str:
    """The page with these lines between `<!-- begin NAME -->` and `<!-- end NAME -->`.

    Raises ValueError when a marker is missing.
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    before, found, rest = page.partition(begin)
    _, also_found, after = rest.partition(end)
    if not (found and also_found):
        raise ValueError(f"the page lacks the markers of {name!r}")
    return before + begin + "\n" + "\n".join(lines) + "\n\n" + end + after
