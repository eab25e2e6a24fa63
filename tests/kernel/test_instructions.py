# SPDX-License-Identifier: Apache-2.0
"""What a send costs with the compiled kernel, in instructions: the same on a busy machine.

So do a half message, which is a send, too, its commit, and a pull of 32 messages. Other
interpreters need a few more or fewer than the one with which the limits were found (CPython 3.11
without optimization by profiles, which needs most), so there is some room below each limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from benchmarks import signed
from benchmarks.instructions import NoValgrind, instructions
from tests.kernel.installed import needs_kernel

pytestmark = needs_kernel

LIMITS: Final = {
    ("JSON, 3 properties", 32): 12_000,
    ("JSON as of Go", 32): 28_000,
    ("binary, 3 properties", 32): 10_700,
    ("one-way, 3 properties", 32): 10_600,
    ("batch, 3 properties", 32): 2_700,
    ("JSON, 3 properties", 1): 90_000,
    ("batch, 3 properties", 1): 5_300,
    ("half message", 32): 12_400,
    ("half message", 1): 97_000,
    ("pull of 32", 1): 160_000,
    ("pull of 32", 32): 180_000,
}
"""By load and sends in a read: instructions a message."""
END_LIMITS: Final = {("commit", 32): 33_000, ("commit", 1): 160_000}
"""The same of ends of transactions, by a broker of their own."""
SIGNED_LIMITS: Final = {
    ("send, JSON", 1): 31_500,
    ("send, JSON", 32): 30_500,
    ("send, binary", 32): 30_500,
    ("pull, JSON", 1): 6_500,
    ("pull, JSON", 32): 5_000,
}
"""By load and requests in a read: how many instructions a signed request takes more. Of those of a
send of 1 KiB, 27,000 are SHA-1, since valgrind has no instructions for that."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("limits", [LIMITS, END_LIMITS], ids=["sends and pulls", "ends"])
def test_a_request_needs_no_more_instructions_than_before(
    limits: Mapping[tuple[str, int], int],
) -> None:
    try:
        counts = instructions(limits)
    except NoValgrind as reason:
        pytest.skip(f"instructions cannot be counted: {reason}")
    assert {each for each, count in counts.items() if count > limits[each]} == set(), counts
    # What counts nothing would stay below any limit.
    assert all(count > limits[each] / 3 for each, count in counts.items()), counts


@pytest.mark.timeout(900)
def test_a_signed_request_needs_little_more_than_its_hash() -> None:
    kinds = signed.PLAIN, signed.ACL_2
    try:
        counts = instructions((f"{name}, {kind}", n) for name, n in SIGNED_LIMITS for kind in kinds)
    except NoValgrind as reason:
        pytest.skip(f"instructions cannot be counted: {reason}")
    more = {
        (name, n): counts[f"{name}, {signed.ACL_2}", n] - counts[f"{name}, {signed.PLAIN}", n]
        for name, n in SIGNED_LIMITS
    }
    assert {each for each, count in more.items() if count > SIGNED_LIMITS[each]} == set(), more
    # What checks no signature would stay below any limit.
    assert all(count > SIGNED_LIMITS[each] / 3 for each, count in more.items()), more
