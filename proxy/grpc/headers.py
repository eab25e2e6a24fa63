# SPDX-License-Identifier: Apache-2.0
"""The headers of a call, of which few are looked at, so only those become texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final


class _Bytes(dict[str, bytes]):
    """Names as they are sent. They are those that the program asks for, so there are few."""

    def __missing__(self, name: str) -> bytes:
        data = self[name] = name.encode("latin-1")
        return data


_NAMES: Final = _Bytes()


class Headers:
    """Headers by their lower-case names; of several with one name, the last counts."""

    __slots__ = ("_data",)

    def __init__(self, pairs: dict[bytes, bytes] | Iterable[tuple[bytes, bytes]]) -> None:
        self._data = pairs if type(pairs) is dict else dict(pairs)

    def get(self, name: str, default: str = "") -> str:
        """Returns the text of a header; what is no UTF-8 in it is replaced."""
        data = self._data.get(_NAMES[name])
        return default if data is None else str(data, "utf-8", "replace")
