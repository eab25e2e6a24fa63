# SPDX-License-Identifier: Apache-2.0
"""Patterns of addresses, as the accounts of ACL 1 have them.

The first form that fits decides:

    blank                                          nobody
    *  *.*.*.*  *:*:*:*:*:*:*:*                    everybody
    10.1.2.{1,2,9}  1:2:3:4:5:6:7:{8,9}            a list in the last part
    10.1.2.3,::1                                   a list of addresses
    10.1.2.*  10.1.2.3-9  10.1-3.*.*               a range in part 2, 3 or 4; the rest is idle
    5::7:6:*  5::7:6:1-200  5::7:6:1-200:*         a range in the last group, or the last but one
    10.1.2.3  ::1                                  one address

This follows the original to the letter where a pattern works there, with its oddities: of
`10.1.*.7` the 7 does not count, `1::*` means 1:0:*, and blanks are ignored in ranges alone. What
makes it fail later, at each request, is refused here when the pattern is read; and so are IPv6
addresses with a prefix length or a zone, which it takes and never matches.

Java: RemoteAddressStrategyFactory, the address functions of AclUtils, InetAddressValidator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, Protocol

from txrocketmq.access.acl.errors import AclError
from txrocketmq.remoting.primitives.java_numbers import NumberFormatError, integer

EVERYBODY: Final = ("*", "*.*.*.*", "*:*:*:*:*:*:*:*")
_GROUPS: Final = 8
_PARTS: Final = 4
_LARGEST_PART: Final = 255
_LARGEST_GROUP: Final = 0xFFFF
_HEX: Final = re.compile(r"[+-]?[0-9a-fA-F]{1,8}")
_MOST_LENGTH: Final = 1000


class Pattern(Protocol):
    """Some addresses."""

    def matches(self, address: str) -> bool:
        """Returns whether an address, as `plain` returns it, is one of them."""


@dataclass(frozen=True, slots=True)
class All:
    """All addresses."""

    def matches(self, address: str) -> bool:
        """Returns True."""
        return True


@dataclass(frozen=True, slots=True)
class Some:
    """The addresses of a list, perhaps of none or one."""

    addresses: frozenset[str]

    def matches(self, address: str) -> bool:
        """Returns whether the address is in the list."""
        return address in self.addresses


@dataclass(frozen=True, slots=True)
class Range:
    """The addresses that begin with some parts, if the part behind these is in a range."""

    head: str
    least: int
    most: int

    def matches(self, address: str) -> bool:
        """Returns whether the address is in the range."""
        if not address.startswith(self.head):
            return False
        if ":" in address:
            part = int(address[len(self.head) :].lstrip(":").partition(":")[0], 16)
        else:
            part = int(address[len(self.head) :].partition(".")[0])
        return self.least <= part <= self.most


NOBODY: Final = Some(frozenset())


class Patterns:
    """The addresses that any of some patterns matches. Raises AclError for one that is none."""

    def __init__(self, texts: Iterable[str | None] = ()) -> None:
        patterns = [pattern(text) for text in texts]
        self._ranges = [each for each in patterns if not isinstance(each, Some)]
        lists = [each.addresses for each in patterns if isinstance(each, Some)]
        self._addresses = frozenset[str]().union(*lists)

    @property
    def is_empty(self) -> bool:
        """Whether they match nobody."""
        return not self._ranges and not self._addresses

    def matches(self, address: str) -> bool:
        """Returns whether an address, as `plain` returns it, is one of them."""
        return address in self._addresses or any(each.matches(address) for each in self._ranges)


def pattern(text: str | None) -> Pattern:
    """Returns the addresses that a text means. Raises AclError if it is no pattern."""
    if text is None or not text.strip():
        return NOBODY
    if len(text) > _MOST_LENGTH:
        raise _wrong(f"{text[:40]}..., which is too long")
    if text in EVERYBODY:
        return All()
    if text.endswith("}"):
        return Some(frozenset(_address(each) for each in _listed(text)))
    if "," in text:
        return Some(frozenset(_address(each) for each in text.split(",") if each))
    if "*" in text or "-" in text:
        try:
            return _ipv6_range(text) if ":" in text else _ipv4_range(text)
        except (NumberFormatError, IndexError):
            raise _wrong(text) from None
    return Some(frozenset((_address(text),)))


@lru_cache(maxsize=1024)
def plain(host: str) -> str:
    """Returns the form of an address in which patterns compare it; empty if it is no address.

    That is eight groups of four hexadecimal digits in upper case for IPv6. An IPv4 address that is
    mapped into IPv6 counts as that IPv4 address.
    """
    try:
        if ":" not in host:
            return str(IPv4Address(host))
        address = IPv6Address(host.partition("%")[0])
    except AddressValueError:
        return ""
    mapped = address.ipv4_mapped
    return address.exploded.upper() if mapped is None else str(mapped)


def _address(text: str) -> str:
    try:
        if ":" not in text:
            return str(IPv4Address(text))
        if "%" not in text:
            return plain(str(IPv6Address(text)))
    except AddressValueError:
        pass
    raise AclError(f"Netaddress examine Exception netaddress is {text}")


def _listed(text: str) -> list[str]:
    """The addresses of a pattern with a list in its last part, which are not checked yet."""
    colon = ":" in text
    parts = _split(text, ":" if colon else ".")
    if not colon and len(parts) < _PARTS:
        raise AclError(f"MultipleRemoteAddressStrategy has got a/some wrong format IP(s) {text}")
    if not parts[-1].startswith("{"):
        raise AclError(
            f"MultipleRemoteAddressStrategy netaddress examine scope Exception netaddress {text}"
        )
    before = text[: text.index("{")]
    return [before + each for each in _split(parts[-1][1:-1], ",")]


class _Number(Protocol):
    def __call__(self, text: str, /) -> int: ...


def _ipv4_range(text: str) -> Range:
    parts = _split(text, ".")
    for at in range(1, _PARTS):
        bounds = _bounds(parts[at].strip(), _LARGEST_PART, integer)
        if bounds is not None:
            break
    else:
        raise _wrong(text)
    if len(parts) != _PARTS or not all(
        0 <= integer(part.strip()) <= _LARGEST_PART for part in parts[: at - 1]
    ):
        raise _wrong(text)
    head = "".join(f"{part.strip()}." for part in parts[:at])
    return Range(head, *bounds)


def _ipv6_range(text: str) -> Range:
    star, minus = text.find("*"), text.find("-")
    if star not in (-1, len(text) - 1):
        raise _wrong(text)
    last = text.rindex(":")
    if minus > -1 and minus <= (last if star < 0 else text.rfind(":", 0, last)):
        raise _wrong(text)
    parts = _split(text, ":")
    for at in range(1, len(parts)):
        bounds = _bounds(parts[at].strip(), _LARGEST_GROUP, _hexadecimal)
        if bounds is not None:
            break
    else:
        raise _wrong(text)
    groups = _expanded(text, _GROUPS).split(":")
    if not all(0 <= _hexadecimal(group) <= _LARGEST_GROUP for group in groups[: at - 1]):
        raise _wrong(text)
    both = star > -1 and minus > -1
    before = text[: text.rfind(":", 0, last)] if both else text[:last]
    head = _expanded(before, _GROUPS - 2 if both else _GROUPS - 1)
    if len(head.split(":")) >= _GROUPS:
        raise _wrong(text)
    return Range(head, *bounds)


def _bounds(part: str, largest: int, number: _Number) -> tuple[int, int] | None:
    """The bounds of a part that is a range; None for another part, and for a range up to 0."""
    if part == "*":
        return 0, largest
    if "-" not in part:
        return None
    if part.startswith("-"):
        raise AclError(
            f"RangeRemoteAddressStrategy netaddress examine scope Exception value {part} "
        )
    bounds = _split(part, "-")
    start, end = number(bounds[0]), number(bounds[1])
    if not 0 <= start <= end <= largest:
        raise AclError(
            "RangeRemoteAddressStrategy netaddress examine scope Exception"
            f" start is {start} , end is {end}"
        )
    return (start, end) if end else None


def _hexadecimal(text: str) -> int:
    if not _HEX.fullmatch(text):
        raise NumberFormatError(text)
    return int(text, 16)


def _expanded(text: str, groups: int) -> str:
    """AclUtils.expandIP: the zeros that `::` leaves out, four digits a group, in upper case."""
    colons = text.count(":")
    if groups > colons:
        text = text.replace("::", ":" * (groups - colons + 1))
    return ":".join(group.rjust(4, "0") for group in text.upper().split(":"))


def _split(text: str, separator: str) -> list[str]:
    """StringUtils.split: without empty parts."""
    return [part for part in text.split(separator) if part]


def _wrong(text: str) -> AclError:
    return AclError(f"Netaddress examine scope Exception netaddress is {text}")
