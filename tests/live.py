# SPDX-License-Identifier: Apache-2.0
"""Tables of live settings: for each setting a small check that a change takes effect at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

Check = TypeVar("Check", bound=Callable[..., None])


class Checks(dict[str, Callable[..., None]]):
    """A table of checks; the name of a check is that of its setting."""

    def __call__(self, check: Check) -> Check:
        """Adds a check; used as a decorator."""
        assert check.__name__ not in self
        self[check.__name__] = check
        return check


def live(*classes: Any) -> set[str]:
    """Returns the names of the settings that are declared live."""
    return {
        each.name for cls in classes for each in dataclasses.fields(cls) if each.metadata["live"]
    }
