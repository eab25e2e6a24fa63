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
ACCOUNTS: Final = "accounts"
"""The word that stands for the settings of a broker with accounts, and is no setting itself."""
ACCESS_KEY: Final = "root"
SECRET_KEY: Final = "root-secret"  # noqa: S105 - only tests have it
"""The account that may do everything."""
ACCOUNT_SETTINGS: Final[Mapping[str, str]] = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": f'{{"username":"{ACCESS_KEY}","password":"{SECRET_KEY}"}}',
}


def broker_settings(store: str, given: Mapping[str, object]) -> dict[str, str]:
    """Returns settings as text, by name, with values in the form of broker.conf."""
    own, given = dict(DEFAULTS), dict(given)
    if given.pop(ACCOUNTS, False):
        own |= ACCOUNT_SETTINGS
    texts = {key: setting_text(value) for key, value in given.items()}
    return {**own, "storePathRootDir": store, **texts}


def credentials_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of a client that may do everything at a broker with these settings.

    They are empty if the broker asks for no accounts, or if its accounts are those of the test.
    """
    if settings.get("initAuthenticationUser") != ACCOUNT_SETTINGS["initAuthenticationUser"]:
        return {}
    return {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}


def setting_text(value: object) -> str:
    """Returns a value as text in the form of broker.conf."""
    return str(value).lower() if isinstance(value, bool) else str(value)
