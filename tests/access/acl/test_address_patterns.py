# SPDX-License-Identifier: Apache-2.0
"""Patterns against what the original's jar says of them, and against a naive model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txrocketmq.access.acl.address_patterns import NOBODY, Patterns, pattern, plain
from txrocketmq.access.acl.errors import AclError

GOLDEN = Path(__file__).parents[2] / "golden/acl/decisions-4.9.7.jsonl"
BYTES = st.integers(0, 255)


def _golden() -> tuple[list[dict[str, Any]], list[str]]:
    lines = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    (addresses,) = [line["addresses"] for line in lines if "addresses" in line]
    return [line for line in lines if "pattern" in line], addresses


PATTERNS, ADDRESSES = _golden()


@pytest.mark.parametrize("line", PATTERNS, ids=lambda line: repr(line["pattern"]))
def test_a_pattern_means_what_it_means_in_the_original(line: dict[str, Any]) -> None:
    text = line["pattern"]
    if "matched" not in line:
        with pytest.raises(AclError) as raised:
            pattern(text)
        if "java." not in (said := line.get("error", "java.")):
            assert str(raised.value).startswith(said)
        return
    found = pattern(text)
    assert [each for each in ADDRESSES if found.matches(plain(each))] == line["matched"]


@given(BYTES, BYTES, BYTES, BYTES, st.integers(1, 3), BYTES, st.integers(1, 255))
def test_a_range_is_a_comparison_of_one_part(
    a: int, b: int, c: int, d: int, at: int, low: int, high: int
) -> None:
    parts: list[Any] = [a, b, c, d]
    if low <= high:
        text = ".".join(map(str, [*parts[:at], f"{low}-{high}", "*", "*", "*"][:4]))
        for value in (parts[at], low, high, max(low - 1, 0), min(high + 1, 255)):
            other = [*parts[:at], value, *parts[at + 1 :]]
            assert pattern(text).matches(plain(".".join(map(str, other)))) == (low <= value <= high)
        strange = [*parts[: at - 1], (parts[at - 1] + 1) % 256, low, 1, 1][:4]
        assert not pattern(text).matches(plain(".".join(map(str, strange))))


@given(st.lists(st.ip_addresses(), max_size=5), st.ip_addresses())
def test_a_list_is_a_set_of_addresses(addresses: list[Any], other: Any) -> None:
    found = Patterns([",".join(map(str, addresses))])
    assert all(found.matches(plain(str(each))) for each in addresses)
    assert found.matches(plain(str(other))) == (other in addresses)


@given(st.text(alphabet="0123456789abx:.*-{}, ", max_size=24), st.sampled_from(ADDRESSES))
def test_any_text_is_a_pattern_or_an_error(text: str, address: str) -> None:
    try:
        found = pattern(text)
    except AclError:
        return
    assert found.matches(plain(address)) in (True, False)


@pytest.mark.parametrize("text", ["fe80::1%eth0", "::1/64", "*.1.2.3", "::*", "::1-2", "1" * 2000])
def test_what_would_never_match_is_an_error(text: str) -> None:
    with pytest.raises(AclError):
        pattern(text)


def test_what_is_no_address_is_matched_by_everybody_only() -> None:
    assert plain("/run/socket") == ""
    assert pattern("*").matches(plain("/run/socket"))
    assert not Patterns(["10.1.2.*", "10.1.2.3"]).matches(plain("/run/socket"))


def test_an_address_that_is_mapped_counts_as_the_one_it_maps() -> None:
    assert pattern("10.1.2.*").matches(plain("::ffff:10.1.2.3"))


def test_nobody_is_the_pattern_of_an_account_without_one() -> None:
    assert pattern(None) is NOBODY
    assert Patterns([None, " "]).is_empty
    assert not Patterns(["*"]).is_empty
