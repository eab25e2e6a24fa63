# SPDX-License-Identifier: Apache-2.0
"""Subscriptions by tag: Java's string hash, subscription expressions and their JSON form.

A consume queue contains the hash of each message's tag. The broker filters by the hash, and the
client then by the tag itself. The same hash finds keys in the index. It is Java's
`String.hashCode()`: a signed number of 32 bits, computed from UTF-16 code units.

Java: remoting.protocol.heartbeat.SubscriptionData, remoting.protocol.filter.FilterAPI.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from typing import Any, Final, TypeGuard, TypeVar

from txrocketmq.remoting.errors import RemotingError

_WHOLE = re.compile(r"-?[0-9]{1,10}")
_T = TypeVar("_T")

TAG: Final = "TAG"
SQL92: Final = "SQL92"
SUB_ALL: Final = "*"
"""The expression that accepts every message."""
MOST_TAGS: Final = 10_000
"""How many tags a subscription may have that somebody sends; reading so many takes some 10 ms."""

_SEPARATOR: Final = "||"
_JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's trim() removes; Python's strip() removes others too."""
_UTF16: Final = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
_DIGITS: Final = re.compile("-?[0-9]{1,19}")
_MASK: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000
_MAX_POWERS_LENGTH: Final = 512

_MAX_LANE_BYTES: Final = 256
_BATCH_TEXTS: Final = 64
_LANE_STEPS: Final = tuple(
    (
        8 * width_bytes,
        int.from_bytes(
            (b"\0" * width_bytes + b"\xff" * width_bytes)
            * (_MAX_LANE_BYTES * _BATCH_TEXTS // (2 * width_bytes)),
            "big",
        ),
        pow(31, width_bytes, _MASK + 1),
    )
    for width_bytes in (1, 2, 4, 8, 16, 32, 64, 128)
)
"""For each doubling of the lanes: bits of a lane, mask of every other lane, power of 31."""
_LOW_32_BITS_OF_LANE: Final = {
    width: struct.Struct(f">{width - 4}xi") for width in (4, 8, 16, 32, 64, 128, 256)
}


class SubscriptionError(RemotingError, ValueError):
    """A subscription cannot be understood; the text says why."""


def java_string_hash(text: str) -> int:
    """Returns what `String.hashCode()` returns in Java, a signed number of 32 bits.

    For many texts, `java_string_hashes` is faster.
    """
    units: bytes | memoryview[int]
    if text.isascii():
        units = text.encode()
    else:
        units = memoryview(text.encode(_UTF16, "surrogatepass")).cast("H")
    value: int
    if len(units) <= _MAX_POWERS_LENGTH:
        value = sum(map(mul, units, _powers(len(units))))
    else:
        value = 0
        for unit in units:
            value = (31 * value + unit) & _MASK
    return ((value & _MASK) ^ _SIGN) - _SIGN


@lru_cache(maxsize=_MAX_POWERS_LENGTH)
def _powers(length: int) -> tuple[int, ...]:
    """Returns 31**(length-1) to 31**0, modulo 2**32."""
    return tuple(pow(31, exponent, _MASK + 1) for exponent in range(length - 1, -1, -1))


def java_string_hashes(texts: Sequence[str]) -> list[int]:
    """Returns the `java_string_hash` of each text.

    For a dozen texts or more, it costs a quarter of hashing them one by one; the index needs two or
    three hashes for each stored message.
    """
    hashes: list[int] = []
    for start in range(0, len(texts), _BATCH_TEXTS):
        batch = texts[start : start + _BATCH_TEXTS]
        longest = max(map(len, batch))
        if longest <= _MAX_LANE_BYTES and "".join(batch).isascii():
            hashes += _ascii_hashes(batch, longest)
        else:
            hashes += map(java_string_hash, batch)
    return hashes


def _ascii_hashes(texts: Sequence[str], longest: int) -> list[int]:
    """Returns the hashes of the texts, padded with zeros on the left, which change no hash."""
    lane_bytes = 1 << max((longest - 1).bit_length(), 2)
    filled = "".join([text.rjust(lane_bytes, "\0") for text in texts])
    return _lane_hashes(filled.encode(), lane_bytes)


def _lane_hashes(texts: bytes, lane_bytes: int) -> list[int]:
    """Returns the hashes of all texts, computed at once in one big integer.

    Each text is a lane of bytes. A step multiplies every other lane by a power of 31 and adds it to
    its neighbour, so the lanes become twice as wide. The sum fits: powers are taken modulo 2**32,
    so a lane of k >= 4 bytes grows by 33 bits at most while it gains 8 * k; below that, 31**k <
    256**k leaves room.
    """
    lanes = int.from_bytes(texts, "big")
    for width_bits, mask, power in _LANE_STEPS[: lane_bytes.bit_length() - 1]:
        lanes = ((lanes >> width_bits) & mask) * power + (lanes & mask)
    packed = (lanes & ((1 << 8 * len(texts)) - 1)).to_bytes(len(texts), "big")
    return [value for (value,) in _LOW_32_BITS_OF_LANE[lane_bytes].iter_unpack(packed)]


@lru_cache(maxsize=4096)
def tags_code(tags: str | None) -> int:
    """Returns what a consume queue contains for a message with these TAGS; 0 if it has none."""
    return java_string_hash(tags) if tags else 0


@dataclass(frozen=True, slots=True)
class SubscriptionData:
    """The messages of a topic to which a consumer subscribes.

    `sub_version` is the time in ms at which the consumer made the subscription; the newest one
    counts. `class_filter_mode` is a relic of 3.x that the original still sends.
    """

    topic: str
    sub_string: str = SUB_ALL
    tags_set: frozenset[str] = frozenset()
    code_set: frozenset[int] = frozenset()
    sub_version: int = 0
    expression_type: str = TAG
    class_filter_mode: bool = False

    @property
    def accepts_all(self) -> bool:
        """Whether the client keeps every message that it has pulled, whatever its tag is."""
        return not self.tags_set or self.class_filter_mode

    def accepts_tags(self, tags: str | None) -> bool:
        """Returns whether the client keeps a pulled message with these TAGS (PullAPIWrapper)."""
        return self.accepts_all or tags in self.tags_set

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON object of the wire, as a dict."""
        return {
            "classFilterMode": self.class_filter_mode,
            "codeSet": sorted(self.code_set),
            "expressionType": self.expression_type,
            "subString": self.sub_string,
            "subVersion": self.sub_version,
            "tagsSet": sorted(self.tags_set),
            "topic": self.topic,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SubscriptionData:
        """Returns the subscription that a JSON object of the wire describes.

        As with fastjson, absent and null members have their defaults, and unknown ones are ignored.
        Raises SubscriptionError, which says what is wrong.
        """
        if not isinstance(value, Mapping):
            raise SubscriptionError(f"the subscription is not a JSON object: {value!r:.100}")
        return cls(
            topic=_field(value, "topic", str, ""),
            sub_string=_field(value, "subString", str, SUB_ALL),
            tags_set=frozenset(_items(value, "tagsSet", str)),
            code_set=frozenset(_items(value, "codeSet", int)),
            sub_version=_field(value, "subVersion", int, 0),
            expression_type=_field(value, "expressionType", str, TAG),
            class_filter_mode=_field(value, "classFilterMode", bool, default=False),
        )


def build_subscription_data(
    topic: str,
    sub_string: str | None,
    expression_type: str | None = None,
    sub_version: int = 0,
) -> SubscriptionData:
    """Returns the subscription that an expression means (FilterAPI.build).

    A TAG expression consists of tags separated by `||`; none, an empty one or `*` means every
    message. Expressions of other types are kept as they are. Raises SubscriptionError if a TAG
    expression consists of separators only ("||"), or if an expression of another type is missing.
    """
    if expression_type not in (None, TAG):
        if not sub_string:
            raise SubscriptionError(f"Expression can't be null! {expression_type}")
        return SubscriptionData(
            topic, sub_string, sub_version=sub_version, expression_type=str(expression_type)
        )
    if not sub_string or sub_string == SUB_ALL:
        return SubscriptionData(topic, sub_version=sub_version)
    if not sub_string.replace(_SEPARATOR, ""):
        raise SubscriptionError("subString split error")
    stripped = (part.strip(_JAVA_BLANKS) for part in sub_string.split(_SEPARATOR))
    tags = frozenset(tag for tag in stripped if tag)
    codes = frozenset(java_string_hash(tag) for tag in tags)
    return SubscriptionData(topic, sub_string, tags, codes, sub_version)


def _field(value: Mapping[str, Any], name: str, kind: type[_T], default: _T) -> _T:
    found = value.get(name)
    if found is None:
        return default
    if kind is int and isinstance(found, str) and _DIGITS.fullmatch(found):
        return kind(found)  # type: ignore[call-arg]  # the C++ client sends it as text
    if not _is(found, kind):
        raise SubscriptionError(f"{name} of a subscription must be {kind.__name__}: {found!r:.100}")
    return found


def _items(value: Mapping[str, Any], name: str, kind: type[_T]) -> Iterable[_T]:
    found = value.get(name)
    if found is None:
        return ()
    if isinstance(found, list):
        if len(found) > MOST_TAGS:
            raise SubscriptionError(
                f"{name} of a subscription has {len(found)} items, and {MOST_TAGS} are allowed"
            )
        if kind is int:  # the Go client sends them as texts
            found = [int(i) if isinstance(i, str) and _WHOLE.fullmatch(i) else i for i in found]
        items = [item for item in found if _is(item, kind)]
        if len(items) == len(found):
            return items
    raise SubscriptionError(
        f"{name} of a subscription must be a list of {kind.__name__}: {found!r:.100}"
    )


def _is(value: object, kind: type[_T]) -> TypeGuard[_T]:
    """Returns whether a value is of this type, except that true and false are not numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
