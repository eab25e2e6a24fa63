# SPDX-License-Identifier: Apache-2.0
"""The settings of a broker for tests: small files, and clients that survive jumps of the clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEFAULTS: Final[Mapping[str, str]] = {
    "listenPort": "0",
    "mappedFileSizeCommitLog": str(64 * 1024 * 1024),
    "maxHashSlotNum": "50000",
    "maxIndexNum": "200000",
    "enablePropertyFilter": "true",
    "recallMessageEnable": "true",
    "channelExpiredTimeout": str(2**31 - 1),  # a closed connection is noticed all the same
}
"""The settings whose values differ from the original's defaults."""


def broker_settings(store: str, given: Mapping[str, object]) -> dict[str, str]:
    """Returns settings as text, by name, with values in the form of broker.conf."""
    return {
        **DEFAULTS,
        "storePathRootDir": store,
        **{key: setting_text(value) for key, value in given.items()},
    }


def setting_text(value: object) -> str:
    """Returns a value as text in the form of broker.conf."""
    return str(value).lower() if isinstance(value, bool) else str(value)
