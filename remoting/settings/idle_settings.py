# SPDX-License-Identifier: Apache-2.0
"""Tells whoever starts a server which lines of its file are misspelt, or change nothing here."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from txrocketmq.remoting.settings.config_file import ignored_keys


def tell_idle(
    program: str,
    path: str | None,
    unknown: Iterable[object],
    classes: Iterable[type],
    given: Mapping[str, str],
) -> None:
    """Prints the unknown keys on standard error, and those of settings that have no effect here.

    `given` is what the file at `path` has, and `classes` are the settings of the server.
    """
    for key in unknown:
        sys.stderr.write(f"{program}: {path}: {key}\n")
    idle = [key for cls in classes for key in ignored_keys(cls, given)]
    if idle:
        names = ", ".join(idle)
        sys.stderr.write(f"{program}: {path}: accepted, without effect here: {names}\n")
